"""Declares the switches of a replica's log: recovery, retention, compaction and producer state."""

from functools import partial
from typing import Final

from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.release import guards
from harrow.cluster_model.release.subjects import (
    CLIENTS,
    DELETED_RECORDS,
    DISKS,
    REPLICATION,
    SHUTDOWN,
    UNKNOWN_PRODUCERS,
)
from harrow.cluster_model.release.switch import Mutant, Repair, switch

_switch: Final = partial(switch, subject=DISKS)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSwitches:
    """Each field is a switch. Its default is the value that the default release has."""

    truncation_drops_empty_last_epoch: bool = _switch(
        "Truncation to the log end drops an epoch that starts there without records. Otherwise a follower "
        "with such a last epoch asks its leader again and again, and never fetches.",
        "KAFKA-10706, Log.truncateTo",
        subject=REPLICATION,
        meaning="a follower drops a last epoch without records (KAFKA-10706)",
        since="2.6.1",
        guards=("unavailable",),
    )
    log_dir_failure_survived: bool = _switch(
        "A broker with several log directories continues without the replicas of one that fails, and the "
        "controller elects other leaders. Before, any disk error ended the broker.",
        "KIP-112, ReplicaManager.handleLogDirFailure",
        meaning="a broker survives the failure of one of several log directories (KIP-112)",
        since="1.0",
        guards=("unavailable",),
    )
    retention_waits_for_hw: bool = _switch(
        "Retention deletes no segment that reaches above the replica's high watermark. Before, a log could "
        "start above it.",
        "KAFKA-5634, Log.deletableSegments",
        meaning="retention deletes only committed records (KAFKA-5634)",
        since="0.11",
    )
    retention_keeps_recent_segments: bool = _switch(
        "retention.ms deletes a segment only when its newest record is older than that.",
        "KIP-33, Log.deleteRetentionMsBreachedSegments",
        meaning="retention.ms deletes only older records",
        guards=("deleted-too-early",),
        mutant=Mutant(
            "retention-ignores-age",
            "retention.ms deletes every complete segment, however new its records are.",
            source="Log.deleteRetentionMsBreachedSegments",
            noticed_by=("lost-write",),
        ),
    )
    cleaner_waits_for_hw: bool = _switch(
        "Compaction does not touch records above the replica's high watermark. Before, an uncommitted "
        "record replaced a committed one. If it was truncated later, a replica that had compacted its log "
        "had neither.",
        "KAFKA-13194, LogCleanerManager.cleanableOffsets",
        meaning="compaction removes no record for a later one that is not committed (KAFKA-13194)",
        since="3.1",
        guards=guards.COMPACTION,
        repair=Repair("KAFKA-13194"),
        mutant=Mutant(
            "cleaner-ignores-hw",
            "Compaction replaces a committed record by an uncommitted one. When that is truncated, both are "
            "lost.",
            source="KAFKA-13194; Kafka up to 3.0",
            noticed_by=("lost-write",),
            kafka="3.9",
        ),
    )
    cleaner_retains_latest_record: bool = _switch(
        "Compaction keeps the latest record of each key.",
        "Cleaner.shouldRetainRecord",
        meaning="compaction keeps the latest record of each key",
        guards=guards.COMPACTION,
        mutant=Mutant(
            "cleaner-keeps-earliest",
            "Compaction keeps the earliest record of each key instead of the latest.",
            noticed_by=("lost-write",),
        ),
    )
    cleaner_retains_tombstones: bool = _switch(
        "Compaction keeps a tombstone for delete.retention.ms, for readers that have seen the deleted "
        "record.",
        "Cleaner.shouldRetainRecord (delete.retention.ms)",
        meaning="compaction keeps tombstones for delete.retention.ms",
        guards=guards.COMPACTION,
        mutant=Mutant(
            "tombstones-go-at-once",
            "Compaction removes tombstones as soon as it finds them, so a reader that has seen the deleted "
            "record never learns of its deletion.",
            noticed_by=("lost-write",),
        ),
    )
    tombstones_have_delete_horizon: bool = _switch(
        "Compaction may remove a tombstone delete.retention.ms after it was first cleaned, a time that its "
        "batch stores. Before, the time of the last write to its segment and to the last clean segment "
        "decided, so a tombstone could stay much longer.",
        "KIP-534 (KAFKA-8522), RecordBatch.deleteHorizonMs",
        meaning="a tombstone is removed delete.retention.ms after it was first cleaned (KIP-534)",
        since="3.1",
        is_repair=False,
    )
    cleaner_retains_empty_last_batch: bool = _switch(
        "Compaction keeps the last batch of a cleaning round, even if it is empty. Before, a broker that "
        "came back could lose the end of a log that had been truncated to that place, and assign its "
        "offsets again.",
        "KAFKA-17076, Cleaner.cleanInto",
        meaning="compaction keeps the last batch of a cleaning round (KAFKA-17076)",
        since="4.0",
        is_read_in_campaign=False,
        guards=guards.COMPACTION,
        repair=Repair(
            "KAFKA-17076",
            "compaction keeps the last batch of a cleaning round, so that the log end is not lost",
        ),
    )
    cleaner_retains_empty_batch_only_at_hw: bool = _switch(
        "Compaction keeps an empty batch only if it ends at the high watermark. Before, it kept the last "
        "batch of every cleaning round, and empty batches piled up (see `cleaner_retains_empty_last_batch`).",
        "KAFKA-20452, Cleaner.cleanInto",
        meaning="compaction keeps no empty batch below the high watermark (KAFKA-20452)",
        since="4.4",
        is_repair=False,
    )
    producer_batches_retained: int = _switch(
        "How many batches of a producer a partition remembers to recognise duplicates. With 0 it keeps no "
        "producer state.",
        "KIP-98, KAFKA-5494, ProducerStateManager.scala",
        subject=CLIENTS,
        meaning="a leader remembers as many batches of a producer as may be in flight (KAFKA-5494)",
        latest=5,
        choices=(0, 1, 5),
        former_values=(("0.11", 0), ("1.0", 1)),
        guards=guards.SEQUENCES,
        repair=Repair("KAFKA-5494"),
        mutant=(
            Mutant(
                "no-dedup",
                "Leaders remember no batches.",
                value=0,
                source="KIP-98, ProducerStateManager",
                noticed_by=("duplicate",),
            ),
            Mutant(
                "dedup-window-of-one",
                "Leaders remember one batch of a producer that may have five in flight, so a retry of an older "
                "one is refused.",
                value=1,
                source="KAFKA-5494; Kafka 0.11",
                noticed_by=("producer-state-matches-log",),
            ),
        ),
    )
    sequence_check: bool = _switch(
        "A leader refuses a batch whose sequence number does not follow the last one.",
        "KIP-98, ProducerAppendInfo.checkSequence",
        subject=CLIENTS,
        meaning="a leader refuses a sequence number out of order (KIP-98)",
        guards=guards.SEQUENCES,
        mutant=Mutant(
            "no-sequence-check",
            "Sequence numbers are not checked, so a batch overtakes one that has to be sent again.",
            noticed_by=("nonmonotonic-send", "producer-state-matches-log"),
        ),
    )
    idempotent_in_flight_max: int = _switch(
        "The largest max.in.flight.requests.per.connection that an idempotent producer accepts.",
        "KAFKA-5494",
        subject=CLIENTS,
        meaning="a leader recognises as many batches as may be in flight (KAFKA-5494)",
        latest=5,
        choices=(1, 5),
        former_values=(("1.0", 1),),
    )
    unknown_producer_id_error: bool = _switch(
        "A leader without state of a producer refuses its batch with UNKNOWN_PRODUCER_ID, unless the batch "
        "has sequence number 0.",
        "KAFKA-5793, ProducerAppendInfo.checkSequence",
        subject=UNKNOWN_PRODUCERS,
        meaning="a leader tells a producer that it has no state of it (KAFKA-5793)",
        since="1.0",
    )
    unknown_producer_sequence_accepted: bool = _switch(
        "The first batch of a producer without state in the log may have any sequence number, because its "
        "records may have been deleted. Before, it was refused unless its sequence number was 0.",
        "KIP-360 (KAFKA-8710), ProducerAppendInfo.checkSequence",
        subject=UNKNOWN_PRODUCERS,
        meaning="a producer without state on a leader continues (KIP-360)",
        since="2.5",
    )
    empty_log_requires_sequence_zero: bool = _switch(
        "In a log that has never had a record, the first batch of a producer must have sequence number 0, "
        "even where another log accepts any. Otherwise a batch can overtake the producer's first one, which "
        "a former leader has refused: the first one is then never appended, or appended behind later ones.",
        "KAFKA-15591 (KAFKA-19880), ProducerAppendInfo.checkSequence",
        subject=UNKNOWN_PRODUCERS,
        meaning="the first batch in an empty log has sequence number 0 (KAFKA-15591)",
        former_values=(("2.5", True), ("4.5", False)),
        guards=guards.SEQUENCES,
        repair=Repair(
            "KAFKA-15591",
            "the first batch in an empty log has sequence number 0, so none overtakes its producer's first "
            "one",
            needs="unknown_producer_sequence_accepted",
        ),
        mutant=Mutant(
            "first-batch-anywhere",
            "The first batch of a producer in a log may have any sequence number, so a second batch that "
            "overtakes the first is accepted.",
            source="KAFKA-15591; Kafka 2.5 to 4.4",
            noticed_by=("nonmonotonic-send", "duplicate"),
            kafka="2.8",
        ),
    )
    unknown_producer_sequence_is_zero: bool = _switch(
        "In a log with records of other producers and no deleted ones, the first batch of a producer must "
        "have sequence number 0. Up to 2.4 every first batch must. From 2.5 on none must (KIP-360), and no "
        "later release requires it here, so a batch can overtake the producer's first one where it could "
        "not in an empty log (`empty_log_requires_sequence_zero`).",
        "KAFKA-14359, ProducerAppendInfo.checkSequence",
        subject=UNKNOWN_PRODUCERS,
        meaning=(
            "a producer's first batch in a log has sequence number 0, even behind those of others "
            "(KAFKA-14359)"
        ),
        latest=False,
        since="2.5",
        safe=True,
        is_read_in_campaign=False,
        guards=guards.SEQUENCES,
    )
    hw_limited_to_log_end: bool = _switch(
        "A replica that opens a log lowers the checkpointed high watermark to its LEO, because a power loss "
        "may have taken records that the checkpoint covers.",
        "Partition.getOrCreateReplica, Log.updateHighWatermark",
        subject=REPLICATION,
        meaning="a log opens with a high watermark within the log",
        guards=("hw-within-log",),
        mutant=Mutant(
            "hw-ahead-of-log",
            "After a power loss a replica trusts a checkpointed high watermark that is ahead of its log.",
            source="Log.updateHighWatermark",
            noticed_by=("hw-within-log",),
        ),
    )
    recovery_point_follows_flush: bool = _switch(
        "The checkpointed recovery point is the flushed offset.",
        "LogManager.checkpointLogRecoveryOffsets, Log.flush",
        subject=REPLICATION,
        meaning="the recovery point is the flushed offset",
        guards=("checkpoint-within-log",),
        mutant=Mutant(
            "recovery-point-ahead-of-flush",
            "The checkpointed recovery point is ahead of the flushed offset, so recovery would skip records.",
            source="LogManager.checkpointLogRecoveryOffsets",
            noticed_by=("checkpoint-within-log",),
        ),
    )
    shutdown_flushes_logs: bool = _switch(
        "A broker that shuts down cleanly flushes its logs before it writes the clean shutdown file.",
        "LogManager.shutdown",
        subject=SHUTDOWN,
        meaning="a broker that has shut down cleanly has flushed its logs",
        guards=("shutdown-flushes-logs",),
        mutant=Mutant(
            "stop-without-flush",
            "A broker that shuts down cleanly writes the clean shutdown file without having flushed its "
            "logs. Nothing is recovered, and a power loss takes the records.",
            noticed_by=("shutdown-flushes-logs",),
            kafka="4.3",
        ),
    )
    epoch_cache_truncated_with_log: bool = _switch(
        "The epoch cache is truncated with its log, and also when an opened log has lost records.",
        "KIP-101, Log.truncateTo, Log.loadSegments",
        subject=REPLICATION,
        meaning="the epoch cache is truncated with the log (KIP-101)",
        guards=("epoch-cache-monotonic",),
        mutant=Mutant(
            "epoch-entries-ahead-of-log",
            "The epoch checkpoint keeps entries for records that a truncation or a power loss has removed.",
            noticed_by=("epoch-cache-monotonic",),
        ),
    )
    recovery_restores_earlier_epochs: bool = _switch(
        "A broker that opens a log restores the epochs of records below the first entry of its epoch cache. "
        "No release does: if leader-epoch-checkpoint already had a later log start and "
        "log-start-offset-checkpoint did not, a leader answers that older epochs end at the later start, "
        "and a follower keeps records that it should truncate.",
        "LogLoader.load, LogSegment.recover, LeaderEpochFileCache.endOffsetFor",
        subject=DELETED_RECORDS,
        meaning="a log whose start moves back has the leader epochs of the records there",
        latest=False,
        safe=True,
        guards=guards.LOGS,
    )
    truncation_rebuilds_producer_state: bool = _switch(
        "After a truncation a replica rebuilds the producers' state from the remaining records.",
        "Log.truncateTo, ProducerStateManager.truncateAndReload",
        subject=REPLICATION,
        meaning="a truncated batch is not remembered as a batch of its producer",
        guards=guards.LOGS,
        mutant=Mutant(
            "producer-state-survives-truncation",
            "A replica remembers batches that it has truncated. As leader it acknowledges a retry as a "
            "duplicate of a batch that it no longer has.",
            source="ProducerStateManager.truncateAndReload",
            noticed_by=("producer-state-matches-log", "lost-write"),
        ),
    )
    followers_track_producer_state: bool = _switch(
        "A follower learns the producers' state from the batches that it replicates.",
        "KIP-98, Log.append (analyzeAndValidateProducerState)",
        subject=REPLICATION,
        meaning="followers have the same producer state as their leader (KIP-98)",
        guards=guards.SEQUENCES,
        mutant=Mutant(
            "followers-forget-producers",
            "A new leader has no state of its predecessor's producers, so it appends a retry as a new batch.",
            source="KIP-98, Log.append",
            noticed_by=("producer-state-matches-log", "duplicate"),
        ),
    )
