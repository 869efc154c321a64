"""A thread that polls something repeatedly."""

import threading
import time
from collections.abc import Callable, Iterable
from typing import Final

from harrow.live_cluster.watches.activity import QUIET_POLL_INTERVAL_S, Activity
from harrow.live_cluster.wire.connection import BrokerConnection

_INTERVAL_S: Final = 0.03
_REST_PER_POLL_TIME: Final = 4
_REST_MAX_S: Final = 0.5


class PollingThread:
    """A thread that calls *poll* until it is closed, less often without *activity*."""

    def __init__(self, name: str, poll: Callable[[], None], activity: Activity) -> None:
        self._poll = poll
        self._activity = activity
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._repeat, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self, connections: Iterable[BrokerConnection] = ()) -> None:
        """End the thread, then close its connections, which a poll would reopen."""
        self._stop.set()
        self._activity.wake()
        if self._thread.ident is not None:
            self._thread.join()
        for connection in connections:
            connection.close()

    def _repeat(self) -> None:
        while not self._stop.is_set():
            start_s = time.monotonic()
            self._poll()
            rest_s = _rest_s(time.monotonic() - start_s)
            self._stop.wait(rest_s)
            self._activity.wait_while_quiet(QUIET_POLL_INTERVAL_S - rest_s, self._stop.is_set)


def _rest_s(duration_s: float) -> float:
    """Return the pause after a poll. It is longer after a long poll, as with many partitions."""
    return min(max(_INTERVAL_S, _REST_PER_POLL_TIME * duration_s), _REST_MAX_S)
