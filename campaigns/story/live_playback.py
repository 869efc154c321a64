"""Follows a run while it goes on: its cluster, its clients and recent events at this moment.

It reads only what the trace and the history have got since the last look, so its cost grows with
what happens in the run, and not with the length of the run.
"""

from collections import Counter, deque
from collections.abc import Iterator
from heapq import merge
from operator import itemgetter
from typing import Final, NamedTuple

from harrow.campaigns.language.plan import Plan
from harrow.campaigns.language.spelling import run_name
from harrow.campaigns.record.run_events import client_events, no_events
from harrow.campaigns.story.event_phrases import phrase_of
from harrow.campaigns.story.playback import (
    LiveFigures,
    RecentEvents,
    Scene,
    displayed_fault,
    is_end_of_send,
)
from harrow.campaigns.story.run_state import initial_state
from harrow.campaigns.story.trace_story import Narrator
from harrow.checks.replay.partition_state import ACKED, SENDING
from harrow.cluster_model.events import ClientEnded, ClientPolled, ClientSent
from harrow.cluster_model.history import History
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND
from harrow.cluster_model.topology import is_internal
from harrow.cluster_model.trace import Trace, TraceEvent, decode

_RATES_OVER_US: Final = 3 * US_PER_SECOND
"""The time over which records per second are counted."""
_TOTALS_MIN: Final = 2


class _Totals(NamedTuple):
    """How many records were sent, acknowledged and read until a moment."""

    at_us: int
    sent: int
    acked: int
    read: int


class LivePlayback:
    """Follows one run."""

    def __init__(self, plan: Plan, seed: int, trace: Trace, history: History) -> None:
        start = no_events(plan)
        self._title = f"{run_name(plan.campaign, plan.variant)}, seed {seed}"
        self._trace, self._history = trace, history
        self._state = initial_state(start)
        self._narrator = Narrator(self._state, has_several_partitions=len(start.replicas) > 1)
        self._recent = RecentEvents()
        self._events_seen = self._operations_seen = 0
        self._sends: Counter[str] = Counter()
        self._read = 0
        self._totals: deque[_Totals] = deque()

    def catch_up(self) -> None:
        """Apply what has happened since the last call."""
        for event in merge(self._new_client_events(), self._new_trace_events(), key=itemgetter(0)):
            self._apply(event)

    def scene(self, at_us: int, clients: tuple[str, ...]) -> Scene:
        """Return this moment, at which *clients* are connected."""
        at_us = max(0, at_us)
        return Scene(
            title=self._title,
            at_us=at_us,
            end_us=None,
            state=self._state,
            faults=tuple(displayed_fault(fault, None) for fault in self._state.faults),
            events=self._recent.last(),
            anomalies=(),
            sends=+self._sends,
            reads=sum(len(partition.reads) for partition in self._state.partitions.values()),
            live=self._figures(at_us, clients),
        )

    def _new_trace_events(self) -> Iterator[TraceEvent]:
        events = self._trace.events_since(self._events_seen)
        self._events_seen += len(events)
        return iter(events)

    def _new_client_events(self) -> Iterator[TraceEvent]:
        operations = self._history.operations[self._operations_seen :]
        self._operations_seen += len(operations)
        mappings = (operation.as_mapping() for operation in operations)
        return iter(sorted(client_events(mappings, self._history.process_names), key=itemgetter(0)))

    def _apply(self, raw: TraceEvent) -> None:
        event = decode(raw)
        number = self._state.number + (not isinstance(event, ClientSent | ClientEnded | ClientPolled))
        is_listed = is_end_of_send(event) or phrase_of(type(event)).topic.is_turning_point
        # A cluster has a hundred internal partitions. Their events would hide all others.
        if is_listed and not is_internal(getattr(event, "partition", None) or ""):
            self._recent.add(self._narrator.story_event(0, number, raw))
        else:
            self._narrator.advance(event, raw, number)
        if isinstance(event, ClientSent):
            self._sends[SENDING] += 1
        elif isinstance(event, ClientEnded):
            self._sends[SENDING] -= 1
            self._sends[event.status] += 1
        elif isinstance(event, ClientPolled):
            self._read += len(event.records)

    def _figures(self, at_us: int, clients: tuple[str, ...]) -> LiveFigures:
        totals = self._totals
        totals.append(_Totals(at_us, self._sends.total(), self._sends[ACKED], self._read))
        while len(totals) > _TOTALS_MIN and totals[1].at_us <= at_us - _RATES_OVER_US:
            totals.popleft()
        first, last = totals[0], totals[-1]
        passed_s = max(1, last.at_us - first.at_us) / US_PER_SECOND
        return LiveFigures(
            clients=clients,
            sent_per_s=(last.sent - first.sent) / passed_s,
            acked_per_s=(last.acked - first.acked) / passed_s,
            read_per_s=(last.read - first.read) / passed_s,
        )
