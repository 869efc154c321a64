"""How checks of invariants are told of changes, and how they tell what is broken."""

from collections.abc import Callable, Collection, Mapping

from cluster_model.protocol import LeaderAndIsr
from cluster_model.watched_replica import Leader, WatchedPartition, WatchedReplica
from cluster_model.zookeeper_protocol import TopicPartitionState

Broken = Callable[[str, int, str, int, int, str], None]
"""Reports (invariant, broker, partition, leader epoch, offset, details)."""

StateWritten = Callable[[int, str, TopicPartitionState, TopicPartitionState, int], None]
"""Is told (broker, partition, state before, state, present controller epoch)."""


class Checks:
    """What is called at which change. A check adds itself to the lists that concern it."""

    __slots__ = (
        "_broken",
        "_reported",
        "on_append",
        "on_broker_change",
        "on_checkpoint",
        "on_control_request",
        "on_controller",
        "on_failover",
        "on_high_watermark",
        "on_isr",
        "on_leader",
        "on_leader_epoch",
        "on_open",
        "on_registered",
        "on_state_written",
        "on_stop",
        "on_truncate",
    )

    def __init__(self, broken: Broken) -> None:
        self._broken = broken
        self._reported: set[tuple[str, int, str, int]] = set()
        self.on_append: list[Callable[[WatchedReplica], None]] = []
        self.on_checkpoint: list[Callable[[WatchedReplica, str, int], None]] = []
        self.on_broker_change: list[Callable[[int, int, Mapping[int, int], Mapping[int, int]], None]] = []
        self.on_control_request: list[Callable[[int, str, int], None]] = []
        self.on_controller: list[Callable[[int, int], None]] = []
        self.on_failover: list[Callable[[int, int, Collection[int], Mapping[str, LeaderAndIsr]], None]] = []
        self.on_high_watermark: list[Callable[[WatchedReplica], None]] = []
        self.on_isr: list[Callable[[WatchedPartition, list[WatchedReplica]], None]] = []
        self.on_leader: list[Callable[[WatchedReplica, Leader], None]] = []
        self.on_leader_epoch: list[Callable[[int, str, int], None]] = []
        self.on_open: list[Callable[[WatchedReplica], None]] = []
        self.on_registered: list[Callable[[int], None]] = []
        self.on_state_written: list[StateWritten] = []
        self.on_stop: list[Callable[[int], None]] = []
        self.on_truncate: list[Callable[[WatchedReplica], None]] = []

    def watch_replicas(self) -> bool:
        """Return whether any check looks at replicas."""
        return bool(
            self.on_append
            or self.on_checkpoint
            or self.on_high_watermark
            or self.on_isr
            or self.on_leader
            or self.on_open
            or self.on_truncate
        )

    def broken(self, invariant: str, replica: WatchedReplica, offset: int, details: str) -> None:
        """Report a replica, once in a leader epoch: what is broken often stays so for a while."""
        self.broken_at(
            invariant, replica.broker, replica.partition.name, replica.partition.leader_epoch, offset, details
        )

    def broken_at(
        self, invariant: str, broker: int, partition: str, epoch: int, offset: int, details: str
    ) -> None:
        """Report a broker, once in an epoch."""
        key = (invariant, broker, partition, epoch)
        if key not in self._reported:
            self._reported.add(key)
            self._broken(invariant, broker, partition, epoch, offset, details)
