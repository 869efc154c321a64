"""The data of a story's HTML page: its events and the changes of replica logs, in little space.

Most texts of a story differ only in their numbers. So each text is stored once, with gaps, and each
event stores the numbers for its gaps. The data is in columns, one list for each field.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from harrow.campaigns.record.recorded_service import RecordedService
from harrow.campaigns.record.service_report import outage_sentence
from harrow.campaigns.story.topics import TOPICS
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
        "kinds": [[topic.name, topic.doc] for topic in TOPICS.values()],
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
    """Return acks over time and outages, in microseconds; None if the record has no sends."""
    if service is None or not service.sent:
        return None
    outages = [recorded.outage() for recorded in service.outages]
    return {
        "bucket": service.acks.bucket_ms * US_PER_MS,
        "counts": service.acks.counts,
        "outages": [[each.start_us, each.end_us, each.partition, outage_sentence(each)] for each in outages],
    }


class _Table:
    """Values and their numbers, in the order of their first use."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._numbers = {value: number for number, value in enumerate(values)}

    def number(self, value: str | None) -> int:
        return _NONE if value is None else self._numbers.setdefault(value, len(self._numbers))

    def values(self) -> list[str]:
        return list(self._numbers)


def _columns(story: TraceStory, events: list[StoryEvent]) -> dict[str, Any]:
    lanes, kinds, partitions = _Table(story.lanes), _Table(TOPICS), _Table(story.partitions)
    texts = _Table()
    counts_topics = created_topics(events) is not None
    numbers: list[int] = []
    text_numbers: list[int] = []
    for event in events:
        text = event.narration.text
        text_numbers.append(texts.number(_NUMBER.sub(GAP, text)))
        numbers += map(int, _NUMBER.findall(text))

    def is_routine(event: StoryEvent) -> bool:
        return event.narration.routine or (counts_topics and event.creates_partition)

    return {
        "position": _differences(event.position for event in events),
        "at": _differences(event.at_us for event in events),
        "lane": [lanes.number(event.narration.lane) for event in events],
        "to": [lanes.number(event.narration.to) for event in events],
        "kind": [kinds.number(event.narration.topic.name) for event in events],
        "partition": [partitions.number(event.partition) for event in events],
        "routine": "".join("1" if is_routine(event) else "0" for event in events),
        "text": text_numbers,
        "numbers": numbers,
        "texts": texts.values(),
    }


def _differences(numbers: Iterable[int]) -> list[int]:
    last, differences = 0, []
    for number in numbers:
        differences.append(number - last)
        last = number
    return differences


def _changes(story: TraceStory) -> dict[str, Any]:
    """Return the changes of the cluster with each event, and the values that they refer to."""
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
    """Finds the changes of a partition since the last call."""

    def __init__(self, values: _Table) -> None:
        self._values = values
        self._znode: list[Any] = []
        self._states: dict[int, list[Any]] = {}
        self._logs: dict[int, list[LogEntry]] = {}

    def since_last(self, partition: PartitionState, event: Event | None) -> dict[str, Any]:
        change: dict[str, Any] = {}
        znode = [partition.leader, partition.leader_epoch, list(partition.isr)]
        if znode != self._znode:
            self._znode = znode
            change["z"] = znode
        replicas = {str(broker): change for broker, change in self._replicas(partition)}
        if replicas:
            change["r"] = replicas
        if isinstance(event, BatchAcknowledged):
            records = enumerate(event.values, event.base_offset)
            change["k"] = [[offset, self._values.number(value)] for offset, value in records]
        elif isinstance(event, ClientPolled) and event.records:
            change["d"] = [[offset, self._values.number(str(value))] for offset, value in event.records]
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
            self._change_places(change, old, new)
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

    def _change_places(self, change: dict[str, Any], old: list[LogEntry], new: list[LogEntry]) -> None:
        """List changes offset by offset, because retention and compaction leave holes."""
        before = {entry.offset: entry for entry in old}
        after = {entry.offset: entry for entry in new}
        removed = [offset for offset, entry in before.items() if after.get(offset) is not entry]
        added = [entry for offset, entry in after.items() if before.get(offset) is not entry]
        if removed:
            change["h"] = removed
        if added:
            change["p"] = [[entry.offset, self._entry(entry)] for entry in added]

    def _entry(self, entry: LogEntry) -> list[int]:
        return [self._values.number(entry.value), entry.leader_epoch, entry.producer_id, entry.sequence]


def _has_hole(log: list[LogEntry]) -> bool:
    """Return whether a log has a hole, or does not begin at offset 0."""
    return bool(log) and log[-1].offset != len(log) - 1
