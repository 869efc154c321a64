"""lost-write: an acked record can no longer be read."""

from collections.abc import Iterable
from typing import Final

from harrow.checks.causes import compaction
from harrow.checks.causes.fates import aborted_parts, explain_aborted, is_torn, parts_of
from harrow.checks.causes.loss import tell_lost_send
from harrow.checks.causes.retention import is_read_and_expired
from harrow.checks.causes.story import Story
from harrow.checks.finding import Finding
from harrow.checks.history.records import Value
from harrow.checks.index import Index
from harrow.checks.permission import Promise
from harrow.checks.promise import ACKS_1, ACKS_ALL, BY_LOSS, BY_LOST_DECISION, LOST_WRITE, durability
from harrow.checks.rule import LOST, Rule


def find(index: Index) -> Iterable[Finding]:
    """Find acked records that are missing from the last leader's log.

    A record that only a diverged follower has is lost to consumers as well. A partition that was
    not read back is not judged, because a missing record may come back. A record is not lost if it
    was read before retention deleted it on time, or if compaction removed it in favour of a later
    record of its key. A transaction is acknowledged once its coordinator has written PrepareCommit
    (KIP-98). If a marker then aborts a record of the transaction, the record is lost.
    """
    losses: dict[tuple[str, Value], Finding] = {}
    for partition, sends in index.acked.items():
        if partition not in index.evidence.read_back:
            continue
        readable, values = index.readable(partition), index.history.records.values
        lost = [place for place, row in enumerate(sends.rows) if values[row] not in readable]
        for place in lost:
            send = sends[place]
            if is_read_and_expired(index, partition, send.value, send.invoked_us):
                continue
            if compaction.is_superseded(
                index, partition, send.value, send.offset
            ) or compaction.is_read_and_expired(index, partition, send.value):
                continue
            story = Story(index, partition)
            aborted = aborted_parts(index, partition, send.value)
            if aborted:
                # A transaction that is committed elsewhere, but not here, is a torn transaction.
                transaction = index.history.transaction_of.get(sends.rows[place])
                if transaction is not None and is_torn(parts_of(index, transaction)):
                    continue
                cause = explain_aborted(story, aborted[-1])
            else:
                cause = tell_lost_send(story, send)
            # If a value was acked to two sessions, this is one loss, and the stronger promise
            # counts.
            finding = losses.get((partition, send.value))
            if finding is None or finding.permitted_by is not None:
                losses[partition, send.value] = cause.finding(story, offset=send.offset, value=send.value)
    return losses.values()


RULE: Final = Rule(
    name=LOST_WRITE,
    definition=(
        "A send was acknowledged, but after the cluster has healed and the partition has been read back to its end, the "
        "record is not in the leader's log, so no consumer will read it again. A record that a consumer read before "
        "retention deleted it on time is not lost, nor one that compaction removed for a later record of its key. A "
        "transactional send is acknowledged when its commit is. It is also lost if the log has it as aborted, with all of "
        "its transaction."
    ),
    source="Jepsen's Kafka workload (lost-write); Kafka's documentation, Replication (committed messages); KIP-98, TransactionCoordinator.endTransaction.",
    promise=Promise(
        promised_by=(
            ACKS_ALL,
            f"{ACKS_1}, once the record is committed",
            "min.insync.replicas copies at the time of the ack",
        ),
        permissions=(*BY_LOSS, *BY_LOST_DECISION),
        releases="kept since 0.11 (KIP-101), through fast leader changes since 2.0 (KIP-279)",
        to_producer=durability,
    ),
    find=find,
    is_tried=Index.has_acks,
    is_undecided=Index.has_unread,
    verb="lost",
    fate=LOST,
)
