"""Defines what a fault is: data that says which effects it has on a cluster."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, Final, Protocol, Self

from harrow.cluster_model import topology
from harrow.cluster_model.fields import LastsMarker, fields_of_kind
from harrow.cluster_model.sim.choices import Stream
from harrow.cluster_model.sim.message_rule import MessageRule
from harrow.faults.action import Action, Operator
from harrow.faults.effects import Cut, Effects, End, FaultEffect, RuleMessages

Link = tuple[End, End]
"""One direction of a link: the sender and the receiver."""

UNTIL_HEALED: Final = "How long; by default until the cluster is healed."
RESTART_TEXT: Final = (
    "How long until it is started again; by default it stays down until the cluster is healed."
)


def process_name(end: End) -> str:
    """Return the name of the process at an end of a link."""
    return topology.process_name(end) if isinstance(end, int) else end


def process_names(ends: Iterable[End]) -> frozenset[str]:
    """Return the names of the processes at several ends of links."""
    return frozenset(process_name(end) for end in ends)


class BrokerProcesses(Protocol):
    """The brokers and the state of their processes."""

    def broker_ids(self) -> tuple[int, ...]:
        """Return the ids of all brokers."""

    def is_running(self, broker: int) -> bool:
        """Return whether a broker's process exists, paused or not."""

    def is_paused(self, broker: int) -> bool:
        """Return whether a broker's process is paused."""

    def is_stopping(self, broker: int) -> bool:
        """Return whether a broker's process exists and is shutting down."""


class ClientApplication(Protocol):
    """A client of the workload, as faults see it.

    Faults change it only by their effects (`harrow.faults.effects`).
    """

    def is_running(self) -> bool:
        """Return whether its process exists, paused or not, so that faults can act on it."""

    def is_paused(self) -> bool:
        """Return whether its process is paused."""

    def can_become_zombie(self) -> bool:
        """Return whether the client can become a zombie: a second process runs beside the first."""

    def steps(self) -> tuple[str, ...]:
        """Return the steps of its loop at which it can be held; none for other clients."""

    def held_at(self) -> str | None:
        """Return the step at which it is held; None if it is not held."""

    def can_be_slowed(self) -> bool:
        """Return whether it polls in a loop, which a fault can slow down."""

    def is_member(self) -> bool:
        """Return whether it is a group member that can be closed and started again."""


class Environment(BrokerProcesses, Protocol):
    """A cluster as faults see it: processes, machines, links, clients.

    Faults change it only by their effects (`harrow.faults.effects`).
    """

    def client_names(self) -> tuple[str, ...]:
        """Return the names of the clients."""

    def client(self, name: str) -> ClientApplication:
        """Return a client."""

    def has_logs(self, broker: int) -> bool:
        """Return whether a process has partition logs.

        ZooKeeper servers and separate controllers have none.
        """

    def log_dirs(self) -> int:
        """Return how many log directories each broker has."""

    def has_batch(self, broker: int, partition: str, offset: int | None) -> bool:
        """Return whether a broker's disk has a record at *offset*; None means any record."""

    def may_lose_power(self, broker: int) -> bool:
        """Return whether the campaign's budget allows a broker to lose its unflushed records."""

    def may_lose_disk(self, broker: int) -> bool:
        """Return whether a process has a disk that it may lose within the campaign's budget."""

    def controller(self) -> int | None:
        """Return the broker that is controller, as an administrator sees it."""

    def under_replicated_partitions(self) -> tuple[str, ...]:
        """Return the partitions with an incomplete ISR (``--under-replicated-partitions``)."""

    def is_link_cut(self, sender: End, receiver: End) -> bool:
        """Return whether the link from *sender* to *receiver* is cut."""

    def message_rules(self) -> Sequence[MessageRule]:
        """Return the message rules that are in force or still hold messages."""


class Fault(Action):
    """Something that goes wrong: an action that harrow can also inject at any time.

    Like each action, a fault is a frozen dataclass, and its fields are its syntax in a campaign.
    The injector makes a fault concrete before it strikes: a reference to a broker becomes the
    broker's id, and a range of durations becomes one duration. So `applies` and `effects` see ids
    and amounts, and draw nothing.
    """

    __slots__ = ()

    is_recorded: ClassVar[bool] = True
    parts_control_plane: ClassVar[bool] = False
    """Whether the end ``zookeeper`` stands for each server of the control plane, one by one."""
    is_load: ClassVar[bool] = False
    """Whether the fault only slows a broker, as a high load does."""

    def take(self, operator: Operator) -> list[str]:
        """Inject the fault. A script expects that the fault finds something to act on."""
        return [] if operator.inject(self) else [f"{self.name} found nothing to act on"]

    def problem(self) -> str | None:
        """Return why the values of the fields make no sense together; None if they do."""
        return None

    def with_choices(self, draw: Stream) -> Self:
        """Return the fault with its remaining random choices drawn.

        References are already resolved.
        """
        return self

    def applies(self, environment: Environment) -> bool:
        """Return whether the fault has something to act on.

        A crash of a broker that is already down has nothing.
        """
        return self.problem() is None

    @abstractmethod
    def effects(self, environment: Environment) -> Effects:
        """Return the effects of the fault, in order.

        All of them are computed before the first is performed. A fault that has to look at the
        cluster in between is a `GradualFault`.
        """

    def is_lasting(self) -> bool:
        """Return whether the fault stays in force until something ends it."""
        return False

    def on_fixed_broker(self) -> "Fault | None":
        """Return an equivalent fault that names its broker; None for a fault that already does."""
        return None

    def simpler(self) -> Iterator["Fault"]:
        """Yield simpler faults that may have the same outcome.

        The shrinker itself tries the defaults of fields.
        """
        yield from ()

    def crashes(self, brokers: tuple[int, ...]) -> Iterator["Fault"]:
        """Yield crashes of single *brokers* that may have the same outcome as this fault."""
        yield from ()

    def ends(self, other: "Fault") -> bool:
        """Return whether this fault ends another."""
        return False


class LastingFault(Fault):
    """A fault that stays in force for a time, which is in its field of the kind `Lasts`.

    If that is None, the fault stays in force until the cluster is healed.
    """

    __slots__ = ()

    def is_lasting(self) -> bool:
        return True

    def lasts_us(self) -> int | None:
        """Return how long the fault lasts; None means until the cluster is healed."""
        durations = (item.value_in(self) for item in fields_of_kind(type(self), LastsMarker))
        return next((low_us for low_us, _ in filter(None, durations)), None) if self.is_lasting() else None

    def is_in_force(self, processes: BrokerProcesses) -> bool:
        """Return whether there is anything left to undo.

        After a crash there is nothing if the broker already runs again.
        """
        return True

    def end(self, environment: Environment) -> Effects:
        """Return the effects that end the fault: by default the undo of each of its effects."""
        return [undo for effect in self.effects(environment) if (undo := effect.undo()) is not None]


class GradualFault(LastingFault):
    """A fault in several steps with time between them. It ends with the last step."""

    __slots__ = ()

    @abstractmethod
    def steps(self, environment: Environment) -> Iterator[FaultEffect | int]:
        """Yield the effects of the fault, and between them ints: microseconds to wait."""

    def effects(self, environment: Environment) -> Effects:
        """Return no effects: the injector takes the `steps` one by one."""
        return ()


class LinkFault(LastingFault):
    """A lasting fault of links. It cuts the links, unless a subclass overrides `effect_on`."""

    __slots__ = ()

    @abstractmethod
    def links(self, environment: BrokerProcesses) -> list[Link]:
        """Return the affected links. The two directions between processes are two links."""

    def effect_on(self, link: Link) -> FaultEffect:
        return Cut(*link)

    def applies(self, environment: Environment) -> bool:
        return bool(self.links(environment))

    def effects(self, environment: Environment) -> Effects:
        return [self.effect_on(link) for link in self.links(environment)]


class MessageFault(LastingFault):
    """A lasting fault that is a rule for single messages. It may end after a number of messages."""

    __slots__ = ()

    @abstractmethod
    def rule(self, environment: Environment) -> MessageRule:
        """Return the rule that the fault puts into force."""

    def effects(self, environment: Environment) -> Effects:
        return [RuleMessages(self.rule(environment))]

    def messages(self) -> int | None:
        """Return the number of messages after which the fault ends; None if no number ends it."""
        return None
