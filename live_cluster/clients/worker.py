"""A client under test, in a process of its own: it can be killed and paused like an application.

It connects to harrow, is told once what client it is, then gets orders and reports what it did, each a line of JSON. Times are those
of the system's monotonic clock, in nanoseconds, which all processes of a machine share. When harrow is gone, it ends.
"""

import json
import select
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol, TypeVar

from harrow.cluster_model.history import FAIL, INFO, INVOKE, OK
from harrow.live_cluster.clients.client_library import (
    Ended,
    LibraryTransactions,
    TransactionCallError,
    load_library,
)
from harrow.live_cluster.names import Names

_POLL_S: Final = 0.02
_Found = TypeVar("_Found")


def main() -> None:
    """Be the client that harrow, at the given port, says."""
    host, port, token = sys.argv[1:]
    with socket.create_connection((host, int(port))) as connection:
        channel = _Channel(connection)
        channel.report(token=token)
        # It is told before anything else.
        while not (told := channel.orders(None)):
            pass
        client = told.pop(0)
        make = _WORKERS[client["role"]]
        worker = make(channel, client)
        channel.report(ready=True)
        worker.work(told)


class _Channel:
    """The connection to harrow. Any thread may report."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._rest = b""

    def report(self, **what: Any) -> None:
        with self._lock:
            self._connection.sendall(json.dumps(what).encode() + b"\n")

    def report_now(self, **what: Any) -> None:
        """Report with the time, in the order of the times."""
        with self._lock:
            self._connection.sendall(json.dumps({"at": time.monotonic_ns(), **what}).encode() + b"\n")

    def orders(self, timeout_s: float | None) -> list[dict[str, Any]]:
        """Return the orders that have come, or come within a time; end the process when harrow is gone."""
        ready, _, _ = select.select([self._connection], [], [], timeout_s)
        if not ready:
            return []
        received = self._connection.recv(65536)
        if not received:
            sys.exit(0)
        *lines, self._rest = (self._rest + received).split(b"\n")
        return [json.loads(line) for line in lines]


class _Worker(Protocol):
    """A client at work."""

    def work(self, orders: list[dict[str, Any]]) -> None:
        """Do what it is told, beginning with these orders, until harrow is gone."""


class _ProducerWorker:
    """A producer: it sends what it is told, and what it generates itself between two times."""

    def __init__(self, channel: _Channel, client: dict[str, Any]) -> None:
        self._channel = channel
        self._partitions: list[str] = client["partitions"]
        self._name: str = client["name"]
        self._gaps_ns: list[int] = client["gaps_ns"]
        self._next_ns: int = client["start_ns"]
        self._stop_ns: int | None = client["stop_ns"]
        self._sent = 0
        self._generated = 0
        self._first: int = client.get("first", 0)
        self._record_bytes: int = client.get("record_bytes", 0)
        self._names = _names_of(client)
        self._producer = self._make_producer(client)

    def _make_producer(self, client: dict[str, Any]) -> Any:
        return load_library(client["library"]).make_producer(client["settings"])

    def work(self, orders: list[dict[str, Any]]) -> None:
        while True:
            for order in orders:
                self._obey(order)
            self._generate()
            self._producer.poll(_POLL_S)
            orders = self._channel.orders(0)

    def _obey(self, order: dict[str, Any]) -> None:
        self._send(order["value"], order["partition"])

    def _generate(self) -> None:
        """Send what is due: after each record the next of the gaps, again and again."""
        while self._gaps_ns and self._next_ns <= time.monotonic_ns():
            if self._stop_ns is not None and self._next_ns >= self._stop_ns:
                self._gaps_ns = []
                self._finish()
                return
            self._send_next(f"{self._name}:{self._first + self._generated}")
            self._next_ns += self._gaps_ns[self._generated % len(self._gaps_ns)]
            self._generated += 1

    def _send_next(self, value: str) -> None:
        self._send(value, None)

    def _finish(self) -> None:
        """There is no more to generate."""

    def _send(self, value: str, partition: str | None) -> None:
        if partition is None:
            partition = self._partitions[self._sent % len(self._partitions)]
        self._sent += 1
        topic, _, number = partition.rpartition("-")
        self._channel.report_now(type=INVOKE, partition=partition, value=value)
        data = value.encode()
        # What a record is to be larger than its value; its partition does not depend on it.
        key = b" " * (self._record_bytes - len(data)) or None
        topic = self._names.topic(topic)
        self._producer.send(topic, int(number), data, key, self._ended(partition, value))

    def _ended(self, partition: str, value: str) -> Ended:
        def ended(type_: str, offset: int | None, error: str | None) -> None:
            self._channel.report_now(type=type_, partition=partition, value=value, offset=offset, error=error)

        return ended


class _TransactionsWorker(_ProducerWorker):
    """A producer with a transactional id: it calls its library from one thread, and makes a call that takes too long again.

    A transaction is one operation, which is reported when it has ended. After an error it may be aborted; generated ones are.
    """

    _producer: LibraryTransactions

    def __init__(self, channel: _Channel, client: dict[str, Any]) -> None:
        super().__init__(channel, client)
        self._records_of_each: int = client["transaction_records"]
        self._abort_every: int = client["abort_every"]
        self._begun = 0
        self._is_open = False
        self._failure: str | None = None
        self._has_failed = False
        # What the transaction has sent, with offsets as far as they were told.
        self._writes: dict[tuple[str, str], int | None] = {}

    def _make_producer(self, client: dict[str, Any]) -> LibraryTransactions:
        return load_library(client["library"]).make_transactions(client["settings"])

    def work(self, orders: list[dict[str, Any]]) -> None:
        if self._call(self._producer.init_transactions):
            self._channel.report_now(initialized=True)
        super().work(orders)

    def _obey(self, order: dict[str, Any]) -> None:
        if order.get("call") is None:
            super()._obey(order)
        elif order["call"] == "begin":
            self._begin()
        else:
            self._end(commits=order["call"] == "commit")
        if "number" in order:
            self._channel.report_now(returned=order["number"])

    def _begin(self) -> None:
        self._note_fatal()
        if not self._has_failed and self._call(self._producer.begin_transaction):
            self._is_open, self._failure, self._writes = True, None, {}

    def _end(self, *, commits: bool) -> None:
        if self._has_failed or not self._is_open:
            return
        if not commits:
            is_done = self._call(self._producer.abort_transaction)
            self._complete_ended(FAIL if is_done else None, FAIL, "ABORTED")
        elif self._failure is None:
            self._channel.report_now(committing=True)
            is_done = self._call(self._producer.commit_transaction)
            self._complete_ended(OK if is_done else None, INFO, None)

    def _complete_ended(self, done: str | None, failed: str, error: str | None) -> None:
        """Report what was *done*; where that has *failed* for good, with the error that it was."""
        if done is not None:
            self._complete(done, error)
        elif self._has_failed:
            self._complete(failed, self._failure)

    def _call(self, call: Callable[[], None]) -> bool:
        """Make a call, again and again while that may help; return whether it has done what it says."""
        while True:
            try:
                call()
            except TransactionCallError as error:
                if error.is_retriable and not error.is_fatal:
                    continue
                self._take(error.name, is_fatal=error.is_fatal)
                return False
            return True

    def _take(self, error: str, *, is_fatal: bool) -> None:
        """Take note of an error: what is open can be aborted, or with a fatal one nothing can be done any more."""
        if self._has_failed or (self._failure is not None and not is_fatal):
            return
        self._failure, self._has_failed = error, is_fatal
        self._channel.report_now(transaction_error=error, fatal=is_fatal)

    def _note_fatal(self) -> None:
        error = self._producer.fatal_error()
        if error is not None and not self._has_failed:
            self._take(error, is_fatal=True)
            # What was not asked to be committed never is.
            if self._is_open:
                self._complete(FAIL, error)

    def _complete(self, type_: str, error: str | None) -> None:
        self._is_open = False
        if self._writes:
            writes = [[partition, value, offset] for (partition, value), offset in self._writes.items()]
            self._channel.report_now(type=type_, writes=writes, error=error)

    def _send(self, value: str, partition: str | None) -> None:
        self._note_fatal()
        if not self._is_open or self._failure is not None:
            self._refuse(value, partition or self._partitions[self._sent % len(self._partitions)])
            return
        super()._send(value, partition)

    def _refuse(self, value: str, partition: str) -> None:
        error = self._failure or "ILLEGAL_STATE"
        self._channel.report_now(type=INVOKE, partition=partition, value=value)
        self._channel.report_now(type=FAIL, partition=partition, value=value, offset=None, error=error)

    def _ended(self, partition: str, value: str) -> Ended:
        self._writes[partition, value] = None

        def ended(type_: str, offset: int | None, error: str | None) -> None:
            if type_ == OK:
                self._writes[partition, value] = offset
            elif error is not None and error != "ABORTED":
                fatal = self._producer.fatal_error()
                self._take(fatal or error, is_fatal=fatal is not None)

        return ended

    def _generate(self) -> None:
        self._note_fatal()
        super()._generate()

    def _send_next(self, value: str) -> None:
        if self._failure is not None and not self._has_failed and self._is_open:
            self._end(commits=False)
        if not self._is_open:
            self._begin()
        self._send(value, None)
        if len(self._writes) >= self._records_of_each:
            self._end_generated()

    def _end_generated(self) -> None:
        self._begun += 1
        aborts = bool(self._abort_every) and self._begun % self._abort_every == 0
        self._end(commits=not aborts)
        if self._is_open:
            # It could not be committed.
            self._end(commits=False)

    def _finish(self) -> None:
        if self._is_open and self._writes:
            self._end_generated()


class _ConsumerWorker:
    """A consumer: it reads partitions from their beginning, and says when it has come to the end of all."""

    def __init__(self, channel: _Channel, client: dict[str, Any]) -> None:
        self._channel = channel
        self._interval_s: float = client["poll_interval_ns"] / 1e9
        self._records_max: int = client["max_poll_records"]
        self._start_ns: int = client["start_ns"]
        self._partitions: list[str] = client["partitions"]
        self._at_end: frozenset[str] = frozenset()
        self._names = _names_of(client)
        self._consumer = load_library(client["library"]).make_consumer(client["settings"])

    def work(self, _: list[dict[str, Any]]) -> None:
        while time.monotonic_ns() < self._start_ns:
            self._channel.orders(_POLL_S)
        self._consumer.assign([self._names.partition(partition) for partition in self._partitions])
        while True:
            invoked_ns = time.monotonic_ns()
            self._read(invoked_ns)
            self._channel.orders(max(0.0, self._interval_s - (time.monotonic_ns() - invoked_ns) / 1e9))

    def _read(self, invoked_ns: int) -> None:
        read = self._consumer.poll(self._records_max, _POLL_S)
        if read.records or read.at_end != self._at_end:
            self._at_end = read.at_end
            self._channel.report_now(
                invoked=invoked_ns,
                records=self._by_own_names(read.records),
                positions=self._by_own_names(read.positions),
                at_end=len(read.at_end) == len(self._partitions),
            )

    def _by_own_names(self, found: Mapping[str, _Found]) -> dict[str, _Found]:
        return {self._names.own_partition(partition): each for partition, each in found.items()}


class _MemberWorker:
    """A consumer that is a member of a group, and the application that polls it: it processes what a poll returned before it polls again."""

    def __init__(self, channel: _Channel, client: dict[str, Any]) -> None:
        self._channel = channel
        self._interval_s: float = client["poll_interval_ns"] / 1e9
        self._records_max: int = client["max_poll_records"]
        self._start_ns: int = client["start_ns"]
        self._stop_ns: int | None = client["stop_ns"]
        self._topics: list[str] = client["subscribed"]
        self._partitions: list[str] = client["assigned"]
        self._commit: str = client["commit"]
        self._names = _names_of(client)
        self._consumer = load_library(client["library"]).make_member(client["settings"])
        self._owned: list[str] = []
        self._consumed: dict[str, int] = {}

    def work(self, _: list[dict[str, Any]]) -> None:
        while time.monotonic_ns() < self._start_ns:
            self._channel.orders(_POLL_S)
        self._begin()
        while self._stop_ns is None or time.monotonic_ns() < self._stop_ns:
            invoked_ns = time.monotonic_ns()
            records = self._consumer.poll(self._records_max, _POLL_S)
            if records:
                self._take(invoked_ns, records)
            self._channel.orders(0)
        self._consumer.close()
        self._channel.report_now(closed=True)
        while True:
            self._channel.orders(None)

    def _begin(self) -> None:
        if self._partitions:
            own = [self._names.partition(partition) for partition in self._partitions]
            self._assigned(own, -1)
            self._consumer.assign(own)
        else:
            self._channel.report_now(subscribed=True)
            topics = [self._names.topic(topic) for topic in self._topics]
            self._consumer.subscribe(topics, self._assigned, self._revoked)

    def _assigned(self, partitions: list[str], generation: int) -> None:
        own = [self._names.own_partition(partition) for partition in partitions]
        self._owned = sorted({*self._owned, *own})
        self._channel.report_now(assigned=sorted(own), generation=generation, owned=self._owned)
        committed = self._consumer.committed(partitions) if partitions else {}
        found = {self._names.own_partition(name): offset for name, offset in committed.items()}
        self._channel.report_now(found=found)

    def _revoked(self, partitions: list[str], is_lost: bool) -> None:
        own = [self._names.own_partition(partition) for partition in partitions]
        self._owned = [partition for partition in self._owned if partition not in own]
        for partition in own:
            self._consumed.pop(partition, None)
        self._channel.report_now(revoked=sorted(own), lost=is_lost, owned=self._owned)

    def _take(self, invoked_ns: int, records: Mapping[str, list[tuple[int, str]]]) -> None:
        own = {self._names.own_partition(name): pairs for name, pairs in records.items()}
        self._channel.report_now(
            invoked=invoked_ns,
            records=own,
            positions={name: pairs[-1][0] + 1 for name, pairs in own.items()},
            at_end=False,
        )
        self._consumed.update({name: pairs[-1][0] + 1 for name, pairs in own.items()})
        if self._commit == "before" and not self._commits():
            return
        time.sleep(self._interval_s)
        self._channel.report_now(
            processed={name: [pairs[-1][0] + 1, [v for _, v in pairs]] for name, pairs in own.items()}
        )
        if self._commit == "after":
            self._commits()
        elif self._commit == "auto":
            self._consumer.processed(self._by_cluster(self._consumed))

    def _commits(self) -> bool:
        """Commit what was read; return whether that counts."""
        offsets = dict(self._consumed)
        self._channel.report_now(committing=offsets)
        error = self._consumer.commit(self._by_cluster(offsets))
        self._channel.report_now(committed=offsets, error=error)
        return error is None

    def _by_cluster(self, offsets: Mapping[str, int]) -> dict[str, int]:
        return {self._names.partition(name): offset for name, offset in offsets.items()}


def _names_of(client: Mapping[str, Any]) -> Names:
    """Return what the topics that it was told of are called on the cluster: libraries know no other names."""
    return Names(topics=client.get("topics", {}))


_WORKERS: Final[Mapping[str, Callable[[_Channel, dict[str, Any]], "_Worker"]]] = {
    "producer": _ProducerWorker,
    "transactions": _TransactionsWorker,
    "consumer": _ConsumerWorker,
    "member": _MemberWorker,
}


if __name__ == "__main__":
    main()
