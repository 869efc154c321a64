"""The disk of a log directory fills up."""

from dataclasses import dataclass
from typing import ClassVar

from harrow.cluster_model.fields import Skip, described
from harrow.faults.disks.log_dir_fault import LogDirFault
from harrow.faults.fault import Environment


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskFull(LogDirFault):
    """The disk of a log directory has room for so many more bytes. What retention deletes makes room again.

    The append for which there is none fails, and the broker does as with any I/O error: it takes the directory offline and goes on
    without the replicas there (KIP-112, from 1.0 on), or ends where it has no other, in KRaft also with directory 0. Replicas of one size fill up at the same
    time. With the end of the fault somebody makes room and restarts the broker.
    """

    name: ClassVar[str] = "disk_full"

    room: Skip = described("For how many more bytes there is room.", default=0)

    def inject(self, environment: Environment) -> None:
        environment.fail_log_dir(self.broker, self.log_dir, self.room)

    def repair(self, environment: Environment) -> None:
        environment.repair_log_dir(self.broker, self.log_dir, self.room)
