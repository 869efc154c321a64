"""Binds the ports of a served cluster."""

import socket
from contextlib import ExitStack
from typing import Final

from harrow.live_cluster.errors import LiveError

LOOPBACK: Final = "127.0.0.1"


class CannotListenError(LiveError):
    """A port cannot be used; the message says which one and why."""


def bound_socket(host: str, port: int) -> socket.socket:
    """Return a socket that has a port but does not listen yet. Port 0 stands for any free one.

    Raises:
        CannotListenError: The port cannot be used.

    """
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    with ExitStack() as opened:
        opened.callback(sock.close)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((host, port))
        except OverflowError:
            raise CannotListenError(f"cannot listen on {host}:{port}: the last port is 65535") from None
        except OSError as error:
            place = f"{host}:{port}" if port else host
            raise CannotListenError(f"cannot listen on {place}: {error.strerror or error}") from None
        sock.setblocking(False)
        opened.pop_all()
    return sock
