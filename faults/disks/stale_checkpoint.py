"""A broker comes back with an old checkpoint file."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from harrow.cluster_model.fields import Broker, Duration, Lasts, described
from harrow.faults.disks.disk_fault import DiskFault
from harrow.faults.effects import FaultEffect, RemoveCheckpoint, RevertCheckpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class StaleCheckpoint(DiskFault):
    """The broker dies, and one of its checkpoint files is an old one when it comes back, or is missing.

    `replication-offset-checkpoint` has high watermarks: up to 0.10.2 a follower cuts its log to them.
    `recovery-point-offset-checkpoint` says from where on a log is checked after a crash, `log-start-offset-checkpoint` where a log
    begins within a segment, `cleaner-offset-checkpoint` up to where one was compacted. `leader-epoch-checkpoint` says where leader
    epochs begin, by which followers truncate (KIP-101); recovery completes it from the batches that it checks, unless the
    broker had been stopped in good order.
    """

    name: ClassVar[str] = "stale_checkpoint"

    broker: Broker = described("Which broker; one that is down already is not crashed.")
    file: Literal[
        "replication-offset-checkpoint",
        "recovery-point-offset-checkpoint",
        "log-start-offset-checkpoint",
        "cleaner-offset-checkpoint",
        "leader-epoch-checkpoint",
    ] = described("Which file.", default="replication-offset-checkpoint")
    age: Duration | None = described("How old it is; by default it is missing.", default=None)
    restart_after: Lasts | None = described(
        "How long until it is started again; by default it stays down until the cluster is healed.",
        default=None,
    )

    def effect_on_disk(self) -> FaultEffect:
        if self.age is None:
            return RemoveCheckpoint(self.broker, self.file)
        return RevertCheckpoint(self.broker, self.file, self.age)
