"""Searches a trace for the events that a script waits for, scanning each event once per pattern."""

from collections.abc import Sequence

from harrow.cluster_model.events import FieldTrait, event_fields, fields_with
from harrow.cluster_model.lazy_dataclass import replace
from harrow.cluster_model.trace import TraceEvent
from harrow.faults.event_pattern import EventPattern


class TraceScan:
    """Finds events in a growing trace. Only events behind the position of the last step count."""

    def __init__(self, events: Sequence[TraceEvent]) -> None:
        self._events = events
        self._step_position = 0
        # For each pattern, the position behind the last event that was compared with it, and
        # whether that event matched.
        self._scanned: dict[EventPattern, tuple[int, bool]] = {}

    def step_taken(self, position: int) -> None:
        """Ignore events before *position* from now on, because a step was taken."""
        self._step_position = position
        self._scanned.clear()

    def first_match(self, pattern: EventPattern) -> int | None:
        """Return the position behind the first event that matches; None if no event matches yet."""
        position, is_match = self._scanned.get(pattern, (self._step_position, False))
        if is_match:
            return position
        for event in self._events[position:]:
            position += 1
            if self._matches(pattern, event, position):
                is_match = True
                break
        self._scanned[pattern] = (position, is_match)
        return position if is_match else None

    def _matches(self, pattern: EventPattern, event: TraceEvent, position: int) -> bool:
        return pattern.matches(event)


class DelayedTraceScan(TraceScan):
    """Finds events in the trace of real brokers, which shows some events later than they happened.

    So events that appeared while the previous step waited also count for the next step, unless
    they have already matched a step. If a field that real brokers may leave empty
    (`FieldTrait.MAY_BE_EMPTY`) is empty, it matches any expected value.
    """

    def __init__(self, events: Sequence[TraceEvent]) -> None:
        super().__init__(events)
        # The end of the trace when the previous step was taken.
        self._previous_end = 0
        # The positions behind events that have matched a step.
        self._matched: set[int] = set()

    def step_taken(self, position: int) -> None:
        if position == 0:  # The whole trace counts.
            self._previous_end = 0
            self._matched.clear()
            super().step_taken(0)
            return
        self._matched.update(
            position_behind for position_behind, is_match in self._scanned.values() if is_match
        )
        before, self._previous_end = self._previous_end, len(self._events)
        super().step_taken(before)

    def _matches(self, pattern: EventPattern, event: TraceEvent, position: int) -> bool:
        if position in self._matched or event[1] != pattern.event:
            return False
        optional_fields = fields_with(pattern.event, FieldTrait.MAY_BE_EMPTY)
        if not optional_fields:
            return pattern.matches(event)
        names = list(event_fields(pattern.event))
        fields = tuple(
            (name, value)
            for name, value in pattern.fields
            if name not in optional_fields or event[2 + names.index(name)] != ""
        )
        return replace(pattern, fields=fields).matches(event)
