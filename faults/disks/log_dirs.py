"""Log directories that can no longer be written to. Somebody ends such a fault, and restarts the broker."""

from dataclasses import dataclass
from typing import ClassVar

from harrow.cluster_model.fields import Broker, Lasts, Skip, described
from harrow.faults.effects import Effects, FailLogDir, Start, Stop
from harrow.faults.fault import Environment, LastingFault


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirFault(LastingFault):
    """Something keeps a broker from writing to one of its log directories."""

    broker: Broker = described("Whose disk.")
    log_dir: Skip = described(
        "Which log directory, from 0; `cluster.disk.log_dirs` says how many there are.", default=0
    )
    duration: Lasts | None = described("How long; by default until the cluster is healed.", default=None)

    def applies(self, environment: Environment) -> bool:
        return (
            environment.has_logs(self.broker)
            and environment.is_running(self.broker)
            and self.log_dir < environment.log_dirs()
        )

    def end(self, environment: Environment) -> Effects:
        # By name: a class of `dataclass(slots=True)` is another one than `super` knows.
        yield from LastingFault.end(self, environment)
        if environment.is_running(self.broker) and not environment.is_stopping(self.broker):
            yield Stop(self.broker)
        yield Start(self.broker)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirFailure(LogDirFault):
    """Writing to a log directory fails. What is stored there stays.

    The broker finds out when it appends, flushes or writes a checkpoint. It takes the directory offline and goes on without the
    replicas there, and the controller elects others (KIP-112, from 1.0 on; in KRaft from 3.7 on, KIP-858). Without another directory it
    ends at once, and cannot start before the disk is well again. So it is in KRaft with directory 0, which has the metadata log (`metadata.log.dir`).
    With the end of the fault somebody repairs the disk and restarts the broker.
    """

    name: ClassVar[str] = "log_dir_failure"

    def effects(self, environment: Environment) -> Effects:
        return [FailLogDir(self.broker, self.log_dir)]


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskFull(LogDirFault):
    """The disk of a log directory has room for so many more bytes. What retention deletes makes room again.

    The append for which there is none fails, and the broker does as with any I/O error: it takes the directory offline and goes on
    without the replicas there (KIP-112, from 1.0 on), or ends where it has no other, in KRaft also with directory 0. Replicas of one size fill up at the same
    time. With the end of the fault somebody makes room and restarts the broker.
    """

    name: ClassVar[str] = "disk_full"

    room: Skip = described("For how many more bytes there is room.", default=0)

    def effects(self, environment: Environment) -> Effects:
        return [FailLogDir(self.broker, self.log_dir, self.room)]
