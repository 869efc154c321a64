"""Judges the anomalies that a run's history shows, and adds the causes that the trace shows."""

# Plain Python: this table is read only once, so compiling it gains nothing.

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from harrow.checks import promise as promises
from harrow.checks.causes import compaction
from harrow.checks.causes.catalogue import damaged_on_leader, reset_past_records, tombstone_expired
from harrow.checks.causes.copies import tell_place
from harrow.checks.causes.fates import explain_aborted
from harrow.checks.causes.links import led_without, out_of_range, out_of_range_at_follower
from harrow.checks.causes.loss import Cause, explain_replaced
from harrow.checks.causes.retention import was_deleted
from harrow.checks.causes.story import Story
from harrow.checks.causes.transactions import forgotten_commit, lost_abort, lost_marker
from harrow.checks.finding import Finding
from harrow.checks.history.anomalies import ANOMALIES
from harrow.checks.history.records import Pair, Value
from harrow.checks.history.witness import AFTER_LOSS, polled_pair
from harrow.checks.index import Index
from harrow.checks.permission import Permission, Promise
from harrow.checks.prevention import (
    CLEAN_ELECTIONS,
    COMMITTED_READS,
    EARLIEST_RESET,
    FLUSHING,
    IDEMPOTENCE,
    KEEPING_TOMBSTONES,
    NO_OFFSET_RESET,
    Prevention,
)
from harrow.checks.replay.partition_state import has_copy
from harrow.checks.rule import Rule
from harrow.checks.transaction_fates import COMMITTED, TransactionPart
from harrow.cluster_model import events
from harrow.cluster_model.clients.consumer import LATEST
from harrow.cluster_model.errors import OFFSET_OUT_OF_RANGE
from harrow.cluster_model.history import OK
from harrow.cluster_model.lazy_dataclass import replace
from harrow.cluster_model.settings import AUTO_OFFSET_RESET
from harrow.cluster_model.trace import TraceLine


def _by_skip(index: Index, finding: Finding) -> Finding | None:
    """Permit a skip if the consumer did not have to get the skipped records, or if they were lost.

    It did not have to get compacted records, or records that were deleted when its position was
    reset and that came back later. None if no other records were skipped.
    """
    details = dict(finding.details)
    until_us = max((link.at_us for link in finding.chain if link.at_us is not None), default=0)
    order = index.orders.of(finding.partition)
    first, end = order.between(*details["offsets"])
    skipped = order.offsets[first:end]
    holes = compaction.holes(index, finding.partition, range(*details["offsets"]), until_us)
    due = {
        offset: [
            value
            for value in order.values_at(offset)
            if not _is_left_out(index, details["process"], finding.partition, value)
            and not _was_missing_at_reset(
                index, details["process"], finding.partition, offset, value, until_us
            )
        ]
        for offset in skipped
        if offset not in holes
    }
    due = {offset: values for offset, values in due.items() if values}
    if skipped and not due:
        return None
    left = [order.values_at(offset) for offset in due]
    expired = [
        value
        for values in left
        for value in values
        if compaction.is_expired_tombstone(index, finding.partition, value, until_us)
    ]
    if left and all(any(value in expired for value in values) for values in left):
        setting = promises.DELETE_RETENTION_MS
        conclusion = tombstone_expired.conclude(value=expired[0], setting=setting)
        why = Cause((conclusion,), setting, (KEEPING_TOMBSTONES,))
        return _explained(finding, Story(index, finding.partition), why)
    return _by_fate(index, finding, due) or _by_loss(index, finding)


def _by_fate(index: Index, finding: Finding, due: Mapping[int, Sequence[Value]]) -> Finding | None:
    """Explain why a read_committed consumer passed records that are aborted or open in the log.

    *due* has the skipped records that the consumer had to get, by offset. If another record is now
    at the offset of a due record, the due record was lost, and its transaction explains nothing. If
    some due records were lost like this, the explanation may accuse Kafka, but must not permit the
    skip, because the loss needs a permission of its own.
    """
    consumer = index.evidence.consumers.get(dict(finding.details)["process"])
    if consumer is None or not consumer.read_committed:
        return None
    fates = index.fates(finding.partition)
    offsets = [offset for offset in due if index.standing_at(finding.partition, offset) in due[offset]]
    if not offsets or any(offset not in fates or fates[offset].state == COMMITTED for offset in offsets):
        return None
    offset = offsets[0]
    value = index.standing_at(finding.partition, offset)
    assert value is not None, "a record is due at this offset"
    part = TransactionPart(finding.partition, offset, value, fates[offset])
    story = Story(index, finding.partition)
    explained = _explained(finding, story, explain_aborted(story, part))
    is_mixed = explained.permitted_by is not None and len(offsets) < len(due)
    return None if is_mixed else explained


def _explained(finding: Finding, story: Story, why: Cause) -> Finding:
    """Return a finding with its cause, and with the links of the story in its chain."""
    # Links without a time come last.
    chain = sorted(
        (*story.chain(*why.links), *finding.chain), key=lambda link: (link.at_us is None, link.at_us or 0)
    )
    return replace(
        finding,
        chain=tuple(chain),
        permitted_by=why.permitted_by,
        prevented_by=why.prevented_by or finding.prevented_by,
    )


def _is_left_out(index: Index, process: int, partition: str, value: Value) -> bool:
    """Return whether a read_committed consumer may skip a record that may not be committed.

    That is a record without an ack that no read_committed consumer has read.
    """
    consumer = index.evidence.consumers.get(process)
    if consumer is None or not consumer.read_committed:
        return False
    sends = index.sends_of(partition, value)
    if not sends or any(send.outcome == OK for send in sends):
        return False
    read = index.undecided_reads.get((partition, value))
    return read is None or not read.is_read_committed


def _was_missing_at_reset(
    index: Index, process: int, partition: str, offset: int, value: Value, until_us: int
) -> bool:
    """Return whether a consumer was reset past a record that was deleted, but came back later."""
    client = index.evidence.process_names[process]
    return index.standing_at(partition, offset) == value and any(
        event.client == client
        and event.at_us <= until_us
        and event.position <= offset < event.offset
        and was_deleted(index, partition, value, event.at_us)
        for _, event in index.events(events.OffsetReset, partition=partition)
    )


def _by_isolation(index: Index, finding: Finding) -> Finding | None:
    """Permit aborted reads by consumers without read_committed.

    The consumers with which harrow reads everything back do not count.
    """
    assert finding.value is not None, "an aborted read of nothing"
    partition = index.history.partitions[finding.partition]
    if partition.rows.get(finding.value) not in partition.aborted:
        return finding
    read = index.undecided_reads.get((finding.partition, finding.value))
    if read is None:
        return None
    poll = polled_pair(index.history, read.position, (read.offset, finding.value))
    polled = replace(finding, chain=(*finding.chain[:-1], poll))
    if read.is_read_committed:
        return _by_lost_end(index, polled, read.offset)
    return replace(polled, permitted_by=promises.READ_UNCOMMITTED, prevented_by=(COMMITTED_READS,))


def _by_lost_end(index: Index, finding: Finding, offset: int) -> Finding:
    """Permit that a committed record was reported as aborted if a setting permits the cause.

    The cause is a lost decision about the transaction.
    """
    assert finding.value is not None, "an aborted read of nothing"
    story = Story(index, finding.partition)
    ends_us = [send.completed_us for send in index.sends_of(finding.partition, finding.value)]
    until_us = max((at_us for at_us in ends_us if at_us is not None), default=0)
    why = forgotten_commit(story, finding.value, offset, until_us)
    why = why or lost_abort(story, finding.value, offset)
    return finding if why is None else _explained(finding, story, why)


def _by_loss(index: Index, finding: Finding) -> Finding:
    """Permit a jump of a consumer if a setting permits the loss that caused it.

    The loss is that of the last record before the jump, of a skipped record or of a marker.
    """
    if finding.permitted_by is not None:
        return finding
    details = dict(finding.details)
    offset, value = details["offsets"][0], details["values"][0]
    cause = (
        _by_reset(index, finding)
        or _by_damage(index, finding)
        or explain_replaced(index, finding.partition, value, offset)
    )
    if cause.permitted_by is None:
        until_us = max(link.at_us for link in finding.chain if link.at_us is not None)
        story = Story(index, finding.partition)
        cause = (
            _led_without(story, (offset, value), until_us)
            or _out_of_range(story, details["process"], value, until_us)
            or cause
        )
    if cause.permitted_by is None and details.get(AFTER_LOSS):
        skipped = details["skipped"][0]
        skipped_at = index.orders.of(finding.partition).first_offset(skipped)
        cause = explain_replaced(index, finding.partition, skipped, skipped_at or 0)
    if cause.permitted_by is None:
        until_us = max(link.at_us for link in finding.chain if link.at_us is not None)
        position = _position_of(index, finding)
        cause = lost_marker(index, finding.partition, offset, until_us, position) or cause
    story = Story(index, finding.partition)
    if cause.permitted_by is None and index.standing_at(finding.partition, offset) == value:
        # The record before the jump is still in the log, so explain the skipped records instead.
        cause = _by_other_log(index, finding) or Cause((), None)
        for skipped in details.get("skipped", ())[:1] if cause.permitted_by is None else ():
            tell_place(story, index.orders.of(finding.partition).first_offset(skipped) or 0, skipped)
    return _explained(finding, story, cause)


def _position_of(index: Index, finding: Finding) -> int:
    """Return the position from which a consumer was reset between two reads, 0 if it is unknown."""
    details = dict(finding.details)
    client = index.evidence.process_names[details["process"]]
    times = [link.at_us for link in finding.chain if link.at_us is not None]
    positions = [
        event.position
        for _, event in index.events(events.OffsetReset, partition=finding.partition)
        if event.client == client and min(times) <= event.at_us <= max(times)
    ]
    return max(positions, default=0)


def _by_other_log(index: Index, finding: Finding) -> Cause | None:
    """Explain a consumer that continued in another log, if a setting permits a loss in either log.

    Logs with markers of transactions may have the same records at different offsets.
    """
    details = dict(finding.details)
    order = index.orders.of(finding.partition)
    here, there = details["offsets"]
    first, end = order.between(here, there)
    between = [(offset, value) for offset in order.offsets[first:end] for value in order.values_at(offset)]
    for offset, value in ((there, details["values"][1]), *between):
        if index.standing_at(finding.partition, offset) != value:
            cause = explain_replaced(index, finding.partition, value, offset)
            if cause.permitted_by is not None:
                return cause
    return None


def _by_reset(index: Index, finding: Finding) -> Cause | None:
    """Explain why a consumer was reset to the end of the log: its next record was deleted."""
    details = dict(finding.details)
    client = index.evidence.process_names[details["process"]]
    end_us = max(link.at_us for link in finding.chain if link.at_us is not None)
    last = details["offsets"][0]
    for number, event in index.events(events.OffsetReset, partition=finding.partition):
        if event.client != client or event.at_us > end_us or event.policy != LATEST or event.position <= last:
            continue
        starts = index.events(events.LogStartRaised, partition=finding.partition)
        deleted = max((raised.offset for place, raised in starts if place < number), default=0)
        if event.position < deleted < event.offset:
            past = reset_past_records.conclude(client=client, policy=event.policy)
            setting = f"{AUTO_OFFSET_RESET}={event.policy}"
            return Cause((past,), setting, (EARLIEST_RESET,))
    return None


def _by_damage(index: Index, finding: Finding) -> Cause | None:
    """Explain a consumer's seek past records: it had found a bad CRC in their batches."""
    details = dict(finding.details)
    client = index.evidence.process_names[details["process"]]
    here, there = details["offsets"]
    leaders = [
        event.broker
        for _, event in index.events(events.CorruptBatchFetched, partition=finding.partition)
        if event.receiver == client and here < event.offset < there
    ]
    skipped = details.get("skipped", ())
    if not leaders or not skipped:
        return None
    copies = [index.partition(finding.partition).by_value.get(str(value), ()) for value in skipped]
    last_leader = leaders[-1]
    if not all(
        any(copy.broker in leaders and copy.damaged is not None for copy in group) for group in copies
    ):
        return None
    having = tuple(
        sorted({copy.broker for copy in copies[0] if copy.damaged is None and copy.removed is None})
    )
    because = damaged_on_leader.conclude(leader=last_leader, value=skipped[0], having=having)
    return Cause((because,), promises.DISK_FAILURE)


def _led_without(story: Story, last: Pair, until_us: int) -> Cause | None:
    """Explain a jump of a consumer by a leader that lacked the record before it.

    The record came back later. None unless the leader had lost the record in a power loss or a disk
    failure, or was elected uncleanly. A leader that stops and returns before the controller notices
    is not elected. It continues to lead, in a new leader epoch if the controller notices that
    another replica is down.
    """
    offset, value = last
    group = story.copies(value, offset)
    leaderships: Sequence[TraceLine[events.LeaderElected | events.BecameLeader]]
    leaderships = story.events(events.LeaderElected, events.BecameLeader)
    for number, event in leaderships:
        election = event if isinstance(event, events.LeaderElected) else None
        leader = event.leader if isinstance(event, events.LeaderElected) else event.broker
        if event.at_us > until_us or has_copy(group, leader, number):
            continue
        lost = [
            copy
            for copy in group
            if copy.broker == leader and copy.removed is not None and copy.removed.number < number
        ]
        prevented_by: tuple[Prevention, ...]
        if any(copy.lost_with_power for copy in lost):
            setting, prevented_by = promises.FLUSH_INTERVAL, (FLUSHING,)
        elif any(copy.lost_with_disk for copy in lost):
            setting, prevented_by = promises.DISK_FAILURE, ()
        elif election is not None and election.unclean and story.settings.elects_uncleanly(election.at_us):
            setting, prevented_by = promises.UNCLEAN_ELECTION, (CLEAN_ELECTIONS,)
        else:
            continue
        without = led_without(
            event.at_us,
            leader,
            value=value,
            offset=offset,
            setting=setting,
            was_elected=election is not None,
        )
        return Cause((replace(without, decides=True),), setting, prevented_by)
    return None


def _out_of_range(story: Story, process: int, last: Value, until_us: int) -> Cause | None:
    """Explain a consumer whose position a deposed leader rejected as out of range.

    A deposed leader does not have the records of its successors. No record is lost: the consumer's
    metadata was outdated as well, and the consumer moved to the offset of ``auto.offset.reset``.
    """
    consumer = story.evidence.process_names[process]
    since = min((copy.number for copy in story.copies(last)), default=0)
    for number, event in story.events(events.RequestRejected):
        rejection = event.api, event.sender, event.error
        if number < since or event.at_us > until_us or rejection != ("Fetch", consumer, OFFSET_OUT_OF_RANGE):
            continue
        led = story.last(events.BecameLeader, before=number, broker=event.broker)
        newest = max(
            (election.leader_epoch for place, election in story.elections if place < number), default=0
        )
        if led is not None and led.event.leader_epoch < newest:
            rejected = out_of_range(
                event.at_us,
                event.broker,
                client=consumer,
                leader_epoch=led.event.leader_epoch,
                newer_epoch=newest,
                setting=AUTO_OFFSET_RESET,
            )
            return Cause((replace(rejected, decides=True),), AUTO_OFFSET_RESET, (NO_OFFSET_RESET,))
        if _had_left_follower(story, consumer, event.broker, number, until_us):
            rejected = out_of_range_at_follower(
                event.at_us, event.broker, client=consumer, setting=AUTO_OFFSET_RESET
            )
            return Cause((replace(rejected, decides=True),), AUTO_OFFSET_RESET, (NO_OFFSET_RESET,))
    return None


def _had_left_follower(story: Story, consumer: str, broker: int, refused: int, until_us: int) -> bool:
    """Return whether a consumer took a follower's rejection for a leader's (``Fetcher``).

    A consumer that still reads from the follower reacts by asking the leader (KIP-392). A consumer
    that no longer reads from the follower, for example because of a new leader, is reset.
    """
    role: TraceLine[events.BecameLeader | events.BecameFollower] | None
    role = story.last(events.BecameLeader, events.BecameFollower, before=refused, broker=broker)
    if role is None or isinstance(role.event, events.BecameLeader):
        return False
    for number, reset in story.events(events.OffsetReset):
        if number > refused and reset.at_us <= until_us and reset.client == consumer:
            choice: TraceLine[events.ReadReplicaPreferred | events.ReadReplicaCleared] | None
            choice = story.last(
                events.ReadReplicaPreferred, events.ReadReplicaCleared, before=number, client=consumer
            )
            return choice is not None and not (
                isinstance(choice.event, events.ReadReplicaPreferred) and choice.event.replica == broker
            )
    return False


def _by_producer(index: Index, finding: Finding) -> Finding:
    """Permit a reordered send if a setting of its producer permits it."""
    producer = index.evidence.producers[dict(finding.details)["process"]]
    return replace(finding, permitted_by=promises.order_permitted_by(producer), prevented_by=(IDEMPOTENCE,))


def _interleaved(_: Index, finding: Finding) -> Finding:
    """Permit a finding, because Kafka does not isolate the writes of transactions."""
    return replace(finding, permitted_by=promises.WRITES_INTERLEAVE)


def _find(name: str, judge: Callable[[Index, Finding], Finding | None], index: Index) -> Iterator[Finding]:
    for sighting in ANOMALIES[name].find(index.orders):
        judged = judge(index, sighting.finding())
        if judged is not None:
            yield judged


def _rule(
    name: str,
    promise: Promise,
    verb: str,
    judge: Callable[[Index, Finding], Finding | None] = lambda _, finding: finding,
) -> Rule:
    """Return the rule for an anomaly of a history; *judge* may permit or drop a finding."""
    return Rule(
        name=name,
        definition=ANOMALIES[name].definition,
        source=f"Jepsen's Kafka workload ({name}).",
        promise=promise,
        find=partial(_find, name, judge),
        is_tried=lambda index: ANOMALIES[name].is_tried(index.orders),
        verb=verb,
    )


_POLLED_IN_ORDER: Final = Promise(
    promised_by=(promises.OFFSETS_IN_ORDER,), permissions=(promises.BY_REBALANCE, *promises.BY_CUT_LOG)
)
_POLLED_IN_ORDER_WITHIN_POLL: Final = Promise(
    promised_by=(promises.OFFSETS_IN_ORDER,), permissions=promises.BY_CUT_LOG
)
_BY_LOST_END: Final = promises.restricted(
    "when the coordinator's log loses the commit of the transaction, or the partition's log the marker that aborted it",
    promises.BY_LOST_DECISION,
)

HISTORY_RULES: Final = (
    _rule(promises.POLL_SKIP, _POLLED_IN_ORDER, "skipped to", _by_skip),
    _rule(promises.NONMONOTONIC_POLL, _POLLED_IN_ORDER, "read again", _by_loss),
    _rule(promises.INT_POLL_SKIP, _POLLED_IN_ORDER_WITHIN_POLL, "skipped to within a poll", _by_skip),
    _rule(promises.INT_NONMONOTONIC_POLL, _POLLED_IN_ORDER_WITHIN_POLL, "read again within a poll", _by_loss),
    _rule(
        promises.INT_NONMONOTONIC_SEND, promises.IN_SEND_ORDER, "reordered within an operation", _by_producer
    ),
    _rule(promises.INT_SEND_SKIP, promises.INTERLEAVED, "interleaved with others", _interleaved),
    _rule(
        promises.G1A,
        Promise(
            promised_by=(promises.DEFINITE_ERROR, promises.READ_COMMITTED),
            permissions=(*promises.BY_ISOLATION[:1], *_BY_LOST_END),
            releases="for transactions since 0.11 (KIP-98)",
        ),
        "read although the send had failed",
        _by_isolation,
    ),
    _rule(
        promises.PRECOMMITTED_READ,
        Promise(
            promised_by=(promises.READ_COMMITTED,),
            permissions=promises.BY_ISOLATION,
            releases="since 0.11 (KIP-98)",
        ),
        "read before its commit",
    ),
    _rule(promises.G0, promises.INTERLEAVED, "write cycle through", _interleaved),
    _rule(
        promises.G1C,
        Promise(
            promised_by=(promises.READ_COMMITTED,),
            permissions=(
                Permission(
                    setting=promises.WRITES_INTERLEAVE,
                    when=f"with a write in the cycle, {promises.NO_WRITE_ISOLATION}",
                ),
                *promises.BY_ISOLATION,
            ),
            releases="since 0.11 (KIP-98)",
        ),
        "cycle of reads and writes through",
    ),
)
"""The rules that need only the history, in the order in which they are judged and listed."""
