"""Declares the invariants of the model.

An invariant holds inside a cluster at every moment. A rule, in contrast, judges the clients'
history after a run. An invariant is checked during the run, so a breach is reported when it
happens, even if no client ever notices it.
"""

from typing import Final

from harrow.cluster_model.lazy_dataclass import dataclass

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
    """An invariant.

    ``source`` names the class of Kafka, KIP or ticket that it comes from. If it is
    ``shown_by_trace``, a breach can be found in the trace later, so it is not checked during the
    run. ``since`` is the first release of Kafka that promises the invariant.
    """

    name: str
    definition: str
    source: str
    shown_by_trace: bool = False
    since: tuple[int, ...] = ()


INVARIANTS: Final[dict[str, Invariant]] = {
    invariant.name: invariant
    for invariant in (
        Invariant(
            name=HW_MONOTONIC,
            definition="A leader's high watermark never falls while it leads, even across leader epochs.",
            source="Partition.maybeIncrementLeaderHW.",
        ),
        Invariant(
            name=HW_WITHIN_LOG,
            definition="A replica's high watermark is never negative and never above its LEO.",
            source="Log.updateHighWatermark; ReplicaFetcherThread.processPartitionData.",
        ),
        Invariant(
            name=ISR_HOLDS_COMMITTED,
            definition=(
                "Every replica in the ISR has all records that were below the high watermark of one of the "
                "partition's leaders: in its log, or on its disk while it is down. It may be elected at any moment."
            ),
            source="Kafka's documentation, Replication (committed messages, the ISR); KIP-101; KAFKA-7128.",
        ),
        Invariant(
            name=ONE_LEADER_PER_EPOCH,
            definition="A leader epoch of a partition has one leader.",
            source="KIP-101; ReplicaManager.becomeLeaderOrFollower.",
            shown_by_trace=True,
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
                "Leader epochs never fall along a log: the entries of its epoch cache strictly rise in epoch and "
                "in start offset, none starts above the LEO, and no batch has a lower epoch than the batch "
                "before it."
            ),
            source="KIP-101; LeaderEpochFileCache.scala.",
        ),
        Invariant(
            name=PRODUCER_STATE_MATCHES_LOG,
            definition=(
                "A log's state of an idempotent producer matches its batches: it has the last batches with "
                "their offsets, as many as the producer may have in flight (5 from 1.0 on, 1 before), and their "
                "sequence numbers have no gap."
            ),
            source="KIP-98, KAFKA-5494; ProducerStateManager.scala (ProducerStateEntry.NumBatchesToRetain).",
        ),
        Invariant(
            name=CHECKPOINT_WITHIN_LOG,
            definition=(
                "A checkpoint is never above the LEO when it is written, and a recovery point never above the flushed "
                "offset. An opened log reaches its recovery point, unless it was truncated above its last batch or while its "
                "directory was not writable."
            ),
            source="LogManager.truncateTo; ReplicaManager.checkpointHighWatermarks.",
        ),
        Invariant(
            name=SHUTDOWN_FLUSHES_LOGS,
            definition=(
                "After a clean shutdown a broker has flushed its logs completely and written their ends as recovery "
                "points, so its next start has nothing to recover."
            ),
            source="LogManager.shutdown.",
        ),
        Invariant(
            name=CONTROLLER_EPOCH_MONOTONIC,
            definition=("While it runs, a broker that has obeyed a controller epoch obeys no older one."),
            source="ReplicaManager.becomeLeaderOrFollower, stopReplicas, maybeUpdateMetadataCache.",
        ),
        Invariant(
            name=LEADER_EPOCH_MONOTONIC,
            definition="A replica's leader epoch never falls while its broker runs.",
            source="ReplicaManager.becomeLeaderOrFollower.",
        ),
        Invariant(
            name=CONTROLLER_WRITES_FENCED,
            since=(2, 1),
            definition=(
                "A new leader epoch in a partition's znode comes with the controller epoch in "
                "/controller_epoch: a replaced controller elects no leader."
            ),
            source="KAFKA-6082; KafkaZkClient.updateLeaderAndIsr (retryRequestsUntilConnected with expectedControllerEpochZkVersion).",
        ),
        Invariant(
            name=REGISTERED_BEFORE_CONTROL,
            since=(2, 0),
            definition=(
                "A broker obeys no LeaderAndIsr, UpdateMetadata or StopReplica before it has registered in ZooKeeper: "
                "an earlier request was meant for a previous process."
            ),
            source="KAFKA-6772; KafkaServer.startup (SocketServer.startControlPlaneProcessor).",
        ),
        Invariant(
            name=REGISTRATIONS_KNOWN,
            since=(2, 2),
            definition=(
                "After a change of /brokers/ids the controller has the current registration of every broker there, "
                "so it sends a broker that restarted its partitions again."
            ),
            source="KIP-380; KafkaController.processBrokerChange.",
        ),
        Invariant(
            name=FAILOVER_SHRINKS_ISR,
            since=(2, 3),
            definition=(
                "Once a new controller has taken over, a broker without a session at that time is in no ISR, except "
                "as its last member."
            ),
            source="KAFKA-3143; ReplicaStateMachine.startup.",
        ),
        Invariant(
            name=HW_WAITS_FOR_MIN_ISR,
            since=(3, 7),
            definition=(
                "A leader does not raise its high watermark while its ISR is smaller than min.insync.replicas (or "
                "than the number of replicas, if that is smaller)."
            ),
            source="KAFKA-15583; Partition.maybeIncrementLeaderHW (isUnderMinIsr).",
        ),
        Invariant(
            name=UNCLEAN_REPLICA_NOT_ELECTED,
            since=(4, 1),
            definition=(
                "A replica that has restarted after an unclean stop and has not joined the ISR since is elected only in "
                "an unclean election."
            ),
            source="KIP-966; ReplicationControlManager.handleUncleanBrokerShutdown.",
        ),
        Invariant(
            name=COMMITTED_METADATA_KEPT,
            definition=(
                "No node truncates committed records of the metadata log, and no node without all of them becomes the "
                "active controller."
            ),
            source="KIP-595; KafkaRaftClient (truncateToLatestSnapshot, Truncating to offset below the high watermark).",
        ),
        Invariant(
            name=METADATA_SNAPSHOT_COMMITTED,
            definition=(
                "A metadata snapshot equals the state after all committed records below its end: a node that loads "
                "it has the same metadata as one that replays those records."
            ),
            source="KIP-630; KafkaMetadataLog.createNewSnapshot, MetadataImage.write.",
        ),
        Invariant(
            name=COMMITS_OF_PRESENT_GENERATION,
            definition=(
                "A group's coordinator accepts no commit from an earlier generation of the group. So a member that was "
                "removed as dead, but still runs, cannot move the positions of its successors."
            ),
            source="GroupCoordinator.validateOffsetCommit (ILLEGAL_GENERATION).",
        ),
        Invariant(
            name=ONE_OWNER_PER_PARTITION,
            since=(4, 0),
            definition=(
                "With group.protocol=consumer a group's coordinator assigns a partition to a member only if no other "
                "member owns it: the previous owner has confirmed its revocation or left the group."
            ),
            source="KIP-848; CurrentAssignmentBuilder.computeNextAssignment, ConsumerGroup.currentPartitionEpoch.",
        ),
    )
}
"""The invariants, by name."""


def is_promised(name: str, release: str) -> bool:
    """Return whether a release of Kafka, such as ``2.4``, promises an invariant."""
    return INVARIANTS[name].since <= tuple(map(int, release.split(".")))


SHOWN_BY_TRACE: Final = frozenset(name for name, invariant in INVARIANTS.items() if invariant.shown_by_trace)
"""The invariants that are not checked during the run."""
