"""Changes of partitions in KRaft: leaders, ISRs, eligible leader replicas
(PartitionChangeBuilder.java, KIP-966)."""

from dataclasses import replace

import pytest

from harrow.cluster_model.kraft.partition_change import (
    ElectedLeader,
    Election,
    LeaderRules,
    changed_partition,
    recovery_sets,
)
from harrow.cluster_model.kraft.records import PartitionRecord


def partition(
    leader: int = 0, isr: tuple[int, ...] = (0, 1, 2), elr: tuple[int, ...] = (), last: int = -1
) -> PartitionRecord:
    return PartitionRecord("t-0", (0, 1, 2), leader, 5, isr, 7, elr, last)


def changed(
    before: PartitionRecord,
    isr: tuple[int, ...],
    *,
    alive: tuple[int, ...],
    min_isr: int | None = None,
    election: Election = Election.ONLINE,
    lost: tuple[int, ...] = (),
) -> tuple[int, int, tuple[int, ...], tuple[int, ...], ElectedLeader] | None:
    """Return the leader, leader epoch, ISR, ELR and kind of leader."""
    rules = LeaderRules(is_acceptable=alive.__contains__, election=election, elr_min_isr=min_isr)
    change = changed_partition(before, rules, isr, lost)
    if change is None:
        return None
    record, elected = change
    assert record.partition_epoch == before.partition_epoch + 1
    return record.leader, record.leader_epoch, record.isr, record.elr, elected


def test_the_leader_epoch_does_not_change_if_the_leader_stays() -> None:
    assert changed(partition(), (0, 2), alive=(0, 2)) == (0, 5, (0, 2), (), ElectedLeader.CLEAN)


def test_an_unchanged_isr_is_no_change() -> None:
    assert changed(partition(), (0, 1, 2), alive=(0, 1, 2)) is None


def test_the_first_live_replica_of_the_isr_succeeds_a_dead_leader() -> None:
    before = partition(isr=(0, 2, 1))
    assert changed(before, (2, 1), alive=(1, 2)) == (1, 6, (2, 1), (), ElectedLeader.CLEAN)


def test_the_last_member_stays_in_the_isr_without_leading() -> None:
    assert changed(partition(isr=(0,)), (), alive=(1, 2)) == (-1, 6, (0,), (), ElectedLeader.CLEAN)


def test_the_last_isr_member_leads_again_when_it_returns() -> None:
    before = partition(leader=-1, isr=(0,))
    assert changed(before, (0,), alive=(0, 1)) == (0, 6, (0,), (), ElectedLeader.CLEAN)


def test_an_unclean_election_elects_the_first_live_replica() -> None:
    before = partition(isr=(0,))
    assert changed(before, (), alive=(2, 1), election=Election.UNCLEAN) == (
        1,
        6,
        (1,),
        (),
        ElectedLeader.UNCLEAN,
    )


@pytest.mark.parametrize(("alive", "leader"), [((0, 1), 0), ((1,), 1)])
def test_a_preferred_leader_is_elected_if_it_may_lead(alive: tuple[int, ...], leader: int) -> None:
    change = changed(partition(leader=1), (0, 1, 2), alive=alive, election=Election.PREFERRED)
    assert (change or (1,))[0] == leader


# Eligible leader replicas


def test_a_replica_that_leaves_an_isr_below_min_isr_stays_eligible() -> None:
    assert changed(partition(isr=(0, 1)), (0,), alive=(0,), min_isr=2) == (
        0,
        5,
        (0,),
        (1,),
        ElectedLeader.CLEAN,
    )


def test_an_isr_of_min_isr_has_no_eligible_replicas_outside() -> None:
    assert changed(partition(), (0, 1), alive=(0, 1), min_isr=2) == (0, 5, (0, 1), (), ElectedLeader.CLEAN)
    assert changed(partition(isr=(0,), elr=(1,)), (0, 2), alive=(0, 2), min_isr=2) == (
        0,
        5,
        (0, 2),
        (),
        ElectedLeader.CLEAN,
    )


def test_with_elrs_the_last_member_leaves_the_isr_and_stays_eligible() -> None:
    assert changed(partition(isr=(0,), elr=(1,)), (), alive=(2,), min_isr=2) == (
        -1,
        6,
        (),
        (1, 0),
        ElectedLeader.CLEAN,
    )


def test_an_unassigned_replica_stays_eligible_but_is_not_elected() -> None:
    """PartitionChangeBuilder.maybePopulateTargetElr considers only the ISR and unclean
    shutdowns."""
    before = PartitionRecord("t-0", (0, 2), 0, 5, (0,), 7, elr=(1,))
    assert changed(before, (), alive=(1, 2), min_isr=2) == (-1, 6, (), (1, 0), ElectedLeader.CLEAN)
    assert recovery_sets(replace(before, isr=(), elr=(1, 0)), (1,).__contains__) == ((0,),)


def test_an_eligible_replica_leads_when_the_isr_cannot() -> None:
    before = partition(isr=(0,), elr=(1,))
    assert changed(before, (), alive=(1, 2), min_isr=2) == (1, 6, (1,), (0,), ElectedLeader.CLEAN)


@pytest.mark.parametrize("election", [Election.PREFERRED, Election.ONLINE, Election.UNCLEAN])
def test_no_eligible_replica_leads_while_there_is_an_isr(election: Election) -> None:
    before = PartitionRecord("t-0", (2, 1), 1, 5, (1,), 7, (2,))
    assert changed(before, (1,), alive=(1, 2), min_isr=2, election=election) is None
    before = PartitionRecord("t-0", (3, 1, 2), 1, 5, (1, 2), 7, (3,))
    assert changed(before, (2,), alive=(2, 3), min_isr=3, election=election) == (
        2,
        6,
        (2,),
        (3, 1),
        ElectedLeader.CLEAN,
    )


def test_an_unclean_election_empties_the_elr() -> None:
    before = partition(leader=-1, isr=(), elr=(1,))
    change = changed(before, (), alive=(0,), min_isr=2, election=Election.UNCLEAN)
    assert change == (0, 6, (0,), (), ElectedLeader.UNCLEAN)


def test_a_replica_that_may_have_lost_records_is_not_eligible() -> None:
    before = partition(leader=-1, isr=(), elr=(0, 1))
    assert changed(before, (), alive=(), min_isr=2, lost=(0,)) == (-1, 5, (), (1,), ElectedLeader.CLEAN)


def test_without_eligible_replicas_the_last_leader_leads_uncleanly() -> None:
    before = partition(leader=0, isr=(0,))
    rules = LeaderRules(is_acceptable=().__contains__, election=Election.ONLINE, elr_min_isr=2)
    change = changed_partition(before, rules, (), (0,))
    assert change is not None
    record = change[0]
    assert (record.leader, record.isr, record.elr, record.last_known_leader) == (-1, (), (), 0)
    assert changed(record, (), alive=(1, 2), min_isr=2) is None
    assert changed(record, (), alive=(0, 1, 2), min_isr=2) == (0, 7, (0,), (), ElectedLeader.LAST_KNOWN)


@pytest.mark.parametrize(
    ("elr", "elected"),
    [((), ElectedLeader.LAST_KNOWN), ((1,), ElectedLeader.UNCLEAN), ((1, 2), ElectedLeader.UNCLEAN)],
)
def test_the_last_leader_has_no_priority_while_others_are_eligible(
    elr: tuple[int, ...], elected: ElectedLeader
) -> None:
    before = partition(leader=-1, isr=(), elr=elr, last=0)
    assert changed(before, (), alive=(0,), min_isr=2, election=Election.UNCLEAN) == (0, 6, (0,), (), elected)


def test_the_last_leader_leads_when_the_last_eligible_replica_is_lost() -> None:
    before = partition(leader=-1, isr=(), elr=(1,), last=0)
    assert changed(before, (), alive=(0,), min_isr=2, lost=(1,)) == (0, 6, (0,), (), ElectedLeader.LAST_KNOWN)


def test_the_last_leader_is_remembered_while_others_are_eligible() -> None:
    before = partition(leader=-1, isr=(), elr=(1,), last=0)
    rules = LeaderRules(is_acceptable=().__contains__, election=Election.ONLINE, elr_min_isr=2)
    change = changed_partition(before, rules, (), (1,))
    assert change is not None
    assert (change[0].elr, change[0].last_known_leader) == ((), 0)


def test_a_min_isr_above_the_replication_factor_changes_nothing_for_a_full_isr() -> None:
    assert changed(partition(), (0, 1, 2), alive=(0, 1, 2), min_isr=5) is None


@pytest.mark.parametrize(
    ("isr", "elr", "last", "lasting", "needed"),
    [
        ((0, 1), (2,), -1, (0, 1, 2), ((0, 1),)),
        ((0, 1), (2,), -1, (1, 2), ((1,),)),
        ((0,), (2,), -1, (2,), ((2,),)),
        ((), (1, 2), 0, (0, 2), ((2,),)),
        ((0,), (2,), -1, (1,), ((0,), (2,))),
        ((), (), 0, (), ((0,),)),
        ((), (), -1, (0, 1, 2), ((),)),
    ],
)
def test_a_partition_recovers_with_one_lasting_member_or_when_no_eligible_replica_remains(
    isr: tuple[int, ...],
    elr: tuple[int, ...],
    last: int,
    lasting: tuple[int, ...],
    needed: tuple[tuple[int, ...], ...],
) -> None:
    assert recovery_sets(partition(isr=isr, elr=elr, last=last), lasting.__contains__) == needed
