"""Reserves free ports on this machine's loopback address."""

import socket
from contextlib import ExitStack
from typing import Final, Self

from harrow.live_cluster.errors import LiveError

LOOPBACK: Final = "127.0.0.1"
_LOWEST: Final = 21_000
_HIGHEST: Final = 32_000
"""The range is below the ports that systems assign to clients. Otherwise, a client could take the
port of a broker that restarts."""


class PortError(LiveError):
    """There are no free ports left."""


class Ports:
    """Reserves free ports while this context is open, even against other harrow processes."""

    def __init__(self) -> None:
        self._next_port = _LOWEST
        self._sockets = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release all ports."""
        self._sockets.close()

    def reserve(self) -> int:
        """Return a free port for a server that uses SO_REUSEADDR, as Java does.

        Raise `PortError` if no port is free.
        """
        while self._next_port < _HIGHEST:
            port = self._next_port
            self._next_port += 1
            if self._reserve(port):
                return port
        raise PortError(f"no port from {_LOWEST} to {_HIGHEST} is free on {LOOPBACK}")

    def _reserve(self, port: int) -> bool:
        """Reserve a port, and return whether it was free.

        A socket that is bound but does not listen blocks only sockets without SO_REUSEADDR.
        """
        holder = socket.socket()
        try:
            holder.bind((LOOPBACK, port))
        except OSError:
            holder.close()
            return False
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._sockets.enter_context(holder)
        return True
