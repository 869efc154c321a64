"""The functions that a run on real brokers calls at times of its clock."""

import heapq
from collections.abc import Callable
from itertools import count
from typing import Any


class Timers:
    """Functions with the times at which they are due, in microseconds of the run."""

    def __init__(self) -> None:
        self._timers: list[tuple[int, int, Callable[[Any], None], Any]] = []
        self._numbers = count()

    def add(self, at_us: int, callback: Callable[[Any], None], argument: Any) -> None:
        heapq.heappush(self._timers, (at_us, next(self._numbers), callback, argument))

    def next_us(self) -> int | None:
        """Return when the next function is due; None if there is none."""
        return self._timers[0][0] if self._timers else None

    def call_due(self, now_us: int) -> None:
        """Call the functions that are due, in the order of their times, even if they are late."""
        while self._timers and self._timers[0][0] <= now_us:
            _, _, callback, argument = heapq.heappop(self._timers)
            callback(argument)

    def clear(self) -> None:
        self._timers.clear()
