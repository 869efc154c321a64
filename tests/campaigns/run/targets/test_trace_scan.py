"""A scan finds the trace events that a script waits for."""

from typing import Any

import pytest

from harrow.campaigns.run.targets.trace_scan import DelayedTraceScan, TraceScan
from harrow.cluster_model.trace import TraceEvent
from harrow.faults.event_pattern import EventPattern

PAUSED, CUT = "broker_paused", "truncate"


def pattern(event: str, **wanted: Any) -> EventPattern:
    return EventPattern(event=event, fields=tuple(wanted.items()))


def test_a_scan_finds_the_first_matching_event() -> None:
    scan = TraceScan([(0, PAUSED, 1), (1, PAUSED, 2), (2, PAUSED, 2)])
    assert scan.first_match(pattern(PAUSED, broker=2)) == 2
    assert scan.first_match(pattern(PAUSED)) == 1
    assert scan.first_match(pattern(PAUSED, broker=3)) is None


def test_a_scan_continues_with_new_events() -> None:
    events: list[TraceEvent] = [(0, PAUSED, 1)]
    scan = TraceScan(events)
    wanted = pattern(PAUSED, broker=2)
    assert scan.first_match(wanted) is None
    events += [(1, PAUSED, 3), (2, PAUSED, 2), (3, PAUSED, 2)]
    assert scan.first_match(wanted) == 3
    assert scan.first_match(wanted) == 3


def test_a_step_ignores_events_before_it() -> None:
    scan = TraceScan([(0, PAUSED, 1), (1, PAUSED, 1), (2, PAUSED, 2)])
    assert scan.first_match(pattern(PAUSED, broker=1)) == 1
    scan.step_taken(1)
    assert scan.first_match(pattern(PAUSED, broker=1)) == 2
    scan.step_taken(2)
    assert scan.first_match(pattern(PAUSED, broker=1)) is None


TRUNCATED = [(0, CUT, 1, "t-0", 5, 3, "")]


def test_a_reason_that_real_brokers_leave_empty_matches_any_reason() -> None:
    wanted = pattern(CUT, to_offset=3, reason="leader epoch")
    assert TraceScan(TRUNCATED).first_match(wanted) is None
    assert DelayedTraceScan(TRUNCATED).first_match(wanted) == 1
    assert DelayedTraceScan(TRUNCATED).first_match(pattern(CUT, reason="leader epoch")) == 1


def test_a_reason_that_real_brokers_report_has_to_match() -> None:
    scan = DelayedTraceScan([(0, CUT, 1, "t-0", 5, 3, "high watermark")])
    assert scan.first_match(pattern(CUT, reason="leader epoch")) is None
    assert scan.first_match(pattern(CUT, reason="high watermark")) == 1


@pytest.mark.parametrize("seen", [{"to_offset": 4}, {"partition": "t-1"}])
def test_with_an_empty_reason_the_other_fields_have_to_match(seen: dict[str, Any]) -> None:
    wanted = pattern(CUT, reason="leader epoch", **seen)
    assert DelayedTraceScan(TRUNCATED).first_match(wanted) is None


def test_an_empty_field_that_real_brokers_always_report_has_to_match() -> None:
    scan = DelayedTraceScan([(0, "broker_stopped", 1, "")])
    assert scan.first_match(pattern("broker_stopped", cause="process")) is None


def test_an_event_without_a_reason_matches_patterns_with_different_reasons() -> None:
    scan = DelayedTraceScan(TRUNCATED)
    reasons = ("leader epoch", "high watermark")
    assert [scan.first_match(pattern(CUT, reason=reason)) for reason in reasons] == [1, 1]


def test_a_step_may_match_events_that_happened_while_the_previous_step_waited() -> None:
    events: list[TraceEvent] = [(0, PAUSED, 1), (1, PAUSED, 2)]
    scan = DelayedTraceScan(events)
    assert scan.first_match(pattern(PAUSED, broker=2)) == 2
    scan.step_taken(2)
    assert scan.first_match(pattern(PAUSED, broker=1)) == 1
    # The next step ignores the event that the previous step matched.
    assert scan.first_match(pattern(PAUSED, broker=2)) is None
    events.append((2, PAUSED, 2))
    assert scan.first_match(pattern(PAUSED, broker=2)) == 3


def test_a_step_ignores_events_before_the_previous_step() -> None:
    events: list[TraceEvent] = [(0, PAUSED, 1)]
    scan = DelayedTraceScan(events)
    scan.step_taken(1)
    events.append((1, PAUSED, 2))
    scan.step_taken(2)
    assert scan.first_match(pattern(PAUSED, broker=1)) is None
    assert scan.first_match(pattern(PAUSED, broker=2)) == 2


def test_the_final_expectation_is_matched_against_the_whole_trace() -> None:
    scan = DelayedTraceScan([(0, PAUSED, 1), (1, PAUSED, 2)])
    for position in (1, 2):
        scan.first_match(pattern(PAUSED, broker=position))
        scan.step_taken(position)
    scan.step_taken(0)
    assert [scan.first_match(pattern(PAUSED, broker=broker)) for broker in (1, 2)] == [1, 2]
