"""The story of a recorded run: its trace and what its clients did, in one order, in lanes, with its findings."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from campaigns.numbered_findings import NumberedFinding, numbered, said
from campaigns.recorded_run import RecordedRun, read_run
from campaigns.run_events import CLIENT_FIELDS, RunEvents, events_of_recorded, named_fields
from campaigns.spelling import printable, run_name
from campaigns.told import FAULTS, Moment, Told, broker_lane, is_broker
from campaigns.trace_words import tell
from checks.copies import PartitionCopies, copies_by_partition
from checks.finding import Link
from cluster_model.trace import FIELDS, TraceEvent

_AT_START: Final = frozenset({"broker_started", "broker_registered", "recover", "follower"})
"""What every cluster does when it is started, before time zero."""

_OF_LINK: Final[dict[str, tuple[str, ...]]] = {
    "acked": ("acknowledged", "client_ended"),
    "acknowledged": ("client_ended",),
    "ack-lost": ("message_rule",),
    "answered": ("duplicate_batch", "acknowledged"),
    "appended": ("append",),
    "became-leader": ("leader",),
    "client-stopped": ("client_stopped",),
    "controller-elected": ("controller_elected",),
    "copied": ("replicate",),
    "core-healed": ("core_healed",),
    "deposed-controller": (),
    "deposed-leader": ("leader",),
    "elected": ("election",),
    "elected-uncleanly": ("election",),
    "gone": ("truncate", "append", "replicate", "recover"),
    "invariant-broken": ("invariant_broken",),
    "isr-changed": ("isr", "isr_reduced", "election", "leader"),
    "isr-shrank": ("isr", "isr_reduced", "election", "leader"),
    "not-truncated": ("follower",),
    "paused": ("broker_paused",),
    "polled": ("client_polled",),
    "read": ("client_polled", "served"),
    "recovered": ("recover",),
    "request-failed": ("send_failed",),
    "request-lost": ("message_rule",),
    "resumed": ("broker_resumed",),
    "retried": ("sent_again",),
    "sent": ("client_sent",),
    "stopped": ("broker_stopped",),
    "truncated": ("truncate",),
    "unflushed-lost": ("unflushed_lost",),
}
"""Which events a link of a chain may be about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoryEvent:
    """An event of the trace or of the history, told.

    ``position`` is its place in the story, ``line`` its place in the trace, both from 0; what only
    the history knows has the place of the event of the trace before it, and ``of_client`` set. ``values``
    are the records that it is about.
    """

    position: int
    line: int
    at_us: int
    event: str
    told: Told
    partition: str | None = None
    values: tuple[str, ...] = ()
    fields: Mapping[str, Any] = field(default_factory=dict)
    of_client: bool = False


@dataclass(frozen=True, kw_only=True)
class TraceStory:
    """A run, told.

    ``lanes`` has the names of the lanes in order, ``happened`` has what the events
    are told of, at the same positions; ``trace`` has those that no client knew.
    """

    recorded: RecordedRun
    happened: RunEvents
    lanes: tuple[str, ...]
    events: tuple[StoryEvent, ...]
    findings: tuple[NumberedFinding, ...]
    trace: tuple[TraceEvent, ...]
    partitions: tuple[str, ...]

    @property
    def name(self) -> str:
        """The run as the first line of its story names it."""
        return f"{run_name(self.recorded.plan.campaign, self.recorded.variant)}, seed {self.recorded.seed}"

    @property
    def run_id(self) -> str:
        """The id of the run, with its campaign, as its folder below ``results/`` is called."""
        recorded = self.recorded
        return f"{recorded.plan.campaign}/{recorded.plan_digest[:8]}-{recorded.seed}-{recorded.version}"

    @cached_property
    def copies(self) -> Mapping[str, PartitionCopies]:
        """The lives of all records, by partition."""
        return copies_by_partition(self.trace)

    @cached_property
    def times(self) -> Sequence[int]:
        """The times of the events, in order."""
        return [event.at_us for event in self.events]

    def positions_of(self, finding: NumberedFinding) -> list[int | None]:
        """Return the position of the event of each link of a finding's chain, None where there is none."""
        positions: list[int | None] = []
        last = -1
        for link in finding.finding.chain:
            position = self._position_of(link, finding.value, last)
            positions.append(position)
            last = last if position is None else position
        return positions

    def _position_of(self, link: Link, value: str | None, last: int) -> int | None:
        """Return the position of a link's event, rather after that of the link before than before it."""
        if link.at_us is None:
            return None
        begin, end = bisect_left(self.times, link.at_us), bisect_right(self.times, link.at_us)
        names = _OF_LINK.get(link.event, ())
        candidates = [event for event in self.events[begin:end] if event.event in names]
        best = min(
            candidates,
            key=lambda event: (
                not _concerns(event, link.broker),
                event.position < last,
                value is not None and bool(event.values) and value not in event.values,
                names.index(event.event),
            ),
            default=None,
        )
        return None if best is None else best.position

    def stand_in(self, link: Link) -> StoryEvent:
        """Return an event for a link that is about none of its own, in the lane of its broker."""
        at_us = link.at_us or 0
        position = max(bisect_right(self.times, at_us) - 1, 0)
        lane = FAULTS if link.broker is None else broker_lane(link.broker)
        return StoryEvent(
            position=position,
            line=self.events[position].line,
            at_us=at_us,
            event=link.event,
            told=Told(lane if lane in self.lanes else FAULTS, "request", without_actor(said(link), lane)),
        )


def without_actor(text: str, lane: str) -> str:
    """Return a link's text as it stands in the lane of who acts."""
    return text.removeprefix(f"{lane}, ").removeprefix(f"{lane} ")


def read_story(folder: Path) -> TraceStory:
    """Read a recorded run and tell its story.

    Raises:
        RecordError: a file of it is missing or damaged.
        CampaignError: its campaign cannot be read (any more).

    """
    recorded = read_run(folder)
    happened = events_of_recorded(recorded)
    trace = _trace_of(happened)
    events = told_events(happened)
    return TraceStory(
        recorded=recorded,
        happened=happened,
        lanes=_lanes(events),
        events=events,
        findings=numbered(recorded.rules),
        trace=trace,
        partitions=_partitions_in(trace),
    )


def told_events(happened: RunEvents) -> tuple[StoryEvent, ...]:
    """Return everything that happened in a run, told, in its order."""
    trace = _trace_of(happened)
    teller = _Teller(trace, several=len(_partitions_in(trace)) > 1)
    return tuple(
        teller.tell(position, number - 1, event)
        for position, (event, number) in enumerate(zip(happened.events, happened.numbers, strict=True))
    )


def _trace_of(happened: RunEvents) -> tuple[TraceEvent, ...]:
    return tuple(event for event in happened.events if event[1] not in CLIENT_FIELDS)


def _partitions_in(trace: Sequence[TraceEvent]) -> tuple[str, ...]:
    return tuple(sorted({str(event[3]) for event in trace if "partition" in FIELDS[event[1]][1:2]}))


def _concerns(event: StoryEvent, broker: int | None) -> bool:
    # An election is told of its leader, though it is an act of its controller.
    return broker is None or broker == event.fields.get("leader" if event.event == "election" else "broker")


def _harmless(told: Told) -> Told:
    """Return what is said without anything that could disturb a terminal, whoever wrote the files."""
    lane, to = printable(told.lane), None if told.to is None else printable(told.to)
    return replace(told, lane=lane, to=to, text=printable(told.text))


def _lanes(events: Sequence[StoryEvent]) -> tuple[str, ...]:
    told = dict.fromkeys(
        lane for event in events for lane in (event.told.lane, event.told.to) if lane is not None
    )
    brokers = sorted((lane for lane in told if is_broker(lane)), key=lambda lane: int(lane[7:]))
    clients = dict.fromkeys(event.told.lane for event in events if event.of_client)
    rest = [lane for lane in told if lane not in {FAULTS, *brokers, *clients}]
    return (FAULTS, *brokers, *clients, *rest)


class _Teller:
    """Tells the events of a trace one after the other, and remembers what the next ones need."""

    def __init__(self, trace: Sequence[TraceEvent], *, several: bool) -> None:
        self._several = several
        self._requests: dict[tuple[str, str, str], tuple[Any, ...]] = {}
        self._answers: dict[tuple[Any, ...], Mapping[str, Any]] = {}
        self._senders: dict[tuple[str, str], str] = {}
        self._leaders: dict[tuple[int, str], int] = {}
        self._high_watermarks: dict[tuple[int, str], int] = {}
        self._gone: dict[int, list[str]] = {}
        for copies in copies_by_partition(trace).values():
            for value, group in copies.by_value.items():
                for copy in group:
                    if copy.gone is not None:
                        self._gone.setdefault(copy.gone[0], []).append(value)

    def tell(self, position: int, line: int, event: TraceEvent) -> StoryEvent:
        at_us, name = event[:2]
        fields, of_client = named_fields(event), name in CLIENT_FIELDS
        partition, broker = fields.get("partition"), fields.get("broker")
        gone = [] if of_client else self._gone.get(line, [])
        leader = before = None
        if isinstance(partition, str) and isinstance(broker, int):
            leader = self._leaders.get((broker, partition))
            before = self._high_watermarks.get((broker, partition))
            self._remember(name, fields, (broker, partition))
        named = printable(str(partition)) if self._several and partition else ""
        moment = Moment(
            partition=named, sender=self._sender(name, fields), leader=leader, hw_before=before, gone=gone
        )
        told = _harmless(tell(name, fields, moment))
        if (at_us < 0 and name in _AT_START) or self._is_repeated(name, fields):
            told = replace(told, routine=True)
        return StoryEvent(
            position=position,
            line=line,
            at_us=at_us,
            event=name,
            told=told,
            partition=partition,
            values=(*_values(fields), *gone),
            fields=fields,
            of_client=of_client,
        )

    def _sender(self, name: str, fields: Mapping[str, Any]) -> str | None:
        """Return the client that sent the records of an event, None where nobody knows."""
        if name == "client_sent":
            self._senders[fields["partition"], str(fields["value"])] = fields["client"]
        values = fields.get("values")
        return self._senders.get((fields["partition"], values[0])) if values else None

    def _is_repeated(self, name: str, fields: Mapping[str, Any]) -> bool:
        """Return whether a request fails, is sent again or answered as the one before it."""
        if name in ("follower", "leader"):
            self._answers.clear()
        if name in ("epoch_asked", "fetcher_failed", "rejected"):
            answer = (
                name,
                fields["broker"],
                fields["partition"],
                fields.get("replica", fields.get("sender")),
            )
            said, self._answers[answer] = self._answers.get(answer), fields
            return said == fields
        if name not in ("send_failed", "sent_again"):
            return False
        request = (name, fields["client"], str(fields["values"][:1]))
        how = (fields["leader"], fields.get("error"))
        before, self._requests[request] = self._requests.get(request), how
        return before == how

    def _remember(self, name: str, fields: Mapping[str, Any], replica: tuple[int, str]) -> None:
        if name in ("hw", "recover"):
            self._high_watermarks[replica] = fields["hw"]
        elif name == "truncate":
            leo = min(fields["from_offset"], fields["to_offset"])
            self._high_watermarks[replica] = min(self._high_watermarks.get(replica, 0), leo)
        elif name == "follower":
            self._leaders[replica] = fields["leader"]


def _values(fields: Mapping[str, Any]) -> Iterator[str]:
    """Yield the records that an event names."""
    yield from map(str, fields.get("values", ()))
    yield from (str(value) for _, value in fields.get("records", ()))
    if "value" in fields:
        yield str(fields["value"])
