"""A connection between two processes, and what its ends are told."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar, final

from harrow.cluster_model.sim.message import Body
from harrow.cluster_model.sim.message_rule import MessageRule
from harrow.cluster_model.sim.process import Process

Q = TypeVar("Q", bound=Body)
Q_co = TypeVar("Q_co", covariant=True)


class ClientEndpoint(Protocol):
    """The end that opened a connection and sends requests."""

    def receive_response(self, reply: "Reply") -> None:
        """An answer, or something that the server pushes, has arrived."""

    def connection_lost(self, connection: "Connection") -> None:
        """The connection is broken; nothing more comes from it."""


class ServerEndpoint(Protocol):
    """The end that accepted a connection and answers requests."""

    def receive_request(self, exchange: "Exchange[Body]") -> None:
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


@final
class Exchange(Generic[Q_co]):
    """A request on its way to a server, and what the server answers to."""

    __slots__ = ("connection", "correlation_id", "request")

    def __init__(self, connection: "Connection", correlation_id: int, request: Q_co) -> None:
        # By hand: mypyc makes no dataclass of a generic class.
        self.connection = connection
        self.correlation_id = correlation_id
        self.request = request


@final
@dataclass(slots=True, eq=False)
class Reply:
    """An answer on its way to a client, or something that the server pushes (`PUSHED`)."""

    connection: "Connection"
    correlation_id: int
    body: Body


@final
@dataclass(slots=True, eq=False)
class Close:
    """The end of one direction of a connection (TCP's FIN)."""

    connection: "Connection"


Message: TypeAlias = "Exchange[Body] | Reply | Close"
"""Whatever travels over a connection."""

PUSHED: Final = -1
"""The correlation id of what a server sends without being asked, and of a request that is never answered."""
NO_INCARNATION: Final = -1
"""The incarnation of a server that has not accepted a connection, or has closed it."""


class Respond(Protocol):
    """Answers a request; with None where no answer is due."""

    def __call__(self, exchange: Exchange[Body], answer: Body | None, /) -> None:
        """Send *answer*, and go on with the next request of the connection."""


Handlers: TypeAlias = "dict[type[Body], Callable[[Exchange[Any]], None]]"
"""What handles each class of request; `register` makes sure that it can."""


def register(handlers: Handlers, kind: type[Q], handle: Callable[[Exchange[Q]], None]) -> None:
    """Have *handle* take the requests of a class."""
    handlers[kind] = handle


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
    waiting: deque[Exchange[Body]] = field(default_factory=deque)
    # The only request under way, while it repeats itself. Anything else that is done here wakes it first.
    idle: Idle | None = None
    # How the client learns that it has sent so many requests more, the last of them at a time. It has this while it
    # would answer an empty answer to its last request with the same request again.
    on_repeated: Callable[[int, int], None] | None = None
