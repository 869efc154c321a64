"""The zoo: known flaws of Kafka, each a switch of `release.Behaviours` set to a known-bad value."""

from dataclasses import dataclass
from typing import Any, Final

from harrow.cluster_model.release import (
    DEFAULT_RELEASE,
    HIGH_WATERMARK,
    LEADER_EPOCH,
    NO_TRUNCATION,
    RELEASES,
    switch_docs,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A known flaw: one switch set to a known-bad value, most of them off.

    ``doc`` says what goes wrong and what comes of it, ``source`` where Kafka had it or what keeps
    it from having it. ``noticed_by`` names the rules that notice it; none where only a campaign's
    script does, for it takes an expectation to tell the flaw from what Kafka may do. ``kafka`` is the release whose
    profile gets the flaw, where the default one has it already, or has nothing that it concerns.
    """

    name: str
    switch: str
    value: Any = False
    doc: str
    source: str
    noticed_by: tuple[str, ...] = ()
    kafka: str = DEFAULT_RELEASE

    @property
    def swarm(self) -> str:
        """The campaign of the library whose random runs meet the flaw."""
        if switch_docs()[self.switch]["of"].is_of_coordinators:
            return "swarm-eos"
        return "swarm" if RELEASES[self.kafka].metadata == "zookeeper" else "swarm-kraft"


_MUTANTS: Final = (
    # What a follower cuts off
    Mutant(
        name="hw-truncation",
        switch="follower_truncation",
        value=HIGH_WATERMARK,
        doc=(
            "Followers truncate to their own high watermark, which lags: one that restarts and is elected at once "
            "has cut off what was acknowledged."
        ),
        source="KIP-101; Kafka before 0.11",
        noticed_by=("lost-write", "log-divergence", "isr-holds-committed", "log-matching"),
    ),
    Mutant(
        name="no-truncation",
        switch="follower_truncation",
        value=NO_TRUNCATION,
        doc="Followers never truncate: what a leader of the past left behind stays in the log for ever.",
        source="AbstractFetcherThread.maybeTruncate",
        noticed_by=("log-divergence", "lost-write", "isr-holds-committed", "log-matching"),
    ),
    Mutant(
        name="epoch-answer-without-epoch",
        switch="follower_truncation",
        value=LEADER_EPOCH,
        doc=(
            "The epoch answer has no epoch: after two fast leader changes a follower keeps records of an epoch that "
            "its leader never had."
        ),
        source="KIP-279, KAFKA-6361; Kafka 0.11 to 1.1",
        noticed_by=("log-divergence", "log-matching"),
    ),
    Mutant(
        name="no-epoch-entry-on-election",
        switch="epoch_entry_on_election",
        doc=(
            "A new leader enters its epoch with its first append only: until then it answers for the epoch before "
            "as though that went on."
        ),
        source="KAFKA-7415; Kafka up to 2.0.0",
        noticed_by=("inconsistent-offsets", "log-divergence"),
    ),
    Mutant(
        name="no-fetch-fencing",
        switch="fetch_leader_epoch_fencing",
        doc="Fetches carry no leader epoch: a follower that does not know of an election yet counts as one that does.",
        source="KIP-320; Kafka before 2.1",
        noticed_by=("isr-holds-committed", "log-divergence", "duplicate"),
    ),
    # Who is obeyed
    Mutant(
        name="stale-controller-accepted",
        switch="controller_epoch_fencing",
        doc="Brokers obey a controller that has been succeeded: a paused one that wakes appoints leaders of its own.",
        source="ReplicaManager.becomeLeaderOrFollower (STALE_CONTROLLER_EPOCH)",
        noticed_by=("controller-epoch-monotonic",),
    ),
    Mutant(
        name="zombie-controller-writes",
        switch="controller_writes_fenced",
        doc=(
            "A controller that has been succeeded still writes to ZooKeeper: it elects leaders of which no broker "
            "hears, and its successor goes by what stood there before."
        ),
        source="KAFKA-6082; Kafka up to 2.0",
        noticed_by=("controller-writes-fenced",),
    ),
    Mutant(
        name="stale-leader-epoch-accepted",
        switch="leader_epoch_fencing",
        doc="Brokers obey a LeaderAndIsr of an older leader epoch: a delayed one makes a former leader lead again.",
        source="ReplicaManager.becomeLeaderOrFollower",
        noticed_by=("leader-epoch-monotonic", "lost-write"),
    ),
    Mutant(
        name="bounce-unnoticed",
        switch="broker_epoch",
        doc=(
            "A broker that goes and comes back between two looks of the controller is not noticed, and is told "
            "nothing: its partitions have a leader that does not lead."
        ),
        source="KIP-380 (KAFKA-7235), KAFKA-1120; Kafka before 2.2",
        noticed_by=("registrations-known", "unavailable"),
    ),
    Mutant(
        name="requests-before-registration",
        switch="requests_after_registration",
        doc="A starting broker obeys requests that were meant for its earlier life.",
        source="KAFKA-6772, KafkaServer.startup (SocketServer.startProcessors); Kafka up to 1.1",
        noticed_by=("registered-before-control",),
    ),
    Mutant(
        name="dead-replicas-stay-in-isr",
        switch="failover_takes_out_dead_replicas",
        doc="A new controller leaves brokers that died while there was none in the ISRs.",
        source="KAFKA-3143; Kafka up to 2.2",
        noticed_by=("failover-shrinks-isr",),
    ),
    # Who is elected
    Mutant(
        name="silent-unclean-election",
        switch="unclean_election_only_if_enabled",
        doc="A replica outside the ISR is elected where no other lives, whatever unclean.leader.election.enable says.",
        source="KIP-106; Partition state machine, offlinePartitionLeaderElection",
        noticed_by=("isr-holds-committed", "lost-write"),
    ),
    Mutant(
        name="preferred-leader-outside-isr",
        switch="preferred_leader_from_isr",
        doc="The preferred replica gets the lead back before it has caught up.",
        source="Partition state machine, preferredReplicaPartitionLeaderElection",
        noticed_by=("isr-holds-committed", "lost-write"),
    ),
    # Who is in the ISR
    Mutant(
        name="early-isr-expansion",
        switch="isr_expansion_checks_epoch_start",
        doc=(
            "A follower may join the ISR before it has what a new leader committed earlier: the new leader's high "
            "watermark lags."
        ),
        source="KAFKA-7128; Kafka up to 2.0.0",
        noticed_by=("isr-holds-committed",),
    ),
    Mutant(
        name="isr-join-below-hw",
        switch="isr_expansion_checks_hw",
        doc="A follower joins the ISR once it has reached the start of the leader's epoch, far behind as it may be.",
        source="Partition.maybeExpandIsr",
        noticed_by=("isr-holds-committed",),
    ),
    Mutant(
        name="isr-counted-before-commit",
        switch="isr_shrink_waits_for_write",
        doc=(
            "A leader that takes a follower out of the ISR commits without it before that is written: what it "
            "acknowledges meanwhile, the follower lacks that may be elected."
        ),
        source="KIP-497 (maximal ISR)",
        noticed_by=("lost-write", "isr-holds-committed", "log-matching"),
    ),
    Mutant(
        name="zombie-keeps-its-isr",
        switch="refused_isr_write_obeyed",
        doc="A leader that has been succeeded goes on with an ISR that ZooKeeper refused, and commits by itself.",
        source="Partition.maybeUpdateIsrAndVersion (skip updating ISR)",
        noticed_by=("lost-write", "isr-holds-committed", "log-matching"),
    ),
    Mutant(
        name="repeated-isr-write-refused",
        switch="repeated_isr_write_recognised",
        kafka="2.8",
        doc=(
            "A controller repeats the write of an ISR after it has lost its connection to ZooKeeper, and refuses the ISR that it has written: "
            "the leader waits for another ISR until the next election."
        ),
        source="KafkaController.processAlterPartition; Kafka 2.7 to 3.9 with ZooKeeper",
        noticed_by=("unavailable",),
    ),
    Mutant(
        name="unconditional-isr-write",
        switch="isr_write_conditional",
        doc="A leader that has been succeeded writes its ISR, and with it itself and its epoch, over its successor.",
        source="ReplicationUtils.updateLeaderAndIsr (conditional update)",
        noticed_by=("lost-write", "two-leaders", "log-matching", "controller-writes-fenced"),
    ),
    Mutant(
        name="min-isr-ignored",
        switch="min_isr_checked",
        doc="acks=all is accepted and acknowledged by fewer replicas than min.insync.replicas.",
        source="KAFKA-1555, Partition.appendRecordsToLeader",
        noticed_by=("acked-below-min-isr",),
    ),
    # What is committed
    Mutant(
        name="hw-ignores-followers",
        switch="hw_counts_whole_isr",
        doc="The high watermark is the leader's LEO.",
        source="Partition.maybeIncrementLeaderHW",
        noticed_by=("lost-write", "isr-holds-committed"),
    ),
    Mutant(
        name="hw-may-fall",
        switch="hw_never_falls",
        doc="The leader's high watermark falls with a follower's LEO: what was readable is not any more.",
        source="Partition.maybeIncrementLeaderHW",
        noticed_by=("hw-monotonic",),
    ),
    Mutant(
        name="ack-before-replication",
        switch="ack_waits_for_hw",
        doc="acks=all is answered like acks=1, before any follower has the record.",
        source="Partition.checkEnoughReplicasReachOffset",
        noticed_by=("lost-write",),
    ),
    Mutant(
        name="deposed-leader-acks-pending",
        switch="deposed_leader_fails_pending",
        doc="A leader that is succeeded acknowledges what waits with it for acks=all instead of refusing it.",
        source="DelayedProduce.tryComplete",
        noticed_by=("lost-write",),
    ),
    Mutant(
        name="uncommitted-reads",
        switch="consumer_limited_by_hw",
        doc="Consumers read up to the LEO.",
        source="ReplicaManager.readFromLocalLog",
        noticed_by=("read-above-hw",),
    ),
    Mutant(
        name="follower-serves-to-log-end",
        switch="follower_limited_by_hw",
        doc="A follower serves consumers up to its LEO.",
        source="KIP-392, Partition.readRecords",
        noticed_by=("read-above-hw",),
    ),
    # What a restart finds
    Mutant(
        name="hw-ahead-of-log",
        switch="hw_limited_to_log_end",
        doc="After power loss a replica believes a high watermark checkpoint that is ahead of what its log still has.",
        source="Log.updateHighWatermark",
        noticed_by=("hw-within-log",),
    ),
    Mutant(
        name="recovery-point-ahead-of-flush",
        switch="recovery_point_follows_flush",
        doc="The recovery point that is checkpointed is ahead of what has been flushed: recovery would skip it.",
        source="LogManager.checkpointLogRecoveryOffsets",
        noticed_by=("checkpoint-within-log",),
    ),
    Mutant(
        name="epoch-entries-ahead-of-log",
        switch="epoch_cache_follows_log",
        doc="The epoch checkpoint keeps entries for records that a truncation or power loss has taken.",
        source="KIP-101, Log.truncateTo, Log.loadSegments",
        noticed_by=("epoch-cache-monotonic",),
    ),
    Mutant(
        name="cleaner-ignores-hw",
        switch="cleaner_waits_for_hw",
        doc="Compaction removes what is committed for what is not: when that is cut off, both are gone.",
        source="KAFKA-13194; Kafka up to 3.0",
        noticed_by=("lost-write",),
        kafka="3.9",
    ),
    Mutant(
        name="cleaner-keeps-earliest",
        switch="cleaner_keeps_latest",
        doc="Compaction keeps the earliest record of each key instead of the latest.",
        source="Cleaner.shouldRetainRecord",
        noticed_by=("lost-write",),
    ),
    Mutant(
        name="tombstones-go-at-once",
        switch="cleaner_retains_tombstones",
        doc="Compaction removes tombstones whenever it meets them: who has read what they delete never hears of it.",
        source="Cleaner.shouldRetainRecord (delete.retention.ms)",
        noticed_by=("lost-write",),
    ),
    # What a leader knows of producers
    Mutant(
        name="deletion-takes-whole-batches",
        switch="deleted_records_end_at_offset",
        doc="DeleteRecords deletes the whole batch that has the offset it names: records at that offset and after it go, too.",
        source="Partition.deleteRecordsOnLeader, KIP-107",
        noticed_by=("lost-write",),
    ),
    Mutant(
        name="retention-ignores-age",
        switch="retention_spares_recent",
        doc="retention.ms deletes every segment that is complete, however new its records are.",
        source="Log.deleteRetentionMsBreachedSegments",
        noticed_by=("lost-write",),
    ),
    Mutant(
        name="no-dedup",
        switch="producer_batches_retained",
        value=0,
        doc="Leaders remember no batches.",
        source="KIP-98, ProducerStateManager",
        noticed_by=("duplicate",),
    ),
    Mutant(
        name="dedup-window-of-one",
        switch="producer_batches_retained",
        value=1,
        doc="Leaders remember one batch of a producer, which may have five in flight: a retry of an older one is refused.",
        source="KAFKA-5494; Kafka 0.11",
        noticed_by=("producer-state-matches-log",),
    ),
    Mutant(
        name="no-sequence-check",
        switch="sequence_check",
        doc="Sequence numbers are not checked: a batch overtakes one that has to be sent again.",
        source="KIP-98, ProducerAppendInfo.checkSequence",
        noticed_by=("nonmonotonic-send", "producer-state-matches-log"),
    ),
    Mutant(
        name="producer-state-survives-truncation",
        switch="producer_state_follows_log",
        doc=(
            "A replica remembers batches that it has cut off: as leader it acknowledges a retry as a duplicate of "
            "what it no longer has."
        ),
        source="ProducerStateManager.truncateAndReload",
        noticed_by=("producer-state-matches-log", "lost-write"),
    ),
    Mutant(
        name="followers-forget-producers",
        switch="followers_learn_producers",
        doc="A new leader knows nothing of the producers of its predecessor: it takes a retry for something new.",
        source="KIP-98, Log.append",
        noticed_by=("producer-state-matches-log", "duplicate"),
    ),
    # What came with later releases
    Mutant(
        name="sessions-forget-epoch",
        switch="fetch_sessions_keep_epoch",
        doc="Fetch sessions forget the leader epoch: an incremental fetch of an older epoch counts.",
        source="KAFKA-9338; Kafka 2.1 to 2.4",
        noticed_by=("isr-holds-committed", "log-divergence", "inconsistent-offsets", "lost-write"),
    ),
    Mutant(
        name="joined-member-forgotten",
        switch="maximal_isr",
        doc="A leader whose ISR write was refused forgets whom it had tried to take in: it commits without one that may be elected.",
        source="KIP-497 (KAFKA-8836); Kafka up to 2.6",
        noticed_by=("isr-holds-committed", "lost-write", "inconsistent-offsets"),
    ),
    Mutant(
        name="first-batch-anywhere",
        switch="empty_log_begins_at_zero",
        kafka="2.8",
        doc="The first batch of a producer in a log may have any sequence number: a second one that overtakes the first is taken.",
        source="KAFKA-15591; Kafka 2.5 to 4.4",
        noticed_by=("nonmonotonic-send", "duplicate"),
    ),
    Mutant(
        name="late-error-frees-sequences",
        switch="given_up_batch_unresolved",
        kafka="4.3",
        doc=(
            "A producer that handles an error after delivery.timeout.ms takes the batch for refused, though it may be in the log: up to 2.4 "
            "the next batch gets its sequence number and is taken for a retry, from 2.5 on batches that are in the log are sent in a new epoch."
        ),
        source="KAFKA-14397; every release since 2.1",
        noticed_by=("duplicate", "lost-write"),
    ),
    Mutant(
        name="outdated-fetch-answer",
        switch="fetch_answers_match_epoch",
        kafka="3.6",
        doc=(
            "A follower takes the answer to a fetch that it sent when the same leader led in an older epoch, and truncates what "
            "was committed in between."
        ),
        source="KAFKA-18991; Kafka 2.7 to 3.9.0, 4.0.0",
        noticed_by=("isr-holds-committed", "lost-write", "log-divergence", "log-matching"),
    ),
    Mutant(
        name="diverging-fetch-counts",
        switch="diverging_fetch_uncounted",
        kafka="2.8",
        doc="A fetch that has parted from the leader's log counts: the leader commits what the follower is about to truncate.",
        source="KIP-595, Partition.fetchRecords",
        noticed_by=("isr-holds-committed", "lost-write", "log-matching"),
    ),
    Mutant(
        name="hw-exposed-below-min-isr",
        switch="hw_waits_for_min_isr",
        kafka="3.9",
        doc="The high watermark rises while the ISR is smaller than min.insync.replicas: consumers read what one replica has.",
        source="KAFKA-15583; Kafka up to 3.6",
        noticed_by=("hw-waits-for-min-isr",),
    ),
    Mutant(
        name="expired-memory-reused",
        switch="expired_memory_kept",
        doc=(
            "A batch expires while a request carries it, and its memory is given to the next batch: the request goes on with records "
            "of another partition. A mutant alone, in no release of the model: real clients do this only to what a socket has not "
            "taken yet, and the model has no sockets that are full."
        ),
        source="KAFKA-19012; Java clients 2.8.0 to 4.1.1",
        noticed_by=("misrouted",),
        kafka="4.3",
    ),
    Mutant(
        name="retry-acked-before-commit",
        switch="duplicate_waits_for_hw",
        doc="A retry that the leader recognises is acknowledged at once, whether or not its record is committed.",
        source="ReplicaManager.appendRecords, DelayedProduce",
        noticed_by=("lost-write", "inconsistent-offsets"),
    ),
    # KRaft
    Mutant(
        name="former-life-joins-isr",
        switch="replica_epoch_checked",
        kafka="4.3",
        doc="A fetch of a broker's former life brings it into the ISR after it has restarted and lost what it had.",
        source="KIP-903 (KAFKA-14139); Kafka 3.0 to 3.4",
        noticed_by=("isr-holds-committed", "lost-write"),
    ),
    Mutant(
        name="last-replica-standing",
        switch="eligible_leader_replicas",
        kafka="4.3",
        doc="The last member stays in the ISR whatever it has lost, and leads again.",
        source="KIP-966; Kafka up to 4.0",
        noticed_by=("unclean-replica-not-elected",),
    ),
    Mutant(
        name="elr-survives-unclean-shutdown",
        switch="unclean_shutdown_leaves_elr",
        kafka="4.3",
        doc="Who has stopped uncleanly stays eligible to lead, whatever it has lost.",
        source="KIP-966, ClusterControlManager.registerBroker",
        noticed_by=("unclean-replica-not-elected",),
    ),
    Mutant(
        name="reelected-leader-keeps-positions",
        switch="reelected_leader_forgets_positions",
        kafka="4.3",
        doc="A leader that missed its deposition commits what a follower has truncated for the leader in between.",
        source="Partition.makeLeader; every release",
        noticed_by=("isr-holds-committed", "lost-write"),
    ),
    Mutant(
        name="known-state-undoes-isr-change",
        switch="isr_change_survives_known_state",
        kafka="4.0",
        doc="A leader that hears from the metadata log what it knows commits without the follower that it has asked to have in the ISR.",
        source="Partition.makeLeader, Partition.updateAssignmentAndIsr; every release in KRaft",
        noticed_by=("isr-holds-committed", "lost-write"),
    ),
    Mutant(
        name="stale-alter-partition",
        switch="alter_partition_fenced",
        kafka="4.3",
        doc="The controller takes the ISR that a leader wanted when it led still, or before somebody else changed it.",
        source="KIP-497, ReplicationControlManager.validateAlterPartitionData",
        noticed_by=("isr-holds-committed", "lost-write", "inconsistent-offsets", "unavailable"),
    ),
    Mutant(
        name="election-in-same-epoch",
        switch="election_raises_leader_epoch",
        kafka="4.3",
        doc="The controller elects a leader in the leader epoch of its predecessor.",
        source="PartitionChangeBuilder.electLeader",
        noticed_by=("two-leaders",),
    ),
    Mutant(
        name="producer-ids-given-twice",
        switch="producer_ids_given_once",
        kafka="4.3",
        doc="Two brokers give the same producer ids away: a leader takes what one producer sends for a retry of the other's.",
        source="KIP-730, ProducerIdControlManager",
        noticed_by=("lost-write", "duplicate"),
    ),
    Mutant(
        name="snapshot-cuts-log",
        switch="snapshot_cuts_shorter_log_only",
        doc="A controller or broker that starts begins behind its latest snapshot, and has forgotten what its metadata log had there.",
        source="KIP-630, KafkaMetadataLog.truncateToLatestSnapshot",
        noticed_by=("committed-metadata-kept", "metadata-snapshot-committed"),
        kafka="4.3",
    ),
    Mutant(
        name="snapshot-of-uncommitted",
        switch="snapshot_of_committed_metadata",
        doc="The active controller's snapshots have what it has decided and what is not committed; a node that begins with one takes it for the truth.",
        source="KIP-630, KafkaMetadataLog.createNewSnapshot",
        noticed_by=("metadata-snapshot-committed",),
        kafka="4.3",
    ),
    Mutant(
        name="two-votes-an-epoch",
        switch="one_vote_per_epoch",
        kafka="4.3",
        doc="A voter votes for two candidates in one epoch: the quorum has two leaders.",
        source="KIP-595, KafkaRaftClient.handleVoteRequest",
        noticed_by=("one-controller-per-epoch", "committed-metadata-kept"),
    ),
    Mutant(
        name="stop-without-flush",
        switch="shutdown_flushes_logs",
        kafka="4.3",
        doc="A broker that stops in good order says so without having flushed its logs: nothing is recovered, and power loss takes what it had.",
        source="LogManager.shutdown",
        noticed_by=("shutdown-flushes-logs",),
    ),
    # Groups
    Mutant(
        name="old-generation-commit-accepted",
        switch="commits_fenced",
        doc=(
            "The coordinator of a group takes commits of who is no member any more: one that was taken for dead sets the group "
            "back, or forward over what its successor has not processed."
        ),
        source="GroupCoordinator.validateOffsetCommit",
        noticed_by=("commits-of-present-generation", "offset-regression"),
    ),
    Mutant(
        name="partition-given-before-revoked",
        switch="partitions_released_first",
        kafka="4.3",
        doc=(
            "With group.protocol=consumer a member is given a partition that another one is still to give up: two read it, and "
            "commit over one another."
        ),
        source="KIP-848, CurrentAssignmentBuilder.computeNextAssignment",
        noticed_by=("one-owner-per-partition",),
    ),
    Mutant(
        name="stale-epoch-commit-accepted",
        switch="member_epochs_fence_commits",
        kafka="4.3",
        doc=(
            "With group.protocol=consumer a group takes commits of who is no member any more, or was given something else since: one "
            "that was taken for dead sets the group back, or forward over what its successor has not processed."
        ),
        source="KIP-848, ConsumerGroup.validateOffsetCommit",
    ),
    # Transactions
    Mutant(
        name="zombie-producer-accepted",
        switch="transactional_epoch_checked",
        kafka="4.3",
        doc="A producer that was succeeded by another one with its transactional id still writes, and its successor commits that.",
        source="KIP-98, TransactionCoordinator, ProducerAppendInfo.checkProducerEpoch",
        noticed_by=(
            "fenced-write",
            "unasked-commit",
            "torn-transaction",
            "G1a",
            "lost-write",
            "inconsistent-offsets",
            "poll-skip",
            "int-poll-skip",
        ),
    ),
    Mutant(
        name="lso-is-hw",
        switch="lso_below_open_transactions",
        kafka="4.3",
        doc="Consumers with read_committed get what no transaction has committed yet.",
        source="KIP-98, UnifiedLog.fetchLastStableOffsetMetadata",
        noticed_by=("read-above-lso", "G1a"),
    ),
    Mutant(
        name="marker-to-one-partition",
        switch="markers_to_all_partitions",
        kafka="4.3",
        doc="A transaction ends in one of its partitions: in the others nothing behind it is ever read with read_committed.",
        source="KIP-98, TransactionMarkerChannelManager.addTxnMarkersToSend",
        noticed_by=("hanging-transaction", "lso-stands-still", "torn-transaction", "unseen"),
    ),
    Mutant(
        name="coordinator-forgets-prepare-commit",
        switch="prepared_commit_finished",
        kafka="4.3",
        doc="A coordinator that is elected while a transaction is being committed aborts the rest of it, of which the producer was told that it is.",
        source="KIP-98, TransactionStateManager.loadTransactionsForTxnTopicPartition",
        noticed_by=("lost-write", "torn-transaction", "lost-effect", "unseen"),
    ),
    Mutant(
        name="next-transaction-unverified",
        switch="next_transaction_verified",
        kafka="4.3",
        doc="What a producer sends after a commit, and before a partition has the marker of that, goes with it, be it aborted.",
        source="KIP-890 (KAFKA-18575)",
        noticed_by=("torn-transaction", "G1a", "unseen", "lost-write"),
    ),
    Mutant(
        name="delayed-end-txn",
        switch="transactions_v2",
        kafka="4.3",
        doc="The request that ended a transaction comes once more, late, and ends the producer's next one before that is complete.",
        source="KIP-890 (KAFKA-14402); Kafka before 4.0",
        noticed_by=("unasked-commit", "torn-transaction", "G1a"),
    ),
    Mutant(
        name="uncommitted-state-answered",
        switch="transactions_loaded_once_committed",
        kafka="4.3",
        doc="A new coordinator answers by a record that its successor does not have: half of a transaction is committed.",
        source="TransactionStateManager.loadTransactionMetadata; every release",
        noticed_by=("torn-transaction", "hanging-transaction", "doubled-effect"),
    ),
)

MUTANTS: Final[dict[str, Mutant]] = {mutant.name: mutant for mutant in _MUTANTS}
"""The mutants by name, those with a common subject side by side."""
