"""Kafka's rules of elections, each held to its own definition over drawn partitions (Election.scala, PartitionChangeBuilder.java)."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harrow.cluster_model.controller.assignment import assign_replicas
from harrow.cluster_model.controller.leader_election import (
    elect_for_controlled_shutdown,
    elect_for_offline,
    elect_preferred,
    without_replica,
)
from harrow.cluster_model.kraft.partition_change import Elected, Election, LeaderRules, changed_partition
from harrow.cluster_model.kraft.records import PartitionRecord
from harrow.cluster_model.protocol import LeaderAndIsr

BROKERS = (0, 1, 2, 3)
assignments = st.permutations(BROKERS).map(tuple)
members = st.lists(st.sampled_from(BROKERS), unique=True).map(tuple)
brokers = st.sets(st.sampled_from(BROKERS)).map(frozenset)


@pytest.mark.soak(size=100, test=1, soak=100)
@settings(max_examples=100)
@given(assignment=assignments, isr=members, live=brokers, unclean=st.booleans())
def test_a_failed_leader_is_followed_by_the_first_live_member_of_the_isr_in_the_order_of_the_assignment(
    assignment: tuple[int, ...], isr: tuple[int, ...], live: frozenset[int], unclean: bool
) -> None:
    elected = elect_for_offline(LeaderAndIsr(-1, 4, isr, 9), assignment, live, unclean=unclean)
    in_sync = [replica for replica in assignment if replica in live and replica in isr]
    alive = [replica for replica in assignment if replica in live]
    if in_sync:
        left = tuple(member for member in isr if member in live)
        assert elected == LeaderAndIsr(in_sync[0], 5, left, 9)
    elif unclean and alive:
        assert elected == LeaderAndIsr(alive[0], 5, (alive[0],), 9)
    else:
        assert elected is None


@pytest.mark.soak(size=100, test=1, soak=100)
@settings(max_examples=100)
@given(assignment=assignments, isr=members, live=brokers, leader=st.sampled_from(BROKERS))
def test_the_preferred_leader_is_the_first_of_the_assignment_if_it_lives_and_is_in_the_isr(
    assignment: tuple[int, ...], isr: tuple[int, ...], live: frozenset[int], leader: int
) -> None:
    elected = elect_preferred(LeaderAndIsr(leader, 4, isr, 9), assignment, live)
    first = assignment[0]
    if first in live and first in isr and first != leader:
        assert elected == LeaderAndIsr(first, 5, isr, 9)
    else:
        assert elected is None


@pytest.mark.soak(size=100, test=1, soak=100)
@settings(max_examples=100)
@given(assignment=assignments, isr=members, live=brokers, stopping=brokers)
def test_a_controlled_shutdown_is_never_unclean(
    assignment: tuple[int, ...], isr: tuple[int, ...], live: frozenset[int], stopping: frozenset[int]
) -> None:
    elected = elect_for_controlled_shutdown(LeaderAndIsr(-1, 4, isr, 9), assignment, live, stopping)
    able = [replica for replica in assignment if replica in isr and replica in live - stopping]
    assert (None if elected is None else elected.leader) == (able[0] if able else None)
    assert elected is None or set(elected.isr) == set(isr) - stopping


@pytest.mark.soak(size=100, test=1, soak=100)
@settings(max_examples=100)
@given(isr=members.filter(bool), gone=st.sampled_from(BROKERS), leader=st.sampled_from((-1, *BROKERS)))
def test_the_last_member_stays_in_the_isr_of_zookeeper(isr: tuple[int, ...], gone: int, leader: int) -> None:
    left = without_replica(LeaderAndIsr(leader, 4, isr, 9), gone)
    assert left.isr == (isr if len(isr) == 1 else tuple(member for member in isr if member != gone))
    assert left.leader == (-1 if leader == gone else leader)
    assert left.leader_epoch == 5


@st.composite
def partitions(draw: st.DrawFn) -> PartitionRecord:
    """Return a partition of KRaft: a leader in the ISR, or none; nobody is in both ISR and ELR."""
    isr = draw(members)
    leader = draw(st.sampled_from((-1, *isr)))
    elr = draw(members.map(lambda elr: tuple(member for member in elr if member not in isr)))
    last = draw(st.sampled_from((-1, *BROKERS))) if leader < 0 else -1
    return PartitionRecord("t-0", draw(assignments), leader, 4, isr, 9, elr, last)


@pytest.mark.soak(size=200, test=1, soak=100)
@settings(max_examples=200)
@given(
    known=partitions(),
    isr=members,
    live=brokers,
    lost=brokers,
    min_isr=st.one_of(st.none(), st.integers(1, 4)),
    election=st.sampled_from(Election),
)
def test_a_change_in_kraft_elects_counts_epochs_and_keeps_eligible_replicas_by_the_rules(
    known: PartitionRecord,
    isr: tuple[int, ...],
    live: frozenset[int],
    lost: frozenset[int],
    min_isr: int | None,
    election: Election,
) -> None:
    rules = LeaderRules(is_acceptable=live.__contains__, election=election, elr_min_isr=min_isr)
    made = changed_partition(known, rules, isr, lost)
    if made is None:
        return
    changed, elected = made
    is_unclean = elected is not Elected.CLEAN
    # Each change has its partition epoch, each other leader its leader epoch.
    assert changed.partition_epoch == 10
    assert changed.leader_epoch == 4 + (changed.leader != known.leader)
    # Who leads is live and in the ISR, which is it alone after an unclean election.
    assert changed.leader == -1 or (changed.leader in live and changed.leader in changed.isr)
    assert not is_unclean or changed.isr == (changed.leader,)
    # Nobody is in the ISR and eligible; who has stopped uncleanly is not; and nobody is while the ISR is large enough.
    assert not set(changed.elr) & set(changed.isr)
    assert not set(changed.elr) & lost
    assert set(changed.elr) <= {*known.elr, *known.isr}
    wanted = isr or (known.isr if min_isr is None else ())
    if min_isr is None or len(wanted) >= min_isr:
        assert changed.elr == ()
    # Without eligible replicas the ISR never becomes empty.
    assert changed.isr or min_isr is not None or not known.isr
    # A clean election takes nobody who was neither in the ISR nor eligible.
    if not is_unclean and changed.leader >= 0:
        assert changed.leader in {*wanted, *known.elr, *known.isr}


@pytest.mark.soak(size=100, test=1, soak=100)
@settings(max_examples=100)
@given(known=partitions(), live=brokers)
def test_a_leader_of_kraft_that_may_lead_goes_on(known: PartitionRecord, live: frozenset[int]) -> None:
    rules = LeaderRules(is_acceptable=live.__contains__, election=Election.ONLINE, elr_min_isr=None)
    made = changed_partition(known, rules, known.isr)
    leader = known.leader if made is None else made[0].leader
    if known.leader in live:
        assert leader == known.leader
    else:
        able = [replica for replica in known.replicas if replica in known.isr and replica in live]
        assert leader == (able[0] if able else leader)
        assert able or leader in (-1, known.last_known_leader)


@pytest.mark.soak(size=100, test=1, soak=100)
@settings(max_examples=100)
@given(
    count=st.integers(1, 7),
    partitions=st.integers(1, 20),
    factor=st.integers(1, 7),
    start=st.integers(0, 6),
    shift=st.integers(0, 6),
)
def test_the_first_replicas_go_round_and_no_broker_has_a_partition_twice(
    count: int, partitions: int, factor: int, start: int, shift: int
) -> None:
    factor = min(factor, count)
    assigned = assign_replicas(range(count), partitions, factor, None, start % count, shift)
    assert [replicas[0] for replicas in assigned] == [(start + n) % count for n in range(partitions)]
    assert all(len(set(replicas)) == factor for replicas in assigned)


@pytest.mark.soak(size=100, test=1, soak=100)
@settings(max_examples=100)
@given(
    racks=st.integers(2, 4), each=st.integers(1, 3), partitions=st.integers(1, 20), factor=st.integers(1, 4)
)
def test_with_racks_each_replica_is_in_another_one_while_there_is_one(
    racks: int, each: int, partitions: int, factor: int
) -> None:
    factor = min(factor, racks)
    rack_of = {broker: f"rack-{broker % racks}" for broker in range(racks * each)}
    assigned = assign_replicas(tuple(rack_of), partitions, factor, rack_of)
    assert all(len({rack_of[broker] for broker in replicas}) == factor for replicas in assigned)
    firsts = [replicas[0] for replicas in assigned]
    assert all(rack_of[one] != rack_of[other] for one, other in pairwise(firsts))
