"""The time of a run, as a client's process sees it."""

import time
from typing import Any, Protocol


class Orders(Protocol):
    """A source of harrow's orders."""

    def orders(self, timeout_s: float | None) -> list[dict[str, Any]]:
        """Return the orders that arrive within a time; exit if harrow has ended."""


class RunClock:
    """A clock of nanoseconds since the run began.

    ``zero_ns`` is the reading of the system's monotonic clock when the run began. All processes of
    a machine share that clock.
    """

    def __init__(self, zero_ns: int = 0) -> None:
        self.zero_ns = zero_ns

    def await_beginning(self, channel: Orders, orders: list[dict[str, Any]]) -> None:
        """Wait until harrow begins the run. *orders* keeps the other orders that have arrived."""
        while not (begun := [order for order in orders if "zero_ns" in order]):
            orders += channel.orders(None)
        orders.remove(begun[0])
        self.zero_ns = begun[0]["zero_ns"]

    def now_ns(self) -> int:
        """Return the time since the run began."""
        return time.monotonic_ns() - self.zero_ns
