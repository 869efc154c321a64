"""The messages of clients and brokers to coordinators (clients/src/main/resources/common/message)."""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(slots=True)
class FindCoordinatorRequest:
    """A client looks for the coordinator of a group or a transactional id, which is its *key*; ``topic`` says of which."""

    api: ClassVar[str] = "FindCoordinator"
    topic: str
    key: str


@dataclass(slots=True)
class FindCoordinatorResponse:
    """The broker that is the coordinator, `NO_LEADER` with an error."""

    api: ClassVar[str] = "FindCoordinator"
    error: str
    node: int
