"""Lets the checks of invariants register for changes of replicas, and report breaches."""

from collections.abc import Callable
from dataclasses import field
from typing import Any

from harrow.cluster_model.events import InvariantBroken
from harrow.cluster_model.invariants.watched_replica import Leader, WatchedPartition, WatchedReplica
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.trace import Trace

OnReplica = list[Callable[[WatchedReplica], None]]


@dataclass(slots=True)
class Checks:
    """The callbacks for each kind of change of a replica.

    A check adds its methods to the lists that it needs. A check of brokers or controllers
    subscribes to the ``trace`` itself.
    """

    trace: Trace
    on_append: OnReplica = field(default_factory=list)
    on_checkpoint: list[Callable[[WatchedReplica, str, int], None]] = field(default_factory=list)
    on_high_watermark: OnReplica = field(default_factory=list)
    on_isr: list[Callable[[WatchedPartition, list[WatchedReplica]], None]] = field(default_factory=list)
    on_leader: list[Callable[[WatchedReplica, Leader], None]] = field(default_factory=list)
    on_open: OnReplica = field(default_factory=list)
    on_shutdown: OnReplica = field(default_factory=list)
    on_truncate: OnReplica = field(default_factory=list)
    _reported_breaches: set[tuple[str, int, str, int]] = field(default_factory=set)

    def watch_replicas(self) -> bool:
        """Return whether any check needs to know of changes of replicas."""
        return any(self._callbacks())

    def dismantle(self) -> None:
        """Drop all callbacks (`Cluster.dismantle`), because their checks refer to this object."""
        for callbacks in self._callbacks():
            callbacks.clear()

    def _callbacks(self) -> tuple[list[Any], ...]:
        return (
            *(self.on_append, self.on_checkpoint, self.on_high_watermark, self.on_isr),
            *(self.on_leader, self.on_open, self.on_shutdown, self.on_truncate),
        )

    def report_breach(self, invariant: str, replica: WatchedReplica, offset: int, details: str) -> None:
        """Report a breach by a replica, once per leader epoch, because a breach often lasts."""
        self.report_broker_breach(
            invariant, replica.broker, replica.partition.name, replica.partition.leader_epoch, offset, details
        )

    def report_broker_breach(
        self, invariant: str, broker: int, partition: str, epoch: int, offset: int, details: str
    ) -> None:
        """Report a breach by a broker, once per *partition* and *epoch*."""
        key = (invariant, broker, partition, epoch)
        if key not in self._reported_breaches:
            self._reported_breaches.add(key)
            self.trace.emit(InvariantBroken, invariant, broker, partition, epoch, offset, details)
