"""Invariants check the replicas of one partition, and a test drives these step by step."""

from collections.abc import Iterable
from dataclasses import dataclass

from harrow.cluster_model.events import (
    BatchReplicated,
    BecameLeader,
    BrokerStopped,
    HighWatermarkSet,
    InvariantBroken,
    IsrChanged,
    IsrReduced,
    LogOpened,
    LogTruncated,
)
from harrow.cluster_model.invariants.catalogue import INVARIANTS
from harrow.cluster_model.invariants.monitor import InvariantMonitor
from harrow.cluster_model.log.disk import Disk
from harrow.cluster_model.log.record_batch import RecordBatch
from harrow.cluster_model.log.unified_log import UnifiedLog
from harrow.cluster_model.release.profiles import Behaviours
from harrow.cluster_model.trace import Trace
from tests.cluster_model.fakes import FakeClock, batch

PARTITION = "t-0"


@dataclass
class Leader:
    name: str
    broker: int
    leader_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...] = (0, 1, 2)
    min_insync_replicas: int = 1


class WatchedCluster:
    """Three brokers with a replica each, all in the ISR. Broker 0 leads in epoch 0."""

    def __init__(
        self, names: Iterable[str] = tuple(INVARIANTS), behaviours: Behaviours | None = None
    ) -> None:
        self.behaviours = behaviours or Behaviours()
        self.disks = {broker: Disk() for broker in range(3)}
        self.broken: list[tuple[str, int, str, int, int]] = []
        self.details: list[str] = []
        self.logs: dict[int, UnifiedLog] = {}
        self.leaders: dict[int, Leader] = {}
        trace = Trace(FakeClock())
        self.trace = trace
        self.emit = trace.emit
        trace.subscribe(InvariantBroken, self.note)
        self.monitor = InvariantMonitor(tuple(names), trace, self.disks, self)
        for broker in self.disks:
            self.open(broker)
        self.lead(0, 0, (0, 1, 2))

    def note(self, name: str, broker: int, partition: str, epoch: int, offset: int, details: str) -> None:
        self.broken.append((name, broker, partition, epoch, offset))
        self.details.append(details)

    def names(self) -> list[str]:
        return [name for name, *_ in self.broken]

    def log(self, broker: int, _partition: str) -> UnifiedLog:
        return self.logs[broker]

    def leader(self, broker: int, _partition: str) -> Leader:
        return self.leaders[broker]

    def open(self, broker: int) -> UnifiedLog:
        log = self.logs[broker] = UnifiedLog(PARTITION, self.disks[broker], self.behaviours)
        self.emit(LogOpened, broker, PARTITION, log.log_end_offset, log.high_watermark)
        return log

    def stop(self, broker: int) -> None:
        self.emit(BrokerStopped, broker, "process")

    def restart(self, broker: int, *, power_loss: bool = False) -> None:
        self.stop(broker)
        if power_loss:
            self.disks[broker].log_file(PARTITION).lose_power()
        self.open(broker)

    def elect(self, broker: int, epoch: int, isr: tuple[int, ...]) -> None:
        """Elect a leader that has not yet learned of its election."""
        self.emit(IsrReduced, 0, PARTITION, broker, epoch, isr)

    def lead(self, broker: int, epoch: int, isr: tuple[int, ...]) -> Leader:
        self.elect(broker, epoch, isr)
        leader = self.leaders[broker] = Leader(PARTITION, broker, epoch, isr)
        self.emit(BecameLeader, broker, PARTITION, epoch, self.logs[broker].log_end_offset, isr)
        return leader

    def append(self, broker: int, *values: str, epoch: int = 0) -> None:
        self.copy(batch(*values).stored_at(self.logs[broker].log_end_offset, epoch), broker)

    def copy(self, stored: RecordBatch, *brokers: int) -> None:
        for broker in brokers:
            self.logs[broker].append_as_follower(stored)
            self.report_append(broker)

    def fetch(self, leader: int, *followers: int) -> None:
        """Let followers copy the records that they lack."""
        for follower in followers:
            for stored in self.logs[leader].batches:
                if stored.base_offset >= self.logs[follower].log_end_offset:
                    self.copy(stored, follower)

    def set_hw(self, high_watermark: int, *brokers: int) -> None:
        for broker in brokers:
            self.logs[broker].high_watermark = high_watermark
            self.emit(HighWatermarkSet, broker, PARTITION, high_watermark)

    def truncate(self, broker: int, offset: int) -> None:
        self.logs[broker].truncate_to(offset)
        self.report_truncation(broker)

    def compact(self, broker: int, *offsets: int) -> None:
        """Let a broker compact its log, and remove the batches with these base offsets."""
        file = self.disks[broker].log_file(PARTITION)
        self.logs[broker].compacts = file.compacts = True
        batches = [stored for stored in file.batches if stored.base_offset not in offsets]
        file.replace_segments(0, len(file.segments), batches)

    def report_truncation(self, broker: int) -> None:
        self.emit(LogTruncated, broker, PARTITION, 0, self.logs[broker].log_end_offset, "leader epoch")

    def report_append(self, broker: int) -> None:
        batches = self.logs[broker].batches
        last = batches[-1]
        self.emit(
            BatchReplicated,
            broker,
            PARTITION,
            last.base_offset,
            last.leader_epoch,
            last.producer_id,
            last.base_sequence,
            last.values,
        )

    def change_isr(self, leader: Leader) -> None:
        self.emit(IsrChanged, leader.broker, PARTITION, leader.leader_epoch, leader.isr, "expand")

    def commit(self, *values: str, leader: int = 0, epoch: int = 0) -> None:
        """Append on the leader, copy to all others, and set every high watermark to the LEO."""
        followers = [broker for broker in self.logs if broker != leader]
        for value in values:
            self.append(leader, value, epoch=epoch)
        self.fetch(leader, *followers)
        self.set_hw(self.logs[leader].log_end_offset, leader, *followers)
