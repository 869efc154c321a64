"""A run that is over, played again: the cluster at each moment, what had just happened, what was broken by then.

Nothing is simulated again and no clock is read: who plays it decides how fast.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from campaigns.cluster_states import ClusterState, FaultInForce
from campaigns.replica_states import ACKED
from campaigns.report import Anomaly, anomalies
from campaigns.run_events import RunEvents, events_of_result
from campaigns.run_result import RunResult
from campaigns.spelling import run_name
from campaigns.told import Moment
from campaigns.trace_story import StoryEvent, told_events
from campaigns.trace_words import tell
from checks.finding import Finding

_TURNING_POINTS: Final = frozenset(
    {
        *("fault", "process", "session", "controller", "election", "epoch"),
        *("isr", "truncation", "invariant"),
    }
)
"""Kinds of events after which a cluster is not what it was (`campaigns.told.KINDS`)."""

_MOVES: Final = frozenset({"append", "replicate", "hw", "acknowledged"})
"""Events of every record's way: where they stand in a log, and who may know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultShown:
    """A fault in force. The run is over, so the end is known; None where only the end of the run ends it."""

    text: str
    since_us: int
    until_us: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EventShown:
    """An event that has just happened; *folded* of its kind came right before it."""

    event: StoryEvent
    folded: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A moment of a run. ``state`` goes on with the playback: a scene is to be shown before the next is taken.

    ``anomalies`` are those whose last event has happened by now, with their findings so far. ``sends`` counts
    sends by what their applications know of them (`campaigns.replica_states.ACKED` and so on).
    """

    title: str
    at_us: int
    end_us: int
    state: ClusterState
    faults: tuple[FaultShown, ...]
    events: tuple[EventShown, ...]
    anomalies: tuple[Anomaly, ...]
    sends: Counter[str]
    reads: int


class Playback:
    """Plays one run from time zero to its end, event by event."""

    def __init__(self, result: RunResult) -> None:
        self._happened: Final = events_of_result(result)
        self.told: Final = told_events(self._happened)
        self._title = f"{run_name(result.plan.campaign, result.plan.variant)}, seed {result.seed}"
        self._anomalies = [
            (anomaly, [_when(finding, self._happened.end_us) for finding in anomaly.findings])
            for anomaly in anomalies(result)
        ]
        self._ends = _ends_of_faults(self._happened)
        self._state = _before(self._happened)
        self._next = 0
        self._shown: list[EventShown] = []

    @property
    def end_us(self) -> int:
        """The time of the last event."""
        return self._happened.end_us

    @property
    def at_us(self) -> int:
        """The time that has been reached; nobody looks at a cluster before time zero."""
        return max(0, self._state.at_us)

    def is_turning_point(self, position: int) -> bool:
        """Return whether the cluster is not what it was after the event at a position."""
        event = self.told[position]
        return event.told.kind in _TURNING_POINTS and not event.told.routine

    def is_move(self, position: int) -> bool:
        """Return whether a record went a step of its way at a position."""
        event = self.told[position]
        return event.event in _MOVES and not event.told.routine

    def advance(self, position: int) -> None:
        """Take everything up to the event at a position into account, that one included."""
        for here in range(self._next, min(position + 1, len(self.told))):
            self._state.advance(self._happened.events[here], self._happened.numbers[here])
            self._show(here)
            self._next = here + 1

    def scene(self, at_us: int | None = None, *, events_max: int = 20) -> Scene:
        """Return the moment that has been reached; *at_us* is its time, where nothing has happened since."""
        state = self._state
        sends = [
            send for p in state.partitions.values() for of_value in p.sends.values() for send in of_value
        ]
        now_us = state.at_us if at_us is None else at_us
        return Scene(
            title=self._title,
            at_us=max(0, now_us),
            end_us=self.end_us,
            state=state,
            faults=tuple(self._fault(fault) for fault in state.faults),
            events=tuple(self._shown[-events_max:]),
            anomalies=tuple(self._broken_by(state.at_us)),
            sends=Counter(send.status for send in sends),
            reads=sum(len(partition.reads) for partition in state.partitions.values()),
        )

    def _show(self, position: int) -> None:
        event = self.told[position]
        is_answer = event.told.kind == "ack"
        is_bad_end = event.event == "client_ended" and event.fields["status"] != ACKED
        if event.at_us < 0 or not (is_answer or is_bad_end or self.is_turning_point(position)):
            return
        last = self._shown[-1] if self._shown else None
        if last is not None and (is_answer or is_bad_end) and last.event.event == event.event:
            self._shown[-1] = EventShown(event=event, folded=last.folded + 1)
        else:
            self._shown.append(EventShown(event=event))

    def _fault(self, fault: FaultInForce) -> FaultShown:
        fields = {"fault": fault.fault, "phase": "inject", "details": fault.details}
        return FaultShown(
            text=tell("fault", fields, Moment()).text,
            since_us=fault.at_us,
            until_us=self._ends.get(fault.number),
        )

    def _broken_by(self, at_us: int) -> Iterator[Anomaly]:
        for anomaly, times in self._anomalies:
            by_now = tuple(f for f, when_us in zip(anomaly.findings, times, strict=True) if when_us <= at_us)
            if by_now:
                yield Anomaly(
                    rule=anomaly.rule,
                    promise=anomaly.promise,
                    permitted_by=anomaly.permitted_by,
                    findings=by_now,
                )


def _before(happened: RunEvents) -> ClusterState:
    return ClusterState(happened.replicas, (broker.id for broker in happened.plan.cluster.brokers))


def _when(finding: Finding, end_us: int) -> int:
    """Return when a finding had come about: with the last event of its chain."""
    return max((link.at_us for link in finding.chain if link.at_us is not None), default=end_us)


def _ends_of_faults(happened: RunEvents) -> dict[int, int]:
    """Return when faults ended, by the numbers of the events with which they struck."""
    state, ends = _before(happened), dict[int, int]()
    standing: set[int] = set()
    for event, number in zip(happened.events, happened.numbers, strict=True):
        state.advance(event, number)
        now = {fault.number for fault in state.faults}
        if now != standing:
            ends |= {ended: int(event[0]) for ended in standing - now}
            standing = now
    return ends
