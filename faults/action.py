"""What an action of a script is: data, and what it does on a target."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol, Self

from harrow.cluster_model.release.switch import version_of
from harrow.faults.observer import Observer


class AdminRequest(NamedTuple):
    """A request of an administrator's client, by its name in Kafka's protocol, and the first release that answers it."""

    api: str
    since: str


class RecordSender(Protocol):
    """A client that can be handed records."""

    @abstractmethod
    def send(
        self, value: str, partition: str | None, key: str | None = None, *, tombstone: bool = False
    ) -> None:
        """Hand it a record. A tombstone has no value, and *value* is what it is called."""

    @abstractmethod
    def begin_transaction(self) -> None:
        """Begin a transaction."""

    @abstractmethod
    def commit_transaction(self) -> None:
        """Commit it."""

    @abstractmethod
    def abort_transaction(self) -> None:
        """Abort it."""

    @abstractmethod
    def restart(self) -> None:
        """The application dies and starts again."""


class Operator(Protocol):
    """Who takes the steps of a script: what he has at hand of a target."""

    @property
    def observer(self) -> Observer:
        """Return what conditions look through."""

    def sender(self, name: str) -> RecordSender:
        """Return a client that can be handed records."""

    def elect_preferred_leaders(self) -> None:
        """Ask for preferred leader election, as ``kafka-preferred-replica-election`` does."""

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

    def inject(self, fault: Any) -> bool:
        """Inject a fault; return False when there was nothing to do it to."""


class Action(ABC):
    """An action: a frozen dataclass whose fields are its campaign syntax (`harrow.cluster_model.fields`).

    A campaign may write the field ``short`` alone in place of all, and of an action that is ``whole`` no
    more than the value of that field. ``is_noted`` says that a run notes by itself that it happened, as
    it does records and faults, or that nothing happens: a plan that is made of a run does not repeat it. ``since``
    is the first release that can be asked for it, empty where all can. ``request`` is what an administrator sends to real brokers
    for it.
    """

    __slots__ = ()

    name: ClassVar[str]
    short: ClassVar[str | None] = None
    whole: ClassVar[str | None] = None
    is_noted: ClassVar[bool] = False
    since: ClassVar[str] = ""
    request: ClassVar[AdminRequest | None] = None

    @classmethod
    def exists_in(cls, release: str) -> bool:
        """Return whether a release can be asked for it."""
        return not cls.since or version_of(release) >= version_of(cls.since)

    @abstractmethod
    def take(self, operator: Operator) -> list[str]:
        """Do it; return in words what was not as the campaign expects."""

    def each(self) -> Iterator[Self]:
        """Yield the single actions that it stands for."""
        yield self

    def joined(self, following: Sequence["Action"]) -> tuple["Action", int]:
        """Return the action that says the same as this one and the first of those *following* it, and of how many."""
        return self, 0
