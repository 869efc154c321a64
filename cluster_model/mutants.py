"""The zoo: known flaws of Kafka, each a switch of `release.Behaviours` set to a known-bad value."""

from dataclasses import dataclass
from typing import Any, Final

from harrow.cluster_model.release import HIGH_WATERMARK, LEADER_EPOCH, NO_TRUNCATION


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A known flaw: one switch set to a known-bad value, most of them off.

    ``doc`` says what goes wrong and what comes of it, ``source`` where Kafka had it or what keeps
    it from having it. ``noticed_by`` names the rules that notice it; none where only a campaign's
    script does, for it takes an expectation to tell the flaw from what Kafka may do.
    """

    name: str
    switch: str
    value: Any = False
    doc: str
    source: str
    noticed_by: tuple[str, ...] = ()


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
    # What a leader knows of producers
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
)

MUTANTS: Final[dict[str, Mutant]] = {mutant.name: mutant for mutant in _MUTANTS}
"""The mutants by name, those with a common subject side by side."""
