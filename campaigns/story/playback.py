"""Plays back a finished run: its cluster, recent events and findings so far at each moment.

A playback simulates nothing and reads no clock. The caller sets the pace.
"""

from collections import Counter, deque
from collections.abc import Iterator
from typing import Final

from harrow.campaigns.language.spelling import run_name
from harrow.campaigns.record.report import FindingGroup, anomalies
from harrow.campaigns.record.run_events import RunEvents, events_of_result
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.story.chain_places import ChainPlaces
from harrow.campaigns.story.event_phrases import narrate, phrase_of
from harrow.campaigns.story.faults_in_force import FaultInForce
from harrow.campaigns.story.narration import EventContext
from harrow.campaigns.story.run_state import RunState, initial_state
from harrow.campaigns.story.topics import ACK
from harrow.campaigns.story.trace_story import StoryEvent, story_events
from harrow.checks.replay.partition_state import ACKED
from harrow.cluster_model import events as kinds
from harrow.cluster_model.lazy_dataclass import dataclass

_DISPLAYED_MAX: Final = 20
_MOVES: Final = (kinds.BatchAppended, kinds.BatchReplicated, kinds.HighWatermarkSet, kinds.BatchAcknowledged)
"""Events that move a record along: its appends and copies, high watermarks, and its ack."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DisplayedFault:
    """A fault in force. ``until_us`` is when it ends; None if it lasts until the run ends."""

    text: str
    since_us: int
    until_us: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DisplayedEvent:
    """A recent event. ``folded`` counts the events of the same kind directly before it."""

    event: StoryEvent
    folded: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveFigures:
    """What a run that goes on has besides: its connected clients, and records per second."""

    clients: tuple[str, ...]
    sent_per_s: float
    acked_per_s: float
    read_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A moment of a run.

    ``state`` changes as the playback advances, so show a scene before you ask for the next one.

    ``anomalies`` contain the findings whose last event has happened. ``sends`` counts sends by
    their status (`harrow.checks.replay.partition_state.ACKED` and so on). ``reads`` counts the
    records that consumers have read, each once. A run that goes on has ``live`` figures, and no
    end and no findings yet.
    """

    title: str
    at_us: int
    end_us: int | None
    state: RunState
    faults: tuple[DisplayedFault, ...]
    events: tuple[DisplayedEvent, ...]
    anomalies: tuple[FindingGroup, ...]
    sends: Counter[str]
    reads: int
    live: LiveFigures | None = None


class RecentEvents:
    """The latest events that a view lists: turning points, and the ends of sends."""

    def __init__(self) -> None:
        self._displayed: deque[DisplayedEvent] = deque(maxlen=_DISPLAYED_MAX)

    def last(self) -> tuple[DisplayedEvent, ...]:
        return tuple(self._displayed)

    def add(self, event: StoryEvent) -> None:
        """Add an event, if the view lists such events."""
        topic, is_end = event.narration.topic, is_end_of_send(event.source)
        is_listed = is_end or (topic.is_turning_point and not event.narration.routine)
        if event.at_us < 0 or not is_listed:
            return
        last = self._displayed[-1] if self._displayed else None
        if last is not None and is_end and last.event.event == event.event:
            self._displayed[-1] = DisplayedEvent(event=event, folded=last.folded + 1)
        else:
            self._displayed.append(DisplayedEvent(event=event))


def is_end_of_send(event: kinds.Event | None) -> bool:
    """Return whether an event is an ack, or another end of a send."""
    if isinstance(event, kinds.ClientEnded):
        return event.status != ACKED
    return event is not None and phrase_of(type(event)).topic is ACK


def displayed_fault(fault: FaultInForce, until_us: int | None) -> DisplayedFault:
    event = kinds.FaultStruck(fault.at_us, fault.fault, "inject", fault.details, fault.strike)
    return DisplayedFault(text=narrate(event, EventContext()).text, since_us=fault.at_us, until_us=until_us)


class Playback:
    """Plays one run from time zero to its end, event by event."""

    def __init__(self, result: RunResult) -> None:
        self._run: Final = events_of_result(result)
        self.events: Final = story_events(self._run)
        self._title = f"{run_name(result.plan.campaign, result.plan.variant)}, seed {result.seed}"
        places = ChainPlaces(self._run)
        self._anomalies = [
            (anomaly, [places.last_position(finding) for finding in anomaly.findings])
            for anomaly in anomalies(result)
        ]
        self._end_by_fault = _ends_of_faults(self._run)
        self._state = initial_state(self._run)
        self._next = 0
        self._recent = RecentEvents()

    @property
    def end_us(self) -> int:
        return self._run.end_us

    @property
    def at_us(self) -> int:
        """The time of the last event. Events before time zero, of the start, count as time zero."""
        return max(0, self._state.at_us)

    def is_turning_point(self, position: int) -> bool:
        """Return whether the event at a position changes the cluster."""
        event = self.events[position]
        return event.narration.topic.is_turning_point and not event.narration.routine

    def is_move(self, position: int) -> bool:
        """Return whether the event at a position moves a record along (`_MOVES`)."""
        event = self.events[position]
        return isinstance(event.source, _MOVES) and not event.narration.routine

    def advance(self, position: int) -> None:
        """Apply all events up to and including the one at a position."""
        for next_position in range(self._next, min(position + 1, len(self.events))):
            self._state.advance(self._run.events[next_position], self._run.numbers[next_position])
            self._recent.add(self.events[next_position])
            self._next = next_position + 1

    def scene(self, at_us: int | None = None) -> Scene:
        """Return the current moment. *at_us* is the time to show, by default the last event's."""
        state = self._state
        sends = [
            send
            for partition in state.partitions.values()
            for sends_of_value in partition.sends.values()
            for send in sends_of_value
        ]
        now_us = state.at_us if at_us is None else at_us
        return Scene(
            title=self._title,
            at_us=max(0, now_us),
            end_us=self.end_us,
            state=state,
            faults=tuple(
                displayed_fault(fault, self._end_by_fault.get(fault.number)) for fault in state.faults
            ),
            events=self._recent.last(),
            anomalies=tuple(self._anomalies_until_now()),
            sends=Counter(send.status for send in sends),
            reads=sum(len(partition.reads) for partition in state.partitions.values()),
        )

    def _anomalies_until_now(self) -> Iterator[FindingGroup]:
        for anomaly, positions in self._anomalies:
            pairs = zip(anomaly.findings, positions, strict=True)
            findings = tuple(finding for finding, position in pairs if position < self._state.event_count)
            if findings:
                yield FindingGroup(
                    rule=anomaly.rule,
                    promise=anomaly.promise,
                    permitted_by=anomaly.permitted_by,
                    findings=findings,
                )


def _ends_of_faults(run: RunEvents) -> dict[int, int]:
    """Return when faults ended, by the number of the event with which each fault struck."""
    state, ends = initial_state(run), dict[int, int]()
    in_force: set[int] = set()
    for event, number in zip(run.events, run.numbers, strict=True):
        state.advance(event, number)
        now = {fault.number for fault in state.faults}
        if now != in_force:
            ends |= {ended: int(event[0]) for ended in in_force - now}
            in_force = now
    return ends
