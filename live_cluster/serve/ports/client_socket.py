"""Reads the frames of a real client from its socket, and writes the responses to it."""

import socket
from collections.abc import Callable, Iterator
from typing import Final

from harrow.live_cluster.wire.client_requests import BadRequestError, frames

_READ_BYTES: Final = 1 << 18


class ClientSocket:
    """The socket of one connection, with the bytes that wait on it.

    It is ``broken`` when the client has ended the connection, or has sent bytes that are no frame.
    The server then closes the connection at its next moment. *note_change* is called when the model
    sends bytes.
    """

    def __init__(
        self, sock: socket.socket, number: int, note_change: Callable[["ClientSocket"], None]
    ) -> None:
        self.socket = sock
        self.number = number
        self._note_change = note_change
        self.awaited_events = 0
        self.counted_bytes = 0
        self.is_broken = False
        self.to_send = bytearray()
        self._received = bytearray()

    @property
    def buffered_bytes(self) -> int:
        """How many bytes wait: of requests that are not complete, and of responses."""
        return len(self._received) + len(self.to_send)

    def read(self) -> Iterator[bytes]:
        """Yield the frames that are complete now."""
        try:
            data = self.socket.recv(_READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        self.is_broken = self.is_broken or not data
        self._received += data
        try:
            yield from frames(self._received)
        except BadRequestError:
            self.is_broken = True

    def send(self, data: bytes) -> None:
        """Send bytes; what the socket does not take now waits for `write`."""
        self.to_send += data
        self._note_change(self)
        self.write()

    def write(self) -> None:
        """Write as much as the socket takes."""
        if self.is_broken:
            return
        try:
            sent = self.socket.send(self.to_send)
        except BlockingIOError:
            return
        except OSError:
            self.is_broken = True
            return
        del self.to_send[:sent]
