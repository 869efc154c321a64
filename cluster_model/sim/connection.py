"""A connection between two processes, and what its ends are told."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from harrow.cluster_model.sim.message_rule import MessageRule
from harrow.cluster_model.sim.process import Process


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


class Idle(Protocol):
    """What goes on by itself on a connection while nothing happens (`idle_fetch`)."""

    @property
    def repeated_us(self) -> int | None:
        """When the client has last repeated its request, None before the first time."""

    def wake(self) -> None:
        """Be what has become of it by now."""


Message = tuple["Connection", int, Any]
"""A message in flight: connection, correlation id, body."""

NO_INCARNATION: Final = -1
"""The incarnation of a server that has not accepted a connection, or has closed it."""

CLOSE: Final = object()
"""The body of the message that ends a direction of a connection (TCP's FIN)."""


@dataclass(slots=True, eq=False)
class Direction:
    """One direction of a connection."""

    arrival_us: int = -(10**15)
    queue: deque[tuple[Message, MessageRule | None]] | None = None


@dataclass(slots=True, eq=False)
class Connection:
    """A connection from a client to a server's listener."""

    id: int
    client: Process
    server: Process
    listener: str
    client_endpoint: ClientEndpoint
    server_endpoint: ServerEndpoint | None = None
    # The life of the server that accepted the connection.
    server_incarnation: int = NO_INCARNATION
    is_open: bool = True
    # Nothing passes before the handshake, which needs both directions of the link.
    established: bool = False
    to_server: Direction = field(default_factory=Direction)
    to_client: Direction = field(default_factory=Direction)
    # The server's side: a broker handles one request of a connection at a time.
    muted: bool = False
    # For how long nothing is heard after the next answer, for the client has exceeded a quota (KIP-219).
    throttle_us: int = 0
    draining: bool = False
    waiting: deque[Message] = field(default_factory=deque)
    # The only request under way, while it repeats itself. Anything else that is done here wakes it first.
    idle: Idle | None = None
    # How the client learns that it has sent so many requests more, the last of them at a time. It has this while it
    # would answer an empty answer to its last request with the same request again.
    on_repeated: Callable[[int, int], None] | None = None
