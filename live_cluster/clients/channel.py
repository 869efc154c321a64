"""The client's end of its connection to harrow."""

import json
import queue
import select
import socket
import sys
import threading
import time
from typing import Any, Final

_DISCONNECTED: Final = object()
"""Takes the place of an order or an answer when harrow has ended."""
_RECEIVED_BYTES: Final = 65_536


class Channel:
    """The connection to harrow. Any thread may report."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._incomplete_line = b""

    def report(self, **fields: Any) -> None:
        with self._lock:
            self._connection.sendall(json.dumps(fields).encode() + b"\n")

    def report_now(self, **fields: Any) -> None:
        """Send a report with the current time. Reports arrive in the order of their times."""
        with self._lock:
            self._connection.sendall(json.dumps({"at": time.monotonic_ns(), **fields}).encode() + b"\n")

    def orders(self, timeout_s: float | None) -> list[dict[str, Any]]:
        """Return the orders that arrive within a time; exit if harrow has ended."""
        ready, _, _ = select.select([self._connection], [], [], timeout_s)
        if not ready:
            return []
        received = self._connection.recv(_RECEIVED_BYTES)
        if not received:
            sys.exit(0)
        *lines, self._incomplete_line = (self._incomplete_line + received).split(b"\n")
        return [json.loads(line) for line in lines]


class AskingChannel:
    """A channel over which any thread can also ask harrow a question.

    Orders and answers share one connection, so one thread reads it and passes them on.
    """

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self.report = channel.report
        self.report_now = channel.report_now
        self._question_lock = threading.Lock()
        self._answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._orders: queue.SimpleQueue[Any] = queue.SimpleQueue()
        threading.Thread(target=self._read, name="orders", daemon=True).start()

    def ask(self, **fields: Any) -> Any:
        """Return harrow's answer; end the thread if harrow has ended."""
        with self._question_lock:
            self._channel.report_now(**fields)
            answer = self._answers.get()
        if answer is _DISCONNECTED:
            sys.exit(0)
        return answer

    def orders(self, timeout_s: float | None) -> list[dict[str, Any]]:
        """Return the orders that arrive within a time; exit if harrow has ended."""
        orders: list[dict[str, Any]] = []
        try:
            order = self._orders.get(timeout=timeout_s) if timeout_s != 0 else self._orders.get_nowait()
            while True:
                if order is _DISCONNECTED:
                    sys.exit(0)
                orders.append(order)
                order = self._orders.get_nowait()
        except queue.Empty:
            return orders

    def _read(self) -> None:
        try:
            while True:
                for order in self._channel.orders(None):
                    if "answer" in order:
                        self._answers.put(order["answer"])
                    else:
                        self._orders.put(order)
        except (SystemExit, OSError):
            self._orders.put(_DISCONNECTED)
            self._answers.put(_DISCONNECTED)
