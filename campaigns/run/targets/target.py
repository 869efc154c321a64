"""Defines the interface of a target, on which a plan runs: a model of a cluster, or real brokers.

A run accesses the cluster only through this interface. `Target.environment` (for faults) and
`Target.clients` act on the cluster. `Target.observer` observes it. `Target.evidence` returns the
evidence with which rules judge the run.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol

from harrow.campaigns.clients.clients import Clients
from harrow.checks.evidence import Evidence, PartitionSettings
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.settings import BrokerConfig
from harrow.cluster_model.trace import Trace
from harrow.faults.action import Administration
from harrow.faults.effects import FaultEffect
from harrow.faults.fault import Environment
from harrow.faults.observer import Observer


class StruckEnvironment(Environment, Protocol):
    """The cluster as faults observe and change it. ``strike`` is the number of the acting fault."""

    strike: int

    def lack(self, effect: FaultEffect) -> str | None:
        """Return why an effect is impossible on this target; None if it is possible."""

    def perform(self, effect: FaultEffect) -> None:
        """Perform an effect, which must be possible."""


class CannotDoError(Exception):
    """A target cannot do or observe something that a campaign needs. The message names it."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a run waits on a target that can only be polled, in microseconds.

    If an expectation of a script does not hold, the run polls for ``transient_us`` until it does.
    Even so it may miss a short state. A step waits for its condition for ``step_us`` at most.
    """

    transient_us: int
    step_us: int


class RunObserver(Observer, Protocol):
    """Observes a target for conditions, and for the run itself."""

    def replicas_of(self, partition: str) -> tuple[int, ...]:
        """Return the brokers that a partition is assigned to."""

    def quorum(self) -> tuple[int, ...]:
        """Return the ids of the ZooKeeper servers or KRaft controllers that faults can strike."""

    def quorum_leader(self) -> int | None:
        """Return the server that leads a majority of the quorum; None if no server does."""

    def electable(self, partition: str) -> tuple[int, ...]:
        """Return the brokers that can lead a partition cleanly, alive or not.

        They are the ISR. If the ISR is empty, they are the eligible leader replicas (ELR) or the
        last leader (KIP-966).
        """

    def recovery_sets(self, partition: str) -> tuple[tuple[int, ...], ...]:
        """Return sets of brokers. A partition gets a leader if one broker of each set is alive.

        Usually the only set is the ISR. With eligible leader replicas (KIP-966) the sets depend on
        which brokers stopped uncleanly.
        """

    def is_impaired(self, broker: int) -> bool:
        """Return whether a fault impairs a broker that is running and can keep its session."""

    def is_stuck(self, partition: str, broker: int) -> bool:
        """Return whether a follower can never catch up, because the leader has a damaged batch."""

    def step_taken(self, position: int) -> None:
        """Let the next condition see only events of the trace from *position* on."""


@dataclass(frozen=True, slots=True)
class CommittedCopies:
    """The brokers that can be elected for a partition.

    ``complete`` brokers have every committed record, ``incomplete`` ones lack some. Only members of
    the ISR are electable, or of the ELR if the ISR is empty. ``min_isr`` is
    ``min.insync.replicas``, the number of complete copies to keep.
    """

    complete: frozenset[int]
    incomplete: frozenset[int]
    min_isr: int

    def can_spare(self, broker: int) -> bool:
        """Return whether enough complete copies remain without the one on *broker*."""
        return len(self.complete - {broker}) >= self.min_isr


class Target(Administration, Protocol):
    """A cluster that a plan runs on. Times are in microseconds since the run began.

    ``trace`` records what happens to the cluster, and also inside it if the target can observe
    that. A target on which a run sees every event needs no ``patience``. ``invariants`` names the
    invariants that the target checks.
    """

    trace: Trace
    invariants: Collection[str]
    patience: Patience | None

    @property
    def kind(self) -> str:
        """Return the kind of target, which decides the kind of clients."""

    @property
    def now_us(self) -> int: ...

    @property
    def events_handled(self) -> int: ...

    @property
    def environment(self) -> StruckEnvironment: ...

    @property
    def observer(self) -> RunObserver: ...

    @property
    def clients(self) -> Clients: ...

    def start(self) -> None:
        """Start the brokers and create the topics."""

    def advance(self, until_us: int) -> None:
        """Let time pass until *until_us*."""

    def step(self, until_us: int) -> bool:
        """Handle one event. Return False if there is none up to *until_us*."""

    def at(self, at_us: int, callback: Callable[[Any], None], argument: Any = None) -> None:
        """Call ``callback(argument)`` at a time, unless the cluster is healed before."""

    def watch_messages(self) -> None:
        """Record every message in the trace from now on."""

    def watch_fetches(self) -> None:
        """Record every fetch that waits or expires in the trace. Called before the start."""

    def partition_names(self) -> Sequence[str]: ...

    def committed_copies(self) -> Mapping[str, CommittedCopies]:
        """Return the brokers that can lead each partition; empty unless the run is survivable."""

    def heal(self) -> None:
        """End every fault, start every process that is down, and drop the callbacks of `at`."""

    def heal_core(self, brokers: Collection[int]) -> None:
        """Heal only these brokers. The others stay as the faults left them."""

    def broker_config(self, broker: int) -> BrokerConfig: ...

    @property
    def registration_time_max_us(self) -> int:
        """Return how long it may take to notice a lost broker, or to register a restarted one."""

    def partition_settings(self) -> Mapping[str, PartitionSettings]:
        """Return the settings of each partition that decide what Kafka promises."""

    def evidence(self) -> Evidence:
        """Return the evidence for the rules, as complete as the cluster and its clients allow."""
