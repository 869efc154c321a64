"""The story of one record: the events that concern it, and a summary of its fate.

A record can have several copies: one for each replica that stored it, and more after a retry.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf
from typing import Final

from harrow.campaigns.language.spelling import counted, listed, nearest, printable, quoted
from harrow.campaigns.record.recorded_run import RecordError
from harrow.campaigns.story.trace_story import StoryEvent, TraceStory
from harrow.checks.causes.story import brokers, seconds, words
from harrow.checks.replay.partition_state import (
    ACKED,
    COMPACTION,
    CORRUPTION,
    DELETED,
    DISK_LOSS,
    FAILED,
    POWER_LOSS,
    RETENTION,
    TRUNCATED,
    LogEntry,
    PartitionState,
    RemovedEntry,
)
from harrow.cluster_model import events as kinds
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.protocol import NO_LEADER

_PROCESS_EVENTS: Final = (kinds.BrokerStopped, kinds.BrokerStarted, kinds.BrokerPaused, kinds.BrokerResumed)
_EVENTS_WITH_NOTE: Final = (
    kinds.BecameLeader,
    kinds.BecameFollower,
    kinds.LogOpened,
    kinds.BrokerStopped,
    kinds.BrokerStarted,
)
"""Events after which a story notes whether the broker has the record."""
_DECISIONS: Final = (kinds.LeaderElected, kinds.BecameLeader, kinds.IsrChanged, kinds.IsrReduced)
_ENDS_OF_SEND: Final = {ACKED: "learned that it is stored", FAILED: "learned that it is not stored"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordStory:
    """The story of a record: the texts of its events by position, and the lines of a summary."""

    value: str
    texts: Mapping[int, str]
    lines: tuple[str, ...]


def story_of_record(story: TraceStory, value: str) -> RecordStory:
    """Return the story of the record that has the given value.

    Raises:
        RecordError: No record of the run has this value.

    """
    naming_events = [event for event in story.events if value in event.values]
    copies_by_partition = {
        name: partition.by_value[value]
        for name, partition in story.end.partitions.items()
        if value in partition.by_value
    }
    if not naming_events:
        raise _unknown(story, value)
    positions = {event.position for event in naming_events}
    for partition, copies in copies_by_partition.items():
        positions.update(_around_copies(story, partition, copies))
    lines = [*_sends(naming_events, value), *_logs(story, copies_by_partition), *_verdicts(story, value)]
    texts = {
        position: story.events[position].narration.text
        + _note(story.events[position], copies_by_partition, value)
        for position in sorted(positions)
    }
    return RecordStory(value=value, texts=texts, lines=tuple(lines))


def _note(event: StoryEvent, copies_by_partition: Mapping[str, Sequence[LogEntry]], value: str) -> str:
    """Return a note that tells how an event concerns the record, if the event does not name it."""
    name, copies = printable(value), copies_by_partition.get(event.partition or "", ())
    source = event.source
    if isinstance(source, kinds.HighWatermarkSet):
        return f", past {name}"
    if isinstance(source, kinds.LeaderElected):
        broker = source.leader
    elif isinstance(source, _EVENTS_WITH_NOTE):
        broker = source.broker
    else:
        return ""
    if broker == NO_LEADER:
        return ""
    if all(event.number < copy.number for each in copies_by_partition.values() for copy in each):
        # Before the first append of the record, no replica could have it.
        return ""
    if event.partition is None:
        copies = [copy for each in copies_by_partition.values() for copy in each]
    has_it = any(copy.broker == broker and _exists_at(copy, event.number) for copy in copies)
    return f", with {name}" if has_it else f", WITHOUT {name}"


def _unknown(story: TraceStory, value: str) -> RecordError:
    values = list(dict.fromkeys(value for event in story.events for value in event.values))
    close = nearest(value, values[:400])
    if not values:
        ending = "; no record was sent in it"
    else:
        ending = f"; did you mean `{close}`?" if close else f"; its records are {listed(values)}"
    return RecordError(story.recorded.folder, f"no record {quoted(value)} in this run{ending}")


def _around_copies(story: TraceStory, partition: str, copies: Sequence[LogEntry]) -> Iterator[int]:
    """Yield the positions of the events that affect copies of a record in a partition."""
    begin = min(copy.number for copy in copies)
    end = max(inf if copy.removed is None else copy.removed.number for copy in copies)
    passed: set[tuple[int, int, str]] = set()
    for event in story.events:
        if event.is_client_event or not begin <= event.number <= end:
            continue
        copy = next((copy for copy in copies if _happens_on_copy(copy, event)), None)
        if isinstance(event.source, _DECISIONS) and event.partition == partition:
            yield event.position
        elif copy is None:
            continue
        elif isinstance(event.source, _PROCESS_EVENTS) or (
            event.partition == partition and _concerns_copy(event, copy)
        ):
            yield event.position
        elif event.partition == partition and _passed_up_to(event) > copy.offset:
            # Only the first high watermark or flush beyond the record makes a difference.
            first = (copy.broker, copy.number, event.event)
            if first not in passed:
                passed.add(first)
                yield event.position
    for copy in copies:
        yield from _causes(story, partition, copy)


def _causes(story: TraceStory, partition: str, copy: LogEntry) -> Iterator[int]:
    """Yield the positions of the events that led to the append of a copy or to its truncation."""

    def last(kind: type[kinds.Event], begin: int, end: int, **fields: int) -> list[int]:
        return [
            event.position
            for event in story.events
            if isinstance(event.source, kind)
            and event.partition == partition
            and begin < event.number < end
            and event.fields.items() >= fields.items()
        ][-1:]

    if not copy.is_copy:
        yield from last(kinds.LeaderElected, 0, copy.number)
        yield from last(kinds.BecameLeader, 0, copy.number, broker=copy.broker)
    if copy.removed is not None and copy.removed.cause == TRUNCATED:
        # The leader's response about the end of an epoch decides where a follower truncates.
        yield from last(kinds.EpochEndAnswered, copy.number, copy.removed.number, replica=copy.broker)


def _concerns_copy(event: StoryEvent, copy: LogEntry) -> bool:
    source = event.source
    if isinstance(source, kinds.RecordsServed):
        return source.offset <= copy.offset < source.end_offset
    return isinstance(source, kinds.LogOpened | kinds.BecameFollower) or (
        isinstance(source, kinds.BatchDeduplicated) and source.base_offset == copy.offset
    )


def _passed_up_to(event: StoryEvent) -> int:
    """Return the offset up to which an event commits or flushes records; -1 for other events."""
    if isinstance(event.source, kinds.HighWatermarkSet):
        return event.source.hw
    return event.source.offset if isinstance(event.source, kinds.LogFlushed) else -1


def _happens_on_copy(copy: LogEntry, event: StoryEvent) -> bool:
    """Return whether an event happens on the broker of a copy while the copy exists."""
    return copy.broker == getattr(event.source, "broker", None) and _exists_at(copy, event.number)


def _exists_at(copy: LogEntry, number: int) -> bool:
    """Return whether a copy existed at an event. The events that stored and removed it count."""
    return copy.number <= number and (copy.removed is None or copy.removed.number >= number)


def _sends(events: Sequence[StoryEvent], value: str) -> Iterator[str]:
    name = printable(value)
    for event in events:
        if isinstance(event.source, kinds.ClientSent):
            where = "" if event.partition is None else f" to {event.partition}"
            yield f"{event.narration.lane} sent {name}{where} at {seconds(event.at_us)}"
    retries = sum(isinstance(event.source, kinds.SentAgain) for event in events)
    if retries:
        yield f"its producer retried it {counted(retries, 'time')}"
    for event in events:
        if isinstance(event.source, kinds.BatchAcknowledged):
            yield f"{event.narration.lane} acknowledged it at {seconds(event.at_us)}"
    for event in events:
        if isinstance(event.source, kinds.ClientEnded):
            end = _ENDS_OF_SEND.get(event.source.status, "never learned whether it is stored")
            yield f"{event.narration.lane} {end} ({seconds(event.at_us)})"
    readers = dict.fromkeys(
        event.narration.lane for event in events if isinstance(event.source, kinds.ClientPolled)
    )
    yield f"read by {listed(list(readers))}" if readers else "no consumer read it"


def _logs(story: TraceStory, copies_by_partition: dict[str, list[LogEntry]]) -> Iterator[str]:
    if not copies_by_partition:
        yield "no broker appended it"
    for partition, copies in copies_by_partition.items():
        of_partition = f" of {partition}" if len(story.partitions) > 1 else ""
        for copy in copies:
            verb = "copied" if copy.is_copy else "appended"
            at = seconds(copy.at_us)
            committed = "below its HW" if copy.is_committed else "never below its HW"
            yield f"broker {copy.broker} {verb} it at {at}, offset {copy.offset}{of_partition}, {committed}, {_end_of_copy(copy)}"
        yield _at_end(story.end.partitions[partition], copies, of_partition)


def _at_end(partition: PartitionState, copies: Sequence[LogEntry], of_partition: str) -> str:
    """Return which logs have the record at the end, and whether the leader's log has it."""
    holders = sorted({copy.broker for copy in copies if copy.removed is None})
    if not holders:
        return f"at the end: in no log{of_partition}"
    leaders = [line.event.leader for line in partition.elections if line.event.leader != NO_LEADER]
    leader = leaders[-1] if leaders else NO_LEADER
    text = f"at the end: in the log{of_partition} of {brokers(holders)}"
    if leader in holders or leader == NO_LEADER:
        return text
    log = partition.replica(leader)
    entries = (log.entry(copy.offset) for copy in copies if copy.removed is None)
    instead = dict.fromkeys(
        f"{printable(entry.value)} at offset {entry.offset}" for entry in entries if entry is not None
    )
    has = f", which has {listed(list(instead))} instead" if instead else ""
    return f"{text}, but not of its leader, broker {leader}{has}"


def _end_of_copy(copy: LogEntry) -> str:
    """Return how and when a copy was removed, or that it was kept."""
    if copy.removed is None:
        return "kept"
    return f"{_REMOVALS[copy.removed.cause](copy.removed)} at {seconds(copy.removed.at_us)}"


_REMOVALS: Final[Mapping[str, Callable[[RemovedEntry], str]]] = {
    TRUNCATED: lambda removed: f"truncated ({words(removed.reason)})",
    POWER_LOSS: lambda removed: f"lost with the power ({words(removed.reason)})",
    DISK_LOSS: lambda _: "lost with the disk",
    CORRUPTION: lambda _: "removed by recovery, at or behind a bad CRC",
    RETENTION: lambda removed: f"deleted below the log start, {removed.to_offset} ({words(removed.reason)})",
    COMPACTION: lambda _: "compacted away",
    DELETED: lambda _: "deleted with the log of a broker that is no longer a replica",
}


def _verdicts(story: TraceStory, value: str) -> Iterator[str]:
    findings = [finding for finding in story.findings if value in finding.values]
    for finding in findings:
        yield f"judged: {finding.rule}, {finding.judged()} (--around {finding.number})"
    if not findings:
        yield "judged: no rule has a finding about it"
