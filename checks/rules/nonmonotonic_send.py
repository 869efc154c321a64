"""nonmonotonic-send: a log has a producer's records in a different order than they were sent."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, pairwise
from operator import lt
from typing import Any, Final

from harrow.checks import prevention
from harrow.checks.causes.copies import tell_stored
from harrow.checks.causes.requests import tell_retry, tell_sent
from harrow.checks.causes.story import Story
from harrow.checks.evidence import ProducerSettings
from harrow.checks.finding import Finding
from harrow.checks.history.records import ACKED, SendRecord, Value
from harrow.checks.history.views import SessionSends
from harrow.checks.index import Index
from harrow.checks.link import FROM_LOGS, RecordValue, cause
from harrow.checks.promise import FLUSH_INTERVAL, IN_SEND_ORDER, NONMONOTONIC_SEND, order_permitted_by
from harrow.checks.replay.partition_state import COMPACTION, RETENTION
from harrow.checks.rule import REORDERED, Rule
from harrow.cluster_model.events import LogCleaned, LogStartedAnew, LogStartRaised, Offset
from harrow.cluster_model.trace import TraceLine

_BY_POLICY: Final = (RETENTION, COMPACTION)


@cause("stored-out-of-order", needs_nothing_because=FROM_LOGS)
def stored_out_of_order(
    *, value: RecordValue, stands_at: Offset, earlier: RecordValue, earlier_at: Offset
) -> str:
    return (
        f"{value} is at offset {stands_at}, before {earlier} at offset {earlier_at}, which was sent earlier"
    )


def find(index: Index) -> Iterator[Finding]:
    """Find acked records that are in the log before a record that the same session sent earlier.

    Only records that are still in a final log are compared. The offset of a truncated record proves
    nothing, because it has been assigned again.
    """
    by_partition: dict[str, list[int]] = {}
    for number, session in enumerate(index.sessions):
        by_partition.setdefault(session.partition, []).append(number)
    findings: dict[int, list[Finding]] = {}
    for partition, numbers in by_partition.items():
        first = _first_offsets(index, partition)
        for number in numbers:
            findings[number] = list(_steps_back(index, index.sessions[number], first))
    for number in range(len(index.sessions)):
        yield from findings[number]


def _steps_back(index: Index, session: SessionSends, first: Mapping[Value, int]) -> Iterator[Finding]:
    records, sends = index.history.records, session.sends
    values = map(records.values.__getitem__, sends.rows)
    offsets = [offset for offset in map(first.get, values) if offset is not None]
    if all(map(lt, offsets, islice(offsets, 1, None))):
        return  # Most runs end here: to look at sends one by one takes several times as long.
    sent_again = index.history.partitions[session.partition].sent_again
    # If a value was sent again, its first offset may come from either send.
    standing = [
        (first[value], place)
        for place, row in enumerate(sends.rows)
        if records.outcomes[row] == ACKED and (value := records.values[row]) in first
        if value not in sent_again
    ]
    for (earlier, one), (later, other) in pairwise(standing):
        if later <= earlier:
            yield _finding(index, (earlier, sends[one]), (later, sends[other]))


def _first_offsets(index: Index, partition: str) -> dict[Value, int]:
    """Return the first offset of each value in the last leader's log.

    Without a log, return the first offset at which consumers read the value.
    """
    logs = index.logs.get(partition)
    if not logs:
        return {value: offset for offset, value in sorted(index.polled.get(partition, ()), reverse=True)}
    leader = index.last_leader(partition)
    values = logs.get(leader) or max(logs.values(), key=len)
    # The last entry of a value wins, so go backwards to keep its first offset.
    offsets: dict[Any, int] = dict(zip(reversed(values), range(len(values) - 1, -1, -1), strict=True))
    offsets.pop(None, None)
    # Retention or compaction may have removed the first copy of a batch that was appended twice. To
    # find the first copy, the whole log has to be replayed, which costs as much as the run.
    removals: Sequence[TraceLine[LogStartRaised | LogStartedAnew | LogCleaned]]
    removals = index.events(LogStartRaised, LogStartedAnew, LogCleaned, partition=partition)
    if all(removal.broker != leader for _, removal in removals):
        return offsets
    copies = index.partition(partition).by_value
    for value, offset in offsets.items():
        removed = (
            copy.offset
            for copy in copies.get(str(value), ())
            if copy.broker == leader and copy.removed is not None and copy.removed.cause in _BY_POLICY
        )
        offsets[value] = min(removed, default=offset) if offset else offset
    return offsets


def _finding(index: Index, earlier: tuple[int, SendRecord], later: tuple[int, SendRecord]) -> Finding:
    (earlier_offset, first), (later_offset, second) = earlier, later
    partition = second.partition
    producer = index.evidence.producers[second.process]
    story = Story(index, partition)
    for offset, send in (earlier, later):
        tell_sent(story, send, producer.name)
        appends = [copy for copy in story.copies(send.value) if not copy.is_copy]
        for copy in appends:
            if copy.offset == offset:
                tell_stored(story, copy)
        if appends:
            tell_retry(story, producer.name, send.value, story.start(send.invoked_us), appends[-1].number)
    conclusion = stored_out_of_order.conclude(
        value=second.value, stands_at=later_offset, earlier=first.value, earlier_at=earlier_offset
    )
    permitted_by = order_permitted_by(producer)
    excuse = index.excuse(partition, None)
    if permitted_by is None and excuse is not None:
        permitted_by = excuse.setting
    return Finding(
        partition=partition,
        offset=later_offset,
        value=second.value,
        chain=story.chain(conclusion),
        permitted_by=permitted_by,
        prevented_by=_prevented_by(producer, permitted_by),
        details=(("offsets", [earlier_offset, later_offset]),),
    )


def _prevented_by(producer: ProducerSettings, permitted_by: str | None) -> tuple[prevention.Prevention, ...]:
    if permitted_by is None:
        return ()
    if permitted_by == FLUSH_INTERVAL:
        return (prevention.FLUSHING,)
    answers = (prevention.WAITING_FOR_ANSWERS,) if producer.acks == "0" else ()
    return (*answers, prevention.IDEMPOTENCE, prevention.ONE_IN_FLIGHT)


RULE: Final = Rule(
    name=NONMONOTONIC_SEND,
    definition=(
        "Two acknowledged records of one producer session are in a partition in another order than they were "
        "sent. The first offset of each counts, and one finding is reported for each step back."
    ),
    source=(
        "Jepsen's Kafka workload (nonmonotonic-send); KIP-98; "
        "ProducerConfig.java, max.in.flight.requests.per.connection."
    ),
    promise=IN_SEND_ORDER,
    find=find,
    is_tried=lambda index: any(len(session.sends) > 1 for session in index.sessions),
    verb="reordered",
    fate=REORDERED,
)
