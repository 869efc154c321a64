"""The story of a recorded run: its trace and what its clients did, in one order, in lanes, with its findings."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from campaigns.recorded_findings import RecordedFinding, RecordedLink, findings_of, read_mapping
from campaigns.recorded_history import RecordedOperation, read_operations
from campaigns.recorded_run import RecordedEvent, RecordedRun, read_run
from campaigns.trace_words import FAULTS, Moment, Told, broker_lane, records, tell
from checks.copies import PartitionCopies, copies_by_partition
from cluster_model.trace import TraceEvent

_AT_START: Final = frozenset({"broker_started", "broker_registered", "recover", "follower"})
"""What every cluster does when it is started, before time zero."""

_OF_LINK: Final[dict[str, tuple[str, ...]]] = {
    "acked": ("acknowledged",),
    "acknowledged": ("ok",),
    "ack-lost": ("message_rule",),
    "answered": ("duplicate_batch", "acknowledged"),
    "appended": ("append",),
    "became-leader": ("leader",),
    "client-stopped": ("client_stopped",),
    "controller-elected": ("controller_elected",),
    "copied": ("replicate",),
    "core-healed": ("core_healed",),
    "deposed-leader": ("leader",),
    "elected": ("election",),
    "elected-uncleanly": ("election",),
    "gone": ("truncate", "append", "replicate", "recover"),
    "invariant-broken": ("invariant_broken",),
    "isr-changed": ("isr", "isr_reduced", "election", "leader"),
    "isr-shrank": ("isr", "isr_reduced", "election", "leader"),
    "not-truncated": ("follower",),
    "paused": ("broker_paused",),
    "polled": ("read",),
    "read": ("read", "served"),
    "recovered": ("recover",),
    "request-failed": ("send_failed",),
    "resumed": ("broker_resumed",),
    "retried": ("sent_again",),
    "sent": ("send",),
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
    """A run, told. ``lanes`` has the names of the lanes in order, ``run`` is what ``run.json`` says."""

    recorded: RecordedRun
    run: Mapping[str, Any]
    lanes: tuple[str, ...]
    events: tuple[StoryEvent, ...]
    findings: tuple[RecordedFinding, ...]
    trace: tuple[TraceEvent, ...]
    partitions: tuple[str, ...]

    @property
    def name(self) -> str:
        """The run as the first line of its story names it."""
        variant = "" if self.recorded.variant is None else f" / {self.recorded.variant}"
        return f"{self.run['campaign']}{variant}, seed {self.recorded.seed}"

    @cached_property
    def copies(self) -> Mapping[str, PartitionCopies]:
        """The lives of all records, by partition."""
        return copies_by_partition(self.trace)

    @cached_property
    def times(self) -> Sequence[int]:
        """The times of the events, in order."""
        return [event.at_us for event in self.events]

    def position_of(self, link: RecordedLink, value: str | None = None) -> int | None:
        """Return the position of the event that a link is about, None where the story has none."""
        if link.at_us is None:
            return None
        begin, end = bisect_left(self.times, link.at_us), bisect_right(self.times, link.at_us)
        names = _OF_LINK.get(link.event, ())
        candidates = [event for event in self.events[begin:end] if event.event in names]
        best = min(
            candidates,
            key=lambda event: (
                not _concerns(event, link.broker),
                value is not None and bool(event.values) and value not in event.values,
                names.index(event.event),
            ),
            default=None,
        )
        return None if best is None else best.position


def read_story(folder: Path) -> TraceStory:
    """Read a recorded run and tell its story.

    Raises:
        RecordError: a file of it is missing or damaged.
        CampaignError: its campaign cannot be read (any more).

    """
    recorded = read_run(folder)
    run = read_mapping(folder)
    processes = run.get("processes")
    operations = read_operations(folder, processes if isinstance(processes, dict) else {})
    trace = tuple((event.at_us, event.event, *map(_plain, event.fields.values())) for event in recorded.events)
    partitions = _partitions(recorded)
    events = tuple(_merged(recorded.events, trace, operations, several=len(partitions) > 1))
    return TraceStory(
        recorded=recorded,
        run=run,
        lanes=_lanes(events, operations),
        events=events,
        findings=findings_of(run, folder),
        trace=trace,
        partitions=partitions,
    )


def _plain(value: Any) -> Any:
    return tuple(map(_plain, value)) if isinstance(value, list) else value


def _concerns(event: StoryEvent, broker: int | None) -> bool:
    # An election is told of its leader, though it is an act of its controller.
    return broker is None or broker == event.fields.get("leader" if event.event == "election" else "broker")


def _partitions(recorded: RecordedRun) -> tuple[str, ...]:
    found = {event.fields["partition"] for event in recorded.events if "partition" in event.fields}
    return tuple(sorted(map(str, found)))


def _lanes(events: Sequence[StoryEvent], operations: Sequence[RecordedOperation]) -> tuple[str, ...]:
    told = dict.fromkeys(
        lane for event in events for lane in (event.told.lane, event.told.to) if lane is not None
    )
    brokers = [lane for lane in told if lane.startswith("broker ") and lane[7:].isdecimal()]
    brokers.sort(key=lambda lane: int(lane[7:]))
    clients = dict.fromkeys(operation.client for operation in operations)
    rest = [lane for lane in told if lane not in {FAULTS, *brokers, *clients}]
    return (FAULTS, *brokers, *clients, *rest)


def _merged(
    events: Sequence[RecordedEvent],
    trace: Sequence[TraceEvent],
    operations: Sequence[RecordedOperation],
    *,
    several: bool,
) -> Iterator[StoryEvent]:
    """Yield the events of both in the order of time; at one instant, clients come first."""
    teller = _Teller(trace, several=several)
    position, next_operation = 0, 0
    for line, event in enumerate(events):
        while next_operation < len(operations) and operations[next_operation].at_us <= event.at_us:
            for told in _of_client(operations[next_operation], position, line - 1, several=several):
                yield told
                position += 1
            next_operation += 1
        yield teller.tell(event, position, line)
        position += 1
    for operation in operations[next_operation:]:
        for told in _of_client(operation, position, len(events) - 1, several=several):
            yield told
            position += 1


class _Teller:
    """Tells the events of a trace one after the other, and remembers what the next ones need."""

    def __init__(self, trace: Sequence[TraceEvent], *, several: bool) -> None:
        self._several = several
        self._leaders: dict[tuple[int, str], int] = {}
        self._high_watermarks: dict[tuple[int, str], int] = {}
        self._gone: dict[int, list[str]] = {}
        for copies in copies_by_partition(trace).values():
            for value, group in copies.by_value.items():
                for copy in group:
                    if copy.gone is not None:
                        self._gone.setdefault(copy.gone[0], []).append(value)

    def tell(self, event: RecordedEvent, position: int, line: int) -> StoryEvent:
        fields, name = event.fields, event.event
        partition, broker = fields.get("partition"), fields.get("broker")
        gone = self._gone.get(line, [])
        leader = before = None
        if isinstance(partition, str) and isinstance(broker, int):
            leader = self._leaders.get((broker, partition))
            before = self._high_watermarks.get((broker, partition))
            self._remember(name, fields, (broker, partition))
        of = f" of {partition}" if self._several and partition else ""
        told = tell(event, Moment(of=of, leader=leader, hw_before=before, gone=gone))
        if event.at_us < 0 and name in _AT_START and not told.routine:
            told = Told(told.lane, told.kind, told.text, told.to, routine=True)
        return StoryEvent(
            position=position,
            line=line,
            at_us=event.at_us,
            event=name,
            told=told,
            partition=partition,
            values=(*map(str, fields.get("values", ())), *gone),
            fields=fields,
        )

    def _remember(self, name: str, fields: Mapping[str, Any], replica: tuple[int, str]) -> None:
        if name in ("hw", "recover"):
            self._high_watermarks[replica] = fields["hw"]
        elif name == "truncate":
            leo = min(fields["from_offset"], fields["to_offset"])
            self._high_watermarks[replica] = min(self._high_watermarks.get(replica, 0), leo)
        elif name == "follower":
            self._leaders[replica] = fields["leader"]


def _of_client(
    operation: RecordedOperation, position: int, line: int, *, several: bool
) -> Iterator[StoryEvent]:
    """Yield what an operation says; an invoked poll says nothing yet."""
    for number, (event, kind, partition, values, text) in enumerate(_operation_told(operation, several=several)):
        yield StoryEvent(
            position=position + number,
            line=line,
            at_us=operation.at_us,
            event=event,
            told=Told(operation.client, kind, text),
            partition=partition,
            values=values,
            of_client=True,
        )


def _operation_told(
    operation: RecordedOperation, *, several: bool
) -> Iterator[tuple[str, str, str | None, tuple[str, ...], str]]:
    error = "" if operation.error is None else f": {operation.error}"
    for partition, offset, value in operation.sends():
        of = f" of {partition}" if several else ""
        name = records([value])
        yield {
            "invoke": ("send", "send", partition, (value,), f"sends {name}{' to ' + partition if several else ''}"),
            "ok": ("ok", "send", partition, (value,), f"send of {name} is OK{of}{_at(offset)}"),
            "fail": ("fail", "send", partition, (value,), f"send of {name} FAILED{of}{error}"),
            "info": ("info", "send", partition, (value,), f"send of {name}{of} ended UNKNOWN{error}"),
        }[operation.type]
    by_partition: dict[str, list[tuple[int | None, str]]] = {}
    for partition, offset, value in operation.polled():
        by_partition.setdefault(partition, []).append((offset, value))
    for partition, pairs in by_partition.items():
        values = tuple(value for _, value in pairs)
        of = f" of {partition}" if several else ""
        yield "read", "read", partition, values, f"READ {records(values)}{of}{_at(pairs[0][0], len(pairs))}"
    if operation.f not in ("send", "poll", "txn"):
        yield operation.f, "read", None, (), f"{operation.f} {operation.type}{error}"


def _at(offset: int | None, count: int = 1) -> str:
    if offset is None:
        return ""
    return f" at offset {offset}" if count == 1 else f" at offset {offset} and on"


__all__ = ["StoryEvent", "TraceStory", "broker_lane", "read_story"]
