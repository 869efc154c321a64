"""Faults of disks: writes are lost, damaged, torn or slow; disks fill up, fail, or go back."""

from abc import abstractmethod
from typing import ClassVar, Literal

from harrow.cluster_model.fields import Broker, Duration, Lasts, Partition, Skip, described
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.sim.virtual_time import US_PER_MS
from harrow.faults.effects import (
    DamageBatch,
    Effects,
    FailLogDir,
    FaultEffect,
    Kill,
    LoseDisk,
    RemoveCheckpoint,
    RevertCheckpoint,
    SlowDisk,
    Start,
    Stop,
    TearWrite,
)
from harrow.faults.fault import (
    RESTART_TEXT,
    UNTIL_HEALED,
    BrokerProcesses,
    Environment,
    Fault,
    LastingFault,
)


class DiskFault(LastingFault):
    """A fault of the disk of a broker that is down.

    If the broker runs, the fault kills it first. The fault lasts until the broker runs again.
    """

    __slots__ = ()

    broker: int

    @abstractmethod
    def effect_on_disk(self) -> FaultEffect:
        """Return the effect on the disk, which strikes when the broker is down."""

    def applies(self, environment: Environment) -> bool:
        return environment.has_logs(self.broker) and environment.may_lose_power(self.broker)

    def effects(self, environment: Environment) -> Effects:
        if environment.is_running(self.broker):
            yield Kill(self.broker)
        yield self.effect_on_disk()

    def is_in_force(self, processes: BrokerProcesses) -> bool:
        return not processes.is_running(self.broker)

    def end(self, environment: Environment) -> Effects:
        return [Start(self.broker)]


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskLoss(DiskFault):
    """The broker dies and its disk is lost. It may start again with the same id and an empty disk.

    Kafka's replication exists for this fault: a committed record survives if at least one in-sync
    replica keeps its disk and is elected. A broker that comes back empty while it is still in the
    ISR counts as if it had every record (KIP-966). A KRaft controller, in a process of its own or
    in a broker's, loses the metadata log, its epoch and its vote. As long as a majority of the
    quorum has all committed metadata, nothing worse happens. Without such a majority, a controller
    with less metadata may be elected, and Kafka keeps no promise. ZooKeeper servers keep their
    disks.
    """

    name: ClassVar[str] = "disk_loss"

    broker: Broker = described("Which broker. One that is down already loses its disk too.")
    restart_after: Lasts | None = described(
        "How long until it is started with an empty disk; by default it stays down until the cluster is healed.",
        default=None,
    )

    def applies(self, environment: Environment) -> bool:
        return environment.may_lose_disk(self.broker)

    def effect_on_disk(self) -> FaultEffect:
        return LoseDisk(self.broker)


@dataclass(frozen=True, slots=True, kw_only=True)
class TornWrite(LastingFault):
    """The machine loses power during writeback: one unflushed batch is only partly on disk.

    Recovery truncates the log at the first batch with a bad CRC. `broker_crash` with `kind:
    power_loss` loses at least as much, because it loses all unflushed batches.
    """

    name: ClassVar[str] = "torn_write"

    broker: Broker = described("Which broker.")
    after: Skip = described(
        "How many unflushed batches of each log are complete on disk before the torn one.", default=0
    )
    restart_after: Lasts | None = described(RESTART_TEXT, default=None)

    def applies(self, environment: Environment) -> bool:
        return (
            environment.has_logs(self.broker)
            and environment.is_running(self.broker)
            and environment.may_lose_power(self.broker)
        )

    def effects(self, environment: Environment) -> Effects:
        return [TearWrite(self.broker, self.after)]

    def is_in_force(self, processes: BrokerProcesses) -> bool:
        return not processes.is_running(self.broker)


@dataclass(frozen=True, slots=True, kw_only=True)
class BitRot(Fault):
    """The disk damages a stored batch, so that the batch no longer matches its CRC.

    No broker notices until the batch is read. A leader sends the batch as it is. A follower drops
    the whole response that contains the batch, fetches again and falls behind. A consumer cannot
    get past the batch. If the broker is killed and the batch is in a segment beyond the recovery
    point, recovery finds the batch and truncates the log there, together with every good batch
    behind it.
    """

    name: ClassVar[str] = "bit_rot"

    broker: Broker = described("Whose disk.")
    partition: Partition = described("Which partition.")
    offset: Skip | None = described(
        "The offset of a record in the batch; by default that of the last record.", default=None
    )

    def applies(self, environment: Environment) -> bool:
        return environment.has_batch(self.broker, self.partition, self.offset) and environment.may_lose_power(
            self.broker
        )

    def effects(self, environment: Environment) -> Effects:
        return [DamageBatch(self.broker, self.partition, self.offset)]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirFault(LastingFault):
    """A broker cannot write to one of its log directories.

    When the fault ends, an operator repairs the disk and restarts the broker.
    """

    broker: Broker = described("Whose disk.")
    log_dir: Skip = described(
        "Which log directory, counted from 0; `cluster.disk.log_dirs` is their number.", default=0
    )
    duration: Lasts | None = described(UNTIL_HEALED, default=None)

    def applies(self, environment: Environment) -> bool:
        return (
            environment.has_logs(self.broker)
            and environment.is_running(self.broker)
            and self.log_dir < environment.log_dirs()
        )

    def end(self, environment: Environment) -> Effects:
        # `super()` would fail here, because `dataclass(slots=True)` replaces the class that
        # `super()` refers to.
        yield from LastingFault.end(self, environment)
        if environment.is_running(self.broker) and not environment.is_stopping(self.broker):
            yield Stop(self.broker)
        yield Start(self.broker)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirFailure(LogDirFault):
    """Writes to a log directory fail. Data that is stored there survives.

    The broker notices when it appends, flushes or writes a checkpoint. It takes the directory
    offline and continues without the replicas there, and the controller elects other leaders
    (KIP-112, from 1.0 on; in KRaft from 3.7 on, KIP-858). A broker that has no other directory
    exits at once, and cannot start until the disk works again. The same happens to a KRaft broker
    whose directory 0 fails, because that directory has the metadata log (`metadata.log.dir`). When
    the fault ends, an operator repairs the disk and restarts the broker.
    """

    name: ClassVar[str] = "log_dir_failure"

    def effects(self, environment: Environment) -> Effects:
        return [FailLogDir(self.broker, self.log_dir)]


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskFull(LogDirFault):
    """The disk of a log directory has room for only so many more bytes. Retention makes room again.

    An append that does not fit fails, and the broker reacts as it does to any I/O error. It takes
    the directory offline and continues without the replicas there (KIP-112, from 1.0 on). It exits
    if it has no other directory, and in KRaft also if the full directory is number 0. Replicas of
    the same size fill their disks at the same time. When the fault ends, an operator makes room and
    restarts the broker.
    """

    name: ClassVar[str] = "disk_full"

    room: Skip = described("How many more bytes fit.", default=0)

    def effects(self, environment: Environment) -> Effects:
        return [FailLogDir(self.broker, self.log_dir, self.room)]


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskSlow(LastingFault):
    """The disk of a broker writes slowly.

    Each append waits for the appends before it, and occupies its I/O thread meanwhile. Once all
    `num.io.threads` wait, every other request waits behind them. Among these requests are fetches
    of followers, so a leader with a slow disk removes healthy followers from the ISR. Requests of
    the controller wait, too, unless `control.plane.listener.name` gives them a queue of their own.
    The broker keeps its session, which needs no I/O thread. The delays of several such faults on
    one disk add up.
    """

    name: ClassVar[str] = "disk_slow"

    broker: Broker = described("Whose disk.")
    delay: Duration = described("How long each append takes.", default=100 * US_PER_MS, minimum=1)
    duration: Lasts | None = described(UNTIL_HEALED, default=None)

    def applies(self, environment: Environment) -> bool:
        return environment.has_logs(self.broker) and environment.is_running(self.broker)

    def effects(self, environment: Environment) -> Effects:
        return [SlowDisk(self.broker, self.delay)]


@dataclass(frozen=True, slots=True, kw_only=True)
class StaleCheckpoint(DiskFault):
    """The broker crashes, and restarts with an old version of a checkpoint file, or without it.

    `replication-offset-checkpoint` has high watermarks: up to 0.10.2 a follower truncates its log
    to them. `recovery-point-offset-checkpoint` says from which offset on a log is checked after a
    crash, `log-start-offset-checkpoint` at which offset within a segment a log begins, and
    `cleaner-offset-checkpoint` up to which offset it was compacted. `leader-epoch-checkpoint` has
    the start offsets of leader epochs, which decide where followers truncate (KIP-101). After an
    unclean shutdown, recovery adds missing epochs to this last file from the batches that it
    checks.
    """

    name: ClassVar[str] = "stale_checkpoint"

    broker: Broker = described("Which broker. One that is down already is not killed.")
    file: Literal[
        "replication-offset-checkpoint",
        "recovery-point-offset-checkpoint",
        "log-start-offset-checkpoint",
        "cleaner-offset-checkpoint",
        "leader-epoch-checkpoint",
    ] = described("Which file.", default="replication-offset-checkpoint")
    age: Duration | None = described("How old it is; by default it is missing.", default=None)
    restart_after: Lasts | None = described(RESTART_TEXT, default=None)

    def effect_on_disk(self) -> FaultEffect:
        if self.age is None:
            return RemoveCheckpoint(self.broker, self.file)
        return RevertCheckpoint(self.broker, self.file, self.age)
