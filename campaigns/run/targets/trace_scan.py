"""Looks through a trace for events that a script waits for: each event once for each pattern."""

from collections.abc import Sequence
from dataclasses import replace

from harrow.cluster_model.events import FieldTrait, event_fields, fields_with
from harrow.cluster_model.trace import TraceEvent
from harrow.faults.conditions.event_pattern import EventPattern


class TraceScan:
    """Finds events in a trace that grows, behind where a step began to count."""

    def __init__(self, events: Sequence[TraceEvent]) -> None:
        self._events = events
        self._step_position = 0
        self._scanned: dict[EventPattern, tuple[int, bool]] = {}

    def step_taken(self, position: int) -> None:
        """From *position* on counts what the next step waits for."""
        self._step_position = position
        self._scanned.clear()

    def first_match(self, pattern: EventPattern) -> int | None:
        """Return the position behind the first event that matches, None while there is none."""
        position, is_match = self._scanned.get(pattern, (self._step_position, False))
        if is_match:
            return position
        for event in self._events[position:]:
            position += 1
            if self._is_meant(pattern, event, position):
                is_match = True
                break
        self._scanned[pattern] = (position, is_match)
        return position if is_match else None

    def _is_meant(self, pattern: EventPattern, event: TraceEvent, position: int) -> bool:
        return pattern.matches(event)


class LateTraceScan(TraceScan):
    """Finds events in a trace of what real brokers showed: some of them later than others that they came before.

    So what was noticed while the step before waited counts for the next one too, except the events that a step has had.
    A field that real brokers have left empty (`FieldTrait.MAY_BE_EMPTY`) matches whatever a campaign expects there.
    """

    def __init__(self, events: Sequence[TraceEvent]) -> None:
        super().__init__(events)
        self._began = 0
        self._had: set[int] = set()

    def step_taken(self, position: int) -> None:
        if position == 0:  # All of the trace is meant.
            self._began = 0
            self._had.clear()
            super().step_taken(0)
            return
        self._had.update(found for found, is_match in self._scanned.values() if is_match)
        before, self._began = self._began, len(self._events)
        super().step_taken(before)

    def _is_meant(self, pattern: EventPattern, event: TraceEvent, position: int) -> bool:
        if position in self._had or event[1] != pattern.event:
            return False
        unsure = fields_with(pattern.event, FieldTrait.MAY_BE_EMPTY)
        if not unsure:
            return pattern.matches(event)
        names = list(event_fields(pattern.event))
        wanted = tuple(
            (name, value)
            for name, value in pattern.fields
            if name not in unsure or event[2 + names.index(name)] != ""
        )
        return replace(pattern, fields=wanted).matches(event)
