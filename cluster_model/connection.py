"""A connection between two processes, and what its ends are told."""

from collections import deque
from typing import Any, Final, Protocol

from cluster_model.message_rule import MessageRule
from cluster_model.process import Process


class ClientEndpoint(Protocol):
    """The end that opened a connection and sends requests."""

    def receive_response(self, message: "Message") -> None:
        """An answer, or something that the server pushes, has arrived."""

    def connection_lost(self, connection: "Connection") -> None:
        """The connection is broken; nothing more comes from it."""


class ServerEndpoint(Protocol):
    """The end that accepted a connection and answers requests."""

    def receive_request(self, message: "Message") -> None:
        """A request has arrived."""

    def connection_closed(self, connection: "Connection") -> None:
        """The client has closed the connection, or died."""


Message = tuple["Connection", int, Any]
"""A message in flight: connection, correlation id, body."""

CLOSE: Final = object()
"""The body of the message that ends a direction of a connection (TCP's FIN)."""


class Direction:
    """One direction of a connection."""

    __slots__ = ("arrival_us", "queue")

    def __init__(self) -> None:
        self.arrival_us = -(10**15)
        self.queue: deque[tuple[Message, MessageRule | None]] | None = None


class Connection:
    """A connection from a client to a server's listener."""

    __slots__ = (
        "client",
        "client_endpoint",
        "draining",
        "established",
        "id",
        "is_open",
        "listener",
        "muted",
        "server",
        "server_endpoint",
        "server_incarnation",
        "to_client",
        "to_server",
        "waiting",
    )

    def __init__(
        self, id_: int, client: Process, server: Process, listener: str, client_endpoint: ClientEndpoint
    ) -> None:
        self.id = id_
        self.client = client
        self.server = server
        self.listener = listener
        self.client_endpoint = client_endpoint
        self.server_endpoint: ServerEndpoint | None = None
        # The life of the server that accepted the connection; none (-1) while nobody has.
        self.server_incarnation = -1
        self.is_open = True
        # Nothing passes before the handshake, which needs both directions of the link.
        self.established = False
        self.to_server = Direction()
        self.to_client = Direction()
        # The server's side: a broker handles one request of a connection at a time.
        self.muted = False
        self.draining = False
        self.waiting: deque[Message] = deque()
