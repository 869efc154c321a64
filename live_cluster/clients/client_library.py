"""The interface of a client library, and the list of libraries.

A campaign's client names its library. Only one module imports each library, so a worker needs no
library except its own.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Final, Protocol, cast

from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.topology import CONFLUENT_KAFKA, KAFKA_PYTHON

OnOutcome = Callable[[str, int | None, str | None], None]
"""Called with the outcome of a record (``ok``, ``fail`` or ``info``), its offset if known, and the
error."""


class LibraryProducer(Protocol):
    """A producer."""

    def send(
        self, topic: str, partition: int, value: bytes, key: bytes | None, on_outcome: OnOutcome
    ) -> None:
        """Send a record. Any thread calls *on_outcome* once, perhaps before `send` returns."""

    def poll(self, timeout_s: float) -> None:
        """Let the library work for at most this long."""

    def fatal_error(self) -> str | None:
        """Return the error after which the producer is unusable, None if there is none."""


class TransactionCallError(Exception):
    """A call of a transactional producer failed.

    ``name`` is Kafka's name of the error if possible.
    """

    def __init__(self, name: str, *, is_fatal: bool, is_retriable: bool) -> None:
        super().__init__(name)
        self.name = name
        self.is_fatal = is_fatal
        self.is_retriable = is_retriable


class LibraryTransactions(LibraryProducer, Protocol):
    """A producer with a ``transactional.id`` and blocking calls.

    All calls raise `TransactionCallError`; a call with a retriable error may be repeated.
    """

    def init_transactions(self) -> None: ...

    def begin_transaction(self) -> None: ...

    def send_offsets(self, offsets: Mapping[str, int], group_metadata: Any) -> None:
        """Commit offsets of a group with the transaction, and metadata of a `LibraryMember`."""

    def commit_transaction(self) -> None:
        """Send all pending records, and commit."""

    def abort_transaction(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Poll:
    """The result of a poll; ``at_end`` has the partitions that the consumer has read to the end."""

    records: Mapping[str, list[tuple[int, str]]]
    positions: Mapping[str, int]
    at_end: frozenset[str]


class LibraryConsumer(Protocol):
    """A consumer without a group."""

    def assign(self, partitions: list[str]) -> None:
        """Read partitions from their beginnings."""

    def poll(self, records_max: int, timeout_s: float) -> Poll:
        """Read available records; wait for them for at most this long."""


class MembershipError(Exception):
    """A consumer has lost its membership for good (FencedInstanceIdException)."""


class LibraryMember(Protocol):
    """A consumer that is a member of a group, or commits for one.

    Partition names are the cluster's.
    """

    def subscribe(
        self,
        topics: list[str],
        on_assigned: Callable[[list[str], int], Mapping[str, int]],
        on_revoked: Callable[[list[str], bool], None],
    ) -> None:
        """Join the group; polls call the callbacks.

        *on_assigned* gets partitions and the generation. A partition for which it returns an offset
        is read from there instead of the committed offset. *on_revoked* gets partitions and whether
        they are lost.
        """

    def assign(self, partitions: list[str]) -> None:
        """Read partitions from their committed offsets."""

    def committed(self, partitions: list[str]) -> dict[str, int]:
        """Return the committed offsets that are known."""

    def poll(self, records_max: int, timeout_s: float) -> Mapping[str, list[tuple[int, str]]]:
        """Read available records, or wait for at most this long.

        Raise `MembershipError` if the member was fenced.
        """

    def read_end(self) -> Mapping[str, int]:
        """Return the offsets up to which partitions have been read, if known."""

    def rewind(self, partitions: list[str]) -> dict[str, int]:
        """Read partitions from their committed offsets again; return these like `committed`."""

    def group_metadata(self, *, as_member: bool) -> Any:
        """Return the metadata for `LibraryTransactions.send_offsets`."""

    def set_processed(self, offsets: Mapping[str, int]) -> None:
        """Set the offsets that automatic commits of the library may commit."""

    def commit(self, offsets: Mapping[str, int]) -> str | None:
        """Commit, and return the error, None if it succeeds."""

    def close(self) -> None:
        """Leave the group."""


class ClientLibrary(Protocol):
    """The module of a library.

    Its functions take settings by the library's own names, and raise if the library refuses them.
    """

    def make_producer(self, settings: dict[str, Any]) -> LibraryProducer: ...

    def make_transactions(self, settings: dict[str, Any]) -> LibraryTransactions: ...

    def make_member(self, settings: dict[str, Any]) -> LibraryMember: ...

    def make_consumer(self, settings: dict[str, Any]) -> LibraryConsumer: ...


_MODULES: Final[Mapping[str, str]] = {
    CONFLUENT_KAFKA: "confluent_clients",
    KAFKA_PYTHON: "kafka_python_clients",
}


def load_library(name: str) -> ClientLibrary:
    return cast("ClientLibrary", import_module(f"harrow.live_cluster.clients.{_MODULES[name]}"))
