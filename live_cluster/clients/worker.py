"""The process of a client under test, which can be killed and paused like an application.

The process connects to harrow and receives the description of its client. Then it receives orders
and sends reports, each a line of JSON. Times are in nanoseconds. Reports have times of the system's
monotonic clock. ``start_ns`` and ``stop_ns`` count from the beginning of the run (`RunClock`),
which the order ``zero_ns`` states. The process ends when harrow ends.
"""

import contextlib
import socket
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol, TypeVar

from harrow.cluster_model.clients import programs
from harrow.cluster_model.clients.programs import Records
from harrow.cluster_model.errors import NONE
from harrow.live_cluster.clients.channel import Channel
from harrow.live_cluster.clients.client_library import ClientLibrary, load_library
from harrow.live_cluster.clients.member import GroupMembership
from harrow.live_cluster.clients.run_clock import RunClock
from harrow.live_cluster.clients.senders import LibrarySender, ProducerFailedError, TransactionalSender
from harrow.live_cluster.names import names_of

_POLL_INTERVAL_S: Final = 0.02
_LATE_NS: Final = 100_000_000
"""A producer that is later than this skips the records that are due."""
_Value = TypeVar("_Value")


def main() -> None:
    """Run the client that harrow sends."""
    host, port, token = sys.argv[1:]
    with socket.create_connection((host, int(port))) as connection:
        # Otherwise each report would wait 40 ms for the TCP acknowledgement of the previous one.
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        channel = Channel(connection)
        channel.report(token=token)
        # The first order describes the client.
        while not (orders := channel.orders(None)):
            pass
        client = orders.pop(0)
        worker = WORKERS[client["role"]](channel, client)
        channel.report(ready=True)
        worker.work(orders)


class _Worker(Protocol):
    """A running client."""

    def work(self, orders: list[dict[str, Any]]) -> None:
        """Obey these orders and the following ones, until harrow ends."""


class ProducerWorker:
    """A producer, which runs a program that generates records, and sends records on order."""

    def __init__(self, channel: Channel, client: dict[str, Any]) -> None:
        self._channel = channel
        self._partitions: list[str] = client["partitions"]
        self._name: str = client["name"]
        self._gaps_ns: list[int] = client["gaps_ns"]
        # The key and the partition of each generated record, empty if they have no keys.
        self._keys: list[tuple[str, str]] = client.get("keys", [])
        self._clock = RunClock()
        self._next_ns: int = client["start_ns"]
        self._stop_ns: int | None = client["stop_ns"]
        self._orders: list[dict[str, Any]] = []
        self._sent = 0
        self._due_count = 0
        self._generated = 0
        self._first: int = client.get("first", 0)
        self._sender = self._make_sender(client, load_library(client["library"]))
        self._program = self._make_program(client)

    def _make_sender(self, client: dict[str, Any], library: ClientLibrary) -> LibrarySender:
        producer = library.make_producer(client["settings"])
        return LibrarySender(
            self._channel.report_now, producer, names_of(client), client.get("record_bytes", 0)
        )

    def _make_program(self, _: dict[str, Any]) -> programs.Program:
        return programs.generate_records()

    def work(self, orders: list[dict[str, Any]]) -> None:
        self._clock.await_beginning(self._channel, orders)
        self._orders, answer = orders, None
        try:
            with contextlib.suppress(StopIteration):
                while True:
                    answer = self.take(self._program.send(answer))
            self._obey_and_poll(None)
        except ProducerFailedError as failed:
            self._channel.report_now(fatal=str(failed))
        while True:
            self._channel.orders(None)

    def take(self, step: programs.ProgramStep) -> Any:
        """Take a step of the program, and return its result."""
        if isinstance(step, programs.WaitForRecord):
            return self._wait_for_record()
        assert isinstance(step, programs.SendNextRecord), step
        self._send_next()
        return None

    def _wait_for_record(self) -> bool:
        if not self._gaps_ns:
            self._obey_and_poll(None)
        if self._stop_ns is not None and self._next_ns >= self._stop_ns:
            return False
        self._obey_and_poll(self._next_ns)
        # A busy machine is late by less than `_LATE_NS`. As on the model, the producer skips
        # records that were due during a longer pause.
        self._next_ns = max(self._next_ns, self._clock.now_ns() - _LATE_NS) + self._next_gap_ns()
        return True

    def _next_gap_ns(self) -> int:
        self._due_count += 1
        return max(self._gaps_ns[(self._due_count - 1) % len(self._gaps_ns)], 1)

    def _obey_and_poll(self, until_ns: int | None) -> None:
        """Obey orders and poll the library until a time, or forever."""
        while True:
            self._check_producer()
            orders, self._orders = self._orders, []
            for order in (*orders, *self._channel.orders(0)):
                self._obey(order)
            left_s = _POLL_INTERVAL_S if until_ns is None else (until_ns - self._clock.now_ns()) / 1e9
            self._sender.poll(min(max(left_s, 0.0), _POLL_INTERVAL_S))
            if until_ns is not None and self._clock.now_ns() >= until_ns:
                return

    def _check_producer(self) -> None:
        """End the program if its producer has failed for good."""
        error = self._sender.fatal_error()
        if error is not None:
            raise ProducerFailedError(error)

    def _obey(self, order: dict[str, Any]) -> None:
        if "partitions" in order:
            self._partitions = order["partitions"]
        else:
            self._send(order["value"], order["partition"], order.get("key"))

    def _send_next(self) -> None:
        key, partition = self._keys[self._generated % len(self._keys)] if self._keys else (None, None)
        self._send(f"{self._name}:{self._first + self._generated}", partition, key)
        self._generated += 1

    def _send(self, value: str, partition: str | None, key: str | None) -> None:
        self._sender.send(partition or self._partitions[self._sent % len(self._partitions)], value, key)
        self._sent += 1


class _TransactionsWorker(ProducerWorker):
    """A transactional producer, which calls its library from one thread."""

    _sender: TransactionalSender

    def _make_sender(self, client: dict[str, Any], library: ClientLibrary) -> TransactionalSender:
        producer = library.make_transactions(client["settings"])
        report = self._channel.report_now
        return TransactionalSender(report, producer, names_of(client), client.get("record_bytes", 0))

    def _make_program(self, client: dict[str, Any]) -> programs.Program:
        aborts = programs.transactions_to_abort(client["abort_every"], client.get("begun", 0))
        return programs.generate_transactions(client["transaction_records"], map(self._report_begun, aborts))

    def _report_begun(self, to_abort: bool) -> bool:
        self._channel.report_now(begun=True)
        return to_abort

    def take(self, step: programs.ProgramStep) -> Any:
        sender = self._sender
        if isinstance(step, programs.MustAbort):
            sender.note_fatal()
            return sender.is_open and sender.failure is not None and not sender.has_failed
        if isinstance(step, programs.IsTransactionOpen):
            return sender.is_open and sender.failure is None
        if isinstance(step, programs.OpenTransaction):
            return sender.begin() or NONE
        if isinstance(step, (programs.SendNextRecord, programs.WaitForRecord)):
            return super().take(step)
        if isinstance(step, programs.InitTransactions):
            error = sender.init_transactions()
        elif isinstance(step, programs.CommitOpenTransaction):
            error = sender.commit()
        else:
            assert isinstance(step, programs.AbortOpenTransaction), step
            error = sender.abort()
        self._skip_due()
        return error or NONE

    def _skip_due(self) -> None:
        """Skip the records that were due during a call."""
        late_ns = self._clock.now_ns() - self._next_ns
        if self._gaps_ns and late_ns >= 0:
            gap_ns = self._next_gap_ns()
            self._next_ns += (late_ns // gap_ns + 1) * gap_ns

    def _check_producer(self) -> None:
        """Note a fatal error, and go on: a fenced producer does not restart by itself."""
        self._sender.note_fatal()

    def _obey(self, order: dict[str, Any]) -> None:
        if order.get("call") is None:
            super()._obey(order)
        elif order["call"] == "begin":
            self._sender.begin()
        elif order["call"] == "commit":
            self._sender.commit()
        else:
            self._sender.abort()
        if "number" in order:
            self._channel.report_now(returned=order["number"])


class _ConsumerWorker:
    """A consumer, which reads partitions from their beginnings, and reports their ends."""

    def __init__(self, channel: Channel, client: dict[str, Any]) -> None:
        self._channel = channel
        self._interval_s: float = client["poll_interval_ns"] / 1e9
        self._records_max: int = client["max_poll_records"]
        self._clock = RunClock()
        self._start_ns: int = client["start_ns"]
        self._partitions: list[str] = client["partitions"]
        self._at_end: frozenset[str] = frozenset()
        self._names = names_of(client)
        self._consumer = load_library(client["library"]).make_consumer(client["settings"])

    def work(self, orders: list[dict[str, Any]]) -> None:
        self._clock.await_beginning(self._channel, orders)
        while self._clock.now_ns() < self._start_ns:
            self._channel.orders(_POLL_INTERVAL_S)
        self._consumer.assign([self._names.cluster_partition(partition) for partition in self._partitions])
        while True:
            invoked_ns = time.monotonic_ns()
            self._read(invoked_ns)
            self._channel.orders(max(0.0, self._interval_s - (time.monotonic_ns() - invoked_ns) / 1e9))

    def _read(self, invoked_ns: int) -> None:
        poll = self._consumer.poll(self._records_max, _POLL_INTERVAL_S)
        if poll.records or poll.at_end != self._at_end:
            self._at_end = poll.at_end
            self._channel.report_now(
                invoked=invoked_ns,
                records=self._with_campaign_names(poll.records),
                positions=self._with_campaign_names(poll.positions),
                at_end=len(poll.at_end) == len(self._partitions),
            )

    def _with_campaign_names(self, values: Mapping[str, _Value]) -> dict[str, _Value]:
        return {self._names.campaign_partition(partition): value for partition, value in values.items()}


class _MemberWorker:
    """A group member whose application processes the records of a poll before the next one."""

    def __init__(self, channel: Channel, client: dict[str, Any]) -> None:
        self._channel = channel
        self._interval_s: float = client["poll_interval_ns"] / 1e9
        self._clock = RunClock()
        self._start_ns: int = client["start_ns"]
        self._stop_ns: int | None = client["stop_ns"]
        self._topics: list[str] = client["subscribed"]
        self._partitions: list[str] = client["assigned"]
        self._commit: str = client["commit"]
        self._slow_s: float = client["slow_ns"] / 1e9
        self._is_closing = False
        consumer = load_library(client["library"]).make_member(client["settings"])
        self._member = GroupMembership(
            channel.report_now,
            consumer,
            names_of(client),
            client["max_poll_records"],
            begins_at_zero=client["begins_at_zero"],
        )

    def work(self, orders: list[dict[str, Any]]) -> None:
        self._clock.await_beginning(self._channel, orders)
        while self._clock.now_ns() < self._start_ns:
            orders += self._channel.orders(_POLL_INTERVAL_S)
        self._obey(orders)
        program, answer = programs.read_for_group(self._commit), None
        with contextlib.suppress(StopIteration):
            while True:
                answer = self._take(program.send(answer))
        self._channel.report_now(closed=True)
        while True:
            self._channel.orders(None)

    def _take(self, step: programs.ProgramStep) -> Any:
        """Take a step of the program, and return its result."""
        member = self._member
        if isinstance(step, programs.PollRecords):
            return self._poll()
        if isinstance(step, programs.CommitOffsets):
            return member.commit(member.consumed) or NONE
        if isinstance(step, programs.ProcessRecords):
            self._process(step.records)
        elif isinstance(step, programs.CloseClients):
            member.close()
        else:
            assert isinstance(step, programs.SubscribeToSource), step
            self._begin()
        return None

    def _obey(self, orders: list[dict[str, Any]]) -> None:
        for order in orders:
            self._slow_s = order.get("slow_ns", self._slow_s * 1e9) / 1e9
            self._is_closing = self._is_closing or "close" in order

    def _is_over(self) -> bool:
        return self._stop_ns is not None and self._clock.now_ns() >= self._stop_ns

    def _begin(self) -> None:
        if self._partitions:
            self._member.assign(self._partitions)
        else:
            self._member.subscribe(self._topics)

    def _poll(self) -> Records | None:
        """Wait until there are records, or the member must close."""
        records: Records = {}
        while not records:
            self._obey(self._channel.orders(0))
            if self._is_closing or self._is_over():
                return None
            records = self._member.poll(time.monotonic_ns(), _POLL_INTERVAL_S)
        return records

    def _process(self, records: Records) -> None:
        time.sleep(self._interval_s + self._slow_s)
        self._channel.report_now(
            processed={name: [pairs[-1][0] + 1, [v for _, v in pairs]] for name, pairs in records.items()}
        )
        if self._commit == programs.AUTO:
            self._member.set_processed(self._member.consumed)


def _application(channel: Channel, client: dict[str, Any]) -> _Worker:
    from harrow.live_cluster.clients.application_worker import ApplicationWorker  # noqa: PLC0415 - other workers do not need it

    return ApplicationWorker(channel, client, load_library(client["library"]))


WORKERS: Final[Mapping[str, Callable[[Channel, dict[str, Any]], _Worker]]] = {
    "producer": ProducerWorker,
    "transactions": _TransactionsWorker,
    "consumer": _ConsumerWorker,
    "member": _MemberWorker,
    "application": _application,
}


if __name__ == "__main__":
    main()
