"""Defines the facts that a condition may state.

Facts are visible from outside the brokers: log offsets and epochs, znodes, results of clients, and
trace events.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Final, Literal

from harrow.cluster_model import fields
from harrow.cluster_model.fields import (
    BrokerId,
    BrokerOrNone,
    ControllerId,
    EventMatch,
    Partition,
    described,
)
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.faults.event_pattern import EventPattern
from harrow.faults.observer import Observer


class Fact(ABC):
    """A fact about a cluster.

    Each fact is a frozen dataclass, and its fields are its syntax in a campaign
    (`harrow.cluster_model.fields`). ``name`` is the key of the fact in a condition. A campaign
    writes the fields in ``keyed_by`` as the keys of nested mappings, whose values are the other
    fields: ``leader: {t-0: 1}``. A condition can state a fact that ``is_single`` only once, and a
    fact that ``repeats`` several times for the same keys, as a list. If a fact has a partition and
    a broker, the broker must be a replica of the partition.
    """

    __slots__ = ()

    name: ClassVar[str]
    keyed_by: ClassVar[tuple[str, ...]] = ()
    is_single: ClassVar[bool] = False
    repeats: ClassVar[bool] = False

    @abstractmethod
    def mismatches(self, observer: Observer) -> list[str]:
        """Return in words how the cluster differs from the fact; nothing if the fact holds."""

    def patterns(self) -> tuple[EventPattern, ...]:
        """Return the patterns of the events that must have occurred, or must not."""
        return ()

    def position(self, observer: Observer) -> int | None:
        """Return the trace position after the event that the fact needs; None if it needs none."""
        return None


def difference(subject: str, actual: Any, expected: Any) -> list[str]:
    """Return the difference of two values in words, or an empty list if they are equal."""
    return (
        [] if actual == expected else [f"{subject} is {value_text(actual)}, expected {value_text(expected)}"]
    )


def value_text(value: Any) -> str:
    """Return a value in words."""
    if value is None:
        return "unknown"
    if isinstance(value, tuple):
        return "[" + ", ".join(value_text(part) for part in value) + "]"
    return str(value)


_NAMES_IN_MESSAGES: Final = {
    "role": "role",
    "leo": "LEO",
    "hw": "HW",
    "leader_epoch": "leader epoch",
    "flushed": "flushed",
    "epochs": "epochs",
    "log": "log",
}
"""The fields of a replica that are compared by equality, and what messages call them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaIs(Fact):
    """Replicas by partition and broker, or lists of such facts; omitted fields match anything."""

    name: ClassVar[str] = "replicas"
    keyed_by: ClassVar[tuple[str, ...]] = ("partition", "broker")
    repeats: ClassVar[bool] = True

    partition: Partition = described("Which partition.")
    broker: BrokerId = described("On which broker.")
    role: Literal["leader", "follower"] | None = described("Its role.", default=None)
    leo: fields.Skip | None = described("Its log end offset.", default=None)
    hw: fields.Skip | None = described("Its high watermark.", default=None)
    leader_epoch: int | None = described("Its latest leader epoch.", default=None, minimum=-1)
    flushed: fields.Skip | None = described("The offset up to which its log has been flushed.", default=None)
    remote: fields.OffsetsByBroker | None = described(
        "On a leader: the LEO of each follower as the leader has it.", default=None
    )
    epochs: fields.EpochStarts | None = described(
        "Its leader epoch cache, as pairs of epoch and start offset.", default=None
    )
    log: tuple[str, ...] | None = described("The values in its log.", default=None)

    def compared_fields(self) -> tuple[str, ...]:
        """Return the names of the fields that the fact sets; only these are compared."""
        return tuple(name for name in (*_NAMES_IN_MESSAGES, "remote") if getattr(self, name) is not None)

    def mismatches(self, observer: Observer) -> list[str]:
        where = f"{self.partition} on broker {self.broker}"
        view = observer.replica(self.partition, self.broker)
        if view is None:
            return [f"{where}: there is no such replica now"]
        differences: list[str] = []
        for name, words in _NAMES_IN_MESSAGES.items():
            expected = getattr(self, name)
            if expected is not None:
                differences += difference(f"{where}: {words}", getattr(view, name), expected)
        for follower, leo in self.remote or ():
            differences += difference(f"{where}: remote LEO of {follower}", view.remote.get(follower), leo)
        return differences


@dataclass(frozen=True, slots=True)
class LeaderIs(Fact):
    """Leaders as in the partitions' znodes; -1 means no leader."""

    name: ClassVar[str] = "leader"
    keyed_by: ClassVar[tuple[str, ...]] = ("partition",)

    partition: Partition = described("Which partition.")
    broker: BrokerOrNone = described("Its leader.")

    def mismatches(self, observer: Observer) -> list[str]:
        state = observer.partition_state(self.partition)
        return difference(f"leader of {self.partition}", state and state[0], self.broker)


@dataclass(frozen=True, slots=True)
class LeaderEpochIs(Fact):
    """Leader epochs as in the partitions' znodes."""

    name: ClassVar[str] = "leader_epoch"
    keyed_by: ClassVar[tuple[str, ...]] = ("partition",)

    partition: Partition = described("Which partition.")
    epoch: int = described("Its leader epoch.", minimum=-1)

    def mismatches(self, observer: Observer) -> list[str]:
        state = observer.partition_state(self.partition)
        return difference(f"leader epoch of {self.partition}", state and state[1], self.epoch)


@dataclass(frozen=True, slots=True)
class IsrIs(Fact):
    """ISRs as in the partitions' znodes, in any order."""

    name: ClassVar[str] = "isr"
    keyed_by: ClassVar[tuple[str, ...]] = ("partition",)

    partition: Partition = described("Which partition.")
    isr: tuple[BrokerId, ...] = described("Its members.")

    def mismatches(self, observer: Observer) -> list[str]:
        state = observer.partition_state(self.partition)
        if state is not None and sorted(state[2]) == sorted(self.isr):
            return []
        return difference(f"ISR of {self.partition}", state and state[2], self.isr)


@dataclass(frozen=True, slots=True)
class AssignmentIs(Fact):
    """The replicas of partitions, preferred leader first, unless a reassignment is in progress."""

    name: ClassVar[str] = "assignment"
    keyed_by: ClassVar[tuple[str, ...]] = ("partition",)

    partition: Partition = described("Which partition.")
    replicas: tuple[BrokerId, ...] = described("Its replicas.")

    def mismatches(self, observer: Observer) -> list[str]:
        assignment = observer.assignment(self.partition)
        if assignment is not None and (assignment[1] or assignment[2]):
            return [f"{self.partition} is being reassigned: {_reassignment_text(*assignment[1:])}"]
        return difference(f"assignment of {self.partition}", assignment and assignment[0], self.replicas)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReassignmentIs(Fact):
    """Reassignments in progress: the replicas that they add and remove, in any order."""

    name: ClassVar[str] = "reassigning"
    keyed_by: ClassVar[tuple[str, ...]] = ("partition",)

    partition: Partition = described("Which partition.")
    adding: tuple[BrokerId, ...] = described("Its adding replicas.", default=())
    removing: tuple[BrokerId, ...] = described("Its removing replicas.", default=())

    def mismatches(self, observer: Observer) -> list[str]:
        assignment = observer.assignment(self.partition)
        expected = [set(self.adding), set(self.removing)]
        if assignment is not None and [set(brokers) for brokers in assignment[1:]] == expected:
            return []
        return difference(
            f"reassignment of {self.partition}",
            assignment and _reassignment_text(*assignment[1:]),
            _reassignment_text(self.adding, self.removing),
        )


def _reassignment_text(adding: Sequence[int], removing: Sequence[int]) -> str:
    return f"adding {value_text(adding)}, removing {value_text(removing)}"


@dataclass(frozen=True, slots=True)
class ControllerIs(Fact):
    """The controller: the broker in /controller, or in KRaft the active controller."""

    name: ClassVar[str] = "controller"
    is_single: ClassVar[bool] = True

    broker: ControllerId = described("Which one.")

    def mismatches(self, observer: Observer) -> list[str]:
        return difference("controller", observer.controller(), self.broker)


@dataclass(frozen=True, slots=True)
class BrokerIs(Fact):
    """The state of brokers' processes."""

    name: ClassVar[str] = "brokers"
    keyed_by: ClassVar[tuple[str, ...]] = ("broker",)

    broker: BrokerId = described("Which broker.")
    state: Literal["up", "down", "paused"] = described("The state of its process.")

    def mismatches(self, observer: Observer) -> list[str]:
        return difference(f"broker {self.broker}", observer.broker_state(self.broker), self.state)


@dataclass(frozen=True, slots=True)
class IsRegistered(Fact):
    """Whether a broker is registered: in /brokers/ids, or unfenced in KRaft's controller."""

    name: ClassVar[str] = "registered"
    keyed_by: ClassVar[tuple[str, ...]] = ("broker",)

    broker: BrokerId = described("Which broker.")
    is_so: bool = described("Whether it is.")

    def mismatches(self, observer: Observer) -> list[str]:
        if observer.is_registered(self.broker) == self.is_so:
            return []
        return [f"broker {self.broker} is {'not ' if self.is_so else ''}registered"]


@dataclass(frozen=True, slots=True)
class IsAcked(Fact):
    """Values whose send was acknowledged."""

    name: ClassVar[str] = "acked"

    value: str = described("The record's value.")

    def mismatches(self, observer: Observer) -> list[str]:
        return [] if observer.is_acked(self.value) else [f"{self.value} is not acked"]


@dataclass(frozen=True, slots=True)
class IsNotAcked(Fact):
    """Values whose send was not acknowledged."""

    name: ClassVar[str] = "not_acked"

    value: str = described("The record's value.")

    def mismatches(self, observer: Observer) -> list[str]:
        return [f"{self.value} is acked"] if observer.is_acked(self.value) else []


@dataclass(frozen=True, slots=True)
class HasFailed(Fact):
    """Values whose send failed."""

    name: ClassVar[str] = "failed"

    value: str = described("The record's value.")

    def mismatches(self, observer: Observer) -> list[str]:
        return [] if observer.is_failed(self.value) else [f"{self.value} has not failed"]


@dataclass(frozen=True, slots=True)
class IsConsumed(Fact):
    """Values that a consumer received."""

    name: ClassVar[str] = "consumed"

    value: str = described("The record's value.")

    def mismatches(self, observer: Observer) -> list[str]:
        return [] if observer.is_consumed(self.value) else [f"{self.value} is not consumed"]


@dataclass(frozen=True, slots=True)
class IsNotConsumed(Fact):
    """Values that no consumer received."""

    name: ClassVar[str] = "not_consumed"

    value: str = described("The record's value.")

    def mismatches(self, observer: Observer) -> list[str]:
        return [f"{self.value} is consumed"] if observer.is_consumed(self.value) else []


@dataclass(frozen=True, slots=True)
class HasHappened(Fact):
    """Events that have occurred since the previous step."""

    name: ClassVar[str] = "event"

    event: EventMatch = described("Which event.")

    def mismatches(self, observer: Observer) -> list[str]:
        is_missing = observer.first_match(self.event) is None
        return [f"{self.event.describe()} has not happened"] if is_missing else []

    def patterns(self) -> tuple[EventPattern, ...]:
        return (self.event,)

    def position(self, observer: Observer) -> int | None:
        return observer.first_match(self.event)


@dataclass(frozen=True, slots=True)
class HasNotHappened(Fact):
    """Events that have not occurred since the previous step."""

    name: ClassVar[str] = "no_event"

    event: EventMatch = described("Which event.")

    def mismatches(self, observer: Observer) -> list[str]:
        is_missing = observer.first_match(self.event) is None
        return [] if is_missing else [f"{self.event.describe()} has happened"]

    def patterns(self) -> tuple[EventPattern, ...]:
        return (self.event,)
