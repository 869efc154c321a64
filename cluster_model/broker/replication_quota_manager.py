"""Measures the replication of throttled partitions (``ReplicationQuotaManager.scala``, KIP-73)."""

from typing import Final

from harrow.cluster_model.broker.rate import NO_LIMIT, SampledRate
from harrow.cluster_model.release.replication import ReplicationSwitches
from harrow.cluster_model.settings import ALL_REPLICAS, BrokerConfig
from harrow.cluster_model.trace import Clock

_ALL: Final = -1


class ReplicationQuotaManager:
    """The throttled traffic of a broker: as a leader to followers, or as a follower from leaders.

    The traffic of replicas in the ISR counts too. But the throttle holds back only replicas outside
    the ISR, so it never removes a replica from the ISR.
    """

    def __init__(
        self, broker: int, clock: Clock, config: BrokerConfig, switches: ReplicationSwitches
    ) -> None:
        self._broker = broker
        self._clock = clock
        self._rate = SampledRate(
            config.replication_quota_samples,
            config.replication_quota_sample_us,
            overlapping=switches.quota_rate_counts_overlapping_sample,
            simple=True,
        )
        self.bound = NO_LIMIT
        """The quota in bytes per second."""
        # The numbers of throttled partitions by topic; `_ALL` stands for all partitions.
        self._throttled_partitions: dict[str, frozenset[int]] = {}

    def mark_throttled(self, topic: str, replicas: str) -> None:
        """Set which replicas of a topic are throttled, as `PARTITION:BROKER,...` or `*` for all."""
        if replicas == ALL_REPLICAS:
            self._throttled_partitions[topic] = frozenset((_ALL,))
        elif replicas:
            pairs = [replica.split(":") for replica in replicas.split(",")]
            self._throttled_partitions[topic] = frozenset(
                int(partition) for partition, broker in pairs if int(broker) == self._broker
            )

    def is_throttled(self, partition: str) -> bool:
        """Return whether this broker's replica of a partition is throttled."""
        topic, _, number = partition.rpartition("-")
        numbers = self._throttled_partitions.get(topic)
        return numbers is not None and (_ALL in numbers or int(number) in numbers)

    @property
    def is_exceeded(self) -> bool:
        """Whether the measured rate exceeds the quota."""
        return self.bound != NO_LIMIT and self._rate.exceeds(self.bound, self._clock.now_us)

    def record(self, partition: str, size_bytes: int) -> None:
        """Count a partition's bytes if it is throttled, even if the quota is exceeded already."""
        if size_bytes and self.is_throttled(partition):
            self._rate.record(size_bytes, self._clock.now_us)
