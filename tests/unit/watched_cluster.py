"""Replicas of one partition whose invariants are watched; what they do, a test says step by step."""

from collections.abc import Iterable
from dataclasses import dataclass

from cluster_model.disk import Disk
from cluster_model.invariant_monitor import InvariantMonitor
from cluster_model.invariants import INVARIANTS
from cluster_model.record_batch import RecordBatch
from cluster_model.release import Behaviours
from cluster_model.replica_log import ReplicaLog
from tests.unit.fakes import batch

T = "t-0"


@dataclass
class Leader:
    name: str
    broker: int
    leader_epoch: int
    isr: tuple[int, ...]


class Watched:
    """Three brokers with a replica each, watched; broker 0 leads in epoch 0, all are in the ISR."""

    def __init__(
        self, names: Iterable[str] = tuple(INVARIANTS), behaviours: Behaviours | None = None
    ) -> None:
        self.behaviours = behaviours or Behaviours()
        self.disks = {broker: Disk() for broker in range(3)}
        self.broken: list[tuple[str, int, str, int, int]] = []
        self.details: list[str] = []
        self.monitor = InvariantMonitor(tuple(names), self.disks, self.note)
        self.logs = {broker: self.open(broker) for broker in self.disks}
        self.lead(0, 0, (0, 1, 2))

    def note(self, name: str, broker: int, partition: str, epoch: int, offset: int, details: str) -> None:
        self.broken.append((name, broker, partition, epoch, offset))
        self.details.append(details)

    def names(self) -> list[str]:
        return [name for name, *_ in self.broken]

    def open(self, broker: int) -> ReplicaLog:
        log = ReplicaLog(T, self.disks[broker], self.behaviours)
        self.monitor.log_opened(broker, T, log)
        return log

    def restart(self, broker: int, *, power_loss: bool = False) -> None:
        self.monitor.broker_stopped(broker)
        if power_loss:
            self.disks[broker].log_file(T).lose_power()
        self.logs[broker] = self.open(broker)

    def elect(self, broker: int, epoch: int, isr: tuple[int, ...]) -> None:
        """The controller elects; the broker has not heard of it yet."""
        self.monitor.partition_created(T, epoch, isr)

    def lead(self, broker: int, epoch: int, isr: tuple[int, ...]) -> Leader:
        self.elect(broker, epoch, isr)
        leader = Leader(T, broker, epoch, isr)
        self.monitor.became_leader(leader)
        return leader

    def append(self, broker: int, *values: str, epoch: int = 0) -> None:
        self.copy(batch(*values).stored_at(self.logs[broker].log_end_offset, epoch), broker)

    def copy(self, stored: RecordBatch, *brokers: int) -> None:
        for broker in brokers:
            self.logs[broker].append_as_follower(stored)
            self.monitor.appended(broker, T)

    def fetch(self, leader: int, *followers: int) -> None:
        """Followers copy all that they do not have."""
        for follower in followers:
            for stored in self.logs[leader].batches:
                if stored.base_offset >= self.logs[follower].log_end_offset:
                    self.copy(stored, follower)

    def raise_hw(self, high_watermark: int, *brokers: int) -> None:
        for broker in brokers:
            self.logs[broker].high_watermark = high_watermark
            self.monitor.high_watermark_set(broker, T)

    def truncate(self, broker: int, offset: int) -> None:
        self.logs[broker].truncate_to(offset)
        self.monitor.truncated(broker, T)

    def commit(self, *values: str, leader: int = 0, epoch: int = 0) -> None:
        """The leader appends, all others copy, all know that it is committed."""
        followers = [broker for broker in self.logs if broker != leader]
        for value in values:
            self.append(leader, value, epoch=epoch)
        self.fetch(leader, *followers)
        self.raise_hw(self.logs[leader].log_end_offset, leader, *followers)
