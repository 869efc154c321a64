"""Events of a trace that a script waits for."""

from typing import Any

import pytest

from harrow.campaigns.run.targets.trace_scan import LateTraceScan, TraceScan
from harrow.cluster_model.trace import TraceEvent
from harrow.faults.event_pattern import EventPattern

PAUSED, CUT = "broker_paused", "truncate"


def pattern(event: str, **wanted: Any) -> EventPattern:
    return EventPattern(event=event, fields=tuple(wanted.items()))


def test_it_finds_the_first_event_that_matches() -> None:
    scan = TraceScan([(0, PAUSED, 1), (1, PAUSED, 2), (2, PAUSED, 2)])
    assert scan.first_match(pattern(PAUSED, broker=2)) == 2
    assert scan.first_match(pattern(PAUSED)) == 1
    assert scan.first_match(pattern(PAUSED, broker=3)) is None


def test_it_looks_at_what_has_come_since() -> None:
    events: list[TraceEvent] = [(0, PAUSED, 1)]
    scan = TraceScan(events)
    wanted = pattern(PAUSED, broker=2)
    assert scan.first_match(wanted) is None
    events += [(1, PAUSED, 3), (2, PAUSED, 2), (3, PAUSED, 2)]
    assert scan.first_match(wanted) == 3
    assert scan.first_match(wanted) == 3


def test_what_was_before_a_step_does_not_count_for_it() -> None:
    scan = TraceScan([(0, PAUSED, 1), (1, PAUSED, 1), (2, PAUSED, 2)])
    assert scan.first_match(pattern(PAUSED, broker=1)) == 1
    scan.step_taken(1)
    assert scan.first_match(pattern(PAUSED, broker=1)) == 2
    scan.step_taken(2)
    assert scan.first_match(pattern(PAUSED, broker=1)) is None


TRUNCATED = [(0, CUT, 1, "t-0", 5, 3, "")]


def test_a_reason_that_real_brokers_left_empty_matches_any() -> None:
    wanted = pattern(CUT, to_offset=3, reason="leader epoch")
    assert TraceScan(TRUNCATED).first_match(wanted) is None
    assert LateTraceScan(TRUNCATED).first_match(wanted) == 1
    assert LateTraceScan(TRUNCATED).first_match(pattern(CUT, reason="leader epoch")) == 1


def test_a_reason_that_they_gave_has_to_match() -> None:
    scan = LateTraceScan([(0, CUT, 1, "t-0", 5, 3, "high watermark")])
    assert scan.first_match(pattern(CUT, reason="leader epoch")) is None
    assert scan.first_match(pattern(CUT, reason="high watermark")) == 1


@pytest.mark.parametrize("seen", [{"to_offset": 4}, {"partition": "t-1"}])
def test_beside_an_empty_reason_the_other_fields_have_to_match(seen: dict[str, Any]) -> None:
    wanted = pattern(CUT, reason="leader epoch", **seen)
    assert LateTraceScan(TRUNCATED).first_match(wanted) is None


def test_a_field_that_real_brokers_always_show_has_to_match_when_empty() -> None:
    scan = LateTraceScan([(0, "broker_stopped", 1, "")])
    assert scan.first_match(pattern("broker_stopped", cause="process")) is None


def test_patterns_that_differ_only_in_an_empty_reason_are_both_found() -> None:
    scan = LateTraceScan(TRUNCATED)
    reasons = ("leader epoch", "high watermark")
    assert [scan.first_match(pattern(CUT, reason=reason)) for reason in reasons] == [1, 1]


def test_what_was_noticed_while_the_step_before_waited_counts_late() -> None:
    events: list[TraceEvent] = [(0, PAUSED, 1), (1, PAUSED, 2)]
    scan = LateTraceScan(events)
    assert scan.first_match(pattern(PAUSED, broker=2)) == 2
    scan.step_taken(2)
    assert scan.first_match(pattern(PAUSED, broker=1)) == 1
    # The one that the step before has had does not count again.
    assert scan.first_match(pattern(PAUSED, broker=2)) is None
    events.append((2, PAUSED, 2))
    assert scan.first_match(pattern(PAUSED, broker=2)) == 3


def test_what_was_noticed_before_that_does_not_count() -> None:
    events: list[TraceEvent] = [(0, PAUSED, 1)]
    scan = LateTraceScan(events)
    scan.step_taken(1)
    events.append((1, PAUSED, 2))
    scan.step_taken(2)
    assert scan.first_match(pattern(PAUSED, broker=1)) is None
    assert scan.first_match(pattern(PAUSED, broker=2)) == 2


def test_at_the_end_all_of_the_trace_counts() -> None:
    scan = LateTraceScan([(0, PAUSED, 1), (1, PAUSED, 2)])
    for position in (1, 2):
        scan.first_match(pattern(PAUSED, broker=position))
        scan.step_taken(position)
    scan.step_taken(0)
    assert [scan.first_match(pattern(PAUSED, broker=broker)) for broker in (1, 2)] == [1, 2]
