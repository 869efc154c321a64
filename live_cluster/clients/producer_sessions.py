"""Tracks the records of producer processes on real brokers: sent, pending and reported."""

import threading
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from harrow.cluster_model.events import TransactionError, TransactionReported
from harrow.cluster_model.history import FAIL, INFO, INVOKE, OK, SEND, TXN
from harrow.live_cluster.clients.client_host import ClientHost

_CRASHED: Final = "CRASHED"
_ABORTED: Final = "ABORTED"


class LiveProducerSession:
    """The records of one producer process."""

    def __init__(self, host: ClientHost, process: int) -> None:
        self._host = host
        self.process = process
        self._lock = threading.Lock()
        # A script may send a value several times.
        self._handed_over: Counter[str] = Counter()
        self._pending: Counter[tuple[str, str]] = Counter()
        self.generated = 0
        # How many transactions the process has begun for generated records.
        self.begun = 0

    def hand_over(self, value: str) -> None:
        with self._lock:
            self._handed_over[value] += 1

    def take(self, report: Mapping[str, Any]) -> None:
        """Handle a report of the process."""
        type_, partition, value = report["type"], report["partition"], report["value"]
        # Add the report to the history before the record counts as finished.
        self._host.reports.add_send(
            self.process,
            type_,
            partition,
            value,
            self._host.clock.us_of(report["at"]),
            offset=report.get("offset"),
            error=report.get("error"),
        )
        with self._lock:
            if type_ != INVOKE:
                self._pending[partition, value] -= 1
            else:
                self._pending[partition, value] += 1
                if self._handed_over[value]:
                    self._handed_over[value] -= 1
                else:
                    self.generated += 1

    def call(self) -> int:
        """Return the number of a new call of the transactional producer."""
        raise NotImplementedError("a producer without a transactional.id")

    def unfinished(self) -> int:
        with self._lock:
            return self._handed_over.total() + self._pending.total()

    def end(self) -> None:
        """End the session at the end of the run."""
        self.abandon()

    def abandon(self) -> None:
        """End the session of a dead process: the outcomes of its pending records stay unknown."""
        with self._lock:
            pending, self._pending = self._pending, Counter()
            self._handed_over.clear()
        now_us = self._host.clock.tick()
        for partition, value in pending.elements():
            self._host.reports.add_send(self.process, INFO, partition, value, now_us, error=_CRASHED)


class TransactionsSession(LiveProducerSession):
    """The records of a transactional process. They are pending until their transaction ends."""

    def __init__(self, host: ClientHost, process: int, name: str, transactional_id: str) -> None:
        super().__init__(host, process)
        self._name = name
        self._transactional_id = transactional_id
        self._calls = 0
        self._returned = 0
        # The records of the open transaction, and whether it is being committed.
        self._open: dict[tuple[str, str], None] = {}
        self._is_committing = False

    def call(self) -> int:
        with self._lock:
            self._calls += 1
            return self._calls

    def take(self, report: Mapping[str, Any]) -> None:
        host, at_us = self._host, self._host.clock.us_of(report["at"])
        if "writes" in report:
            writes = [(partition, value, offset) for partition, value, offset in report["writes"]]
            host.reports.add_transaction(self.process, report["type"], writes, at_us, report["error"])
            with self._lock:
                self._open.clear()
                self._is_committing = False
            if report["error"] in (None, _ABORTED):
                host.report(TransactionReported, self._name, report["type"] == OK)
        elif "type" in report:
            self._take_send(report, at_us)
        elif "initialized" in report:
            host.initialized(self._name, self._transactional_id)
        elif "transaction_error" in report:
            host.report(TransactionError, self._name, report["transaction_error"], report["fatal"])
        else:
            with self._lock:
                self.begun += "begun" in report
                self._is_committing = self._is_committing or "committing" in report
                self._returned = report.get("returned", self._returned)

    def _take_send(self, report: Mapping[str, Any], at_us: int) -> None:
        """Handle the report that a record was sent, or that the producer refused it."""
        type_, partition, value = report["type"], report["partition"], report["value"]
        self._host.reports.add_send(
            *(self.process, type_, partition, value, at_us),
            error=report.get("error"),
            f=TXN if type_ == INVOKE else SEND,
        )
        with self._lock:
            if type_ != INVOKE:
                self._open.pop((partition, value), None)
                return
            self._open[partition, value] = None
            if self._handed_over[value]:
                self._handed_over[value] -= 1
            else:
                self.generated += 1

    def unfinished(self) -> int:
        with self._lock:
            return self._handed_over.total() + self._calls - self._returned

    def end(self) -> None:
        """End the session at the end of the run; an open transaction has no outcome."""

    def abandon(self) -> None:
        """End the session of a dead process: only a pending commit can still succeed."""
        with self._lock:
            writes = [(partition, value, None) for partition, value in self._open]
            type_ = INFO if self._is_committing else FAIL
            self._open.clear()
            self._handed_over.clear()
            self._calls = self._returned
        if writes:
            at_us = self._host.clock.tick()
            self._host.reports.add_transaction(self.process, type_, writes, at_us, _CRASHED)


def producer_session(host: ClientHost, name: str, transactional_id: str) -> LiveProducerSession:
    """Return the session of a new producer process, with transactions if it has an id for them."""
    process = host.reports.new_process(name)
    if transactional_id:
        return TransactionsSession(host, process, name, transactional_id)
    return LiveProducerSession(host, process)
