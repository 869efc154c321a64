"""Events follow from the reports of a real control plane."""

from typing import Any

import pytest

from harrow.live_cluster.watches.observed_metadata import ObservedMetadata, ObservedPartition

Events = list[tuple[Any, ...]]


@pytest.fixture
def events() -> Events:
    return []


@pytest.fixture
def metadata(events: Events) -> ObservedMetadata:
    return ObservedMetadata(lambda kind, *fields: events.append((kind.name, *fields)))


def test_a_new_controller_is_changed_and_elected(metadata: ObservedMetadata, events: Events) -> None:
    assert metadata.controller() is None
    metadata.set_controller(2, 5)
    assert events == [("controller_changed", 2, 5), ("controller_elected", 2, 5)]
    assert metadata.controller() == 2


def test_a_lost_controller_leaves_none(metadata: ObservedMetadata, events: Events) -> None:
    metadata.set_controller(2, 5)
    events.clear()
    metadata.set_controller(None, 5)
    assert events == [("controller_changed", -1, 5)]
    assert metadata.controller() is None


def test_a_controller_with_a_new_epoch_is_elected_again(metadata: ObservedMetadata, events: Events) -> None:
    metadata.set_controller(2, 5)
    events.clear()
    metadata.set_controller(2, 5)
    assert events == []
    metadata.set_controller(2, 6)
    assert events == [("controller_changed", 2, 6), ("controller_elected", 2, 6)]


def test_a_registration_has_the_broker_epoch_if_it_is_known(
    metadata: ObservedMetadata, events: Events
) -> None:
    metadata.set_registered([1, 0], {1: 42})
    metadata.set_registered([0, 1], {0: 7, 1: 42})
    assert events == [("broker_registered", 0, -1), ("broker_registered", 1, 42)]
    assert metadata.registered() == {0, 1}


def test_a_stopped_broker_closes_its_session_and_a_crashed_one_loses_it(
    metadata: ObservedMetadata, events: Events
) -> None:
    metadata.set_registered([0, 1, 2], {})
    metadata.stopping.add(1)
    events.clear()
    metadata.set_registered([2], {})
    assert events == [
        ("session_expired", 0, ("/brokers/ids/0",)),
        ("session_closed", 1, ("/brokers/ids/1",)),
    ]


def test_a_session_ends_before_the_next_registration(metadata: ObservedMetadata, events: Events) -> None:
    metadata.set_registered([1], {})
    events.clear()
    metadata.set_registered([0], {0: 3})
    assert [event[:2] for event in events] == [("session_expired", 1), ("broker_registered", 0)]


FIRST = ObservedPartition(0, 4, (0, 1, 2))


@pytest.fixture
def after_first_state(metadata: ObservedMetadata, events: Events) -> ObservedMetadata:
    """Return the observed metadata after a first state with controller 9."""
    metadata.set_controller(9, 1)
    metadata.set_partition("t-0", FIRST)
    assert events[2:] == [("election", 9, "t-0", 0, 4, (0, 1, 2), False, "")]
    events.clear()
    return metadata


def test_the_first_known_leader_is_elected_cleanly(after_first_state: ObservedMetadata) -> None:
    assert after_first_state.partition_state("t-0") == FIRST
    assert after_first_state.partition_state("t-1") is None


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
def test_an_election_from_outside_the_isr_is_unclean(
    after_first_state: ObservedMetadata, events: Events, leader: int, isr: tuple[int, ...], is_unclean: bool
) -> None:
    after_first_state.set_partition("t-0", ObservedPartition(leader, 5, isr))
    assert events == [("election", 9, "t-0", leader, 5, isr, is_unclean, "")]


def test_the_previous_isr_decides_whether_an_election_is_unclean(
    after_first_state: ObservedMetadata, events: Events
) -> None:
    after_first_state.set_partition("t-0", ObservedPartition(0, 4, (0,)))
    events.clear()
    after_first_state.set_partition("t-0", ObservedPartition(1, 5, (1,)))
    assert events == [("election", 9, "t-0", 1, 5, (1,), True, "")]


def test_an_election_may_have_no_known_controller(metadata: ObservedMetadata, events: Events) -> None:
    metadata.set_partition("t-0", FIRST)
    assert events == [("election", -1, "t-0", 0, 4, (0, 1, 2), False, "")]


def test_an_isr_change_within_an_epoch_is_made_by_the_leader(
    after_first_state: ObservedMetadata, events: Events
) -> None:
    after_first_state.set_partition("t-0", ObservedPartition(0, 4, (0, 1)))
    after_first_state.set_partition("t-0", ObservedPartition(0, 4, (0, 1, 2)))
    assert events == [
        ("isr_written", 0, "t-0", 4, (0, 1)),
        ("isr", 0, "t-0", 4, (0, 1), "shrink"),
        ("isr_written", 0, "t-0", 4, (0, 1, 2)),
        ("isr", 0, "t-0", 4, (0, 1, 2), "expand"),
    ]


def test_a_smaller_isr_in_a_new_epoch_is_reduced_by_the_controller(
    after_first_state: ObservedMetadata, events: Events
) -> None:
    after_first_state.set_partition("t-0", ObservedPartition(0, 5, (0, 2)))
    assert events == [("isr_reduced", 9, "t-0", 0, 5, (0, 2))]
    events.clear()
    after_first_state.set_partition("t-0", ObservedPartition(-1, 6, (2,)))
    assert events == [("isr_reduced", 9, "t-0", -1, 6, (2,))]


def test_a_new_epoch_with_other_isr_members_is_an_election(
    after_first_state: ObservedMetadata, events: Events
) -> None:
    after_first_state.set_partition("t-0", ObservedPartition(0, 5, (0, 3)))
    assert [event[0] for event in events] == ["election"]


def test_unchanged_metadata_is_not_an_event(after_first_state: ObservedMetadata, events: Events) -> None:
    after_first_state.set_partition("t-0", FIRST)
    assert events == []


def test_partitions_are_independent(after_first_state: ObservedMetadata, events: Events) -> None:
    after_first_state.set_partition("t-1", ObservedPartition(2, 0, (2,)))
    after_first_state.set_partition("t-0", ObservedPartition(0, 4, (0,)))
    assert [event[:3] for event in events] == [
        ("election", 9, "t-1"),
        ("isr_written", 0, "t-0"),
        ("isr", 0, "t-0"),
    ]


def test_an_eligible_leader_without_isr_is_elected_cleanly(
    metadata: ObservedMetadata, events: Events
) -> None:
    """KIP-966: from 4.1 on the last member can leave the ISR and stays eligible, because it has
    every committed record.
    """
    metadata.set_partition("t-0", ObservedPartition(0, 4, (0,)))
    metadata.set_partition("t-0", ObservedPartition(-1, 5, ()), (0, 2))
    events.clear()
    metadata.set_partition("t-0", ObservedPartition(2, 6, (2,)))
    assert events == [("election", -1, "t-0", 2, 6, (2,), False, "")]
    metadata.set_partition("t-0", ObservedPartition(-1, 7, ()), (2,))
    events.clear()
    metadata.set_partition("t-0", ObservedPartition(1, 8, (1,)))
    assert events == [("election", -1, "t-0", 1, 8, (1,), True, "")]


def test_an_eligible_leader_with_a_small_isr_is_elected_cleanly(
    metadata: ObservedMetadata, events: Events
) -> None:
    metadata.set_partition("t-0", ObservedPartition(0, 4, (0,)), (2,))
    events.clear()
    metadata.set_partition("t-0", ObservedPartition(2, 6, (2,)))
    assert events == [("election", -1, "t-0", 2, 6, (2,), False, "")]


def test_an_election_is_never_unclean_if_the_topic_forbids_it(
    after_first_state: ObservedMetadata, events: Events
) -> None:
    """Between two looks the ISR may grow and its new member lead, so the leader was in the ISR."""
    after_first_state.elected_cleanly = frozenset({"t"})
    after_first_state.set_partition("t-0", ObservedPartition(3, 5, (3,)))
    assert events == [("election", 9, "t-0", 3, 5, (3,), False, "")]


def test_the_reason_of_an_election_comes_from_the_controller() -> None:
    events: Events = []
    requested: list[tuple[int, str]] = []

    def why(controller: int, partition: str) -> str:
        requested.append((controller, partition))
        return "broker failure"

    metadata = ObservedMetadata(lambda kind, *fields: events.append((kind.name, *fields)), why)
    metadata.set_controller(9, 1)
    metadata.set_partition("t-0", ObservedPartition(0, 4, (0, 1, 2)))
    assert events[-1] == ("election", 9, "t-0", 0, 4, (0, 1, 2), False, "broker failure")
    # A smaller ISR consumes a cause too, even if the leader epoch stays (KRaft).
    metadata.set_partition("t-0", ObservedPartition(0, 5, (0, 2)))
    metadata.set_partition("t-0", ObservedPartition(0, 5, (0,)))
    assert requested == [(9, "t-0")] * 3
