"""Free ports on this machine's loopback address."""

import socket
from contextlib import ExitStack
from typing import Final, Self

from harrow.live_cluster.errors import LiveError

LOOPBACK: Final = "127.0.0.1"
_LOWEST: Final = 21_000
_HIGHEST: Final = 32_000
"""Below what systems give away by themselves: a broker that is started again would find its port taken now and then."""


class PortError(LiveError):
    """There are no free ports left."""


class Ports:
    """Ports that no other process listens on, and no other harrow takes, while this context is open."""

    def __init__(self) -> None:
        self._next = _LOWEST
        self._held = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give all of them back."""
        self._held.close()

    def take(self) -> int:
        """Return a free port, to listen on with SO_REUSEADDR, as Java does.

        Raises:
            PortError: there is none.

        """
        while self._next < _HIGHEST:
            port = self._next
            self._next += 1
            if self._holds(port):
                return port
        raise PortError(f"no port from {_LOWEST} to {_HIGHEST} is free on {LOOPBACK}")

    def _holds(self, port: int) -> bool:
        """Return whether a port is free, and keep it.

        A socket that is bound and does not listen is in the way of those alone that do not share it.
        """
        holder = socket.socket()
        try:
            holder.bind((LOOPBACK, port))
        except OSError:
            holder.close()
            return False
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._held.enter_context(holder)
        return True
