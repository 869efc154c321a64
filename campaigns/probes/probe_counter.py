"""Counts how often a run reached each rare state (`harrow.campaigns.probes.probes`).

Most probes are counted from the trace after the run. But a trace does not record the requests that
a controller or a coordinator refuses, or the events of the quorum. A `NoticeCounter` counts these
events during the run.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from harrow.campaigns.probes.probe import (
    Condition,
    Lookup,
    conditions,
    field_conditions,
    lookups,
)
from harrow.campaigns.probes.probe_memory import FREQUENT, REMEMBERED, ProbeMemory
from harrow.campaigns.probes.probes import PROBES
from harrow.cluster_model.events import EVENTS, Event
from harrow.cluster_model.registry import derived
from harrow.cluster_model.trace import Trace, TraceEvent, decode


class _EventKind:
    """How to handle the events of a kind.

    A trace has a row for each event. An `Event` object is made of it only with ``needs_object``.
    Each event reaches the probes in ``always``.
    """

    __slots__ = ("always", "by_event", "by_fields", "by_values", "is_relevant", "needs_object", "remember")

    def __init__(self, name: str) -> None:
        kind = EVENTS.get(name)
        of_kind: Sequence[Lookup] = () if kind is None else lookups().get(kind, ())
        self.always: list[str] = [
            probe for lookup in of_kind if not lookup.positions for probe in lookup.probes[()]
        ]
        self.by_values: list[Lookup] = [lookup for lookup in of_kind if lookup.positions]
        # Tuples, because compiled code unpacks them faster than named tuples.
        self.by_fields: list[tuple[str, Condition, tuple[int, ...]]] = [
            (*each,) for each in field_conditions().get(name, ())
        ]
        self.by_event: Sequence[tuple[str, Condition]] = conditions().get(name, ())
        self.remember: Callable[[ProbeMemory, TraceEvent], None] | None = FREQUENT.get(name)
        self.needs_object = bool(self.by_event) or (name in REMEMBERED and self.remember is None)
        self.is_relevant = bool(self.by_values or self.by_fields or self.remember or self.needs_object)


@derived
def _event_kind(name: str) -> _EventKind:
    return _EventKind(name)


@derived
def _counted_kinds() -> tuple[str, ...]:
    """Return the names of the kinds of events that count for a probe or that conditions read."""
    kinds = {name: _event_kind(name) for name in EVENTS}
    return tuple(name for name, kind in kinds.items() if kind.always or kind.is_relevant)


class _Events:
    """The events of a kind in a run, and how many there were."""

    __slots__ = ("count", "kind")

    def __init__(self, kind: _EventKind) -> None:
        self.kind = kind
        self.count = 0


class ProbeCounter:
    """Counts probes event by event, and keeps the memory that their conditions read.

    It is a reader of a `TraceIndex`. *noticed* has the counts of a `NoticeCounter`.
    """

    def __init__(self, noticed: Mapping[str, int]) -> None:
        self._counts: dict[str, int] = dict(noticed)
        self._memory = ProbeMemory()
        self._events: dict[str, _Events] = {}

    @property
    def kinds(self) -> Collection[str]:
        return _counted_kinds()

    def take(self, rows: Sequence[TraceEvent]) -> None:
        """Count the probes that the next events reach."""
        events = self._events
        for row in rows:
            of_kind = events.get(row[1])
            if of_kind is None:
                of_kind = events[row[1]] = _Events(_event_kind(row[1]))
            of_kind.count += 1
            if of_kind.kind.is_relevant:
                self._take(of_kind.kind, row)

    def _take(self, kind: _EventKind, row: TraceEvent) -> None:
        """Count the probes that an event reaches, and then remember the event."""
        memory, remember = self._memory, kind.remember
        for lookup in kind.by_values:
            _count(lookup, row[2:], self._counts)
        for probe, condition, places in kind.by_fields:
            hits = _hits(condition, memory, row, places)
            if hits:
                self._hit(probe, hits)
        if kind.needs_object:
            event = decode(row)
            for probe, condition in kind.by_event:
                hits = condition(memory, event)
                if hits:
                    self._hit(probe, hits)
            if remember is None:
                memory.take(event)
        if remember is not None:
            remember(memory, row)

    def result(self, end_us: int) -> dict[str, int]:
        """Return how often each probe was reached, without those that were not.

        Call this once, after the last event, which was at *end_us*. It also counts probes that
        every event of a kind reaches, and states that last until the end.
        """
        for of_kind in self._events.values():
            for probe in of_kind.kind.always:
                self._hit(probe, of_kind.count)
        for probe, declared in PROBES.items():
            if declared.at_end is not None and (hits := declared.at_end(self._memory, end_us)):
                self._hit(probe, hits)
        return {probe: self._counts[probe] for probe in PROBES if probe in self._counts}

    def _hit(self, probe: str, hits: int) -> None:
        self._counts[probe] = self._counts.get(probe, 0) + hits


def _hits(condition: Condition, memory: ProbeMemory, row: TraceEvent, places: tuple[int, ...]) -> int:
    """Call a condition with the fields at some *places* of a row."""
    match len(places):  # A call with a list of arguments takes several times as long.
        case 1:
            return condition(memory, row[places[0]])
        case 2:
            return condition(memory, row[places[0]], row[places[1]])
        case 3:
            return condition(memory, row[places[0]], row[places[1]], row[places[2]])
        case _:
            return condition(memory, *[row[place] for place in places])


def _count(lookup: Lookup, fields: Sequence[Any], counts: dict[str, int]) -> None:
    for probe in lookup.probes.get(tuple([fields[position] for position in lookup.positions]), ()):
        counts[probe] = counts.get(probe, 0) + 1


class NoticeCounter:
    """Counts events that only subscribers see, from time 0 on, when the run begins."""

    def __init__(self, trace: Trace) -> None:
        self.counts: dict[str, int] = {}
        for kind, lookups_of_kind in lookups().items():
            if kind.name not in EVENTS:
                self._watch(trace, kind, lookups_of_kind)

    def _watch(self, trace: Trace, kind: Callable[..., Event], lookups_of_kind: Sequence[Lookup]) -> None:
        def count(*fields: Any) -> None:
            if trace.clock.now_us >= 0:
                for lookup in lookups_of_kind:
                    _count(lookup, fields, self.counts)

        trace.subscribe(kind, count)
