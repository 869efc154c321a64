"""What a plan is run on: a model of a cluster, or real brokers.

A run knows nothing of a cluster but what stands here. What acts on it goes through `Target.environment`
(faults) and `Target.clients`; what looks at it goes through `Target.observer`; and what it leaves is
`Target.evidence`.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from harrow.campaigns.clients.clients import Clients
from harrow.checks.evidence import Evidence, PartitionSettings
from harrow.cluster_model.settings import BrokerConfig
from harrow.cluster_model.trace import Trace
from harrow.faults.effects import FaultEffect
from harrow.faults.fault import Environment
from harrow.faults.observer import Observer


class StruckEnvironment(Environment, Protocol):
    """What faults see of a target, and act on. ``strike`` is the number of the fault that acts now, as the trace numbers them."""

    strike: int

    def lack(self, effect: FaultEffect) -> str | None:
        """Return why an effect is impossible here, None where it is possible (`harrow.faults.handlers`)."""

    def perform(self, effect: FaultEffect) -> None:
        """Have an effect that is possible."""


class CannotDoError(Exception):
    """A target cannot do or see what a campaign asks for; the message says what."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long things may take on a target that is looked at now and then, in microseconds.

    What a script expects in passing may be seen ``passing_us`` later, and some instants are never seen. A step waits for its
    condition for ``step_us`` at the most.
    """

    passing_us: int
    step_us: int


class RunObserver(Observer, Protocol):
    """What conditions see, and what a run looks at itself."""

    def replicas_of(self, partition: str) -> tuple[int, ...]:
        """Return the brokers that a partition is assigned to."""

    def quorum(self) -> tuple[int, ...]:
        """Return the node ids of the ZooKeeper servers, or of the controllers of KRaft, as far as they can be struck."""

    def quorum_leader(self) -> int | None:
        """Return which of them leads a majority of them; None while there is none."""

    def electable(self, partition: str) -> tuple[int, ...]:
        """Return who can lead a partition cleanly, alive or not: its ISR; where that is empty its ELR, or who led last (KIP-966)."""

    def recovery_sets(self, partition: str) -> tuple[tuple[int, ...], ...]:
        """Return sets of brokers of which one each has to be alive, so that a partition gets a leader.

        That is the ISR. With ELRs (KIP-966) it hangs on who has stopped uncleanly.
        """

    def is_impaired(self, broker: int) -> bool:
        """Return whether a broker runs and can keep its session while some fault stands against it."""

    def is_stuck(self, partition: str, broker: int) -> bool:
        """Return whether a follower can never have all that its leader has: a damaged batch stands in between."""

    def step_taken(self, position: int) -> None:
        """From *position* of the trace on counts what the next step waits for."""


@dataclass(frozen=True, slots=True)
class CommittedCopies:
    """The brokers that can be elected for a partition: the ``whole`` ones have every committed record, the ``hollow`` ones do not.

    Only members of the ISR are elected, or of the ELR where it is empty. ``enough`` copies are ``min.insync.replicas``.
    """

    whole: frozenset[int]
    hollow: frozenset[int]
    enough: int

    def can_spare(self, broker: int) -> bool:
        """Return whether enough whole copies stay without a broker's."""
        return len(self.whole - {broker}) >= self.enough


class Target(Protocol):
    """A cluster that a plan is run on. Times are microseconds since it was ready.

    Into ``trace`` goes what is done to the cluster, and what the target can tell of its inside, if anything.
    A target that shows every instant needs no ``patience``. ``invariants`` are those that it watches.
    """

    trace: Trace
    invariants: Collection[str]
    patience: Patience | None

    @property
    def kind(self) -> str:
        """Return what kind of target it is, by which clients are made."""

    @property
    def now_us(self) -> int:
        """Return the time."""

    @property
    def events_handled(self) -> int:
        """Return how many steps it has taken."""

    @property
    def environment(self) -> StruckEnvironment:
        """Return what faults act on."""

    @property
    def observer(self) -> RunObserver:
        """Return what conditions look through."""

    @property
    def clients(self) -> Clients:
        """Return the workload's clients."""

    def start(self) -> None:
        """Start the brokers and create the topics."""

    def advance(self, until_us: int) -> None:
        """Let the time pass up to *until_us*."""

    def step(self, until_us: int) -> bool:
        """Let one thing happen; return False if nothing does up to *until_us*."""

    def at(self, at_us: int, callback: Callable[[Any], None], argument: Any = None) -> None:
        """Call back at a time, unless the cluster has been healed by then."""

    def watch_messages(self) -> None:
        """Put every message into the trace from now on."""

    def watch_fetches(self) -> None:
        """Put every fetch that waits, or has waited in vain, into the trace; called before the start."""

    def elect_preferred_leaders(self) -> None:
        """Ask for preferred leader election, as an administrator does."""

    def alter_partition_reassignment(self, partition: str, target: tuple[int, ...] | None) -> None:
        """Ask for other replicas of a partition, or with None that its reassignment be cancelled."""

    def add_broker(self, broker: int) -> None:
        """Start a broker for the first time; nothing happens where it has joined already."""

    def throttle_replication(self, rate: int | None) -> None:
        """Have each broker replicate what is throttled at another rate, in bytes a second; None for without limit."""

    def delete_records(self, partition: str, offset: int) -> None:
        """Ask for what a partition has below an offset to be deleted, with -1 all that is committed."""

    def create_partitions(self, topic: str, total: int) -> None:
        """Ask that a topic have so many partitions."""

    def partition_names(self) -> Sequence[str]:
        """Return the partitions that there are now."""

    def committed_copies(self) -> Mapping[str, CommittedCopies]:
        """Return who can lead each partition with all that is committed; nothing where the run need not be survivable."""

    def heal(self) -> None:
        """End every fault, start what is down, and call back no more."""

    def heal_core(self, brokers: Collection[int]) -> None:
        """Do so for these brokers alone; the others stay as the faults have left them."""

    def broker_config(self, broker: int) -> BrokerConfig:
        """Return the settings that a broker has."""

    @property
    def registration_time_max_us(self) -> int:
        """Return the longest until a broker that is gone is noticed, or one that is back is registered."""

    def partition_settings(self) -> Mapping[str, PartitionSettings]:
        """Return what the cluster's settings promise of each partition."""

    def evidence(self) -> Evidence:
        """Return what rules judge, as far as the cluster and its clients tell it."""
