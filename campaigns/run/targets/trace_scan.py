"""Looks through a trace for events that a script waits for: each event once for each pattern."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from harrow.cluster_model.events import event_fields
from harrow.cluster_model.trace import TraceEvent
from harrow.faults.conditions.event_pattern import EventPattern


class TraceScan:
    """Finds events in a trace that grows, behind where a step began to count.

    Fields in *untold*, by kind of event, the target does not always tell, and leaves empty then: whatever a campaign says of
    an empty one is taken to be so.
    """

    def __init__(
        self, events: Sequence[TraceEvent], untold: Mapping[str, Collection[str]] = MappingProxyType({})
    ) -> None:
        self._events = events
        self._untold = untold
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
        return pattern.matches(event) or (
            event[1] in self._untold
            and pattern.event == event[1]
            and self._told(pattern, event).matches(event)
        )

    def _told(self, pattern: EventPattern, event: TraceEvent) -> EventPattern:
        """Return a pattern without what an event does not tell."""
        names, untold = list(event_fields(pattern.event)), self._untold[pattern.event]
        return replace(
            pattern,
            fields=tuple(
                (name, wanted)
                for name, wanted in pattern.fields
                if name not in untold or event[2 + names.index(name)] != ""
            ),
        )


class LateTraceScan(TraceScan):
    """Finds events in a trace of what was noticed: some of them later than others that they came before.

    So what was noticed while the step before waited counts for the next one too, but for the events that a step has had.
    """

    def __init__(self, events: Sequence[TraceEvent], untold: Mapping[str, Collection[str]]) -> None:
        super().__init__(events, untold)
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
        return position not in self._had and super()._is_meant(pattern, event, position)
