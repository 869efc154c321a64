"""Counts how often a run reached each rare state (`harrow.campaigns.probes.probes`).

Most are counted from the trace after the run. Traces leave out what a controller or a coordinator
refuses, and what happens in the quorum; a `NoticeCounter` subscribes to these events instead.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import compress
from operator import itemgetter
from typing import Any

from harrow.campaigns.probes.probe import Lookup, conditions, lookups
from harrow.campaigns.probes.probe_memory import FREQUENT, REMEMBERED, ProbeMemory
from harrow.campaigns.probes.probes import PROBES
from harrow.cluster_model.events import EVENTS, Event
from harrow.cluster_model.packed_log import blocks_of
from harrow.cluster_model.trace import Trace, TraceEvent, decode


def count_probes(trace: Sequence[TraceEvent], noticed: Mapping[str, int] | None = None) -> dict[str, int]:
    """Return how often each reached probe was reached; *noticed* are a `NoticeCounter`'s counts."""
    counter = _Counter(noticed or {})
    relevant = counter.relevant
    by_name: Counter[str] = Counter()
    end_us = 0
    for rows in blocks_of(trace):
        names = list(map(itemgetter(1), rows))
        by_name.update(names)
        for row in compress(rows, map(relevant.__contains__, names)):
            counter.take(row)
        end_us = rows[-1][0]
    counter.end(by_name, end_us)
    return {probe: counter.counts[probe] for probe in PROBES if probe in counter.counts}


class _Counter:
    """The counts so far, and the memory that conditions read."""

    def __init__(self, noticed: Mapping[str, int]) -> None:
        self.counts: dict[str, int] = dict(noticed)
        self._memory = ProbeMemory()
        self._conditions = conditions()
        self._by_values = {
            kind.name: [lookup for lookup in of_kind if lookup.positions]
            for kind, of_kind in lookups().items()
        }
        by_values = [name for name, lookups_by_value in self._by_values.items() if lookups_by_value]
        self.relevant = frozenset((*REMEMBERED, *self._conditions, *by_values))

    def take(self, row: TraceEvent) -> None:
        """Count the probes that an event reaches, and then remember the event."""
        name = row[1]
        for lookup in self._by_values.get(name, ()):
            _count(lookup, row[2:], self.counts)
        conditional, remember = self._conditions.get(name), FREQUENT.get(name)
        if remember is None or conditional is not None:
            event = decode(row)
            for probe, condition in conditional or ():
                hits = condition(self._memory, event)
                if hits:
                    self._hit(probe, hits)
            if remember is None:
                self._memory.take(event)
        if remember is not None:
            remember(self._memory, *row[2:])

    def end(self, by_name: Mapping[str, int], at_us: int) -> None:
        """Count the probes that every event of a kind reaches, and the states at the end."""
        for kind, of_kind in lookups().items():
            for lookup in of_kind:
                for probe in () if lookup.positions else lookup.probes[()]:
                    if kind.name in by_name:
                        self._hit(probe, by_name[kind.name])
        for probe, declared in PROBES.items():
            if declared.at_end is not None and (hits := declared.at_end(self._memory, at_us)):
                self._hit(probe, hits)

    def _hit(self, probe: str, hits: int) -> None:
        self.counts[probe] = self.counts.get(probe, 0) + hits


def _count(lookup: Lookup, fields: Sequence[Any], counts: dict[str, int]) -> None:
    for probe in lookup.probes.get(tuple([fields[position] for position in lookup.positions]), ()):
        counts[probe] = counts.get(probe, 0) + 1


class NoticeCounter:
    """Counts events that only subscribers see, from virtual time 0 on, after the start."""

    def __init__(self, trace: Trace) -> None:
        self.counts: dict[str, int] = {}
        for kind, of_kind in lookups().items():
            if kind.name not in EVENTS:
                self._watch(trace, kind, of_kind)

    def _watch(self, trace: Trace, kind: Callable[..., Event], of_kind: Sequence[Lookup]) -> None:
        def noticed(at_us: int, *fields: Any) -> None:
            if at_us >= 0:
                for lookup in of_kind:
                    _count(lookup, fields, self.counts)

        trace.subscribe(kind, noticed)
