"""What clients under test have reported, from processes that know nothing of each other: one history."""

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from harrow.cluster_model.history import (
    COMMIT,
    FAIL,
    INFO,
    INVOKE,
    OK,
    POLL,
    SEND,
    STORE,
    TXN,
    MicroOperation,
    Operation,
)


class ClientReports:
    """The operations of all clients. Any thread may add to them; they are in order once somebody asks."""

    def __init__(self, on_added: Callable[[], None]) -> None:
        self._on_added = on_added
        self._lock = threading.Lock()
        self._rows: list[tuple[int, int, str, str, tuple[MicroOperation, ...], str | None]] = []
        self.process_names: dict[int, str] = {}
        self._acked: set[str] = set()
        self._failed: set[str] = set()

    def new_process(self, name: str) -> int:
        """Return the number of a new client process; a restarted client is a new one."""
        with self._lock:
            number = len(self.process_names)
            self.process_names[number] = name
            return number

    def add_send(
        self,
        process: int,
        type_: str,
        partition: str,
        value: str,
        at_us: int,
        *,
        offset: int | None = None,
        error: str | None = None,
        f: str = SEND,
    ) -> None:
        """Add that a record was handed to a producer, or what became of it; *f* is `TXN` where it is handed over in a transaction."""
        self._add_writes(
            process, type_, ((SEND, partition, _written(value, offset)),), [value], at_us, error, f
        )

    def add_transaction(
        self,
        process: int,
        type_: str,
        writes: Iterable[tuple[str, str, int | None]],
        at_us: int,
        error: str | None,
    ) -> None:
        """Add what became of a transaction, and so of all that was sent in it: partition, value and offset of each record."""
        kept = list(writes)
        sent = tuple((SEND, partition, _written(value, offset)) for partition, value, offset in kept)
        self._add_writes(process, type_, sent, [value for _, value, _ in kept], at_us, error, TXN)

    def _add_writes(
        self,
        process: int,
        type_: str,
        sent: tuple[MicroOperation, ...],
        values: list[str],
        at_us: int,
        error: str | None,
        f: str,
    ) -> None:
        with self._lock:
            self._rows.append((at_us, process, type_, f, sent, error))
            if type_ == OK:
                self._acked.update(values)
            elif type_ in (FAIL, INFO):
                self._failed.update(values)
        self._on_added()

    def add_poll(
        self, process: int, records: dict[str, list[tuple[int, str]]], invoked_us: int, at_us: int
    ) -> None:
        """Add a poll, and what it returned."""
        with self._lock:
            self._rows.append((invoked_us, process, INVOKE, POLL, ((POLL,),), None))
            self._rows.append((at_us, process, OK, POLL, ((POLL, records),), None))
        self._on_added()

    def add_assignment(self, process: int, f: str, partitions: Iterable[str], at_us: int) -> None:
        """Add that a consumer subscribes (`SUBSCRIBE`), or which partitions it reads from now on (`ASSIGN`)."""
        value: Any = tuple(partitions)
        with self._lock:
            self._rows.append((at_us, process, INVOKE, f, value, None))
            self._rows.append((at_us, process, OK, f, value, None))
        self._on_added()

    def add_commit(
        self, process: int, type_: str, offsets: Mapping[str, int], at_us: int, error: str | None = None
    ) -> None:
        """Add that a consumer commits, or what came of that."""
        value = tuple((COMMIT, name, offset) for name, offset in offsets.items())
        with self._lock:
            self._rows.append((at_us, process, type_, COMMIT, value, error))
        self._on_added()

    def add_stored(self, process: int, partition: str, offset: int, result: str, at_us: int) -> None:
        """Add that an application has stored a result outside of Kafka, with the offset of its record."""
        with self._lock:
            value = ((STORE, partition, (offset, result)),)
            self._rows.append((at_us, process, INVOKE, STORE, value, None))
            self._rows.append((at_us, process, OK, STORE, value, None))
        self._on_added()

    def is_acked(self, value: str) -> bool:
        return value in self._acked

    def is_failed(self, value: str) -> bool:
        return value in self._failed

    def operations(self) -> list[Operation]:
        """Return all operations in the order of their times; those of one process stay as it reported them."""
        with self._lock:
            rows = sorted(self._rows, key=lambda row: row[0])
        return [
            Operation(index, process, type_, f, value, at_us, error)
            for index, (at_us, process, type_, f, value, error) in enumerate(rows)
        ]


def _written(value: str, offset: int | None) -> Any:
    return value if offset is None else (offset, value)
