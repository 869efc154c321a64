"""Kafka's election rules, checked against their definitions on random partitions.

The rules are those of ``Election.scala`` and ``PartitionChangeBuilder.java``.
"""

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
from harrow.cluster_model.kraft.partition_change import (
    ElectedLeader,
    Election,
    LeaderRules,
    changed_partition,
)
from harrow.cluster_model.kraft.records import PartitionRecord
from harrow.cluster_model.protocol import LeaderAndIsr

BROKERS = (0, 1, 2, 3)
assignments = st.permutations(BROKERS).map(tuple)
members = st.lists(st.sampled_from(BROKERS), unique=True).map(tuple)
brokers = st.sets(st.sampled_from(BROKERS)).map(frozenset)


@pytest.mark.soak(size=100, rounds_in_test=1, rounds_in_soak=100)
@settings(max_examples=100)
@given(assignment=assignments, isr=members, live=brokers, unclean=st.booleans())
def test_the_first_live_isr_member_of_the_assignment_succeeds_a_failed_leader(
    assignment: tuple[int, ...], isr: tuple[int, ...], live: frozenset[int], unclean: bool
) -> None:
    elected = elect_for_offline(LeaderAndIsr(-1, 4, isr, 9), assignment, live, unclean=unclean)
    in_sync = [replica for replica in assignment if replica in live and replica in isr]
    alive = [replica for replica in assignment if replica in live]
    if in_sync:
        live_isr = tuple(member for member in isr if member in live)
        assert elected == LeaderAndIsr(in_sync[0], 5, live_isr, 9)
    elif unclean and alive:
        assert elected == LeaderAndIsr(alive[0], 5, (alive[0],), 9)
    else:
        assert elected is None


@pytest.mark.soak(size=100, rounds_in_test=1, rounds_in_soak=100)
@settings(max_examples=100)
@given(assignment=assignments, isr=members, live=brokers, leader=st.sampled_from(BROKERS))
def test_the_preferred_leader_is_elected_if_it_is_live_and_in_the_isr(
    assignment: tuple[int, ...], isr: tuple[int, ...], live: frozenset[int], leader: int
) -> None:
    elected = elect_preferred(LeaderAndIsr(leader, 4, isr, 9), assignment, live)
    first = assignment[0]
    if first in live and first in isr and first != leader:
        assert elected == LeaderAndIsr(first, 5, isr, 9)
    else:
        assert elected is None


@pytest.mark.soak(size=100, rounds_in_test=1, rounds_in_soak=100)
@settings(max_examples=100)
@given(assignment=assignments, isr=members, live=brokers, stopping=brokers)
def test_a_controlled_shutdown_never_elects_uncleanly(
    assignment: tuple[int, ...], isr: tuple[int, ...], live: frozenset[int], stopping: frozenset[int]
) -> None:
    elected = elect_for_controlled_shutdown(LeaderAndIsr(-1, 4, isr, 9), assignment, live, stopping)
    candidates = [replica for replica in assignment if replica in isr and replica in live - stopping]
    assert (None if elected is None else elected.leader) == (candidates[0] if candidates else None)
    assert elected is None or set(elected.isr) == set(isr) - stopping


@pytest.mark.soak(size=100, rounds_in_test=1, rounds_in_soak=100)
@settings(max_examples=100)
@given(isr=members.filter(bool), removed=st.sampled_from(BROKERS), leader=st.sampled_from((-1, *BROKERS)))
def test_with_zookeeper_the_last_member_stays_in_the_isr(
    isr: tuple[int, ...], removed: int, leader: int
) -> None:
    state = without_replica(LeaderAndIsr(leader, 4, isr, 9), removed)
    assert state.isr == (isr if len(isr) == 1 else tuple(member for member in isr if member != removed))
    assert state.leader == (-1 if leader == removed else leader)
    assert state.leader_epoch == 5


@st.composite
def partitions(draw: st.DrawFn) -> PartitionRecord:
    """Draw a KRaft partition: a leader in the ISR or none, and disjoint ISR and ELR."""
    isr = draw(members)
    leader = draw(st.sampled_from((-1, *isr)))
    elr = draw(members.map(lambda elr: tuple(member for member in elr if member not in isr)))
    last = draw(st.sampled_from((-1, *BROKERS))) if leader < 0 else -1
    return PartitionRecord("t-0", draw(assignments), leader, 4, isr, 9, elr, last)


@pytest.mark.soak(size=200, rounds_in_test=1, rounds_in_soak=100)
@settings(max_examples=200)
@given(
    before=partitions(),
    isr=members,
    live=brokers,
    lost=brokers,
    min_isr=st.one_of(st.none(), st.integers(1, 4)),
    election=st.sampled_from(Election),
)
def test_a_change_in_kraft_follows_the_rules_for_leaders_epochs_and_elrs(
    before: PartitionRecord,
    isr: tuple[int, ...],
    live: frozenset[int],
    lost: frozenset[int],
    min_isr: int | None,
    election: Election,
) -> None:
    rules = LeaderRules(is_acceptable=live.__contains__, election=election, elr_min_isr=min_isr)
    change = changed_partition(before, rules, isr, lost)
    if change is None:
        return
    changed, elected = change
    is_unclean = elected is not ElectedLeader.CLEAN
    # Each change raises the partition epoch, each new leader the leader epoch.
    assert changed.partition_epoch == 10
    assert changed.leader_epoch == 4 + (changed.leader != before.leader)
    # The leader is live and in the ISR. After an unclean election it is the ISR's only member.
    assert changed.leader == -1 or (changed.leader in live and changed.leader in changed.isr)
    assert not is_unclean or changed.isr == (changed.leader,)
    # ISR and ELR are disjoint. The ELR has no broker that stopped uncleanly, and is empty while the
    # ISR is large enough.
    assert not set(changed.elr) & set(changed.isr)
    assert not set(changed.elr) & lost
    assert set(changed.elr) <= {*before.elr, *before.isr}
    expected_isr = isr or (before.isr if min_isr is None else ())
    if min_isr is None or len(expected_isr) >= min_isr:
        assert changed.elr == ()
    # Without eligible replicas the ISR never becomes empty.
    assert changed.isr or min_isr is not None or not before.isr
    # A clean election elects only members of the ISR or ELR.
    if not is_unclean and changed.leader >= 0:
        assert changed.leader in {*expected_isr, *before.elr, *before.isr}


@pytest.mark.soak(size=100, rounds_in_test=1, rounds_in_soak=100)
@settings(max_examples=100)
@given(before=partitions(), live=brokers)
def test_in_kraft_a_live_leader_stays_and_a_dead_one_is_succeeded_by_a_live_isr_member(
    before: PartitionRecord, live: frozenset[int]
) -> None:
    rules = LeaderRules(is_acceptable=live.__contains__, election=Election.ONLINE, elr_min_isr=None)
    change = changed_partition(before, rules, before.isr)
    leader = before.leader if change is None else change[0].leader
    if before.leader in live:
        assert leader == before.leader
    else:
        candidates = [replica for replica in before.replicas if replica in before.isr and replica in live]
        assert leader == (candidates[0] if candidates else leader)
        assert candidates or leader in (-1, before.last_known_leader)


@pytest.mark.soak(size=100, rounds_in_test=1, rounds_in_soak=100)
@settings(max_examples=100)
@given(
    count=st.integers(1, 7),
    partitions=st.integers(1, 20),
    factor=st.integers(1, 7),
    start=st.integers(0, 6),
    shift=st.integers(0, 6),
)
def test_first_replicas_rotate_and_no_broker_has_a_partition_twice(
    count: int, partitions: int, factor: int, start: int, shift: int
) -> None:
    factor = min(factor, count)
    assigned = assign_replicas(range(count), partitions, factor, None, start % count, shift)
    assert [replicas[0] for replicas in assigned] == [(start + n) % count for n in range(partitions)]
    assert all(len(set(replicas)) == factor for replicas in assigned)


@pytest.mark.soak(size=100, rounds_in_test=1, rounds_in_soak=100)
@settings(max_examples=100)
@given(
    racks=st.integers(2, 4), each=st.integers(1, 3), partitions=st.integers(1, 20), factor=st.integers(1, 4)
)
def test_with_racks_replicas_of_a_partition_are_in_different_racks(
    racks: int, each: int, partitions: int, factor: int
) -> None:
    factor = min(factor, racks)
    rack_of = {broker: f"rack-{broker % racks}" for broker in range(racks * each)}
    assigned = assign_replicas(tuple(rack_of), partitions, factor, rack_of)
    assert all(len({rack_of[broker] for broker in replicas}) == factor for replicas in assigned)
    firsts = [replicas[0] for replicas in assigned]
    assert all(rack_of[one] != rack_of[other] for one, other in pairwise(firsts))
