"""Defines connections between two processes, their messages, and the callbacks of their ends."""

from collections import deque
from collections.abc import Callable
from dataclasses import field
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar, final

from harrow.cluster_model.compiling import mypyc_attr
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.sim.message import Body
from harrow.cluster_model.sim.message_rule import MessageRule
from harrow.cluster_model.sim.process import Process, ScheduledEvent

Q = TypeVar("Q", bound=Body)
Q_co = TypeVar("Q_co", bound=Body, covariant=True)


@mypyc_attr(allow_interpreted_subclasses=True)
class ClientEndpoint:
    """The end that opens a connection and sends requests."""

    __slots__ = ()

    def receive_response(self, reply: "Reply") -> None:
        """Receive a response, or a message that the server pushes."""
        raise NotImplementedError

    def connection_lost(self, connection: "Connection") -> None:
        """Handle that a connection is broken. No more messages arrive over it."""
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class ServerEndpoint:
    """The end that accepts a connection and answers requests."""

    __slots__ = ()

    def receive_request(self, exchange: "Exchange[Body]") -> None:
        """Receive a request."""
        raise NotImplementedError

    def connection_closed(self, connection: "Connection") -> None:
        """Handle that the client has closed a connection, perhaps because it died."""
        raise NotImplementedError


class IdleRequest:
    """A request that repeats itself on an idle connection (`idle_fetch`)."""

    __slots__ = ()

    @property
    def repeated_us(self) -> int | None:
        """When the client last repeated its request; None before it has repeated it."""
        raise NotImplementedError

    def wake(self, *, is_tried: bool = False) -> None:
        """Make this an ordinary request again: schedule what is now in flight, or the timer."""
        raise NotImplementedError


@final
@mypyc_attr(free_list_len=1)
class Exchange(ScheduledEvent, Generic[Q_co]):
    """A request to a server, with what its response must refer to. Its arrival is an event."""

    __slots__ = ("connection", "correlation_id", "request")

    def __init__(self, connection: "Connection", correlation_id: int, request: Q_co) -> None:
        # This is not a dataclass, because mypyc does not support generic dataclasses.
        self.connection = connection
        self.correlation_id = correlation_id
        self.request = request

    def run(self) -> None:
        endpoint = self.connection.server_endpoint
        assert endpoint is not None, "a request over a connection that no server has accepted"
        endpoint.receive_request(self)


@final
@mypyc_attr(free_list_len=1)
class Reply(ScheduledEvent):
    """A response, or a message that the server pushes (`PUSHED`). Its arrival is an event."""

    __slots__ = ("body", "connection", "correlation_id")

    def __init__(self, connection: "Connection", correlation_id: int, body: Body) -> None:
        self.connection = connection
        self.correlation_id = correlation_id
        self.body = body

    def run(self) -> None:
        self.connection.client_endpoint.receive_response(self)


@final
@dataclass(slots=True, eq=False)
class Close:
    """The end of one direction of a connection (TCP's FIN)."""

    connection: "Connection"


Message: TypeAlias = "Exchange[Body] | Reply | Close"
"""A message on a connection."""

PUSHED: Final = -1
"""The correlation id of a message that a server pushes, and of a request that is never answered."""
NO_INCARNATION: Final = -1
"""The server incarnation of a connection that the server has not accepted, or has closed."""


class Respond(Protocol):
    """A function that answers a request. With None, the request ends without a response."""

    def __call__(self, exchange: Exchange[Body], answer: Body | None, /) -> None:
        """Send *answer*, and let the connection's next request be handled."""


Handlers: TypeAlias = "dict[type[Body], Callable[[Exchange[Any]], None]]"
"""The handler of each class of requests. `register` makes mypy check that the types match."""


def register(handlers: Handlers, kind: type[Q], handle: Callable[[Exchange[Q]], None]) -> None:
    """Register a handler for a class of requests."""
    handlers[kind] = handle


@dataclass(slots=True, eq=False)
class Direction:
    """One direction of a connection.

    The latest message arrives or arrived at ``arrival_us``. Messages that cannot pass wait in
    ``queue``, each with the rule that holds it, if any. ``queue`` is None if none wait.
    """

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
    # The incarnation in which the server accepted the connection.
    server_incarnation: int = NO_INCARNATION
    is_open: bool = True
    # Whether the handshake is complete, which needs both directions of the link.
    established: bool = False
    to_server: Direction = field(default_factory=Direction)
    to_client: Direction = field(default_factory=Direction)
    # Whether the server is handling a request of the connection. A broker handles only one at a
    # time, and later requests are in `waiting`.
    muted: bool = False
    # How long the server mutes the connection after the next response, because the client has
    # exceeded its quota (KIP-219).
    throttle_us: int = 0
    draining: bool = False
    waiting: deque[Exchange[Body]] = field(default_factory=deque)
    # The connection's only request, while it repeats itself (`idle_fetch`). Any other use of the
    # connection wakes it first.
    idle: IdleRequest | None = None
    # Tells the client how many requests an idle fetch has sent in its place, and when the last one
    # was sent. This is set while the client would answer an empty response with the same request.
    on_repeated: Callable[[int, int], None] | None = None
