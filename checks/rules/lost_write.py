"""lost-write: an acked record is no longer there to be read."""

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
    """Find acked records that the last leader's log no longer has.

    What only a follower kept that has diverged is lost to consumers as well. A partition that was
    not read back is not judged: what is missing may come back. What was read before retention
    deleted it in its time is not lost. Neither is what compaction removed for a later record of the
    same key. An application was told that its transaction is committed once its coordinator had
    written PrepareCommit, which decides (KIP-98): what the log aborts then is lost.
    """
    found: dict[tuple[str, Value], Finding] = {}
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
                # What is committed elsewhere, and not here, is a torn transaction.
                transaction = index.history.transaction_of.get(sends.rows[place])
                if transaction is not None and is_torn(parts_of(index, transaction)):
                    continue
                cause = explain_aborted(story, aborted[-1])
            else:
                cause = tell_lost_send(story, send)
            # A value acked to two sessions is one loss, and the stronger promise counts.
            known = found.get((partition, send.value))
            if known is None or known.permitted_by is not None:
                found[partition, send.value] = cause.finding(story, offset=send.offset, value=send.value)
    return found.values()


RULE: Final = Rule(
    name=LOST_WRITE,
    definition=(
        "A send was acknowledged, and after the cluster has healed and the partition has been read back "
        "to its end, the record is not in the leader's log, so no consumer will read it again. What a consumer has read before "
        "retention deleted it in its time is not lost, nor what compaction removed for a later record of its key. Of a transaction the send "
        "is acknowledged when its commit is, and lost also when the log has the record as aborted, with all of the transaction."
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
    is_undecided=Index.has_unread,
    verb="lost",
    fate=LOST,
)
