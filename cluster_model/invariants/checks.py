"""Lets the checks of invariants register for changes of replicas, and report breaches."""

from collections.abc import Callable
from dataclasses import field

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
        return bool(
            self.on_append
            or self.on_checkpoint
            or self.on_high_watermark
            or self.on_isr
            or self.on_leader
            or self.on_open
            or self.on_shutdown
            or self.on_truncate
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
