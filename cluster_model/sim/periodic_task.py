"""Tasks at a fixed rate, as ``KafkaScheduler`` has them, which cost nothing while there is nothing for them to do."""

from collections.abc import Callable
from typing import Any

from harrow.cluster_model.sim.host import Host


class PeriodicTask:
    """A task that looks for work every so often, and is left out at the times at which it would find none.

    *run* returns whether there may be work the next time too. If not, it is called again after `request` alone, at the
    next of the times at which it would have been called anyway: a period after `start`, and so on.
    """

    __slots__ = ("_began_us", "_host", "_is_requested", "_period_us", "_run")

    def __init__(self, host: Host, period_us: int, run: Callable[[], bool]) -> None:
        self._host = host
        self._period_us = period_us
        self._run = run
        self._began_us: int | None = None
        self._is_requested = False

    def start(self) -> None:
        """Begin to count the periods."""
        self._began_us = self._host.clock.now_us
        if self._is_requested:
            self._wait(self._period_us)

    def request(self) -> None:
        """There is work for the next time."""
        if not self._is_requested:
            self._is_requested = True
            if self._began_us is not None:
                self._wait(self._period_us - (self._host.clock.now_us - self._began_us) % self._period_us)

    def _wait(self, delay_us: int) -> None:
        self._host.set_timer(delay_us, self._fire)

    def _fire(self, _: Any) -> None:
        self._is_requested = False
        if self._run():
            self.request()
