"""Collects the history of a run from the reports of all client processes."""

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

_Row = tuple[int, int, str, str, tuple[MicroOperation, ...], str | None]


class ClientReports:
    """The operations of all clients. Any thread may add operations; `operations` sorts them."""

    def __init__(self, on_added: Callable[[], None]) -> None:
        self._on_added = on_added
        self._lock = threading.Lock()
        self._rows: list[_Row] = []
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
        """Add the start of a send, or its outcome.

        *f* is `TXN` if the record is sent in a transaction.
        """
        self._add_writes(
            process, type_, ((SEND, partition, _send_value(value, offset)),), [value], at_us, error, f
        )

    def add_transaction(
        self,
        process: int,
        type_: str,
        writes: Iterable[tuple[str, str, int | None]],
        at_us: int,
        error: str | None,
    ) -> None:
        """Add the outcome of a transaction with its records: partition, value and offset."""
        records = list(writes)
        sent = tuple((SEND, partition, _send_value(value, offset)) for partition, value, offset in records)
        self._add_writes(process, type_, sent, [value for _, value, _ in records], at_us, error, TXN)

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
        """Add a poll with its result."""
        self._add(
            (invoked_us, process, INVOKE, POLL, ((POLL,),), None),
            (at_us, process, OK, POLL, ((POLL, records),), None),
        )

    def add_assignment(self, process: int, f: str, partitions: Iterable[str], at_us: int) -> None:
        """Add a subscription (`SUBSCRIBE`), or a new assignment (`ASSIGN`)."""
        value: Any = tuple(partitions)
        self._add((at_us, process, INVOKE, f, value, None), (at_us, process, OK, f, value, None))

    def add_commit(
        self, process: int, type_: str, offsets: Mapping[str, int], at_us: int, error: str | None = None
    ) -> None:
        """Add the start of a commit, or its outcome."""
        value = tuple((COMMIT, name, offset) for name, offset in offsets.items())
        self._add((at_us, process, type_, COMMIT, value, error))

    def add_stored(self, process: int, partition: str, offset: int, result: str, at_us: int) -> None:
        """Add a result that an application stored outside Kafka, with its record's offset."""
        value = ((STORE, partition, (offset, result)),)
        self._add((at_us, process, INVOKE, STORE, value, None), (at_us, process, OK, STORE, value, None))

    def _add(self, *rows: _Row) -> None:
        with self._lock:
            self._rows.extend(rows)
        self._on_added()

    def is_acked(self, value: str) -> bool:
        return value in self._acked

    def is_failed(self, value: str) -> bool:
        return value in self._failed

    def operations(self) -> list[Operation]:
        """Return all operations by time, and at equal times in the order of the reports."""
        with self._lock:
            rows = sorted(self._rows, key=lambda row: row[0])
        return [
            Operation(index, process, type_, f, value, at_us, error)
            for index, (at_us, process, type_, f, value, error) in enumerate(rows)
        ]


def _send_value(value: str, offset: int | None) -> Any:
    return value if offset is None else (offset, value)
