"""A run that is over, played again: the cluster at each moment, what had just happened, what was broken by then.

Nothing is simulated again and no clock is read: who plays it decides how fast.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from harrow.campaigns.language.spelling import run_name
from harrow.campaigns.record.report import FindingGroup, anomalies
from harrow.campaigns.record.run_events import RunEvents, events_of_result
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.story.chain_places import ChainPlaces
from harrow.campaigns.story.event_phrases import narrate
from harrow.campaigns.story.faults_in_force import FaultInForce
from harrow.campaigns.story.narration import EventContext
from harrow.campaigns.story.run_state import RunState, before
from harrow.campaigns.story.topics import ACK
from harrow.campaigns.story.trace_story import StoryEvent, story_events
from harrow.checks.replay.partition_state import ACKED
from harrow.cluster_model import events as kinds

_MOVES: Final = (kinds.BatchAppended, kinds.BatchReplicated, kinds.HighWatermarkSet, kinds.BatchAcknowledged)
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
    sends by what their applications know of them (`harrow.checks.replay.partition_state.ACKED` and so on).
    """

    title: str
    at_us: int
    end_us: int
    state: RunState
    faults: tuple[FaultShown, ...]
    events: tuple[EventShown, ...]
    anomalies: tuple[FindingGroup, ...]
    sends: Counter[str]
    reads: int


class Playback:
    """Plays one run from time zero to its end, event by event."""

    def __init__(self, result: RunResult) -> None:
        self._run: Final = events_of_result(result)
        self.events: Final = story_events(self._run)
        self._title = f"{run_name(result.plan.campaign, result.plan.variant)}, seed {result.seed}"
        places = ChainPlaces(self._run)
        self._anomalies = [
            (anomaly, [places.decided(finding) for finding in anomaly.findings])
            for anomaly in anomalies(result)
        ]
        self._ends = _ends_of_faults(self._run)
        self._state = before(self._run)
        self._next = 0
        self._shown: list[EventShown] = []

    @property
    def end_us(self) -> int:
        return self._run.end_us

    @property
    def at_us(self) -> int:
        """The time that has been reached; a cluster is not shown before time zero."""
        return max(0, self._state.at_us)

    def is_turning_point(self, position: int) -> bool:
        """Return whether the cluster is not what it was after the event at a position."""
        event = self.events[position]
        return event.narration.topic.is_turning_point and not event.narration.routine

    def is_move(self, position: int) -> bool:
        """Return whether a record went a step of its way at a position."""
        event = self.events[position]
        return isinstance(event.source, _MOVES) and not event.narration.routine

    def advance(self, position: int) -> None:
        """Take everything up to the event at a position into account, that one included."""
        for here in range(self._next, min(position + 1, len(self.events))):
            self._state.advance(self._run.events[here], self._run.numbers[here])
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
            anomalies=tuple(self._come_about()),
            sends=Counter(send.status for send in sends),
            reads=sum(len(partition.reads) for partition in state.partitions.values()),
        )

    def _show(self, position: int) -> None:
        event = self.events[position]
        is_answer = event.narration.topic is ACK
        is_bad_end = isinstance(event.source, kinds.ClientEnded) and event.source.status != ACKED
        if event.at_us < 0 or not (is_answer or is_bad_end or self.is_turning_point(position)):
            return
        last = self._shown[-1] if self._shown else None
        if last is not None and (is_answer or is_bad_end) and last.event.event == event.event:
            self._shown[-1] = EventShown(event=event, folded=last.folded + 1)
        else:
            self._shown.append(EventShown(event=event))

    def _fault(self, fault: FaultInForce) -> FaultShown:
        event = kinds.FaultStruck(fault.at_us, fault.fault, "inject", fault.details, fault.strike)
        return FaultShown(
            text=narrate(event, EventContext()).text,
            since_us=fault.at_us,
            until_us=self._ends.get(fault.number),
        )

    def _come_about(self) -> Iterator[FindingGroup]:
        for anomaly, decided in self._anomalies:
            pairs = zip(anomaly.findings, decided, strict=True)
            by_now = tuple(finding for finding, position in pairs if position < self._state.taken)
            if by_now:
                yield FindingGroup(
                    rule=anomaly.rule,
                    promise=anomaly.promise,
                    permitted_by=anomaly.permitted_by,
                    findings=by_now,
                )


def _ends_of_faults(run: RunEvents) -> dict[int, int]:
    """Return when faults ended, by the numbers of the events with which they struck."""
    state, ends = before(run), dict[int, int]()
    standing: set[int] = set()
    for event, number in zip(run.events, run.numbers, strict=True):
        state.advance(event, number)
        now = {fault.number for fault in state.faults}
        if now != standing:
            ends |= {ended: int(event[0]) for ended in standing - now}
            standing = now
    return ends
