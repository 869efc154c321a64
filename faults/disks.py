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
    """A fault of the disk of a broker that is down. A running broker is killed first.

    It lasts until the broker runs again.
    """

    __slots__ = ()

    broker: int

    @abstractmethod
    def effect_on_disk(self) -> FaultEffect:
        """Return what happens to the disk of a broker that is down."""

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
    """The broker dies and its disk is lost. It comes back with the same id and an empty disk.

    Kafka's replication exists for this: a committed record survives if at least one in-sync replica
    keeps its disk and is elected. A broker that comes back empty while it is still in the ISR
    counts as if it had every record (KIP-966). A KRaft controller, in a process of its own or in a
    broker's, loses the metadata log, its epoch and its vote. While a majority of the quorum has all
    committed metadata, nothing else happens. Without that majority a controller with less metadata
    may be elected, and no promise holds. ZooKeeper servers keep their disks.
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
    power_loss`, where nothing has been written back, loses at least as much.
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
    """The disk damages a stored batch, whose CRC is wrong from then on.

    No broker notices until the batch is read. The leader sends the batch as it is. A follower drops
    the whole response that contains it, fetches again and falls behind; a consumer cannot get past
    it. A killed broker finds it during recovery if its segment lies beyond the recovery point, and
    truncates the log there, together with every good batch behind it.
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
        # `super()` fails here: `dataclass(slots=True)` replaces the class that it refers to.
        yield from LastingFault.end(self, environment)
        if environment.is_running(self.broker) and not environment.is_stopping(self.broker):
            yield Stop(self.broker)
        yield Start(self.broker)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirFailure(LogDirFault):
    """Writes to a log directory fail. Stored data stays.

    The broker notices when it appends, flushes or writes a checkpoint. It takes the directory
    offline and continues without the replicas there, and the controller elects other leaders
    (KIP-112, from 1.0 on; in KRaft from 3.7 on, KIP-858). A broker with no other directory exits at
    once, and cannot start until the disk works again. So does a KRaft broker whose directory 0
    fails, because that one has the metadata log (`metadata.log.dir`). When the fault ends, an
    operator repairs the disk and restarts the broker.
    """

    name: ClassVar[str] = "log_dir_failure"

    def effects(self, environment: Environment) -> Effects:
        return [FailLogDir(self.broker, self.log_dir)]


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskFull(LogDirFault):
    """The disk of a log directory has room for only so many more bytes. Retention makes room again.

    An append that does not fit fails, and the broker reacts as to any I/O error: it takes the
    directory offline and continues without the replicas there (KIP-112, from 1.0 on), or exits if
    it has no other directory, in KRaft also if it is directory 0. Replicas of the same size fill up
    at the same time. When the fault ends, an operator makes room and restarts the broker.
    """

    name: ClassVar[str] = "disk_full"

    room: Skip = described("How many more bytes fit.", default=0)

    def effects(self, environment: Environment) -> Effects:
        return [FailLogDir(self.broker, self.log_dir, self.room)]


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskSlow(LastingFault):
    """The disk of a broker writes slowly.

    Each append waits for those before it, and keeps its I/O thread meanwhile. Once all
    `num.io.threads` wait, every other request waits behind them. That includes fetches of
    followers, so a leader with a slow disk removes healthy followers from the ISR, and requests of
    the controller unless `control.plane.listener.name` gives those a queue of their own. The broker
    keeps its session, which needs no I/O thread. Delays of several faults on one disk add up.
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
    to them. `recovery-point-offset-checkpoint` says from where a log is checked after a crash,
    `log-start-offset-checkpoint` where a log begins within a segment, `cleaner-offset-checkpoint`
    up to where it was compacted. `leader-epoch-checkpoint` says where leader epochs begin, by which
    followers truncate (KIP-101). Recovery completes it from the batches that it checks, unless the
    broker had shut down cleanly.
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
