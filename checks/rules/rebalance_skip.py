"""rebalance-skip: a group passed a record that no poll of its members returned."""

from collections.abc import Iterator, Sequence
from typing import Final

from harrow.checks import promise
from harrow.checks.causes import compaction
from harrow.checks.causes.effects import (
    by_lost_log,
    by_reset,
    group_committed,
    handed_out,
    position_was_reset,
)
from harrow.checks.causes.loss import Cause
from harrow.checks.causes.story import END, Story
from harrow.checks.evidence import Evidence
from harrow.checks.finding import Finding
from harrow.checks.group_work import GroupPartition
from harrow.checks.history.records import Value
from harrow.checks.index import Index
from harrow.checks.link import NOTHING_HAPPENED, RecordValue, cause, claim
from harrow.checks.permission import Promise
from harrow.checks.rule import LOST, Rule
from harrow.cluster_model.clients.consumer import LATEST
from harrow.cluster_model.events import Offset, OffsetReset, Text
from harrow.cluster_model.settings import AUTO_OFFSET_RESET
from harrow.cluster_model.trace import TraceLine

COMMITTED_POSITION: Final = "committed position"


@claim("passed-over")
def passed_over(*, value: RecordValue, group: Text) -> str:
    return f"no member of group {group} polled {value}"


@cause("began-behind-it", needs_nothing_because=NOTHING_HAPPENED)
def began_behind_it(*, offset: Offset) -> str:
    return f"the next member began at offset {offset}, beyond it"


@cause("committed-behind-it", needs_nothing_because=NOTHING_HAPPENED)
def committed_behind_it() -> str:
    return "the group committed an offset beyond it, where the next member will begin"


def find(index: Index) -> Iterator[Finding]:
    """Find records below a group's position that no poll of its members returned."""
    work = index.group_work
    for group in work.groups:
        done = work.partitions.get(group, {})
        resets = [event for _, event in _resets(index, group)]
        begun_us: dict[str, int | None] = {}
        for partition in dict.fromkeys((*done, *(event.partition for event in resets))):
            topic = _topic(partition)
            if topic not in begun_us:
                begun_us[topic] = _start_of_reading_us(index, group, topic, resets)
            if partition in index.evidence.read_back:
                here = done.get(partition, GroupPartition())
                yield from _skipped(index, group, partition, here, begun_us[topic])


def _skipped(
    index: Index, group: str, partition: str, done: GroupPartition, begun_us: int | None
) -> Iterator[Finding]:
    begin = _first_position(index, group, partition, done)
    gaps = list(_gaps(done, begin))
    records = index.group_work.records_of(partition) if begin or gaps else {}
    for offset in range(begin):
        value = records.get(offset)
        if value is not None and _should_be_read(index, partition, offset, value, done, begun_us):
            yield _finding(index, group, partition, offset, value, done)
    for first, end in gaps:
        for offset in range(first, end):
            value = records.get(offset)
            if value is not None and not compaction.is_superseded(index, partition, value, offset):
                yield _finding(index, group, partition, offset, value, done)


def _resets(index: Index, group: str, partition: str | None = None) -> Iterator[TraceLine[OffsetReset]]:
    members = index.group_work.members(group)
    for line in index.events(OffsetReset, partition=partition):
        if line.event.client in members:
            yield line


def _start_of_reading_us(index: Index, group: str, topic: str, resets: Sequence[OffsetReset]) -> int | None:
    """Return when a group started to read a topic, None if it never did."""
    since_us = index.group_work.reading_since(group, topic)
    reset_us = (event.at_us for event in resets if _topic(event.partition) == topic)
    return min((at_us for at_us in (since_us, *reset_us) if at_us is not None), default=None)


def _should_be_read(
    index: Index, partition: str, offset: int, value: Value, done: GroupPartition, begun_us: int | None
) -> bool:
    """Return whether a record below the first position was sent while the group read the topic.

    Producers may learn of an added partition before the group does. The group need not read older
    records, from before it read the topic at all, because ``auto.offset.reset=latest`` starts after
    them.
    """
    sends = index.sends_of(partition, value)
    return (
        begun_us is not None
        and bool(sends)
        and sends[0].invoked_us > begun_us
        and not done.readers_of(offset)
        and not compaction.is_superseded(index, partition, value, offset)
    )


def _topic(partition: str) -> str:
    return partition.rpartition("-")[0]


def _first_position(index: Index, group: str, partition: str, done: GroupPartition) -> int:
    """Return where a group without commits started: with ``latest``, at the end of the partition.

    Real clients do not report this end. For real clients, return the first offset that a member
    polled or committed.
    """
    for _, event in _resets(index, group, partition):
        return event.offset if event.position < 0 else 0
    if any(
        settings.group == group and settings.offset_reset == LATEST
        for settings in index.evidence.consumers.values()
    ):
        firsts = (*(poll.first for poll in done.polls[:1]), *(commit.offset for commit in done.commits[:1]))
        return min(firsts, default=0)
    return 0


def _gaps(done: GroupPartition, reached: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges that no poll returned, from *reached* to the last poll or commit.

    *reached* is the offset at which the group began.
    """
    for first, last in sorted((poll.first, poll.last) for poll in done.polls):
        if first > reached:
            yield reached, first
        reached = max(reached, last + 1)
    if done.passed > reached:
        yield reached, done.passed


def _finding(
    index: Index, group: str, partition: str, offset: int, value: Value, done: GroupPartition
) -> Finding:
    story = Story(index, partition)
    work = index.group_work
    before = [poll for poll in done.polls if poll.last < offset]
    behind = [poll for poll in done.polls if poll.first > offset]
    for poll, at in (
        *((poll, poll.last) for poll in before[-1:]),
        *((poll, poll.first) for poll in behind[:1]),
    ):
        value_there = work.records_of(partition).get(at)
        if value_there is not None:
            delivery = handed_out(poll.at_us, work.client(poll.process), value=value_there, offset=at)
            story.tell(story.start(poll.at_us), delivery, decides=True)
    for commit in [commit for commit in done.commits if commit.offset > offset][:1]:
        first = group_committed(commit.at_us, work.client(commit.process), offset=commit.offset)
        story.tell(story.start(commit.at_us), first)
    story.tell(END, passed_over.conclude(value=value, group=group))
    why = _cause(story, group, offset, behind[0].first if behind else None)
    return why.finding(story, offset=offset, value=value, details=(("group", group),))


def _cause(story: Story, group: str, offset: int, next_offset: int | None) -> Cause:
    """Return why the group passed a record.

    *next_offset* is where the next member started, None if no member polled afterwards.
    """
    index = story.index
    cause = by_reset(story, index.group_work.members(group), offset, twice=False)
    if cause is None and not any(_resets(index, group, story.partition)):
        cause = _by_first_position(index, group, story.partition, offset)
    if next_offset is None:
        skip = committed_behind_it.conclude()
    else:
        skip = began_behind_it.conclude(offset=next_offset)
    return cause or by_lost_log(index, story.partition) or Cause((skip,))


def _by_first_position(index: Index, group: str, partition: str, offset: int) -> Cause | None:
    """Explain a record below the first position of a group whose clients report no resets."""
    done = index.group_work.partitions.get(group, {}).get(partition)
    if done is None or offset >= _first_position(index, group, partition, done):
        return None
    conclusion = position_was_reset.conclude(policy=LATEST)
    setting = f"{AUTO_OFFSET_RESET}={LATEST}"
    return Cause((conclusion,), setting, promise.prevention(promise.RESETTING, setting))


def _promise_in_run(evidence: Evidence) -> str:
    resets = {settings.offset_reset for settings in evidence.consumers.values() if settings.group}
    return f"{COMMITTED_POSITION}{', from where it began' if LATEST in resets else ''}"


RULE: Final = Rule(
    name=promise.REBALANCE_SKIP,
    definition=(
        "A group has read, committed or been reset beyond a committed record that no poll of its members returned, "
        "whichever member had the partition at the time. A record from before the group read the topic does not "
        "count if the group began at the end. A skip by one consumer that keeps its partition is a poll-skip as well."
    ),
    source="Jepsen's Kafka workload (poll-skip), for groups; KafkaConsumer (Offsets and Consumer Position); GroupCoordinator.validateOffsetCommit.",
    promise=Promise(
        promised_by=(COMMITTED_POSITION,),
        permissions=(
            *promise.RESETTING.permissions,
            *promise.restricted(
                "when the log of the partition, or of the coordinator, loses committed data",
                promise.LOSSES_OF_LOGS,
            ),
        ),
        in_run=_promise_in_run,
    ),
    find=find,
    is_tried=Index.has_groups,
    verb="passed over",
    fate_for_readers=LOST,
)
