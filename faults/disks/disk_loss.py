"""A broker comes back with an empty disk."""

from dataclasses import dataclass
from typing import ClassVar

from harrow.cluster_model.fields import Broker, Lasts, described
from harrow.faults.disks.disk_fault import DiskFault
from harrow.faults.effects import FaultEffect, LoseDisk
from harrow.faults.fault import Environment


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskLoss(DiskFault):
    """The broker dies, and its disk with it: logs, checkpoints, everything. It comes back with the same id and an empty disk.

    Kafka's replication is for this: what is committed survives as long as one replica in sync keeps its disk, and is elected. A
    broker that comes back empty while it is in the ISR counts as having all of it (KIP-966). A controller of KRaft, in a process of its own or
    in a broker's, loses the metadata log, its epoch and its vote: while a majority of the quorum has what is committed nothing else
    happens. Where it has not, a controller may be elected that knows less, and nothing is promised any more. Servers of ZooKeeper keep their disks.
    """

    name: ClassVar[str] = "disk_loss"

    broker: Broker = described("Which broker; one that is down already loses its disk as well.")
    restart_after: Lasts | None = described(
        "How long until it is started with its new disk; by default it stays down until the cluster is healed.",
        default=None,
    )

    def applies(self, environment: Environment) -> bool:
        return environment.may_lose_disk(self.broker)

    def effect_on_disk(self) -> FaultEffect:
        return LoseDisk(self.broker)
