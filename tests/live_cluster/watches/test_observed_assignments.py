"""Assignments of replicas follow from the reports of real brokers and controllers."""

from typing import Any

import pytest

from harrow.live_cluster.watches.observed_assignments import ObservedAssignments
from harrow.live_cluster.wire.administration import Assignment

Events = list[tuple[Any, ...]]
MOVING = Assignment((2, 3, 0, 1), adding=(2, 3), removing=(0, 1))
MERGED = MOVING.replicas


@pytest.fixture
def events() -> Events:
    return []


@pytest.fixture
def assignments(events: Events) -> ObservedAssignments:
    assignments = ObservedAssignments(lambda kind, *fields: events.append((kind.name, *fields)))
    assignments.set_initial({"t": [(0, 1)]})
    return assignments


def test_an_initial_assignment_is_not_an_event(assignments: ObservedAssignments, events: Events) -> None:
    assignments.update_from_broker({"t-0": (0, 1)}, {})
    assert events == []
    assert assignments.partition_names() == ("t-0",)
    assert (assignments.of("t-1"), assignments.replicas_of("t-1")) == (None, ())


def test_an_added_partition_is_an_event(assignments: ObservedAssignments, events: Events) -> None:
    assignments.update_from_broker({"t-0": (0, 1), "t-1": (1, 2)}, {})
    assert events == [("assignment", "t-1", (1, 2), (), ())]
    assert assignments.partition_names() == ("t-0", "t-1")
    assert [assignments.owned_by(broker) for broker in (0, 1, 2)] == [("t-0",), ("t-0", "t-1"), ("t-1",)]


def test_internal_partitions_are_not_listed_for_clients(assignments: ObservedAssignments) -> None:
    assignments.set_initial({"__consumer_offsets": [(0, 1)]})
    assert assignments.partition_names() == assignments.owned_by(0) == ("t-0",)
    assert assignments.replicas_of("__consumer_offsets-0") == (0, 1)


def test_a_reassignment_ends_when_brokers_report_only_the_new_replicas(
    assignments: ObservedAssignments, events: Events
) -> None:
    # Brokers may be behind the controller at both ends.
    assignments.update_from_broker({"t-0": (0, 1)}, {"t-0": MOVING})
    assignments.update_from_broker({"t-0": MERGED}, {"t-0": MOVING})
    assignments.update_from_broker({"t-0": MERGED}, {})
    assert events == [("assignment", "t-0", MERGED, (2, 3), (0, 1))]
    assert assignments.owned_by(1) == assignments.owned_by(3) == ("t-0",)
    assignments.update_from_broker({"t-0": (2, 3)}, {})
    assert events[1:] == [("assignment", "t-0", (2, 3), (), ())]
    assert (assignments.owned_by(1), assignments.owned_by(3)) == ((), ("t-0",))


def test_a_cancelled_reassignment_keeps_the_replicas(
    assignments: ObservedAssignments, events: Events
) -> None:
    assignments.update_from_broker({"t-0": MERGED}, {"t-0": MOVING})
    assignments.update_from_broker({"t-0": (0, 1)}, {})
    assert events[1:] == [("assignment", "t-0", (0, 1), (), ())]
