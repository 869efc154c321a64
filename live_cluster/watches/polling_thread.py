"""A thread that looks at something repeatedly."""

import threading
import time
from collections.abc import Callable, Iterable
from typing import Final

from harrow.live_cluster.watches.activity import QUIET_POLL_INTERVAL_S, Activity
from harrow.live_cluster.wire.connection import BrokerConnection

_INTERVAL_S: Final = 0.03
_SHARE: Final = 4
_REST_MAX_S: Final = 0.5


class PollingThread:
    """A thread that calls *look* until it is closed, less often without *activity*."""

    def __init__(self, name: str, look: Callable[[], None], activity: Activity) -> None:
        self._look = look
        self._activity = activity
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._repeat, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self, connections: Iterable[BrokerConnection] = ()) -> None:
        """End the thread, then close its connections: a look would reopen them."""
        self._over.set()
        self._activity.wake()
        if self._thread.ident is not None:
            self._thread.join()
        for connection in connections:
            connection.close()

    def _repeat(self) -> None:
        while not self._over.is_set():
            began_s = time.monotonic()
            self._look()
            rest_s = _rest_s(time.monotonic() - began_s)
            self._over.wait(rest_s)
            self._activity.wait_while_quiet(QUIET_POLL_INTERVAL_S - rest_s, self._over.is_set)


def _rest_s(took_s: float) -> float:
    """Return the pause after a look, which is longer after a long one, as with many partitions."""
    return min(max(_INTERVAL_S, _SHARE * took_s), _REST_MAX_S)
