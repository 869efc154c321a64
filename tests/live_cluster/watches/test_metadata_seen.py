"""Which events follow from what the control plane of a real cluster says."""

from typing import Any

import pytest

from harrow.live_cluster.watches.metadata_seen import MetadataSeen, SeenPartition

Told = list[tuple[Any, ...]]


@pytest.fixture
def told() -> Told:
    return []


@pytest.fixture
def seen(told: Told) -> MetadataSeen:
    return MetadataSeen(lambda kind, *fields: told.append((kind.name, *fields)))


def test_a_new_controller_is_there_and_knows_it(seen: MetadataSeen, told: Told) -> None:
    assert seen.controller() is None
    seen.set_controller(2, 5)
    assert told == [("controller_changed", 2, 5), ("controller_elected", 2, 5)]
    assert seen.controller() == 2


def test_lost_controller_leaves_none(seen: MetadataSeen, told: Told) -> None:
    seen.set_controller(2, 5)
    told.clear()
    seen.set_controller(None, 5)
    assert told == [("controller_changed", -1, 5)]
    assert seen.controller() is None


def test_the_same_broker_is_another_controller_in_another_epoch(seen: MetadataSeen, told: Told) -> None:
    seen.set_controller(2, 5)
    told.clear()
    seen.set_controller(2, 5)
    assert told == []
    seen.set_controller(2, 6)
    assert told == [("controller_changed", 2, 6), ("controller_elected", 2, 6)]


def test_brokers_are_registered_with_their_epochs_where_these_are_known(
    seen: MetadataSeen, told: Told
) -> None:
    seen.set_registered([1, 0], {1: 42})
    seen.set_registered([0, 1], {0: 7, 1: 42})
    assert told == [("broker_registered", 0, -1), ("broker_registered", 1, 42)]
    assert seen.registered() == {0, 1}


def test_stopped_broker_closes_its_session_and_a_crashed_one_loses_it(seen: MetadataSeen, told: Told) -> None:
    seen.set_registered([0, 1, 2], {})
    seen.stopping.add(1)
    told.clear()
    seen.set_registered([2], {})
    assert told == [
        ("session_expired", 0, ("/brokers/ids/0",)),
        ("session_closed", 1, ("/brokers/ids/1",)),
    ]


def test_a_session_ends_before_the_next_registration(seen: MetadataSeen, told: Told) -> None:
    seen.set_registered([1], {})
    told.clear()
    seen.set_registered([0], {0: 3})
    assert [event[:2] for event in told] == [("session_expired", 1), ("broker_registered", 0)]


FIRST = SeenPartition(0, 4, (0, 1, 2))


@pytest.fixture
def known(seen: MetadataSeen, told: Told) -> MetadataSeen:
    """Return what is known after a first state, with controller 9."""
    seen.set_controller(9, 1)
    seen.set_partition("t-0", FIRST)
    assert told[2:] == [("election", 9, "t-0", 0, 4, (0, 1, 2), False, "")]
    told.clear()
    return seen


def test_the_first_leader_was_elected_cleanly(known: MetadataSeen) -> None:
    assert known.partition_state("t-0") == FIRST
    assert known.partition_state("t-1") is None


@pytest.mark.parametrize(
    ("leader", "isr", "is_unclean"),
    [
        (1, (1, 2), False),
        (3, (3,), True),
        (-1, (0, 1, 2), False),
        (0, (0, 1, 2), False),
        (1, (0, 1, 2), False),
    ],
)
def test_a_leader_is_elected_and_unclean_is_one_from_outside_the_isr(
    known: MetadataSeen, told: Told, leader: int, isr: tuple[int, ...], is_unclean: bool
) -> None:
    known.set_partition("t-0", SeenPartition(leader, 5, isr))
    assert told == [("election", 9, "t-0", leader, 5, isr, is_unclean, "")]


def test_unclean_elections_are_judged_by_the_former_isr(known: MetadataSeen, told: Told) -> None:
    known.set_partition("t-0", SeenPartition(0, 4, (0,)))
    told.clear()
    known.set_partition("t-0", SeenPartition(1, 5, (1,)))
    assert told == [("election", 9, "t-0", 1, 5, (1,), True, "")]


def test_election_may_have_no_known_controller(seen: MetadataSeen, told: Told) -> None:
    seen.set_partition("t-0", FIRST)
    assert told == [("election", -1, "t-0", 0, 4, (0, 1, 2), False, "")]


def test_within_an_epoch_the_leader_shrinks_and_expands_its_isr(known: MetadataSeen, told: Told) -> None:
    known.set_partition("t-0", SeenPartition(0, 4, (0, 1)))
    known.set_partition("t-0", SeenPartition(0, 4, (0, 1, 2)))
    assert told == [
        ("isr_written", 0, "t-0", 4, (0, 1)),
        ("isr", 0, "t-0", 4, (0, 1), "shrink"),
        ("isr_written", 0, "t-0", 4, (0, 1, 2)),
        ("isr", 0, "t-0", 4, (0, 1, 2), "expand"),
    ]


def test_with_a_new_epoch_a_controller_has_taken_a_replica_out(known: MetadataSeen, told: Told) -> None:
    known.set_partition("t-0", SeenPartition(0, 5, (0, 2)))
    assert told == [("isr_reduced", 9, "t-0", 0, 5, (0, 2))]
    told.clear()
    known.set_partition("t-0", SeenPartition(-1, 6, (2,)))
    assert told == [("isr_reduced", 9, "t-0", -1, 6, (2,))]


def test_a_leader_that_goes_on_with_more_or_others_in_its_isr_was_elected(
    known: MetadataSeen, told: Told
) -> None:
    known.set_partition("t-0", SeenPartition(0, 5, (0, 3)))
    assert [event[0] for event in told] == ["election"]


def test_unchanged_metadata_is_not_an_event(known: MetadataSeen, told: Told) -> None:
    known.set_partition("t-0", FIRST)
    assert told == []


def test_partitions_are_independent(known: MetadataSeen, told: Told) -> None:
    known.set_partition("t-1", SeenPartition(2, 0, (2,)))
    known.set_partition("t-0", SeenPartition(0, 4, (0,)))
    assert [event[:3] for event in told] == [
        ("election", 9, "t-1"),
        ("isr_written", 0, "t-0"),
        ("isr", 0, "t-0"),
    ]


def test_eligible_leader_without_isr_is_elected_cleanly(seen: MetadataSeen, told: Told) -> None:
    """KIP-966: from 4.1 on the last member leaves the ISR, and is remembered as one that has all that is committed."""
    seen.set_partition("t-0", SeenPartition(0, 4, (0,)))
    seen.set_partition("t-0", SeenPartition(-1, 5, ()), (0, 2))
    told.clear()
    seen.set_partition("t-0", SeenPartition(2, 6, (2,)))
    assert told == [("election", -1, "t-0", 2, 6, (2,), False, "")]
    seen.set_partition("t-0", SeenPartition(-1, 7, ()), (2,))
    told.clear()
    seen.set_partition("t-0", SeenPartition(1, 8, (1,)))
    assert told == [("election", -1, "t-0", 1, 8, (1,), True, "")]


def test_eligible_leader_with_a_small_isr_is_elected_cleanly(seen: MetadataSeen, told: Told) -> None:
    seen.set_partition("t-0", SeenPartition(0, 4, (0,)), (2,))
    told.clear()
    seen.set_partition("t-0", SeenPartition(2, 6, (2,)))
    assert told == [("election", -1, "t-0", 2, 6, (2,), False, "")]


def test_forbidden_unclean_election_is_not_reported(known: MetadataSeen, told: Told) -> None:
    """Between two looks at it an ISR grows and its new member leads: who leads was in it, if unseen."""
    known.elected_cleanly = frozenset({"t"})
    known.set_partition("t-0", SeenPartition(3, 5, (3,)))
    assert told == [("election", 9, "t-0", 3, 5, (3,), False, "")]


def test_election_reason_comes_from_the_controller() -> None:
    told: Told = []
    asked: list[tuple[int, str]] = []

    def why(controller: int, partition: str) -> str:
        asked.append((controller, partition))
        return "broker failure"

    seen = MetadataSeen(lambda kind, *fields: told.append((kind.name, *fields)), why)
    seen.set_controller(9, 1)
    seen.set_partition("t-0", SeenPartition(0, 4, (0, 1, 2)))
    assert told[-1] == ("election", 9, "t-0", 0, 4, (0, 1, 2), False, "broker failure")
    # A smaller ISR has a cause too, which may explain no more than that, also where the leader epoch stays (KRaft).
    seen.set_partition("t-0", SeenPartition(0, 5, (0, 2)))
    seen.set_partition("t-0", SeenPartition(0, 5, (0,)))
    assert asked == [(9, "t-0")] * 3
