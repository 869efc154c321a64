"""Runs tasks at a fixed rate, like ``KafkaScheduler``, but skips times without work."""

from collections.abc import Callable
from typing import Any

from harrow.cluster_model.sim.host import Host


class PeriodicTask:
    """A task that runs once in each period in which there may be work.

    *run* returns whether there may be work in the next period. If not, the task runs again only
    after a `request`. It always runs a whole number of periods after `start`.
    """

    __slots__ = ("_host", "_is_requested", "_period_us", "_run", "_start_us")

    def __init__(self, host: Host, period_us: int, run: Callable[[], bool]) -> None:
        self._host = host
        self._period_us = period_us
        self._run = run
        self._start_us: int | None = None
        self._is_requested = False

    def start(self) -> None:
        """Start the first period."""
        self._start_us = self._host.clock.now_us
        if self._is_requested:
            self._wait(self._period_us)

    def request(self) -> None:
        """Run the task at the end of the current period."""
        if not self._is_requested:
            self._is_requested = True
            if self._start_us is not None:
                self._wait(self._period_us - (self._host.clock.now_us - self._start_us) % self._period_us)

    def _wait(self, delay_us: int) -> None:
        self._host.set_timer(delay_us, self._fire)

    def _fire(self, _: Any) -> None:
        self._is_requested = False
        if self._run():
            self.request()
