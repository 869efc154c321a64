"""The connection between a client under test and harrow, seen from the client's process."""

import json
import queue
import select
import socket
import sys
import threading
import time
from typing import Any, Final

_GONE: Final = object()
"""What is read in place of an order, or of an answer, when harrow is gone."""
_RECEIVED_BYTES: Final = 65_536


class Channel:
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
        received = self._connection.recv(_RECEIVED_BYTES)
        if not received:
            sys.exit(0)
        *lines, self._rest = (self._rest + received).split(b"\n")
        return [json.loads(line) for line in lines]


class AskingChannel:
    """A channel over which its client also asks harrow, and waits for the answer; any thread may.

    Orders and answers come over one connection, so that one thread reads it and gives each to who waits for it.
    """

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self.report = channel.report
        self.report_now = channel.report_now
        self._asking = threading.Lock()
        self._answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._orders: queue.SimpleQueue[Any] = queue.SimpleQueue()
        threading.Thread(target=self._read, name="orders", daemon=True).start()

    def ask(self, **what: Any) -> Any:
        """Return what harrow answers; end the thread when it is gone."""
        with self._asking:
            self._channel.report_now(**what)
            answer = self._answers.get()
        if answer is _GONE:
            sys.exit(0)
        return answer

    def orders(self, timeout_s: float | None) -> list[dict[str, Any]]:
        """Return the orders that have come, or come within a time; end the process when harrow is gone."""
        found: list[dict[str, Any]] = []
        try:
            order = self._orders.get(timeout=timeout_s) if timeout_s != 0 else self._orders.get_nowait()
            while True:
                if order is _GONE:
                    sys.exit(0)
                found.append(order)
                order = self._orders.get_nowait()
        except queue.Empty:
            return found

    def _read(self) -> None:
        try:
            while True:
                for order in self._channel.orders(None):
                    if "answer" in order:
                        self._answers.put(order["answer"])
                    else:
                        self._orders.put(order)
        except (SystemExit, OSError):
            self._orders.put(_GONE)
            self._answers.put(_GONE)
