"""The invariants of the model: what holds inside a cluster at every moment, by name.

A rule judges what clients saw, after the run. An invariant is watched while the run goes on, so
that what is broken is seen where it breaks, and also when no client comes to notice.
"""

from dataclasses import dataclass
from typing import Final

HW_MONOTONIC: Final = "hw-monotonic"
HW_WITHIN_LOG: Final = "hw-within-log"
ISR_HOLDS_COMMITTED: Final = "isr-holds-committed"
ONE_LEADER_PER_EPOCH: Final = "one-leader-per-epoch"
ONE_CONTROLLER_PER_EPOCH: Final = "one-controller-per-epoch"
LOG_MATCHING: Final = "log-matching"
EPOCH_CACHE_MONOTONIC: Final = "epoch-cache-monotonic"
PRODUCER_STATE_MATCHES_LOG: Final = "producer-state-matches-log"
CHECKPOINT_WITHIN_LOG: Final = "checkpoint-within-log"
SHUTDOWN_FLUSHES_LOGS: Final = "shutdown-flushes-logs"
CONTROLLER_EPOCH_MONOTONIC: Final = "controller-epoch-monotonic"
LEADER_EPOCH_MONOTONIC: Final = "leader-epoch-monotonic"
CONTROLLER_WRITES_FENCED: Final = "controller-writes-fenced"
REGISTERED_BEFORE_CONTROL: Final = "registered-before-control"
REGISTRATIONS_KNOWN: Final = "registrations-known"
FAILOVER_SHRINKS_ISR: Final = "failover-shrinks-isr"
HW_WAITS_FOR_MIN_ISR: Final = "hw-waits-for-min-isr"
UNCLEAN_REPLICA_NOT_ELECTED: Final = "unclean-replica-not-elected"
COMMITTED_METADATA_KEPT: Final = "committed-metadata-kept"
METADATA_SNAPSHOT_COMMITTED: Final = "metadata-snapshot-committed"
COMMITS_OF_PRESENT_GENERATION: Final = "commits-of-present-generation"
ONE_OWNER_PER_PARTITION: Final = "one-owner-per-partition"


@dataclass(frozen=True, slots=True, kw_only=True)
class Invariant:
    """An invariant. ``definition`` says what holds, ``source`` who says so.

    One that is ``told_by_trace`` needs no watching: the trace alone shows where it is broken.
    ``since`` is the version from which on Kafka does what it takes; what came with a mechanism was
    not promised before.
    """

    name: str
    definition: str
    source: str
    told_by_trace: bool = False
    since: tuple[int, ...] = ()


INVARIANTS: Final[dict[str, Invariant]] = {
    invariant.name: invariant
    for invariant in (
        Invariant(
            name=HW_MONOTONIC,
            definition="The high watermark of a leader never falls while it leads, through all its leader epochs.",
            source="Partition.maybeIncrementLeaderHW.",
        ),
        Invariant(
            name=HW_WITHIN_LOG,
            definition="The high watermark of a replica is never negative and never above its LEO.",
            source="Log.updateHighWatermark; ReplicaFetcherThread.processPartitionData.",
        ),
        Invariant(
            name=ISR_HOLDS_COMMITTED,
            definition=(
                "Every replica in the ISR, which may be elected at any moment, has in its log, or on its disk "
                "while it is down, all that the partition's leaders have had below their high watermarks."
            ),
            source="Kafka's documentation, Replication (committed messages, the ISR); KIP-101; KAFKA-7128.",
        ),
        Invariant(
            name=ONE_LEADER_PER_EPOCH,
            definition="A leader epoch of a partition has one leader.",
            source="KIP-101; ReplicaManager.becomeLeaderOrFollower.",
            told_by_trace=True,
        ),
        Invariant(
            name=ONE_CONTROLLER_PER_EPOCH,
            definition="A controller epoch has one controller.",
            source="KafkaZkClient.registerControllerAndIncrementControllerEpoch (KAFKA-6082).",
        ),
        Invariant(
            name=LOG_MATCHING,
            definition=(
                "Two live replicas of a partition hold the same batches below the smaller of their high watermarks."
            ),
            source="KIP-101, KIP-279 (log divergence).",
        ),
        Invariant(
            name=EPOCH_CACHE_MONOTONIC,
            definition=(
                "Leader epochs never go back along a log: the entries of its epoch cache rise strictly in epoch and "
                "in start offset, none starts above the LEO, and no batch has an epoch below that of the batch "
                "before it."
            ),
            source="KIP-101; LeaderEpochFileCache.scala.",
        ),
        Invariant(
            name=PRODUCER_STATE_MATCHES_LOG,
            definition=(
                "What a log remembers of an idempotent producer is what its batches say: the last batches with "
                "their offsets, as many as the producer may have in flight (5 from 1.0 on, 1 before), and sequence "
                "numbers without a gap."
            ),
            source="KIP-98, KAFKA-5494; ProducerStateManager.scala (ProducerStateEntry.NumBatchesToRetain).",
        ),
        Invariant(
            name=CHECKPOINT_WITHIN_LOG,
            definition=(
                "No checkpoint is written with an offset above the LEO, no recovery point above what is flushed, "
                "and a log that is opened reaches to its recovery point, unless it was cut above its last batch, or while its directory could not be written to."
            ),
            source="LogManager.truncateTo; ReplicaManager.checkpointHighWatermarks.",
        ),
        Invariant(
            name=SHUTDOWN_FLUSHES_LOGS,
            definition=(
                "A broker that has stopped in good order has flushed its logs up to their ends, and their recovery "
                "points say so: its next start has nothing to recover."
            ),
            source="LogManager.shutdown.",
        ),
        Invariant(
            name=CONTROLLER_EPOCH_MONOTONIC,
            definition=(
                "While it runs, a broker obeys no controller of an older controller epoch than one that it has obeyed."
            ),
            source="ReplicaManager.becomeLeaderOrFollower, stopReplicas, maybeUpdateMetadataCache.",
        ),
        Invariant(
            name=LEADER_EPOCH_MONOTONIC,
            definition="While its broker runs, the leader epoch of a replica never goes back.",
            source="ReplicaManager.becomeLeaderOrFollower.",
        ),
        Invariant(
            name=CONTROLLER_WRITES_FENCED,
            since=(2, 1),
            definition=(
                "A new leader epoch stands in a partition's znode with the controller epoch that is in "
                "/controller_epoch: no controller that has been succeeded elects."
            ),
            source="KAFKA-6082; KafkaZkClient.updateLeaderAndIsr (retryRequestsUntilConnected with expectedControllerEpochZkVersion).",
        ),
        Invariant(
            name=REGISTERED_BEFORE_CONTROL,
            since=(2, 0),
            definition=(
                "A broker obeys no LeaderAndIsr, UpdateMetadata or StopReplica before it has registered in ZooKeeper: "
                "what comes earlier was meant for a former life."
            ),
            source="KAFKA-6772; KafkaServer.startup (SocketServer.startControlPlaneProcessor).",
        ),
        Invariant(
            name=REGISTRATIONS_KNOWN,
            since=(2, 2),
            definition=(
                "A controller that has dealt with a change of /brokers/ids knows every broker there by its present "
                "registration: one that went and came back has been told anew what it leads and follows."
            ),
            source="KIP-380; KafkaController.processBrokerChange.",
        ),
        Invariant(
            name=FAILOVER_SHRINKS_ISR,
            since=(2, 3),
            definition=(
                "Once a new controller has taken over, no broker that it found dead is in an ISR, except as its last "
                "member."
            ),
            source="KAFKA-3143; ReplicaStateMachine.startup.",
        ),
        Invariant(
            name=HW_WAITS_FOR_MIN_ISR,
            since=(3, 7),
            definition=(
                "While its ISR is smaller than min.insync.replicas, or than all replicas where there are fewer, a leader does not raise its "
                "high watermark."
            ),
            source="KAFKA-15583; Partition.maybeIncrementLeaderHW (isUnderMinIsr).",
        ),
        Invariant(
            name=UNCLEAN_REPLICA_NOT_ELECTED,
            since=(4, 1),
            definition=(
                "A replica that has stopped uncleanly, is back, and has not joined the ISR since then is elected in an unclean election alone."
            ),
            source="KIP-966; ReplicationControlManager.handleUncleanBrokerShutdown.",
        ),
        Invariant(
            name=COMMITTED_METADATA_KEPT,
            definition=(
                "What the quorum has committed in the metadata log stays: no node truncates it, and no node becomes the active controller without it."
            ),
            source="KIP-595; KafkaRaftClient (truncateToLatestSnapshot, Truncating to offset below the high watermark).",
        ),
        Invariant(
            name=METADATA_SNAPSHOT_COMMITTED,
            definition=(
                "A snapshot of the metadata says what the committed records below its end amount to, and nothing else: who begins with it is where "
                "one is who has read them all."
            ),
            source="KIP-630; KafkaMetadataLog.createNewSnapshot, MetadataImage.write.",
        ),
        Invariant(
            name=COMMITS_OF_PRESENT_GENERATION,
            definition=(
                "A group's coordinator takes no commit of a generation before the one that the group has: a member that was taken for dead, and goes on, "
                "says no more where its successors begin."
            ),
            source="GroupCoordinator.validateOffsetCommit (ILLEGAL_GENERATION).",
        ),
        Invariant(
            name=ONE_OWNER_PER_PARTITION,
            since=(4, 0),
            definition=(
                "With group.protocol=consumer a group's coordinator gives a partition to a member when no other one owns it: its former owner "
                "has said that it has revoked it, or is no member any more."
            ),
            source="KIP-848; CurrentAssignmentBuilder.computeNextAssignment, ConsumerGroup.currentPartitionEpoch.",
        ),
    )
}
"""Invariants by name, in the order in which they are listed."""


def is_promised(name: str, release: str) -> bool:
    """Return whether Kafka *release*, such as ``2.4``, does what an invariant takes."""
    return INVARIANTS[name].since <= tuple(map(int, release.split(".")))


TOLD_BY_TRACE: Final = frozenset(name for name, invariant in INVARIANTS.items() if invariant.told_by_trace)
"""The invariants that need no watching."""
