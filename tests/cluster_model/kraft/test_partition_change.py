"""How partitions change in KRaft (PartitionChangeBuilder.java): leaders, ISRs, eligible leader replicas (KIP-966)."""

from dataclasses import replace

import pytest

from harrow.cluster_model.kraft.partition_change import (
    Elected,
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
    known: PartitionRecord,
    isr: tuple[int, ...],
    *,
    alive: tuple[int, ...],
    min_isr: int | None = None,
    election: Election = Election.ONLINE,
    lost: tuple[int, ...] = (),
) -> tuple[int, int, tuple[int, ...], tuple[int, ...], Elected] | None:
    """Return leader, leader epoch, ISR, ELR, and who has been elected."""
    rules = LeaderRules(is_acceptable=alive.__contains__, election=election, elr_min_isr=min_isr)
    made = changed_partition(known, rules, isr, lost)
    if made is None:
        return None
    record, elected = made
    assert record.partition_epoch == known.partition_epoch + 1
    return record.leader, record.leader_epoch, record.isr, record.elr, elected


def test_a_leader_that_goes_on_keeps_its_epoch() -> None:
    assert changed(partition(), (0, 2), alive=(0, 2)) == (0, 5, (0, 2), (), Elected.CLEAN)


def test_what_is_as_it_was_is_no_change() -> None:
    assert changed(partition(), (0, 1, 2), alive=(0, 1, 2)) is None


def test_a_leader_that_is_gone_is_succeeded_by_the_first_replica_of_the_isr() -> None:
    known = partition(isr=(0, 2, 1))
    assert changed(known, (2, 1), alive=(1, 2)) == (1, 6, (2, 1), (), Elected.CLEAN)


def test_the_last_member_stays_in_the_isr_and_leads_nothing() -> None:
    assert changed(partition(isr=(0,)), (), alive=(1, 2)) == (-1, 6, (0,), (), Elected.CLEAN)


def test_the_last_member_leads_again_when_it_is_back() -> None:
    known = partition(leader=-1, isr=(0,))
    assert changed(known, (0,), alive=(0, 1)) == (0, 6, (0,), (), Elected.CLEAN)


def test_an_unclean_election_takes_the_first_replica_that_lives() -> None:
    known = partition(isr=(0,))
    assert changed(known, (), alive=(2, 1), election=Election.UNCLEAN) == (1, 6, (1,), (), Elected.UNCLEAN)


@pytest.mark.parametrize(("alive", "leader"), [((0, 1), 0), ((1,), 1)])
def test_a_preferred_leader_is_elected_if_it_may_lead(alive: tuple[int, ...], leader: int) -> None:
    found = changed(partition(leader=1), (0, 1, 2), alive=alive, election=Election.PREFERRED)
    assert (found or (1,))[0] == leader


# Eligible leader replicas


def test_below_min_isr_who_leaves_the_isr_stays_eligible() -> None:
    assert changed(partition(isr=(0, 1)), (0,), alive=(0,), min_isr=2) == (0, 5, (0,), (1,), Elected.CLEAN)


def test_with_enough_in_the_isr_nobody_is_eligible_besides() -> None:
    assert changed(partition(), (0, 1), alive=(0, 1), min_isr=2) == (0, 5, (0, 1), (), Elected.CLEAN)
    assert changed(partition(isr=(0,), elr=(1,)), (0, 2), alive=(0, 2), min_isr=2) == (
        0,
        5,
        (0, 2),
        (),
        Elected.CLEAN,
    )


def test_the_last_member_leaves_the_isr_and_stays_eligible() -> None:
    assert changed(partition(isr=(0,), elr=(1,)), (), alive=(2,), min_isr=2) == (
        -1,
        6,
        (),
        (1, 0),
        Elected.CLEAN,
    )


def test_a_replica_that_is_taken_away_stays_eligible_and_is_not_elected() -> None:
    """PartitionChangeBuilder.maybePopulateTargetElr looks at the ISR and at unclean shutdowns alone."""
    known = PartitionRecord("t-0", (0, 2), 0, 5, (0,), 7, elr=(1,))
    assert changed(known, (), alive=(1, 2), min_isr=2) == (-1, 6, (), (1, 0), Elected.CLEAN)
    assert recovery_sets(replace(known, isr=(), elr=(1, 0)), (1,).__contains__) == ((0,),)


def test_an_eligible_replica_leads_when_the_isr_cannot() -> None:
    known = partition(isr=(0,), elr=(1,))
    assert changed(known, (), alive=(1, 2), min_isr=2) == (1, 6, (1,), (0,), Elected.CLEAN)


@pytest.mark.parametrize("election", [Election.PREFERRED, Election.ONLINE, Election.UNCLEAN])
def test_no_eligible_replica_leads_while_there_is_an_isr(election: Election) -> None:
    known = PartitionRecord("t-0", (2, 1), 1, 5, (1,), 7, (2,))
    assert changed(known, (1,), alive=(1, 2), min_isr=2, election=election) is None
    known = PartitionRecord("t-0", (3, 1, 2), 1, 5, (1, 2), 7, (3,))
    assert changed(known, (2,), alive=(2, 3), min_isr=3, election=election) == (
        2,
        6,
        (2,),
        (3, 1),
        Elected.CLEAN,
    )


def test_an_unclean_election_leaves_nobody_eligible() -> None:
    known = partition(leader=-1, isr=(), elr=(1,))
    found = changed(known, (), alive=(0,), min_isr=2, election=Election.UNCLEAN)
    assert found == (0, 6, (0,), (), Elected.UNCLEAN)


def test_who_may_have_lost_records_is_not_eligible() -> None:
    known = partition(leader=-1, isr=(), elr=(0, 1))
    assert changed(known, (), alive=(), min_isr=2, lost=(0,)) == (-1, 5, (), (1,), Elected.CLEAN)


def test_when_nobody_is_eligible_who_led_last_leads_uncleanly() -> None:
    known = partition(leader=0, isr=(0,))
    rules = LeaderRules(is_acceptable=().__contains__, election=Election.ONLINE, elr_min_isr=2)
    made = changed_partition(known, rules, (), (0,))
    assert made is not None
    record = made[0]
    assert (record.leader, record.isr, record.elr, record.last_known_leader) == (-1, (), (), 0)
    assert changed(record, (), alive=(1, 2), min_isr=2) is None
    assert changed(record, (), alive=(0, 1, 2), min_isr=2) == (0, 7, (0,), (), Elected.LAST_KNOWN)


@pytest.mark.parametrize(
    ("elr", "elected"), [((), Elected.LAST_KNOWN), ((1,), Elected.UNCLEAN), ((1, 2), Elected.UNCLEAN)]
)
def test_who_led_last_is_any_replica_while_others_are_eligible(
    elr: tuple[int, ...], elected: Elected
) -> None:
    known = partition(leader=-1, isr=(), elr=elr, last=0)
    assert changed(known, (), alive=(0,), min_isr=2, election=Election.UNCLEAN) == (0, 6, (0,), (), elected)


def test_who_led_last_leads_as_soon_as_nobody_is_eligible_any_more() -> None:
    known = partition(leader=-1, isr=(), elr=(1,), last=0)
    assert changed(known, (), alive=(0,), min_isr=2, lost=(1,)) == (0, 6, (0,), (), Elected.LAST_KNOWN)


def test_who_led_last_is_remembered_while_others_are_eligible() -> None:
    known = partition(leader=-1, isr=(), elr=(1,), last=0)
    rules = LeaderRules(is_acceptable=().__contains__, election=Election.ONLINE, elr_min_isr=2)
    made = changed_partition(known, rules, (), (1,))
    assert made is not None
    assert (made[0].elr, made[0].last_known_leader) == ((), 0)


def test_it_takes_no_more_than_all_replicas_to_be_enough() -> None:
    assert changed(partition(), (0, 1, 2), alive=(0, 1, 2), min_isr=5) is None


@pytest.mark.parametrize(
    ("isr", "elr", "last", "sound", "needed"),
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
def test_a_partition_recovers_by_who_has_lost_nothing_or_when_nobody_is_eligible_any_more(
    isr: tuple[int, ...],
    elr: tuple[int, ...],
    last: int,
    sound: tuple[int, ...],
    needed: tuple[tuple[int, ...], ...],
) -> None:
    assert recovery_sets(partition(isr=isr, elr=elr, last=last), sound.__contains__) == needed
