"""Defines what an action of a script is, and what it may ask of the operator who takes it."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol, Self

from harrow.cluster_model.release.switch import version_of
from harrow.faults.observer import Observer


class AdminRequest(NamedTuple):
    """An administrator's request, with its API in Kafka's protocol and the API's first release."""

    api: str
    since: str


class RecordSender(Protocol):
    """A producer that sends the records of a script."""

    @abstractmethod
    def send(
        self, value: str, partition: str | None, key: str | None = None, *, tombstone: bool = False
    ) -> None:
        """Send a record. A tombstone has no value; then *value* is only a name for it."""

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
        """Reassign a partition to *target* replicas; with None, cancel its reassignment."""

    def add_broker(self, broker: int) -> None:
        """Start a broker for the first time; do nothing if it has joined already."""

    def throttle_replication(self, rate: int | None) -> None:
        """Throttle replication on each broker, in bytes per second; None removes the throttle."""

    def delete_records(self, partition: str, offset: int) -> None:
        """Delete a partition's records below *offset*; -1 deletes all committed records."""

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
        """Return the producer called *name*."""

    def inject(self, fault: Any) -> bool:
        """Inject a fault, and return False if there is nothing to act on."""


class Action(ABC):
    """Something that a step of a script does.

    Each action is a frozen dataclass, and its fields are its syntax in a campaign
    (`harrow.cluster_model.fields`). A campaign may write an action as the value of its
    ``shorthand_field`` alone, and always writes an action with a ``sole_field`` as the value of
    that field. A plan that is made from a run leaves out the actions that are ``is_recorded``: the
    run records their effects in another form, such as sent records and faults, or they have none.
    ``since`` is the first release that supports the action, empty if all releases do. ``request``
    is what an administrator sends to real brokers for it.
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
        """Perform the action. Return in words which expectations of the campaign were not met."""

    def single_actions(self) -> Iterator[Self]:
        """Yield the actions that this one combines, such as each `Send` of one with a ``count``."""
        yield self

    def merged_with(self, following: Sequence["Action"]) -> tuple["Action", int]:
        """Merge this action with the first of the *following*.

        Return the result, and how many it merged.
        """
        return self, 0
