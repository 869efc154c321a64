"""How much is replicated of partitions that are throttled (``ReplicationQuotaManager.scala``, KIP-73)."""

from typing import Final

from harrow.cluster_model.broker.rate import NO_LIMIT, SampledRate
from harrow.cluster_model.release.replication import ReplicationSwitches
from harrow.cluster_model.settings import ALL_REPLICAS, BrokerConfig
from harrow.cluster_model.trace import Clock

_ALL: Final = -1


class ReplicationQuotaManager:
    """What a broker sends to followers as leader, or fetches as follower, of the partitions that are throttled there.

    All of that counts, also what replicas in the ISR get; only those outside are held back, so that a throttle costs no replica its
    place in the ISR.
    """

    def __init__(
        self, broker: int, clock: Clock, config: BrokerConfig, switches: ReplicationSwitches
    ) -> None:
        self._broker = broker
        self._clock = clock
        self._rate = SampledRate(
            config.replication_quota_samples,
            config.replication_quota_sample_us,
            overlapping=switches.rate_counts_overlapping_sample,
            simple=True,
        )
        self.bound = NO_LIMIT
        """In bytes a second."""
        # The numbers of the partitions by topic, `_ALL` for all of them.
        self._throttled: dict[str, frozenset[int]] = {}

    def mark_throttled(self, topic: str, replicas: str) -> None:
        """Note of which partitions of a topic this broker is held back, of the replicas that its setting lists."""
        if replicas == ALL_REPLICAS:
            self._throttled[topic] = frozenset((_ALL,))
        elif replicas:
            pairs = [replica.split(":") for replica in replicas.split(",")]
            self._throttled[topic] = frozenset(
                int(partition) for partition, broker in pairs if int(broker) == self._broker
            )

    def is_throttled(self, partition: str) -> bool:
        """Return whether a partition counts."""
        topic, _, number = partition.rpartition("-")
        numbers = self._throttled.get(topic)
        return numbers is not None and (_ALL in numbers or int(number) in numbers)

    @property
    def is_exceeded(self) -> bool:
        """Whether more has passed than may."""
        return self.bound != NO_LIMIT and self._rate.exceeds(self.bound, self._clock.now_us)

    def record(self, partition: str, size_bytes: int) -> None:
        """Count what is sent or was fetched of a partition, whether the quota is exceeded or not."""
        if size_bytes and self.is_throttled(partition):
            self._rate.record(size_bytes, self._clock.now_us)
