"""The steps of a sequence for controllers: requests of brokers, with relative epochs."""

from typing import Final, Literal

from harrow.cluster_model.lazy_dataclass import dataclass

BROKERS: Final = (1, 2, 3)
"""The brokers of a sequence. None of them runs: the driver sends their requests."""
TOPIC: Final = "t"
ASSIGNMENT: Final = ((1, 2, 3), (2, 3, 1), (3, 1, 2))
"""The replicas of the topic, by partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterStep:
    """Register a broker, as the same process ``again`` or as a new one.

    With ``stopped`` the new process proves a clean shutdown by its previous broker epoch.
    """

    kind: Literal["register"] = "register"
    broker: int = 1
    again: bool = False
    stopped: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatStep:
    """Send a heartbeat, perhaps with a ``stale`` broker epoch, or (``behind``) without metadata."""

    kind: Literal["heartbeat"] = "heartbeat"
    broker: int = 1
    stale: bool = False
    behind: bool = False
    want_fence: bool = False
    want_shut_down: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterPartitionStep:
    """Ask for a change of the ISR, as a broker or (None) as the leader; both epochs are relative.

    The broker epochs of the members are the current ones, stale ones, or unknown.
    """

    kind: Literal["alter"] = "alter"
    partition: int = 0
    broker: int | None = None
    stale: bool = False
    leader_epoch: int = 0
    partition_epoch: int = 0
    isr: tuple[int, ...] = BROKERS
    members: Literal["present", "stale", "unknown"] = "present"


@dataclass(frozen=True, slots=True, kw_only=True)
class PreferredStep:
    """Elect the preferred leaders (ElectLeaders)."""

    kind: Literal["preferred"] = "preferred"


ControllerStep = RegisterStep | HeartbeatStep | AlterPartitionStep | PreferredStep

OPENING: Final[tuple[ControllerStep, ...]] = tuple(
    step for broker in BROKERS for step in (RegisterStep(broker=broker), HeartbeatStep(broker=broker))
)
"""The beginning of every sequence: all brokers become alive, so that the topic can be created."""


def partition_name(number: int) -> str:
    return f"{TOPIC}-{number}"
