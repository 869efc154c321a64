"""What a partition's znode says: its leader, its leader epoch, its ISR."""

from dataclasses import dataclass
from typing import ClassVar

from harrow.cluster_model.fields import BrokerId, BrokerOrNone, Partition, described
from harrow.faults.conditions.fact import Fact, difference
from harrow.faults.observer import Observer


@dataclass(frozen=True, slots=True)
class LeaderIs(Fact):
    """Leaders as in the partitions' znodes; -1 is no leader."""

    name: ClassVar[str] = "leader"
    keyed_by: ClassVar[tuple[str, ...]] = ("partition",)

    partition: Partition = described("Of which partition.")
    broker: BrokerOrNone = described("Who leads.")

    def mismatches(self, observer: Observer) -> list[str]:
        state = observer.partition_state(self.partition)
        return difference(f"leader of {self.partition}", state and state[0], self.broker)


@dataclass(frozen=True, slots=True)
class LeaderEpochIs(Fact):
    """Leader epochs as in the partitions' znodes."""

    name: ClassVar[str] = "leader_epoch"
    keyed_by: ClassVar[tuple[str, ...]] = ("partition",)

    partition: Partition = described("Of which partition.")
    epoch: int = described("The leader epoch.", minimum=-1)

    def mismatches(self, observer: Observer) -> list[str]:
        state = observer.partition_state(self.partition)
        return difference(f"leader epoch of {self.partition}", state and state[1], self.epoch)


@dataclass(frozen=True, slots=True)
class IsrIs(Fact):
    """ISRs as in the partitions' znodes, in any order."""

    name: ClassVar[str] = "isr"
    keyed_by: ClassVar[tuple[str, ...]] = ("partition",)

    partition: Partition = described("Of which partition.")
    isr: tuple[BrokerId, ...] = described("Its members.")

    def mismatches(self, observer: Observer) -> list[str]:
        state = observer.partition_state(self.partition)
        if state is not None and sorted(state[2]) == sorted(self.isr):
            return []
        return difference(f"ISR of {self.partition}", state and state[2], self.isr)
