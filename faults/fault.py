"""What a fault is: data, and the effects that it has on a cluster."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from typing import ClassVar, Protocol, Self

from harrow.cluster_model import topology
from harrow.cluster_model.fields import LastsMarker, all_fields_of
from harrow.cluster_model.sim.choices import Stream
from harrow.cluster_model.sim.message_rule import MessageRule
from harrow.faults.action import Action, Operator
from harrow.faults.effects import Cut, Effects, FaultEffect, RuleMessages

Link = tuple[int | str, int | str]
"""One direction of a link: the sender and the receiver. An end is a broker's id, a client's name, or ``zookeeper``."""


def process_name(endpoint: int | str) -> str:
    """Return the name of the process at an end of a link."""
    return topology.process_name(endpoint) if isinstance(endpoint, int) else endpoint


def process_names(endpoints: Iterable[int | str]) -> frozenset[str]:
    """Return the names of several."""
    return frozenset(process_name(endpoint) for endpoint in endpoints)


class BrokerProcesses(Protocol):
    """Which brokers there are, and what state their processes are in."""

    def broker_ids(self) -> tuple[int, ...]:
        """Return the ids of all brokers."""

    def is_running(self, broker: int) -> bool:
        """Return whether a broker's process exists (it may be paused)."""

    def is_paused(self, broker: int) -> bool:
        """Return whether a broker's process is paused."""

    def is_stopping(self, broker: int) -> bool:
        """Return whether a broker's process has been told to stop and still exists."""


class ClientApplication(Protocol):
    """A client of the workload, as faults see it. What they do to it are effects (`harrow.faults.effects`)."""

    def is_running(self) -> bool:
        """Return whether there is a process of it (it may be paused), and it is one that faults can act on."""

    def is_paused(self) -> bool:
        """Return whether its process is paused."""

    def can_be_left_behind(self) -> bool:
        """Return whether a second process of it can run beside the first."""

    def steps(self) -> tuple[str, ...]:
        """Return the steps of its loop, none where it has no loop that could be held."""

    def held_at(self) -> str | None:
        """Return the step at which it is held, None where it is not."""

    def can_be_slowed(self) -> bool:
        """Return whether it polls in a loop, so that there is something to slow down."""

    def is_member(self) -> bool:
        """Return whether it is a member of a group, and can be closed and started again."""


class Environment(BrokerProcesses, Protocol):
    """A cluster as a fault sees it: processes, machines, links, clients. Effects change it (`harrow.faults.effects`).

    A broker is named by its id, any end of a link by a broker's id, a client's name or ``"zookeeper"``.
    """

    def client_names(self) -> tuple[str, ...]:
        """Return the names of the clients."""

    def client(self, name: str) -> ClientApplication:
        """Return a client."""

    def has_logs(self, broker: int) -> bool:
        """Return whether a process has logs of partitions: servers of the control plane alone do not."""

    def log_dirs(self) -> int:
        """Return how many log directories each broker has."""

    def has_batch(self, broker: int, partition: str, offset: int | None) -> bool:
        """Return whether a broker's disk has a record at an offset of a partition, or any."""

    def may_lose_power(self, broker: int) -> bool:
        """Return whether the campaign's budget allows a broker's unflushed records to go."""

    def may_lose_disk(self, broker: int) -> bool:
        """Return whether a process has something on its disk, and the campaign's budget allows that it goes."""

    def controller(self) -> int | None:
        """Return the broker that is controller, as an administrator finds out."""

    def under_replicated_partitions(self) -> tuple[str, ...]:
        """Return the partitions whose ISR is not complete (``kafka-topics --under-replicated-partitions``)."""

    def is_link_cut(self, sender: int | str, receiver: int | str) -> bool:
        """Return whether nothing passes from one end to the other."""

    def has_message_rule(self, name: str) -> bool:
        """Return whether a rule of that name is in force."""


class Fault(Action):
    """A fault: a frozen dataclass whose fields are its campaign syntax (`harrow.cluster_model.fields`).

    It is made concrete before it is injected: a reference to a broker becomes the broker's id, a range of
    durations becomes one duration. So `applies` and `effects` see ids, and draw nothing.
    """

    __slots__ = ()

    is_noted: ClassVar[bool] = True
    parts_control_plane: ClassVar[bool] = False
    """Whether the servers of ZooKeeper, or the controllers of KRaft, are single ends of links to it, and ``zookeeper`` all of them."""

    def take(self, operator: Operator) -> list[str]:
        """Inject it; a script expects that it finds something."""
        return [] if operator.inject(self) else [f"{self.name} found nothing to act on"]

    def problem(self) -> str | None:
        """Return why a campaign cannot mean this, None if it can."""
        return None

    def decided(self, draw: Stream) -> Self:
        """Return it with what it leaves to chance drawn, once it is known whom it strikes."""
        return self

    def applies(self, environment: Environment) -> bool:
        """Return whether there is something to do it to: not where a broker is down already."""
        return self.problem() is None

    @abstractmethod
    def effects(self, environment: Environment) -> Effects:
        """Return what it does, in order."""

    def is_lasting(self) -> bool:
        """Return whether it stays in force until something ends it."""
        return False

    def named(self) -> "Fault | None":
        """Return the fault that says of a broker what this one does to that which it looks for; None for this one."""
        return None

    def plainer(self) -> Iterator["Fault"]:
        """Yield plainer faults that may come to the same, beside those with a field as by default."""
        yield from ()

    def crashes(self, brokers: tuple[int, ...]) -> Iterator["Fault"]:
        """Yield crashes of one of the brokers that may come to the same."""
        yield from ()

    def ends(self, other: "Fault") -> bool:
        """Return whether it takes another one out of force."""
        return False


class LastingFault(Fault):
    """A fault that stays in force for a while: the time in its field of the kind `Lasts`.

    Where that is None, it lasts until the cluster is healed.
    """

    __slots__ = ()

    def is_lasting(self) -> bool:
        """Return whether it stays in force until something ends it."""
        return True

    def lasts_us(self) -> int | None:
        """Return how long it lasts, once that has been drawn; None for until the cluster is healed."""
        given = (item.of(self) for item in all_fields_of(type(self)) if item.kind is LastsMarker)
        return next((low_us for low_us, _ in filter(None, given)), None) if self.is_lasting() else None

    def is_in_force(self, processes: BrokerProcesses) -> bool:
        """Return whether there is something left to end: not where a crashed broker runs again already."""
        return True

    def end(self, environment: Environment) -> Effects:
        """Return what undoes it, as far as it is still in force: by default the end of each of its effects."""
        return [undo for effect in self.effects(environment) if (undo := effect.undo()) is not None]


class GradualFault(LastingFault):
    """A fault that is done in steps, with time between them; it is over with the last one."""

    __slots__ = ()

    @abstractmethod
    def steps(self, environment: Environment) -> Iterator[FaultEffect | int]:
        """Yield what it does, and for how many microseconds it waits before it looks again."""

    def effects(self, environment: Environment) -> Effects:
        """Return nothing: the injector takes the steps."""
        return ()


class LinkFault(LastingFault):
    """A lasting fault that cuts links, so that nothing passes on them."""

    __slots__ = ()

    @abstractmethod
    def links(self, environment: BrokerProcesses) -> list[Link]:
        """Return the links, in each direction that is cut."""

    def effects(self, environment: Environment) -> Effects:
        return [Cut(sender, receiver) for sender, receiver in self.links(environment)]


class MessageFault(LastingFault):
    """A lasting fault that is a rule for messages; ``count`` of them may be all that it touches."""

    __slots__ = ()

    @abstractmethod
    def rule(self, environment: Environment) -> MessageRule:
        """Return the rule."""

    def effects(self, environment: Environment) -> Effects:
        return [RuleMessages(self.rule(environment))]

    def messages(self) -> int | None:
        """Return after how many messages it is over; None where their number does not end it."""
        return None
