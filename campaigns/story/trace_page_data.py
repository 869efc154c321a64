"""What the page of a story is made of: its events, and how the replicas' logs change with each, in little room.

Most texts of a story differ in their numbers alone. So a text is kept once, with gaps, and each
event has the numbers for its gaps; all of it in columns, as one list a field.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from harrow.campaigns.record.recorded_service import RecordedService
from harrow.campaigns.record.service_report import outage_sentence
from harrow.campaigns.story.topics import TOPICS
from harrow.campaigns.story.trace_document import finding_as_mapping
from harrow.campaigns.story.trace_selection import Window
from harrow.campaigns.story.trace_story import StoryEvent, TraceStory
from harrow.checks.replay.cluster_state import BrokerState, ClusterState
from harrow.checks.replay.partition_state import LogEntry, PartitionState, ReplicaState
from harrow.cluster_model.events import BatchAcknowledged, ClientPolled, Event
from harrow.cluster_model.sim.virtual_time import US_PER_MS

GAP: Final = "\x7f"
"""Stands for a number in a text; no text has it, as it is not printable."""

_NUMBER: Final = re.compile(r"(?<![0-9])(?:0|[1-9][0-9]{0,14})(?![0-9])")
_NONE: Final = -1


def page_data(story: TraceStory, window: Window) -> dict[str, Any]:
    """Return the data of a page; the events are those within a window, the logs are known from the beginning."""
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
        "events": _columns(story, [event for event in story.events if window.has(event)]),
        **_changes(story),
    }


def _service(service: RecordedService | None) -> dict[str, Any] | None:
    """Return acks over time and outages, in microseconds; None where the run does not have them."""
    if service is None or not service.sent:
        return None
    outages = [recorded.outage() for recorded in service.outages]
    return {
        "bucket": service.acks.bucket_ms * US_PER_MS,
        "counts": service.acks.counts,
        "outages": [[each.start_us, each.end_us, each.partition, outage_sentence(each)] for each in outages],
    }


class _Table:
    """Values and their numbers, in the order in which they were first seen."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._numbers = {value: number for number, value in enumerate(values)}

    def number(self, value: str | None) -> int:
        return _NONE if value is None else self._numbers.setdefault(value, len(self._numbers))

    def values(self) -> list[str]:
        return list(self._numbers)


def _columns(story: TraceStory, events: list[StoryEvent]) -> dict[str, Any]:
    lanes, kinds, partitions = _Table(story.lanes), _Table(TOPICS), _Table(story.partitions)
    texts = _Table()
    numbers: list[int] = []
    text_of: list[int] = []
    for event in events:
        found = event.narration.text
        text_of.append(texts.number(_NUMBER.sub(GAP, found)))
        numbers += map(int, _NUMBER.findall(found))
    return {
        "position": _differences(event.position for event in events),
        "at": _differences(event.at_us for event in events),
        "lane": [lanes.number(event.narration.lane) for event in events],
        "to": [lanes.number(event.narration.to) for event in events],
        "kind": [kinds.number(event.narration.topic.name) for event in events],
        "partition": [partitions.number(event.partition) for event in events],
        "routine": "".join("1" if event.narration.routine else "0" for event in events),
        "text": text_of,
        "numbers": numbers,
        "texts": texts.values(),
    }


def _differences(numbers: Iterable[int]) -> list[int]:
    last, found = 0, []
    for number in numbers:
        found.append(number - last)
        last = number
    return found


def _changes(story: TraceStory) -> dict[str, Any]:
    """Return what changes in the cluster with which event, and the values of the records that it names."""
    values = _Table()
    brokers = [broker.id for broker in story.run.plan.cluster.brokers]
    state = ClusterState(story.run.replicas, brokers)
    partitions = {name: _PartitionChanges(values) for name in story.partitions}
    lives: dict[int, int] = {}
    changes: list[list[Any]] = []
    for position, event in enumerate(story.run.events):
        state.advance(event, story.run.numbers[position])
        for broker, now in state.brokers.items():
            if lives.get(broker, 0) != _life(now):
                lives[broker] = _life(now)
                changes.append([position, _NONE, broker, _life(now)])
        for name in state.partitions_of(event):
            if name in partitions:
                found = partitions[name].since_last(state.partition(name), story.events[position].source)
                if found:
                    changes.append([position, story.partitions.index(name), found])
    return {"changes": changes, "values": values.values()}


def _life(broker: BrokerState) -> int:
    """Return how a broker is: 0 down, 1 up, 2 paused."""
    return (2 if broker.is_paused else 1) if broker.is_live else 0


class _PartitionChanges:
    """What has changed of a partition since it was last looked at."""

    def __init__(self, values: _Table) -> None:
        self._values = values
        self._znode: list[Any] = []
        self._known: dict[int, list[Any]] = {}
        self._logs: dict[int, list[LogEntry]] = {}

    def since_last(self, partition: PartitionState, event: Event | None) -> dict[str, Any]:
        found: dict[str, Any] = {}
        znode = [partition.leader, partition.leader_epoch, list(partition.isr)]
        if znode != self._znode:
            self._znode = znode
            found["z"] = znode
        replicas = {str(broker): change for broker, change in self._replicas(partition)}
        if replicas:
            found["r"] = replicas
        if isinstance(event, BatchAcknowledged):
            records = enumerate(event.values, event.base_offset)
            found["k"] = [[offset, self._values.number(value)] for offset, value in records]
        elif isinstance(event, ClientPolled) and event.records:
            found["d"] = [[offset, self._values.number(str(value))] for offset, value in event.records]
        return found

    def _replicas(self, partition: PartitionState) -> Iterator[tuple[int, dict[str, Any]]]:
        for broker, replica in partition.replicas.items():
            change = self._replica(replica)
            if change:
                yield broker, change

    def _replica(self, replica: ReplicaState) -> dict[str, Any]:
        change: dict[str, Any] = {}
        known = [
            replica.high_watermark,
            replica.flushed,
            int(replica.is_open),
            replica.role,
            replica.leader_epoch,
        ]
        before = self._known.get(replica.broker)
        if before is None or before[2:] != known[2:]:
            change["s"] = known
        elif before != known:
            change["w"] = known[:2]
        self._known[replica.broker] = known
        old, new = self._logs.get(replica.broker, []), replica.log
        if len(old) == len(new) and (not old or old[-1] is new[-1]):
            return change
        if _has_hole(old) or _has_hole(new):
            self._change_places(change, old, new)
            self._logs[replica.broker] = [*new]
        else:
            kept = min(len(old), len(new))
            while kept and old[kept - 1] is not new[kept - 1]:
                kept -= 1
            if kept < len(old):
                change["c"] = kept
            if kept < len(new):
                change["a"] = [self._entry(entry) for entry in new[kept:]]
            self._logs[replica.broker] = [*old[:kept], *new[kept:]]
        return change

    def _change_places(self, change: dict[str, Any], old: list[LogEntry], new: list[LogEntry]) -> None:
        """Say offset by offset what has gone and what has come: retention and compaction leave holes."""
        before = {entry.offset: entry for entry in old}
        after = {entry.offset: entry for entry in new}
        gone = [offset for offset, entry in before.items() if after.get(offset) is not entry]
        come = [entry for offset, entry in after.items() if before.get(offset) is not entry]
        if gone:
            change["h"] = gone
        if come:
            change["p"] = [[entry.offset, self._entry(entry)] for entry in come]

    def _entry(self, entry: LogEntry) -> list[int]:
        return [self._values.number(entry.value), entry.leader_epoch, entry.producer_id, entry.sequence]


def _has_hole(log: list[LogEntry]) -> bool:
    """Return whether a record of a log is not at the offset that is its place."""
    return bool(log) and log[-1].offset != len(log) - 1
