"""A client under test, in a process of its own: it can be killed and paused like an application.

It connects to harrow, is told once what client it is, then gets orders and reports what it did, each a line of JSON. Times are those
of the system's monotonic clock, in nanoseconds, which all processes of a machine share. When harrow is gone, it ends.
"""

import json
import select
import socket
import sys
import time
from collections.abc import Callable
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicPartition

_POLL_S: Final = 0.02
_NEVER_SENT: Final = frozenset({KafkaError.MSG_SIZE_TOO_LARGE, KafkaError._PURGE_QUEUE})  # noqa: SLF001 - so it is called
"""Errors with which a record is surely in no log. After any other an earlier attempt may have put it there."""
_END: Final = KafkaError._PARTITION_EOF  # noqa: SLF001 - so it is called


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
        make = _ProducerWorker if client["role"] == "producer" else _ConsumerWorker
        worker = make(channel, client)
        channel.report(ready=True)
        worker.work(told)


class _Channel:
    """The connection to harrow."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._rest = b""

    def report(self, **what: Any) -> None:
        self._connection.sendall(json.dumps(what).encode() + b"\n")

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


class _ProducerWorker:
    """A producer: it sends what it is told, and what it generates itself between two times."""

    def __init__(self, channel: _Channel, client: dict[str, Any]) -> None:
        self._channel = channel
        self._partitions: list[str] = client["partitions"]
        self._name: str = client["name"]
        self._gaps_ns: list[int] = client["gaps_ns"]
        self._next_ns: int = client["start_ns"]
        self._stop_ns: int | None = client["stop_ns"]
        self._acks_nothing = str(client["settings"].get("acks")) == "0"
        self._sent = 0
        self._generated = 0
        self._first: int = client.get("first", 0)
        self._record_bytes: int = client.get("record_bytes", 0)
        self._producer = Producer(client["settings"])

    def work(self, orders: list[dict[str, Any]]) -> None:
        while True:
            for order in orders:
                self._send(order["value"], order["partition"])
            self._generate()
            self._producer.poll(_POLL_S)
            orders = self._channel.orders(0)

    def _generate(self) -> None:
        """Send what is due: after each record the next of the gaps, again and again."""
        while self._gaps_ns and self._next_ns <= time.monotonic_ns():
            if self._stop_ns is not None and self._next_ns >= self._stop_ns:
                self._gaps_ns = []
                return
            self._send(f"{self._name}:{self._first + self._generated}", None)
            self._next_ns += self._gaps_ns[self._generated % len(self._gaps_ns)]
            self._generated += 1

    def _send(self, value: str, partition: str | None) -> None:
        if partition is None:
            partition = self._partitions[self._sent % len(self._partitions)]
        self._sent += 1
        topic, _, number = partition.rpartition("-")
        self._channel.report(at=time.monotonic_ns(), type="invoke", partition=partition, value=value)
        data = value.encode()
        try:
            self._producer.produce(
                topic,
                data,
                # What a record is to be larger than its value; its partition does not depend on it.
                b" " * (self._record_bytes - len(data)) or None,
                partition=int(number),
                on_delivery=self._delivered(partition, value),
            )
        except (BufferError, KafkaException) as error:
            self._ended("fail", partition, value, error=_name_of(error))

    def _delivered(self, partition: str, value: str) -> Callable[[KafkaError | None, Any], None]:
        def delivered(error: KafkaError | None, message: Any) -> None:
            if error is None:
                self._ended("ok", partition, value, offset=None if self._acks_nothing else message.offset())
            else:
                is_definite = error.code() in _NEVER_SENT
                self._ended("fail" if is_definite else "info", partition, value, error=error.name())

        return delivered

    def _ended(self, type_: str, partition: str, value: str, **more: Any) -> None:
        self._channel.report(at=time.monotonic_ns(), type=type_, partition=partition, value=value, **more)


class _ConsumerWorker:
    """A consumer: it reads partitions from their beginning, and says when it has come to the end of all."""

    def __init__(self, channel: _Channel, client: dict[str, Any]) -> None:
        self._channel = channel
        self._interval_s: float = client["poll_interval_ns"] / 1e9
        self._records_max: int = client["max_poll_records"]
        self._start_ns: int = client["start_ns"]
        self._positions: dict[str, int] = dict.fromkeys(client["partitions"], 0)
        self._ended: set[str] = set()
        # An assigned consumer needs a group's name, and no group.
        self._consumer = Consumer(
            {
                **client["settings"],
                "group.id": client["name"],
                "enable.auto.commit": False,
                "enable.partition.eof": True,
            }
        )

    def work(self, _: list[dict[str, Any]]) -> None:
        while time.monotonic_ns() < self._start_ns:
            self._channel.orders(_POLL_S)
        assigned = [
            TopicPartition(topic, int(number), OFFSET_BEGINNING)
            for topic, _, number in (partition.rpartition("-") for partition in self._positions)
        ]
        self._consumer.assign(assigned)
        while True:
            invoked_ns = time.monotonic_ns()
            self._read(self._consumer.consume(self._records_max, _POLL_S), invoked_ns)
            self._channel.orders(max(0.0, self._interval_s - (time.monotonic_ns() - invoked_ns) / 1e9))

    def _read(self, messages: list[Any], invoked_ns: int) -> None:
        records: dict[str, list[tuple[int, str]]] = {}
        ended = set(self._ended)
        for message in messages:
            partition = f"{message.topic()}-{message.partition()}"
            if message.error() is None:
                value = message.value() or b""
                records.setdefault(partition, []).append(
                    (message.offset(), value.decode("utf-8", "backslashreplace"))
                )
                self._positions[partition] = message.offset() + 1
                ended.discard(partition)
            elif message.error().code() == _END:
                self._positions[partition] = message.offset()
                ended.add(partition)
        if records or ended != self._ended:
            self._ended = ended
            self._channel.report(
                invoked=invoked_ns,
                at=time.monotonic_ns(),
                records=records,
                positions=self._positions,
                at_end=len(ended) == len(self._positions),
            )


def _name_of(error: BaseException) -> str:
    if isinstance(error, KafkaException) and error.args and isinstance(error.args[0], KafkaError):
        return str(error.args[0].name())
    return "_QUEUE_FULL"


if __name__ == "__main__":
    main()
