"""What a worker needs of a library that applications use, and which libraries there are.

A campaign's client names one (``library``). Each is a module of its own, which alone imports it, so that a worker needs no
other than its own.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final, Protocol, cast

from harrow.cluster_model.topology import CONFLUENT_KAFKA, KAFKA_PYTHON

Ended = Callable[[str, int | None, str | None], None]
"""Called with what became of a record: ``ok``, ``fail`` or ``info``, its offset where that is known, the error."""


class LibraryProducer(Protocol):
    """A producer."""

    def send(self, topic: str, partition: int, value: bytes, key: bytes | None, ended: Ended) -> None:
        """Take a record. *ended* is called once, by any thread, also before this returns."""

    def poll(self, timeout_s: float) -> None:
        """Let the library work, for so long at the most."""

    def fatal_error(self) -> str | None:
        """Return the error after which it can do nothing any more, None while there is none."""


class TransactionCallError(Exception):
    """A call to a producer with transactions has failed; ``name`` is the error as Kafka calls it, as far as the library tells."""

    def __init__(self, name: str, *, is_fatal: bool, is_retriable: bool) -> None:
        super().__init__(name)
        self.name = name
        self.is_fatal = is_fatal
        self.is_retriable = is_retriable


class LibraryTransactions(LibraryProducer, Protocol):
    """A producer with a ``transactional.id``; its calls return when they have done what they say.

    All of them raise `TransactionCallError`; one that is retriable may be called again.
    """

    def init_transactions(self) -> None:
        """Fence former sessions."""

    def begin_transaction(self) -> None:
        """Begin a transaction."""

    def send_offsets(self, offsets: Mapping[str, int], group_metadata: Any) -> None:
        """Commit offsets of a group with the transaction; the metadata are a `LibraryMember`'s."""

    def commit_transaction(self) -> None:
        """Send what is left, and commit."""

    def abort_transaction(self) -> None:
        """Abort."""


@dataclass(frozen=True, slots=True)
class Poll:
    """What a consumer has read since the poll before, and where it is: ``at_end`` are the partitions without news."""

    records: Mapping[str, list[tuple[int, str]]]
    positions: Mapping[str, int]
    at_end: frozenset[str]


class LibraryConsumer(Protocol):
    """A consumer without a group."""

    def assign(self, partitions: list[str]) -> None:
        """Begin to read partitions at their beginnings."""

    def poll(self, records_max: int, timeout_s: float) -> Poll:
        """Read what there is; wait for so long at the most where there is nothing."""


class MembershipError(Exception):
    """A consumer can be no member of its group any more (FencedInstanceIdException)."""


class LibraryMember(Protocol):
    """A consumer that is a member of a group, or commits for one; partitions are by their names on the cluster."""

    def subscribe(
        self,
        topics: list[str],
        on_assigned: Callable[[list[str], int], Mapping[str, int]],
        on_revoked: Callable[[list[str], bool], None],
    ) -> None:
        """Join; the callbacks are called within polls, with partitions and generation, and with partitions and whether they are lost.

        Where the former returns an offset, the partition is read from there on, and not from where the group has committed.
        """

    def assign(self, partitions: list[str]) -> None:
        """Read these from where the group has committed."""

    def committed(self, partitions: list[str]) -> dict[str, int]:
        """Return where the group is, of partitions of which that is known."""

    def poll(self, records_max: int, timeout_s: float) -> Mapping[str, list[tuple[int, str]]]:
        """Return what there is to read; wait for so long at the most where there is nothing.

        Raises:
            MembershipError: there will never be anything any more.

        """

    def reached(self) -> Mapping[str, int]:
        """Return up to where there was nothing more to read, of partitions of which that is known."""

    def rewind(self, partitions: list[str]) -> dict[str, int]:
        """Read partitions from where the group has committed, and return where that is, as `committed` does."""

    def group_metadata(self, *, as_member: bool) -> Any:
        """Return who it is in its group, as `LibraryTransactions.send_offsets` takes it; or only which group that is."""

    def processed(self, offsets: Mapping[str, int]) -> None:
        """Say up to where the application has come, for commits that the library does by itself."""

    def commit(self, offsets: Mapping[str, int]) -> str | None:
        """Commit, and return the error, None for none."""

    def close(self) -> None:
        """Leave the group."""


class ClientLibrary(Protocol):
    """The module of a library. Settings are by its own names.

    Both raise what the library raises where it does not take the settings.
    """

    def make_producer(self, settings: dict[str, Any]) -> LibraryProducer:
        """Return a producer."""

    def make_transactions(self, settings: dict[str, Any]) -> LibraryTransactions:
        """Return a producer with transactions."""

    def make_member(self, settings: dict[str, Any]) -> LibraryMember:
        """Return a consumer that is a member of a group."""

    def make_consumer(self, settings: dict[str, Any]) -> LibraryConsumer:
        """Return a consumer."""


_MODULES: Final[Mapping[str, str]] = {
    CONFLUENT_KAFKA: "confluent_clients",
    KAFKA_PYTHON: "kafka_python_clients",
}


def load_library(name: str) -> ClientLibrary:
    """Return a library by the name that campaigns call it."""
    return cast("ClientLibrary", import_module(f"harrow.live_cluster.clients.{_MODULES[name]}"))
