"""The story of a recorded run: its findings, and all events of its trace and history in order."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from harrow.campaigns.language.spelling import run_name
from harrow.campaigns.record.numbered_findings import NumberedFinding, numbered
from harrow.campaigns.record.phrases import in_lane
from harrow.campaigns.record.recorded_run import RecordedRun, read_run
from harrow.campaigns.record.run_events import RunEvents, events_of_recorded
from harrow.campaigns.story.chain_places import ChainPlaces, values_of
from harrow.campaigns.story.event_phrases import narrate, phrase_of
from harrow.campaigns.story.narration import FAULTS, EventContext, Narration, broker_lane, broker_of_lane
from harrow.campaigns.story.topics import REQUEST
from harrow.checks.link import Link
from harrow.checks.replay.cluster_state import ClusterState
from harrow.cluster_model import events as kinds
from harrow.cluster_model.events import HISTORY_EVENTS, Event, event_fields
from harrow.cluster_model.lazy_dataclass import dataclass, replace
from harrow.cluster_model.protocol import NO_LEADER
from harrow.cluster_model.trace import TraceEvent, decode


@dataclass(frozen=True, slots=True, kw_only=True)
class StoryEvent:
    """An event of the trace or of the history, in words.

    ``position`` is its place in the story, from 0. ``number`` is its line of ``trace.jsonl``, from
    1. An event of the history (``is_client_event``) has no line in the trace, so its number is that
    of the trace event before it. ``values`` are the values of the records that the event concerns.
    ``source`` is the recorded event. It is None for a stand-in: an event that is made for a link of
    a finding's chain if no recorded event matches the link.
    """

    position: int
    number: int
    at_us: int
    event: str
    narration: Narration
    partition: str | None = None
    values: tuple[str, ...] = ()
    source: Event | None = None
    is_client_event: bool = False
    hw_before: int | None = None

    @property
    def fields(self) -> Mapping[str, Any]:
        if self.source is None:
            return {}
        return {name: getattr(self.source, name) for name in event_fields(self.source.name)}

    @property
    def creates_partition(self) -> bool:
        """Whether this event gives a partition its first leader before time 0."""
        return (
            self.at_us < 0
            and isinstance(self.source, kinds.LeaderElected | kinds.BecameLeader)
            and self.source.leader_epoch == 0
        )


@dataclass(frozen=True, kw_only=True)
class TraceStory:
    """A recorded run as a story. Its events are narrated when they are first needed.

    ``run`` has the recorded events, each at the same position as its narrated event.
    """

    recorded: RecordedRun
    run: RunEvents
    findings: tuple[NumberedFinding, ...]

    @cached_property
    def events(self) -> tuple[StoryEvent, ...]:
        """All events in order, each with its narration."""
        return story_events(self.run)

    @cached_property
    def lanes(self) -> tuple[str, ...]:
        """The lanes of all events, in the order in which stories show them."""
        return _lanes(self.events)

    @cached_property
    def places(self) -> ChainPlaces:
        """Finds the event position of each link of a finding."""
        return ChainPlaces(self.run)

    @property
    def partitions(self) -> list[str]:
        return sorted(self.run.replicas)

    @property
    def name(self) -> str:
        """The run's name in the first line of its story."""
        return f"{run_name(self.recorded.plan.campaign, self.recorded.variant)}, seed {self.recorded.seed}"

    @property
    def run_id(self) -> str:
        """The run's campaign and id: the path of its folder below ``results/``."""
        recorded = self.recorded
        return f"{recorded.plan.campaign}/{recorded.plan_digest[:8]}-{recorded.seed}-{recorded.version}"

    @property
    def end(self) -> ClusterState:
        """The cluster at the end of the run, with every copy of a record that was ever in a log."""
        return self.places.end

    def stand_in(self, link: Link) -> StoryEvent:
        """Return a stand-in for a link that no recorded event matches."""
        at_us = link.at_us or 0
        position = max(self.places.last_at(at_us), 0)
        lane = FAULTS if link.broker is None else broker_lane(link.broker)
        return StoryEvent(
            position=position,
            number=self.run.numbers[position],
            at_us=at_us,
            event=link.event,
            narration=Narration(lane if lane in self.lanes else FAULTS, REQUEST, in_lane(link, lane)),
        )


def read_story(folder: Path) -> TraceStory:
    """Read a recorded run as a story.

    Raises:
        RecordError: One of its files is missing or damaged.
        CampaignError: Its campaign cannot be read, or not by this version.

    """
    return story_of(read_run(folder))


def story_of(recorded: RecordedRun) -> TraceStory:
    """Return the story of a recorded run.

    Raises:
        RecordError: Its trace or its history is damaged.

    """
    return TraceStory(recorded=recorded, run=events_of_recorded(recorded), findings=numbered(recorded.rules))


def story_events(run: RunEvents) -> tuple[StoryEvent, ...]:
    """Return all events of a run in order, each with its narration."""
    narrator = Narrator(ClusterState(run.replicas), has_several_partitions=len(run.replicas) > 1)
    return tuple(
        narrator.story_event(position, number, event)
        for position, (event, number) in enumerate(zip(run.events, run.numbers, strict=True))
    )


def _lanes(events: Sequence[StoryEvent]) -> tuple[str, ...]:
    lanes = dict.fromkeys(
        lane for event in events for lane in (event.narration.lane, event.narration.to) if lane is not None
    )
    numbers = {lane: number for lane in lanes if (number := broker_of_lane(lane)) is not None}
    brokers = sorted(numbers, key=numbers.__getitem__)
    clients = dict.fromkeys(event.narration.lane for event in events if event.is_client_event)
    rest = [lane for lane in lanes if lane not in {FAULTS, *brokers, *clients}]
    return (FAULTS, *brokers, *clients, *rest)


class Narrator:
    """Narrates the events of a run in order, and keeps the context that later events need."""

    def __init__(self, state: ClusterState, *, has_several_partitions: bool) -> None:
        self._state = state
        self._has_several_partitions = has_several_partitions
        self._requests: dict[tuple[str, str, str], tuple[Any, ...]] = {}
        self._answers: dict[tuple[Any, ...], Event] = {}
        self._senders: dict[tuple[str, str], str] = {}

    def story_event(self, position: int, number: int, raw: TraceEvent) -> StoryEvent:
        event = decode(raw)
        context = self.advance(event, raw, number)
        narration = narrate(event, context)
        if (event.at_us < 0 and phrase_of(type(event)).at_start) or self._is_repeated(event):
            narration = replace(narration, routine=True)
        return StoryEvent(
            position=position,
            number=number,
            at_us=event.at_us,
            event=event.name,
            narration=narration,
            partition=getattr(event, "partition", None),
            values=(*values_of(event), *context.removed),
            source=event,
            is_client_event=event.name in HISTORY_EVENTS,
            hw_before=context.hw_before,
        )

    def advance(self, event: Event, raw: TraceEvent, number: int) -> EventContext:
        """Apply an event to the state of the cluster, and return the event's context."""
        partition: str = getattr(event, "partition", None) or ""
        partition_text, sender = partition if self._has_several_partitions else "", self._sender(event)
        broker = getattr(event, "broker", None)
        if not partition or not isinstance(broker, int):
            self._state.advance(raw, number)
            return EventContext(partition=partition_text, sender=sender)
        replica = self._state.partition(partition).replica(broker)
        hw_before = replica.high_watermark if replica.is_open else None
        removed_before = len(replica.removed)
        self._state.advance(raw, number)
        return EventContext(
            partition=partition_text,
            sender=sender,
            leader=None if replica.leader == NO_LEADER else broker_lane(replica.leader),
            hw_before=hw_before,
            removed=[removal.entry.value for removal in replica.removed[removed_before:]],
        )

    def _sender(self, event: Event) -> str | None:
        """Return the client that sent the records of an event, None if unknown."""
        if isinstance(event, kinds.ClientSent):
            self._senders[event.partition, str(event.value)] = event.client
        values = getattr(event, "values", ())
        return self._senders.get((getattr(event, "partition", ""), values[0])) if values else None

    def _is_repeated(self, event: Event) -> bool:
        """Return whether the previous request of the same kind and sender ended in the same way."""
        if isinstance(event, kinds.BecameFollower | kinds.BecameLeader):
            self._answers.clear()
        if isinstance(event, kinds.EpochEndAnswered | kinds.FetcherFailed | kinds.RequestRejected):
            asker = getattr(event, "replica", getattr(event, "sender", None))
            answer = (event.name, event.broker, event.partition, asker)
            now = replace(event, at_us=0)
            before, self._answers[answer] = self._answers.get(answer), now
            return before == now
        if not isinstance(event, kinds.SendFailed | kinds.SentAgain):
            return False
        request = (event.name, event.client, str(event.values[:1]))
        end = (event.leader, getattr(event, "error", None))
        last, self._requests[request] = self._requests.get(request), end
        return last == end
