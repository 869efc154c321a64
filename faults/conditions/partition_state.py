"""What the control plane has of a partition: its leader, its leader epoch, its ISR, its replicas."""

from dataclasses import dataclass
from typing import ClassVar

from harrow.cluster_model.fields import BrokerId, BrokerOrNone, Partition, described
from harrow.faults.conditions.fact import Fact, difference, shown
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


@dataclass(frozen=True, slots=True)
class AssignmentIs(Fact):
    """The replicas of partitions, preferred leader first, when no reassignment of them is under way."""

    name: ClassVar[str] = "assignment"
    keyed_by: ClassVar[tuple[str, ...]] = ("partition",)

    partition: Partition = described("Of which partition.")
    replicas: tuple[BrokerId, ...] = described("The brokers that have it.")

    def mismatches(self, observer: Observer) -> list[str]:
        found = observer.assignment(self.partition)
        if found is not None and (found[1] or found[2]):
            return [f"{self.partition} is being reassigned: {_reassigned(*found)}"]
        return difference(f"assignment of {self.partition}", found and found[0], self.replicas)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReassignmentIs(Fact):
    """Reassignments that are under way: whom they add and whom they remove, in any order."""

    name: ClassVar[str] = "reassigning"
    keyed_by: ClassVar[tuple[str, ...]] = ("partition",)

    partition: Partition = described("Of which partition.")
    adding: tuple[BrokerId, ...] = described("The brokers that are to get it.", default=())
    removing: tuple[BrokerId, ...] = described("The brokers that are to lose it.", default=())

    def mismatches(self, observer: Observer) -> list[str]:
        found = observer.assignment(self.partition)
        if found is not None and [set(each) for each in found[1:]] == [set(self.adding), set(self.removing)]:
            return []
        wanted = _reassigned((), self.adding, self.removing)
        return difference(f"reassignment of {self.partition}", found and _reassigned(*found), wanted)


def _reassigned(_: tuple[int, ...], adding: tuple[int, ...], removing: tuple[int, ...]) -> str:
    return f"adding {shown(adding)}, removing {shown(removing)}"
