"""Which brokers have the replicas of partitions, as real brokers and their controllers tell it."""

from typing import Any

import pytest

from harrow.live_cluster.watches.assignments_seen import AssignmentsSeen
from harrow.live_cluster.wire.administration import Assignment

Told = list[tuple[Any, ...]]
MOVING = Assignment((2, 3, 0, 1), adding=(2, 3), removing=(0, 1))
MERGED = MOVING.replicas


@pytest.fixture
def told() -> Told:
    return []


@pytest.fixture
def seen(told: Told) -> AssignmentsSeen:
    seen = AssignmentsSeen(lambda kind, *fields: told.append((kind.name, *fields)))
    seen.begin({"t": [(0, 1)]})
    return seen


def test_initial_assignment_is_not_an_event(seen: AssignmentsSeen, told: Told) -> None:
    seen.take_views({"t-0": (0, 1)}, {})
    assert told == []
    assert seen.partition_names() == ("t-0",)
    assert (seen.of("t-1"), seen.replicas_of("t-1")) == (None, ())


def test_added_partition_is_present(seen: AssignmentsSeen, told: Told) -> None:
    seen.take_views({"t-0": (0, 1), "t-1": (1, 2)}, {})
    assert told == [("assignment", "t-1", (1, 2), (), ())]
    assert seen.partition_names() == ("t-0", "t-1")
    assert [seen.owned_by(broker) for broker in (0, 1, 2)] == [("t-0",), ("t-0", "t-1"), ("t-1",)]


def test_internal_partitions_are_not_for_clients(seen: AssignmentsSeen) -> None:
    seen.begin({"__consumer_offsets": [(0, 1)]})
    assert seen.partition_names() == seen.owned_by(0) == ("t-0",)
    assert seen.replicas_of("__consumer_offsets-0") == (0, 1)


def test_a_reassignment_is_under_way_until_brokers_tell_the_new_replicas_alone(
    seen: AssignmentsSeen, told: Told
) -> None:
    # Brokers may be behind the controller, before and after.
    seen.take_views({"t-0": (0, 1)}, {"t-0": MOVING})
    seen.take_views({"t-0": MERGED}, {"t-0": MOVING})
    seen.take_views({"t-0": MERGED}, {})
    assert told == [("assignment", "t-0", MERGED, (2, 3), (0, 1))]
    assert seen.owned_by(1) == seen.owned_by(3) == ("t-0",)
    seen.take_views({"t-0": (2, 3)}, {})
    assert told[1:] == [("assignment", "t-0", (2, 3), (), ())]
    assert (seen.owned_by(1), seen.owned_by(3)) == ((), ("t-0",))


def test_cancelled_reassignment_keeps_the_replicas(seen: AssignmentsSeen, told: Told) -> None:
    seen.take_views({"t-0": MERGED}, {"t-0": MOVING})
    seen.take_views({"t-0": (0, 1)}, {})
    assert told[1:] == [("assignment", "t-0", (0, 1), (), ())]
