"""A log directory can no longer be written to."""

from dataclasses import dataclass
from typing import ClassVar

from harrow.faults.disks.log_dir_fault import LogDirFault
from harrow.faults.fault import Environment


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirFailure(LogDirFault):
    """Writing to a log directory fails. What is stored there stays.

    The broker finds out when it appends, flushes or writes a checkpoint. It takes the directory offline and goes on without the
    replicas there, and the controller elects others (KIP-112, from 1.0 on; in KRaft from 3.7 on, KIP-858). Without another directory it
    ends at once, and cannot start before the disk is well again. So it is in KRaft with directory 0, which has the metadata log (`metadata.log.dir`).
    With the end of the fault somebody repairs the disk and restarts the broker.
    """

    name: ClassVar[str] = "log_dir_failure"

    def inject(self, environment: Environment) -> None:
        environment.fail_log_dir(self.broker, self.log_dir)

    def repair(self, environment: Environment) -> None:
        environment.repair_log_dir(self.broker, self.log_dir)
