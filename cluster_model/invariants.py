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


@dataclass(frozen=True, slots=True, kw_only=True)
class Invariant:
    """An invariant. ``definition`` says what holds, ``source`` who says so.

    One that is ``told_by_trace`` needs no watching: the trace alone shows where it is broken.
    """

    name: str
    definition: str
    source: str
    told_by_trace: bool = False


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
                "their offsets (5 of them from 1.0 on), and sequence numbers without a gap."
            ),
            source="KIP-98; ProducerStateManager.scala.",
        ),
        Invariant(
            name=CHECKPOINT_WITHIN_LOG,
            definition=(
                "No checkpoint is written with an offset above the LEO, no recovery point above what is flushed, "
                "and a log that is opened has all that is below its recovery point."
            ),
            source="LogManager.truncateTo; ReplicaManager.checkpointHighWatermarks.",
        ),
    )
}
"""Invariants by name, in the order in which they are listed."""

TOLD_BY_TRACE: Final = frozenset(name for name, invariant in INVARIANTS.items() if invariant.told_by_trace)
"""The invariants that need no watching."""
