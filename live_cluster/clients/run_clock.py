"""The time of a run, as a client's process sees it."""

import time
from typing import Any

from harrow.live_cluster.clients.channel import AskingChannel, Channel


class RunClock:
    """A clock of nanoseconds since the run began.

    ``zero_ns`` is the reading of the system's monotonic clock when the run began, None before. All
    processes of a machine share that clock.
    """

    def __init__(self) -> None:
        self.zero_ns: int | None = None

    def await_beginning(self, channel: Channel | AskingChannel, orders: list[dict[str, Any]]) -> None:
        """Wait until harrow begins the run. *orders* keeps the other orders that have arrived."""
        while not (beginnings := [order for order in orders if "zero_ns" in order]):
            orders += channel.orders(None)
        orders.remove(beginnings[0])
        self.zero_ns = beginnings[0]["zero_ns"]

    def now_ns(self) -> int:
        """Return the time since the run began."""
        assert self.zero_ns is not None, "no client works before the run begins"
        return time.monotonic_ns() - self.zero_ns
