"""Defines the causes that several rules share: why a record was lost, or why two logs differ."""

from typing import Final

from harrow.checks import promise
from harrow.checks.causes.facts import ACKED, DAMAGED, DELETED, LOST, RESENT, UNCLEAN
from harrow.checks.causes.story import brokers, seconds
from harrow.checks.link import BY_SETTING, FORBIDDEN, FROM_LOGS, FROM_TRACE, Link, RecordValue, cause
from harrow.checks.permission import Permission
from harrow.cluster_model.events import BrokerId, Brokers, Flag, Number, Offset, PartitionName, Text
from harrow.cluster_model.settings import AUTO_OFFSET_RESET, TRANSACTIONAL_ID

_FLUSHING: Final = f"Kafka leaves flushing to the operating system ({promise.FLUSH_INTERVAL})"


@cause("no-ack-awaited", needs_nothing_because=BY_SETTING)
def no_ack_awaited() -> str:
    """A producer with acks=0 counts a record as acked although it may never have arrived."""
    return f"{promise.ACKS_0} waits for no answer"


@cause("acked-before-replication", needs=(ACKED.of("value"),))
def acked_before_replication(*, value: RecordValue) -> str:
    """A leader acknowledged a record that no other replica had (acks=1), and lost the record."""
    return f"{promise.ACKS_1} does not wait for followers, and {value} was never committed"


@cause("unclean-election", needs=(UNCLEAN.of("leader"),))
def unclean_election(*, leader: BrokerId, value: RecordValue) -> str:
    """A leader from outside the ISR did not have the record."""
    return f"broker {leader}, elected uncleanly ({promise.UNCLEAN_ELECTION}), did not have {value}"


@cause("unclean-election-below-log-start", needs=(UNCLEAN.of("leader"),))
def unclean_election_below_log_start(
    *, leader: BrokerId, value: RecordValue, successor: BrokerId, log_start: Offset
) -> str:
    """A leader from outside the ISR reused an offset that another replica had already deleted."""
    return (
        f"broker {leader}, elected uncleanly ({promise.UNCLEAN_ELECTION}), gave {value} an offset below {log_start}, "
        f"where the log of broker {successor} already began: that replica never fetched {value}"
    )


@cause("unclean-election-broke-invariant", needs_nothing_because=FROM_TRACE)
def unclean_election_broke_invariant() -> str:
    """A leader from outside the ISR lacked committed records, so an invariant did not hold."""
    return f"an unclean election chose a leader that lacks committed records ({promise.UNCLEAN_ELECTION})"


@cause("power-loss", needs=(LOST.of("lost"),))
def power_loss(*, lost: Brokers) -> str:
    """Every replica that had the record lost it in a power loss."""
    return f"{_FLUSHING}, so a record is safe only while one replica that has it keeps its power"


@cause("last-in-isr-lost-power", needs=(LOST.of("isr"),))
def last_in_isr_lost_power(*, isr: Brokers, value: RecordValue, having: Brokers) -> str:
    """Every member of the ISR lost the record in a power loss, and no other replica could lead."""
    return (
        f"{_FLUSHING}: every member of the ISR {list(isr)} lost {value} in a power loss, and {brokers(having)}, "
        "which had it, could not be elected from outside the ISR (KIP-966)"
    )


@cause("in-isr-after-power-loss", needs=(LOST.of("leader"),))
def in_isr_after_power_loss(
    *, leader: BrokerId, value: RecordValue, having: Brokers, rejoined: Flag = False
) -> str:
    """A replica lost the record in a power loss, and still counted as in sync.

    ``rejoined``: the replica had left the ISR, and was let in again without the record.
    """
    how = "was let into the ISR again without it" if rejoined else "was still in the ISR when it came back"
    return (
        f"{_FLUSHING}: broker {leader} lost {value} in a power loss and {how}, although {brokers(having)} had it "
        f"({'KIP-903' if rejoined else 'KIP-966'})"
    )


@cause("power-loss-in-isr", needs_nothing_because=FROM_TRACE)
def power_loss_in_isr() -> str:
    """A member of the ISR lost records in a power loss, and stayed a member."""
    return f"{_FLUSHING}, and a replica that comes back without its unflushed records is still in the ISR"


@cause("disk-failure", needs=(LOST.of("lost"),))
def disk_failure(*, value: RecordValue, lost: Brokers) -> str:
    """Every replica that had the record lost it with its disk."""
    return f"every replica that had {value} lost its disk, or the data on it"


@cause(
    "damaged-on-leader",
    needs=(DAMAGED.of("leader"),),
    no_remedy="no setting or release makes a leader compare its log with the logs of its followers, or repair a batch with a bad CRC",
)
def damaged_on_leader(*, leader: BrokerId, value: RecordValue, having: Brokers) -> str:
    """A broker stays leader with a record that cannot be read, although other replicas have it."""
    others = f" although {brokers(having)} had it" if having else ""
    return f"broker {leader}, the leader, has {value} in a batch with a bad CRC: Kafka never repairs that, and the broker goes on leading{others}"


@cause("last-in-isr-lost-disk", needs=(LOST.of("isr"),))
def last_in_isr_lost_disk(*, isr: Brokers, value: RecordValue, having: Brokers) -> str:
    """Every member of the ISR lost the record with its disk, and no other replica could lead."""
    return (
        f"every member of the ISR {list(isr)} lost {value} with its disk, and {brokers(having)}, which had it, "
        "could not be elected from outside the ISR (KIP-966)"
    )


@cause("in-isr-after-disk-loss", needs=(LOST.of("leader"),))
def in_isr_after_disk_loss(
    *, leader: BrokerId, value: RecordValue, having: Brokers, rejoined: Flag = False
) -> str:
    """A replica lost the record with its disk, and still counted as in sync.

    ``rejoined``: the replica had left the ISR, and was let in again without the record.
    """
    how = "was let into the ISR again without it" if rejoined else "was still in the ISR when it came back"
    return (
        f"broker {leader} lost {value} with its disk and {how}, although {brokers(having)} had it "
        f"({'KIP-903' if rejoined else 'KIP-966'})"
    )


@cause("disk-loss-in-isr", needs_nothing_because=FROM_TRACE)
def disk_loss_in_isr() -> str:
    """A member of the ISR lost records with its disk, and stayed a member."""
    return "a replica that comes back with an empty disk is still in the ISR"


@cause("metadata-lost", needs_nothing_because=FROM_TRACE)
def metadata_lost() -> str:
    """A majority of the controllers lost the metadata log with their disks."""
    return "the quorum lost committed metadata with the disks of its controllers, so brokers went back to an older state"


@cause("retention-passed", needs=(DELETED.of("value"),))
def retention_passed(*, value: RecordValue, setting: Text) -> str:
    """Retention deleted a record when it was due, before a consumer had read it."""
    return f"{setting} no longer protected {value}: it was deleted before a consumer had read it"


@cause("deleted-by-wrong-clock", needs=(DELETED.of("value"),))
def deleted_by_wrong_clock(*, value: RecordValue, broker: BrokerId, lead_us: Number) -> str:
    """A record looked old enough for retention because clocks were wrong."""
    return f"clocks disagreed: broker {broker} saw {value} as up to {seconds(lead_us)} older than it was, and so past retention.ms"


@cause("tombstone-expired-by-wrong-clock", needs=(DELETED.of("value"),))
def tombstone_expired_by_wrong_clock(*, value: RecordValue, lead_us: Number) -> str:
    """A tombstone looked old enough to be removed because clocks were wrong."""
    return f"clocks disagreed: {value} seemed up to {seconds(lead_us)} older than it was, and so past delete.retention.ms"


@cause(
    "deleted-by-request",
    needs=(DELETED.of("value"),),
    no_remedy="DeleteRecords deletes what the administrator asks for, even records that no consumer has read",
)
def deleted_by_request(*, value: RecordValue) -> str:
    """An administrator had a record deleted before a consumer had read it."""
    return f"an administrator had {value} deleted (DeleteRecords) before a consumer had read it"


@cause("deleted-beyond-request", needs=(DELETED.of("value"),))
def deleted_beyond_request(*, value: RecordValue) -> str:
    """A broker deleted more than an administrator had asked for."""
    return f"{value} was deleted although it is not below the offset that DeleteRecords named"


@cause("deleted-too-early", needs=(DELETED.of("value"),))
def deleted_too_early(*, value: RecordValue, setting: Text) -> str:
    """Retention deleted a record that it had promised to keep."""
    return f"{value} was deleted although {setting} promised to keep it longer"


@cause("superseded-by-lost-record", needs=(DELETED.of("value"),))
def superseded_by_lost_record(*, value: RecordValue, later: RecordValue, committed: Flag) -> str:
    """Compaction removed a record in favour of a later one with its key, which is lost as well."""
    how = "was lost" if committed else "was not committed yet and is gone"
    return f"compaction removed {value} in favour of {later}, a later record with its key, which {how}: neither is left"


@cause("compacted-without-later-record", needs=(DELETED.of("value"),))
def compacted_without_later_record(*, value: RecordValue) -> str:
    return f"compaction removed {value} although the log had no later record with its key"


@cause("tombstone-expired", needs=(DELETED.of("value"),))
def tombstone_expired(*, value: RecordValue, setting: Text) -> str:
    """A tombstone was removed after delete.retention.ms, before a consumer had read it."""
    return (
        f"{setting} no longer protected the tombstone {value}: it was removed before a consumer had read it"
    )


@cause("tombstone-removed-too-early", needs=(DELETED.of("value"),))
def tombstone_removed_too_early(*, value: RecordValue, setting: Text) -> str:
    """Compaction removed a tombstone that it should have kept for slow readers."""
    return f"the tombstone {value} was removed although {setting} promised to keep it longer"


@cause("reset-past-records", needs_nothing_because=FROM_TRACE)
def reset_past_records(*, client: Text, policy: Text) -> str:
    """A slow consumer was sent to the end of the log, past records that were still in it."""
    return f"the next record for {client} had been deleted, and {AUTO_OFFSET_RESET}={policy} sent it to the end of the log"


@cause("forgotten-epoch", needs_nothing_because=FROM_TRACE)
def forgotten_epoch() -> str:
    """A replica no longer knows where leader epochs start, because its disk lost the entries."""
    return "a disk failure removed a leader epoch from a log or its leader-epoch-checkpoint, so replicas cannot use that epoch to compare their logs"


@cause("old-checkpoint", needs_nothing_because=FROM_TRACE)
def old_checkpoint(*, file: Text) -> str:
    """A disk returned a checkpoint that is older than its log."""
    return f"the disk returned an old {file}"


@cause("damaged-below-checkpoint", needs_nothing_because=FROM_TRACE)
def damaged_below_checkpoint(*, offset: Offset) -> str:
    """A disk damaged a batch that had been flushed, and recovery truncated the log there."""
    return f"the disk damaged the flushed batch at offset {offset}, and recovery cut the log there"


@cause("resumed-epoch", needs_nothing_because=FROM_TRACE)
def resumed_epoch(*, logs_parted: Flag = False, forgot_producers: Flag = False) -> str:
    """A leader lost the end of its log and resumed its epoch (see `causes.resumed_epoch`)."""
    text = f"a leader lost what it had not flushed ({promise.FLUSH_INTERVAL}) and resumed its epoch"
    if forgot_producers:
        return f"{text}, and forgot its producers"
    return f"{text}, so its log and those of its followers have diverged" if logs_parted else text


def by_excuse(permission: Permission, *, logs_parted: bool = False, forgot_producers: bool = False) -> Link:
    """Return the cause behind a permission from `harrow.checks.index.Index.excuse`."""
    if permission is promise.BY_FORGOTTEN_EPOCH:
        return forgotten_epoch.conclude()
    return resumed_epoch.conclude(logs_parted=logs_parted, forgot_producers=forgot_producers)


@cause("acked-by-deposed-leader", needs_nothing_because=FORBIDDEN)
def acked_by_deposed_leader(*, value: RecordValue) -> str:
    """A leader acknowledged a record after another leader had been elected."""
    return f"{value} was acked by a leader after another one had been elected"


@cause("committed-record-lost", needs_nothing_because=FORBIDDEN)
def committed_record_lost(*, value: RecordValue) -> str:
    """A record was lost although the high watermark had passed it."""
    return f"{value} was committed, and no setting permits its loss"


@cause("acked-before-commit", needs_nothing_because=FORBIDDEN)
def acked_before_commit(*, value: RecordValue) -> str:
    return f"{value} was acked although it was never committed"


@cause(
    "resent-by-application",
    needs_nothing_because=FROM_TRACE,
    no_remedy=f"the application has to send within transactions of one {TRANSACTIONAL_ID}, or must not send the record again",
)
def resent_by_application(*, times: Number) -> str:
    """An application sent a record again by itself."""
    return (
        f"the application sent it {times} times: without a {TRANSACTIONAL_ID}, "
        "idempotence only covers the retries of one producer session"
    )


@cause(
    "resent-in-transactions",
    needs_nothing_because=FROM_TRACE,
    no_remedy="the application has to commit the offsets of its input in the same transaction, or must not send the record again",
)
def resent_in_transactions(*, times: Number) -> str:
    """An application sent a record again, and committed each copy in a transaction."""
    return f"the application sent it {times} times in transactions that it committed"


@cause("sender-unknown", needs_nothing_because=FROM_LOGS)
def sender_unknown() -> str:
    """The log has a record twice, but no producer of the history sent the record."""
    return "no producer is known to have sent it"


@cause("retry-without-idempotence", needs=(RESENT.of("value"),))
def retry_without_idempotence(*, value: RecordValue) -> str:
    return f"with {promise.NOT_IDEMPOTENT} the leader cannot tell a retry from a new record"


@cause("retry-not-recognised", needs=(RESENT.of("value"),))
def retry_not_recognised(*, value: RecordValue) -> str:
    """A retry was appended although the producer is idempotent."""
    return "the leader did not recognise the retry"


@cause("aborted-copy-committed", needs_nothing_because=FROM_TRACE)
def aborted_copy_committed(*, value: RecordValue) -> str:
    """A record was sent again after its transaction was aborted, but both copies are committed."""
    return (
        f"the transaction with the first copy of {value} was aborted, but consumers can read that copy, too"
    )


@cause("retry-renumbered", needs_nothing_because=FROM_TRACE, is_of_client=True)
def retry_renumbered(
    *,
    value: RecordValue,
    client: Text,
    refused_by: BrokerId | None = None,
    refused_in: PartitionName | None = None,
    error: Text | None = None,
) -> str:
    """A producer raised its epoch and began at sequence 0 with a record that was already stored.

    ``refused_by`` is the broker that had refused another batch of the producer, if the trace shows
    it. librdkafka reacts by renumbering its batches for every partition
    (``rd_kafka_idemp_drain_epoch_bump``, ``rd_kafka_toppar_pid_change``), which its issue 4953
    reports as a defect. The Java client only renumbers the partition of the refused batch.
    """
    renumbered = f"{client} sent {value} with a different sequence number than before, so no leader recognises it as a retry"
    if refused_by is None:
        return f"{renumbered}; librdkafka does so once a leader refuses a batch of any partition as out of order (its issue 4953)"
    return (
        f"broker {refused_by} had refused a batch for {refused_in} ({error}); after that {renumbered} "
        "(for librdkafka, see its issue 4953)"
    )


@cause("renumbered-after-unclean-election", needs=(UNCLEAN.of("leader"),))
def renumbered_after_unclean_election(*, leader: BrokerId, value: RecordValue, before: RecordValue) -> str:
    """A leader from outside the ISR lacked a record, so the next record was out of order."""
    return (
        f"broker {leader}, elected uncleanly ({promise.UNCLEAN_ELECTION}), did not have {before}, the record before {value}: "
        f"the producer gave {value} a new sequence number (KIP-360), so no leader recognises it as a retry"
    )


@cause("renumbered-after-giving-up", needs_nothing_because=FROM_TRACE)
def renumbered_after_giving_up(*, value: RecordValue, before: RecordValue, setting: Text) -> str:
    """A producer gave up on a record in flight, so the next record was out of order."""
    return (
        f"the producer gave up on {before}, the record before {value}, while it was still in flight ({setting}): "
        f"it gave {value} a new sequence number (KIP-360), so no leader recognises it as a retry"
    )
