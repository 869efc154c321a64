"""Producers in a client's process, and their reports."""

import math
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from harrow.cluster_model.history import FAIL, INFO, INVOKE, OK
from harrow.live_cluster.clients.client_library import (
    LibraryProducer,
    LibraryTransactions,
    OnOutcome,
    TransactionCallError,
)
from harrow.live_cluster.names import Names

_POLL_INTERVAL_S: Final = 0.02
_ABORT_INTERVAL_S: Final = 0.1
"""How long a program waits before it repeats an abort: the default of ``retry.backoff.ms``."""
_ABORTED: Final = "ABORTED"

Report = Callable[..., None]
"""Sends a report with the time to harrow."""


class ProducerFailedError(Exception):
    """A producer has failed for good; its application must continue with another producer."""


class LibrarySender:
    """Sends records with a producer, and reports each record and its outcome."""

    def __init__(
        self, report: Report, producer: LibraryProducer, names: Names, record_bytes: int = 0
    ) -> None:
        self._report = report
        self._producer = producer
        self._names = names
        self._record_bytes = record_bytes
        self._lock = threading.RLock()
        # How many records were sent, and the numbers of those without an outcome.
        self._handed_over = 0
        self._outstanding: dict[int, None] = {}
        self._failed = 0
        self._failed_before = 0

    def poll(self, timeout_s: float) -> None:
        """Let the library work for at most this long."""
        self._producer.poll(timeout_s)

    def fatal_error(self) -> str | None:
        """Return the fatal error of the producer, once all records have outcomes."""
        return None if self._first_outstanding() is not None else self._producer.fatal_error()

    def send(self, partition: str, value: str, key: str | None = None) -> None:
        topic, _, number = partition.rpartition("-")
        self._report(type=INVOKE, partition=partition, value=value)
        data = value.encode()
        # Without a key, the key pads the record to its size. The partition does not depend on it.
        stored_key = b" " * (self._record_bytes - len(data)) if key is None else key.encode()
        topic = self._names.cluster_topic(topic)
        with self._lock:
            self._handed_over += 1
            record_number = self._handed_over
            self._outstanding[record_number] = None
        report = self._on_outcome(partition, value)

        def on_outcome(type_: str, offset: int | None, error: str | None) -> None:
            report(type_, offset, error)
            with self._lock:
                self._outstanding.pop(record_number, None)
                self._failed += type_ != OK

        self._producer.send(topic, int(number), data, stored_key or None, on_outcome)

    def flush(self) -> bool:
        """Wait for the outcomes of all records.

        Return whether all records since the last flush succeeded.
        """
        self.wait()
        with self._lock:
            before, self._failed_before = self._failed_before, self._failed
            return self._failed == before

    def wait(self, timeout_s: float = math.inf) -> None:
        """Wait for the outcomes of all records for at most this long."""
        until_s = time.monotonic() + timeout_s
        with self._lock:
            last = self._handed_over
        while (first := self._first_outstanding()) is not None and first <= last:
            if time.monotonic() >= until_s:
                return
            self._producer.poll(_POLL_INTERVAL_S)

    def _first_outstanding(self) -> int | None:
        with self._lock:
            return next(iter(self._outstanding), None)

    def _on_outcome(self, partition: str, value: str) -> OnOutcome:
        def on_outcome(type_: str, offset: int | None, error: str | None) -> None:
            self._report(type=type_, partition=partition, value=value, offset=offset, error=error)

        return on_outcome


class TransactionalSender(LibrarySender):
    """The sender of a transactional producer, which repeats calls that time out.

    A transaction is one operation, which is reported at the end of the transaction. After an error,
    the transaction may be aborted. Calls return the error, None if they succeed. One thread makes
    the calls; another one may poll meanwhile.
    """

    _producer: LibraryTransactions

    def __init__(
        self, report: Report, producer: LibraryTransactions, names: Names, record_bytes: int = 0
    ) -> None:
        super().__init__(report, producer, names, record_bytes)
        self.is_open = False
        self.failure: str | None = None
        # Whether the producer has failed for good.
        self.has_failed = False
        # The records of the transaction, with offsets if known.
        self._writes: dict[tuple[str, str], int | None] = {}

    def fatal_error(self) -> str | None:
        return self.failure if self.has_failed else None

    def init_transactions(self) -> str | None:
        """Fence former sessions."""
        error = self._call(self._producer.init_transactions)
        if error is None:
            self._report(initialized=True)
        return error

    def begin(self) -> str | None:
        self.note_fatal()
        if self.has_failed:
            return self.failure
        error = self._call(self._producer.begin_transaction)
        if error is None:
            with self._lock:
                self.is_open, self.failure, self._writes = True, None, {}
        return error

    def send_offsets(self, offsets: Mapping[str, int], group_metadata: Any) -> str | None:
        """Commit offsets of a group with the transaction; partition names are the cluster's."""
        self.note_fatal()
        if self.failure is not None:
            return self.failure
        try:
            self._producer.send_offsets(offsets, group_metadata)
        except TransactionCallError as error:
            self._handle_error(error.name, is_fatal=error.is_fatal)
            return error.name
        return None

    def commit(self) -> str | None:
        if self.has_failed or not self.is_open or self.failure is not None:
            return self.failure
        self._report(committing=True)
        error = self._call(self._producer.commit_transaction)
        if error is None:
            self.flush()
            self._complete(OK, None)
        else:
            self._complete_if_failed(INFO)
        return error

    def abort(self) -> str | None:
        if self.has_failed or not self.is_open:
            return self.failure
        error = self._call(self._producer.abort_transaction)
        if error is None:
            self._complete(FAIL, _ABORTED)
        else:
            self._complete_if_failed(FAIL)
            if not self.has_failed:
                # Programs repeat an abort that fails.
                time.sleep(_ABORT_INTERVAL_S)
        return error

    def note_fatal(self) -> None:
        """Handle a fatal error if there is one."""
        error = self._producer.fatal_error()
        if error is not None and not self.has_failed:
            self._handle_error(error, is_fatal=True)
            # The open transaction can never be committed.
            if self.is_open:
                self._complete(FAIL, error)

    def send(self, partition: str, value: str, key: str | None = None) -> None:
        self.note_fatal()
        if self.is_open and self.failure is None:
            super().send(partition, value, key)
            return
        error = self.failure or "ILLEGAL_STATE"
        self._report(type=INVOKE, partition=partition, value=value)
        self._report(type=FAIL, partition=partition, value=value, offset=None, error=error)

    def _call(self, call: Callable[[], None]) -> str | None:
        """Make a call, and repeat it while its error is retriable."""
        while True:
            try:
                call()
            except TransactionCallError as error:
                if error.is_retriable and not error.is_fatal:
                    continue
                self._handle_error(error.name, is_fatal=error.is_fatal)
                return error.name
            return None

    def _handle_error(self, error: str, *, is_fatal: bool) -> None:
        """Handle an error: the transaction must be aborted, or the producer has failed for good."""
        with self._lock:
            if self.has_failed or (self.failure is not None and not is_fatal):
                return
            self.failure, self.has_failed = error, is_fatal
        self._report(transaction_error=error, fatal=is_fatal)

    def _complete_if_failed(self, type_: str) -> None:
        if self.has_failed:
            self._complete(type_, self.failure)

    def _complete(self, type_: str, error: str | None) -> None:
        with self._lock:
            self.is_open = False
            writes = [[partition, value, offset] for (partition, value), offset in self._writes.items()]
        if writes:
            self._report(type=type_, writes=writes, error=error)

    def _on_outcome(self, partition: str, value: str) -> OnOutcome:
        writes = self._writes
        writes[partition, value] = None

        def on_outcome(type_: str, offset: int | None, error: str | None) -> None:
            if type_ == OK:
                writes[partition, value] = offset
            elif error is not None and error != _ABORTED:
                fatal = self._producer.fatal_error()
                self._handle_error(fatal or error, is_fatal=fatal is not None)

        return on_outcome
