"""Defines the actions of a script as data, and the operator who takes them on a target."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol, Self

from harrow.cluster_model.release.switch import version_of
from harrow.faults.observer import Observer


class AdminRequest(NamedTuple):
    """An administrator's request: the API in Kafka's protocol, and the first release with it."""

    api: str
    since: str


class RecordSender(Protocol):
    """A client to which a script hands records."""

    @abstractmethod
    def send(
        self, value: str, partition: str | None, key: str | None = None, *, tombstone: bool = False
    ) -> None:
        """Hand over a record. A tombstone has no value, and *value* is only its name."""

    @abstractmethod
    def begin_transaction(self) -> None:
        """Call ``beginTransaction``."""

    @abstractmethod
    def commit_transaction(self) -> None:
        """Call ``commitTransaction``."""

    @abstractmethod
    def abort_transaction(self) -> None:
        """Call ``abortTransaction``."""

    @abstractmethod
    def restart(self) -> None:
        """Kill the application and start it again."""


class Administration(Protocol):
    """The requests that an administrator sends to a cluster."""

    def elect_preferred_leaders(self) -> None:
        """Request preferred leader elections, as ``kafka-preferred-replica-election`` does."""

    def alter_partition_reassignment(self, partition: str, target: tuple[int, ...] | None) -> None:
        """Reassign the replicas of a partition; None cancels its reassignment."""

    def add_broker(self, broker: int) -> None:
        """Start a broker for the first time; do nothing if it has joined already."""

    def throttle_replication(self, rate: int | None) -> None:
        """Set the replication throttle of each broker in bytes a second; None removes it."""

    def delete_records(self, partition: str, offset: int) -> None:
        """Delete the records of a partition below an offset; -1 deletes all committed ones."""

    def create_partitions(self, topic: str, total: int) -> None:
        """Raise the number of a topic's partitions to *total*."""


class Operator(Protocol):
    """The operator who takes the steps of a script, with access to a target."""

    @property
    def observer(self) -> Observer:
        """Return the observer that evaluates conditions."""

    @property
    def administrator(self) -> Administration: ...

    def sender(self, name: str) -> RecordSender:
        """Return the client that sends a script's records."""

    def inject(self, fault: Any) -> bool:
        """Inject a fault, and return False if there is nothing to act on."""


class Action(ABC):
    """An action: a frozen dataclass whose fields are its syntax (`harrow.cluster_model.fields`).

    A campaign may write the value of the ``shorthand_field`` instead of all fields. It always
    writes an action with a ``sole_field`` as the value of that field. A plan made from a run leaves
    out actions that are ``is_recorded``: the run records them anyway, like records and faults, or
    they change nothing. ``since`` is the first release that supports the action, empty if all do.
    ``request`` is the request that an administrator sends to real brokers.
    """

    __slots__ = ()

    name: ClassVar[str]
    shorthand_field: ClassVar[str | None] = None
    sole_field: ClassVar[str | None] = None
    is_recorded: ClassVar[bool] = False
    since: ClassVar[str] = ""
    request: ClassVar[AdminRequest | None] = None

    @classmethod
    def exists_in(cls, release: str) -> bool:
        """Return whether a release supports the action."""
        return not cls.since or version_of(release) >= version_of(cls.since)

    @abstractmethod
    def take(self, operator: Operator) -> list[str]:
        """Perform the action, and return the campaign's unmet expectations in words."""

    def single_actions(self) -> Iterator[Self]:
        """Yield the single actions that this one combines."""
        yield self

    def merged_with(self, following: Sequence["Action"]) -> tuple["Action", int]:
        """Merge this action with the next ones, and return the result and how many it includes."""
        return self, 0
