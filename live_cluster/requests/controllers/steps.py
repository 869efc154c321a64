"""The steps of a sequence for controllers: what brokers ask of them, with epochs that are relative to those that they have."""

from dataclasses import dataclass
from typing import Final, Literal

BROKERS: Final = (1, 2, 3)
"""The brokers of a sequence: none has a process, what is asked in their names the driver asks."""
TOPIC: Final = "t"
ASSIGNMENT: Final = ((1, 2, 3), (2, 3, 1), (3, 1, 2))
"""The replicas of the topic of a sequence, by partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterStep:
    """A broker registers: as the same process again, or as a new one that knows, or does not, that the last has stopped in good order."""

    kind: Literal["register"] = "register"
    broker: int = 1
    again: bool = False
    stopped: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatStep:
    """A broker is alive; ``stale`` of a life before, with metadata or without any."""

    kind: Literal["heartbeat"] = "heartbeat"
    broker: int = 1
    stale: bool = False
    behind: bool = False
    want_fence: bool = False
    want_shut_down: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterPartitionStep:
    """A broker, None for the leader, wants an ISR; both epochs are relative to the present ones.

    Of the members it tells the ``present`` broker epochs, those of a ``stale`` life, or that it does not know them.
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
    """An administrator asks that the first replica of each partition lead (ElectLeaders)."""

    kind: Literal["preferred"] = "preferred"


ControllerStep = RegisterStep | HeartbeatStep | AlterPartitionStep | PreferredStep

OPENING: Final[tuple[ControllerStep, ...]] = tuple(
    step for broker in BROKERS for step in (RegisterStep(broker=broker), HeartbeatStep(broker=broker))
)
"""What begins each sequence: all brokers are alive, so that the topic can be created."""


def partition_name(number: int) -> str:
    return f"{TOPIC}-{number}"
