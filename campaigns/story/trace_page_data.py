"""The data of a story's HTML page, stored compactly: its events and the changes of replica logs.

Most texts of a story differ only in their numbers. So each text is stored once, with a gap in place
of each number, and each event stores the numbers for its gaps. Events are stored in columns, one
list for each field.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from harrow.campaigns.record.recorded_service import RecordedService
from harrow.campaigns.record.service_report import outage_sentence
from harrow.campaigns.story.topics import STORY_TOPICS
from harrow.campaigns.story.trace_document import finding_as_mapping
from harrow.campaigns.story.trace_selection import Window, created_topics
from harrow.campaigns.story.trace_story import StoryEvent, TraceStory
from harrow.checks.replay.cluster_state import BrokerState, ClusterState
from harrow.checks.replay.partition_state import LogEntry, PartitionState, ReplicaState
from harrow.cluster_model.events import BatchAcknowledged, ClientPolled, Event
from harrow.cluster_model.sim.virtual_time import US_PER_MS

GAP: Final = "\x7f"
"""Stands for a number in a text. It is not printable, so no text contains it."""

_NUMBER: Final = re.compile(r"(?<![0-9])(?:0|[1-9][0-9]{0,14})(?![0-9])")
_NONE: Final = -1
"""Stands for a missing value where the page expects an index."""


def page_data(story: TraceStory, window: Window) -> dict[str, Any]:
    """Return the data of a page: the events within a window, and the logs from the beginning."""
    events = [event for event in story.events if window.has(event)]
    return {
        "title": story.name,
        "run": [
            ["verdict", story.recorded.verdict],
            ["Kafka", story.recorded.plan.kafka],
            ["seed", str(story.recorded.seed)],
            ["run again", f"harrow replay {story.run_id}"],
        ],
        "lanes": list(story.lanes),
        "kinds": [[topic.name, topic.doc] for topic in STORY_TOPICS.values()],
        "partitions": list(story.partitions),
        "findings": [
            {**finding_as_mapping(story, finding), "title": finding.title()} for finding in story.findings
        ],
        "service": _service(story.recorded.service),
        "created": created_topics(events),
        "events": _columns(story, events),
        **_changes(story),
    }


def _service(service: RecordedService | None) -> dict[str, Any] | None:
    """Return the acks over time and the outages, with times in microseconds.

    Return None if the run recorded no sends.
    """
    if service is None or not service.sent:
        return None
    outages = [recorded.outage() for recorded in service.outages]
    return {
        "bucket": service.acks.bucket_ms * US_PER_MS,
        "counts": service.acks.counts,
        "outages": [[each.start_us, each.end_us, each.partition, outage_sentence(each)] for each in outages],
    }


class _Table:
    """Distinct values and their indexes, in the order of their first use."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._indexes = {value: index for index, value in enumerate(values)}

    def index_of(self, value: str | None) -> int:
        return _NONE if value is None else self._indexes.setdefault(value, len(self._indexes))

    def values(self) -> list[str]:
        return list(self._indexes)


def _columns(story: TraceStory, events: list[StoryEvent]) -> dict[str, Any]:
    lanes, kinds, partitions = _Table(story.lanes), _Table(STORY_TOPICS), _Table(story.partitions)
    texts = _Table()
    summarizes_created_topics = created_topics(events) is not None
    digits: list[int] = []
    text_indexes: list[int] = []
    for event in events:
        text = event.narration.text
        text_indexes.append(texts.index_of(_NUMBER.sub(GAP, text)))
        digits += map(int, _NUMBER.findall(text))

    def is_routine(event: StoryEvent) -> bool:
        return event.narration.routine or (summarizes_created_topics and event.creates_partition)

    return {
        "position": _differences(event.position for event in events),
        "at": _differences(event.at_us for event in events),
        "lane": [lanes.index_of(event.narration.lane) for event in events],
        "to": [lanes.index_of(event.narration.to) for event in events],
        "kind": [kinds.index_of(event.narration.topic.name) for event in events],
        "partition": [partitions.index_of(event.partition) for event in events],
        "routine": "".join("1" if is_routine(event) else "0" for event in events),
        "text": text_indexes,
        "numbers": digits,
        "texts": texts.values(),
    }


def _differences(numbers: Iterable[int]) -> list[int]:
    last, differences = 0, []
    for number in numbers:
        differences.append(number - last)
        last = number
    return differences


def _changes(story: TraceStory) -> dict[str, Any]:
    """Return how each event changes the cluster, and the record values that these changes name."""
    values = _Table()
    brokers = [broker.id for broker in story.run.plan.cluster.brokers]
    state = ClusterState(story.run.replicas, brokers)
    partitions = {name: _PartitionChanges(values) for name in story.partitions}
    process_states: dict[int, int] = {}
    changes: list[list[Any]] = []
    for position, event in enumerate(story.run.events):
        state.advance(event, story.run.numbers[position])
        for broker, now in state.brokers.items():
            if process_states.get(broker, 0) != _process_state(now):
                process_states[broker] = _process_state(now)
                changes.append([position, _NONE, broker, _process_state(now)])
        for name in state.partitions_of(event):
            if name in partitions:
                change = partitions[name].since_last(state.partition(name), story.events[position].source)
                if change:
                    changes.append([position, story.partitions.index(name), change])
    return {"changes": changes, "values": values.values()}


def _process_state(broker: BrokerState) -> int:
    """Return the state of a broker's process: 0 down, 1 up, 2 paused."""
    return (2 if broker.is_paused else 1) if broker.is_live else 0


class _PartitionChanges:
    """Finds what an event changed in a partition, with short keys that `trace.js` reads.

    The keys of a partition:

    ========  ====================================================================================
    ``z``     leader, leader epoch and ISR, as the control plane has them
    ``r``     the changes of replicas, by broker
    ``k``     acknowledged records, as pairs of offset and value
    ``d``     records delivered to a consumer, as pairs of offset and value
    ========  ====================================================================================

    The keys of a replica:

    ========  ====================================================================================
    ``s``     its state: high watermark, flushed offset, whether its log is open, role, epoch
    ``w``     only the first two of these, if the rest is unchanged
    ``c``     how many entries of a log without holes remain; those behind are cut off
    ``a``     the entries that are then appended
    ``h``     offsets that lost their entry, in a log with holes
    ``p``     entries that were put into such a log, as pairs of offset and entry
    ========  ====================================================================================

    A value is an index into the table of values. An entry is a list of a value, a leader epoch, a
    producer id and a sequence.
    """

    def __init__(self, values: _Table) -> None:
        self._values = values
        self._leadership: list[Any] = []
        self._states: dict[int, list[Any]] = {}
        self._logs: dict[int, list[LogEntry]] = {}

    def since_last(self, partition: PartitionState, event: Event | None) -> dict[str, Any]:
        change: dict[str, Any] = {}
        leadership = [partition.leader, partition.leader_epoch, list(partition.isr)]
        if leadership != self._leadership:
            self._leadership = leadership
            change["z"] = leadership
        replicas = {str(broker): change for broker, change in self._replicas(partition)}
        if replicas:
            change["r"] = replicas
        if isinstance(event, BatchAcknowledged):
            records = enumerate(event.values, event.base_offset)
            change["k"] = [[offset, self._values.index_of(value)] for offset, value in records]
        elif isinstance(event, ClientPolled) and event.records:
            change["d"] = [[offset, self._values.index_of(str(value))] for offset, value in event.records]
        return change

    def _replicas(self, partition: PartitionState) -> Iterator[tuple[int, dict[str, Any]]]:
        for broker, replica in partition.replicas.items():
            change = self._replica(replica)
            if change:
                yield broker, change

    def _replica(self, replica: ReplicaState) -> dict[str, Any]:
        change: dict[str, Any] = {}
        state = [
            replica.high_watermark,
            replica.flushed,
            int(replica.is_open),
            replica.role,
            replica.leader_epoch,
        ]
        state_before = self._states.get(replica.broker)
        if state_before is None or state_before[2:] != state[2:]:
            change["s"] = state
        elif state_before != state:
            change["w"] = state[:2]
        self._states[replica.broker] = state
        old, new = self._logs.get(replica.broker, []), replica.log
        if len(old) == len(new) and (not old or old[-1] is new[-1]):
            return change
        if _has_hole(old) or _has_hole(new):
            self._record_changes_by_offset(change, old, new)
            self._logs[replica.broker] = [*new]
        else:
            common = min(len(old), len(new))
            while common and old[common - 1] is not new[common - 1]:
                common -= 1
            if common < len(old):
                change["c"] = common
            if common < len(new):
                change["a"] = [self._entry(entry) for entry in new[common:]]
            self._logs[replica.broker] = [*old[:common], *new[common:]]
        return change

    def _record_changes_by_offset(
        self, change: dict[str, Any], old: list[LogEntry], new: list[LogEntry]
    ) -> None:
        """Add the changes offset by offset to *change*: retention and compaction leave holes."""
        before = {entry.offset: entry for entry in old}
        after = {entry.offset: entry for entry in new}
        removed = [offset for offset, entry in before.items() if after.get(offset) is not entry]
        added = [entry for offset, entry in after.items() if before.get(offset) is not entry]
        if removed:
            change["h"] = removed
        if added:
            change["p"] = [[entry.offset, self._entry(entry)] for entry in added]

    def _entry(self, entry: LogEntry) -> list[int]:
        return [self._values.index_of(entry.value), entry.leader_epoch, entry.producer_id, entry.sequence]


def _has_hole(log: list[LogEntry]) -> bool:
    """Return whether a log lacks an offset before its end, including those below its log start."""
    return bool(log) and log[-1].offset != len(log) - 1
