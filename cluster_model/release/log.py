"""A replica's log: what a restart finds, what deletes its records, and what it knows of producers."""

from dataclasses import dataclass
from functools import partial
from typing import Final

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

_switch: Final = partial(switch, of=DISKS)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSwitches:
    """The switches; their defaults are what the default release does."""

    epoch_cache_cut_at_log_end: bool = _switch(
        "A truncation to the log's end drops an epoch that has an entry there but no records. Without that, "
        "a follower whose last epoch is such a one asks its leader for ever and never fetches.",
        "KAFKA-10706, Log.truncateTo",
        of=REPLICATION,
        meaning="a follower drops a last epoch that has no records (KAFKA-10706)",
        before=(("2.6.1", False),),
        guards=("unavailable",),
    )
    log_dir_failure_survived: bool = _switch(
        "A broker with several log directories goes on when one fails, without the replicas there, and the controller elects others. Before, "
        "any error of a disk ended the broker.",
        "KIP-112, ReplicaManager.handleLogDirFailure",
        meaning="a broker survives the failure of one of several log directories (KIP-112)",
        before=(("1.0", False),),
        guards=("unavailable",),
    )
    retention_waits_for_hw: bool = _switch(
        "Retention deletes no segment that reaches above the replica's high watermark. Before, a log could begin above what "
        "was committed.",
        "KAFKA-5634, Log.deletableSegments",
        meaning="retention deletes what is committed alone (KAFKA-5634)",
        before=(("0.11", False),),
    )
    retention_spares_recent: bool = _switch(
        "retention.ms deletes a segment when its latest record is older than that.",
        "KIP-33, Log.deleteRetentionMsBreachedSegments",
        meaning="retention.ms deletes what is older alone",
        guards=("deleted-too-early",),
        mutant=Mutant(
            name="retention-ignores-age",
            doc="retention.ms deletes every segment that is complete, however new its records are.",
            source="Log.deleteRetentionMsBreachedSegments",
            noticed_by=("lost-write",),
        ),
    )
    cleaner_waits_for_hw: bool = _switch(
        "Compaction leaves alone what is above the replica's high watermark. Before, what was not committed took the place of what "
        "was: if the later record was cut off, a replica that had compacted its log had neither.",
        "KAFKA-13194, LogCleanerManager.cleanableOffsets",
        meaning="compaction goes by what is committed alone (KAFKA-13194)",
        before=(("3.1", False),),
        guards=guards.COMPACTION,
        repair=Repair(
            name="KAFKA-13194",
            since="3.1",
            text="compaction removes nothing for a later record that is not committed",
        ),
        mutant=Mutant(
            name="cleaner-ignores-hw",
            doc="Compaction removes what is committed for what is not: when that is cut off, both are gone.",
            source="KAFKA-13194; Kafka up to 3.0",
            noticed_by=("lost-write",),
            kafka="3.9",
        ),
    )
    cleaner_keeps_latest: bool = _switch(
        "Compaction keeps the latest record of each key. Off is a mutant: it keeps the earliest.",
        "Cleaner.shouldRetainRecord",
        meaning="compaction keeps the latest record of each key",
        guards=guards.COMPACTION,
        mutant=Mutant(
            name="cleaner-keeps-earliest",
            doc="Compaction keeps the earliest record of each key instead of the latest.",
            source="Cleaner.shouldRetainRecord",
            noticed_by=("lost-write",),
        ),
    )
    cleaner_retains_tombstones: bool = _switch(
        "Compaction keeps a tombstone for delete.retention.ms, for readers that have seen what it deletes. Off is a mutant.",
        "Cleaner.shouldRetainRecord (delete.retention.ms)",
        meaning="compaction keeps tombstones for delete.retention.ms",
        guards=guards.COMPACTION,
        mutant=Mutant(
            name="tombstones-go-at-once",
            doc="Compaction removes tombstones whenever it meets them: who has read what they delete never hears of it.",
            source="Cleaner.shouldRetainRecord (delete.retention.ms)",
            noticed_by=("lost-write",),
        ),
    )
    tombstones_have_horizon: bool = _switch(
        "A tombstone may go delete.retention.ms after it was first cleaned, which its batch notes. Before, that went by when its "
        "segment was last written to and the last one that was clean: a tombstone might stay much longer.",
        "KIP-534 (KAFKA-8522), RecordBatch.deleteHorizonMs",
        meaning="a tombstone goes delete.retention.ms after it was first cleaned (KIP-534)",
        before=(("3.1", False),),
        is_repair=False,
    )
    cleaner_retains_last_batch: bool = _switch(
        "Compaction keeps the last batch of what it cleans, be it empty. Before, the end of a log that was cut back to there might be "
        "forgotten, and its offsets be given away again, when its broker came back.",
        "KAFKA-17076, Cleaner.cleanInto",
        meaning="compaction keeps the last batch of what it cleans (KAFKA-17076)",
        before=(("4.0", False),),
        is_met=False,
        guards=guards.COMPACTION,
        repair=Repair(
            name="KAFKA-17076",
            since="4.0",
            text="compaction keeps the last batch of what it cleans, so that a log's end is not forgotten",
        ),
    )
    cleaner_retains_batch_at_hw: bool = _switch(
        "Compaction keeps an empty batch only if it ends at the high watermark. Before, it kept the last batch of every cleaning round, "
        "and empty batches piled up (see `cleaner_retains_last_batch`).",
        "KAFKA-20452, Cleaner.cleanInto",
        meaning="compaction keeps no empty batch below the high watermark (KAFKA-20452)",
        before=(("4.4", False),),
        is_repair=False,
    )
    producer_batches_retained: int = _switch(
        "How many batches of a producer a partition remembers to recognise duplicates; 0: no producer state.",
        "KAFKA-5494, ProducerStateManager.scala",
        of=CLIENTS,
        latest=5,
        choices=(0, 1, 5),
        meaning="a leader remembers the last batches of a producer (KIP-98, KAFKA-5494)",
        before=(("0.11", 0), ("1.0", 1)),
        guards=guards.SEQUENCES,
        repair=Repair(
            name="KAFKA-5494",
            since="1.0",
            text="a leader remembers as many batches of a producer as may be in flight",
        ),
        mutant=(
            Mutant(
                name="no-dedup",
                value=0,
                doc="Leaders remember no batches.",
                source="KIP-98, ProducerStateManager",
                noticed_by=("duplicate",),
            ),
            Mutant(
                name="dedup-window-of-one",
                value=1,
                doc="Leaders remember one batch of a producer, which may have five in flight: a retry of an older one is refused.",
                source="KAFKA-5494; Kafka 0.11",
                noticed_by=("producer-state-matches-log",),
            ),
        ),
    )
    sequence_check: bool = _switch(
        "A leader refuses a batch whose sequence number does not follow the last one.",
        "KIP-98, ProducerAppendInfo.checkSequence",
        of=CLIENTS,
        meaning="a leader refuses a sequence number out of order (KIP-98)",
        guards=guards.SEQUENCES,
        mutant=Mutant(
            name="no-sequence-check",
            doc="Sequence numbers are not checked: a batch overtakes one that has to be sent again.",
            source="KIP-98, ProducerAppendInfo.checkSequence",
            noticed_by=("nonmonotonic-send", "producer-state-matches-log"),
        ),
    )
    idempotent_in_flight_max: int = _switch(
        "The most requests in flight that an idempotent producer may be configured with.",
        "KAFKA-5494",
        of=CLIENTS,
        latest=5,
        choices=(1, 5),
        meaning="a leader recognises as many batches as may be in flight (KAFKA-5494)",
        before=(("1.0", 1),),
    )
    unknown_producer_id_error: bool = _switch(
        "A batch of a producer of which the log has nothing is UNKNOWN_PRODUCER_ID unless its sequence is 0.",
        "KAFKA-5793, ProducerAppendInfo.checkSequence",
        of=UNKNOWN_PRODUCERS,
        meaning="a leader tells a producer that it remembers nothing of it (KAFKA-5793)",
        before=(("1.0", False),),
    )
    unknown_producer_begins_anywhere: bool = _switch(
        "The first batch of a producer of which the log has nothing may have any sequence number: its records may have been "
        "deleted. Before, it was refused unless its sequence number was 0.",
        "KIP-360 (KAFKA-8710), ProducerAppendInfo.checkSequence",
        of=UNKNOWN_PRODUCERS,
        meaning="a producer of which a leader remembers nothing goes on (KIP-360)",
        before=(("2.5", False),),
    )
    empty_log_begins_at_zero: bool = _switch(
        "In a log that has never had a record the first batch of a producer has to begin at sequence 0, also where elsewhere it may "
        "begin anywhere. Otherwise a batch overtakes the producer's first one, which a former leader has refused: that is never "
        "taken, or after those behind it.",
        "KAFKA-15591 (KAFKA-19880), ProducerAppendInfo.checkSequence",
        of=UNKNOWN_PRODUCERS,
        meaning="the first batch in an empty log begins at sequence 0 (KAFKA-15591)",
        before=(("2.5", True), ("4.5", False)),
        guards=guards.SEQUENCES,
        repair=Repair(
            name="KAFKA-15591",
            since="4.5",
            needs="unknown_producer_begins_anywhere",
            text="the first batch in an empty log begins at sequence 0, so none overtakes the first of its producer",
        ),
        mutant=Mutant(
            name="first-batch-anywhere",
            kafka="2.8",
            doc="The first batch of a producer in a log may have any sequence number: a second one that overtakes the first is taken.",
            source="KAFKA-15591; Kafka 2.5 to 4.4",
            noticed_by=("nonmonotonic-send", "duplicate"),
        ),
    )
    unknown_producer_begins_at_zero: bool = _switch(
        "In a log that has records of others, and of which nothing has been deleted, the first batch of a producer has to begin at sequence 0. "
        "Up to 2.4 every first batch has to. From 2.5 on none has to (KIP-360), and no later release asks for it: there a batch overtakes the "
        "producer's first one also where it could not in an empty log (`empty_log_begins_at_zero`).",
        "KAFKA-14359, ProducerAppendInfo.checkSequence",
        of=UNKNOWN_PRODUCERS,
        meaning="the first batch of a producer in a log begins at sequence 0, also behind those of others (KAFKA-14359)",
        latest=False,
        safe=True,
        before=(("2.5", True),),
        is_met=False,
        guards=guards.SEQUENCES,
    )
    hw_limited_to_log_end: bool = _switch(
        "A log that is opened cuts its checkpointed high watermark to its LEO: power loss may have taken what the "
        "checkpoint knew of. Off is a mutant.",
        "Partition.getOrCreateReplica, Log.updateHighWatermark",
        of=REPLICATION,
        meaning="a log is opened with a high watermark that is in it",
        guards=("hw-within-log",),
        mutant=Mutant(
            name="hw-ahead-of-log",
            doc="After power loss a replica believes a high watermark checkpoint that is ahead of what its log still has.",
            source="Log.updateHighWatermark",
            noticed_by=("hw-within-log",),
        ),
    )
    recovery_point_follows_flush: bool = _switch(
        "The recovery point that is checkpointed is what has been flushed. Off is a mutant: it is the LEO.",
        "LogManager.checkpointLogRecoveryOffsets, Log.flush",
        of=REPLICATION,
        meaning="a recovery point is what has been flushed",
        guards=("checkpoint-within-log",),
        mutant=Mutant(
            name="recovery-point-ahead-of-flush",
            doc="The recovery point that is checkpointed is ahead of what has been flushed: recovery would skip it.",
            source="LogManager.checkpointLogRecoveryOffsets",
            noticed_by=("checkpoint-within-log",),
        ),
    )
    shutdown_flushes_logs: bool = _switch(
        "A broker that stops in good order flushes its logs before it says so in the clean shutdown file. Off is a mutant.",
        "LogManager.shutdown",
        of=SHUTDOWN,
        meaning="a broker that has stopped in good order has flushed its logs",
        guards=("shutdown-flushes-logs",),
        mutant=Mutant(
            name="stop-without-flush",
            kafka="4.3",
            doc="A broker that stops in good order says so without having flushed its logs: nothing is recovered, and power loss takes what it had.",
            source="LogManager.shutdown",
            noticed_by=("shutdown-flushes-logs",),
        ),
    )
    epoch_cache_follows_log: bool = _switch(
        "The epoch cache is cut where its log was cut: by a truncation, and by what a log that is opened has lost. "
        "Off is a mutant.",
        "KIP-101, Log.truncateTo, Log.loadSegments",
        of=REPLICATION,
        meaning="the epoch cache is cut where the log is (KIP-101)",
        guards=("epoch-cache-monotonic",),
        mutant=Mutant(
            name="epoch-entries-ahead-of-log",
            doc="The epoch checkpoint keeps entries for records that a truncation or power loss has taken.",
            source="KIP-101, Log.truncateTo, Log.loadSegments",
            noticed_by=("epoch-cache-monotonic",),
        ),
    )
    reverted_epochs_recovered: bool = _switch(
        "A broker that opens a log puts the epochs of what is below the first entry of its epoch cache into it again. No release does: where "
        "leader-epoch-checkpoint had a later log start already and log-start-offset-checkpoint did not, a leader says of older epochs that "
        "they end at the later start, and a follower keeps what it should truncate.",
        "LogLoader.load, LogSegment.recover, LeaderEpochFileCache.endOffsetFor",
        of=DELETED_RECORDS,
        meaning="a log that begins earlier again has the leader epochs of that",
        latest=False,
        safe=True,
        guards=guards.LOGS,
    )
    producer_state_follows_log: bool = _switch(
        "After a truncation the producers' states are learned again from what is left. Off is a mutant: a leader "
        "takes for a duplicate what it no longer has.",
        "Log.truncateTo, ProducerStateManager.truncateAndReload",
        of=REPLICATION,
        meaning="what is cut off a log is not remembered as a batch of its producer",
        guards=guards.LOGS,
        mutant=Mutant(
            name="producer-state-survives-truncation",
            doc=(
                "A replica remembers batches that it has cut off: as leader it acknowledges a retry as a duplicate of "
                "what it no longer has."
            ),
            source="ProducerStateManager.truncateAndReload",
            noticed_by=("producer-state-matches-log", "lost-write"),
        ),
    )
    followers_learn_producers: bool = _switch(
        "A follower learns the producers' states from the batches that it copies. Off is a mutant: a new leader "
        "knows only what it has read from its disk.",
        "KIP-98, Log.append (analyzeAndValidateProducerState)",
        of=REPLICATION,
        meaning="followers learn what their leader knows of producers (KIP-98)",
        guards=guards.SEQUENCES,
        mutant=Mutant(
            name="followers-forget-producers",
            doc="A new leader knows nothing of the producers of its predecessor: it takes a retry for something new.",
            source="KIP-98, Log.append",
            noticed_by=("producer-state-matches-log", "duplicate"),
        ),
    )
