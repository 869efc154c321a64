"""Serves ZooKeeper's clients (``ZooKeeperServer.java`` and its request processors).

A server answers reads from its own tree. A `RequestProcessor` decides everything else. It is the
server itself if it is the only one, and the leader in an ensemble. While an ensemble has no leader,
its servers serve no clients.
"""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import field
from functools import partial
from typing import Final, Protocol

from harrow.cluster_model.events import (
    SessionClosed,
    SessionExpired,
    ZnodeCreated,
    ZnodeDeleted,
    ZnodeWritten,
)
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.sim.connection import PUSHED, Connection, Exchange, ServerEndpoint
from harrow.cluster_model.sim.host import Host
from harrow.cluster_model.sim.message import Body
from harrow.cluster_model.zookeeper.service import protocol as zk
from harrow.cluster_model.zookeeper.service.data_tree import (
    CloseSession,
    CreateSession,
    DataTree,
    Outcome,
    Transaction,
    Write,
    ZooKeeperSession,
)

_SERVER_ID_SHIFT: Final = 56
"""The high byte of a session id is the id of the server that created the session.

See ``SessionTrackerImpl.initializeNextSession``.
"""


class RequestProcessor(Protocol):
    """Decides about a server's transactions and sessions."""

    def submit(self, transaction: Transaction, tag: int) -> None:
        """Order a transaction among all others. Later the server applies it with the same *tag*."""

    def revalidate(self, session_id: int, on_validated: Callable[[bool], None]) -> None:
        """Check whether the session of a client that has connected to this server is alive."""

    def touch(self, session_id: int) -> None:
        """Record that a session's client is alive."""


@dataclass(slots=True)
class ServerStore:
    """The disk of a server, which outlives its process."""

    server_id: int
    tree: DataTree
    last_session: int = 0
    last_tag: int = 0


@dataclass(slots=True, eq=False)
class _Request:
    """A request in progress, with the results so far. Later requests of the session wait for it."""

    connection: Connection
    correlation_id: int
    body: zk.ZooKeeperRequest
    outcomes: deque[Outcome] = field(default_factory=deque)
    results: list[zk.ZooKeeperResult] = field(default_factory=list)
    processed_count: int = 0
    error: str = zk.OK


_Watchers = dict[str, dict[int, int]]
"""The sessions that watch a path, each with the id of the connection that set the watch.

If the table had the connections themselves, a watch that never fires would keep its connection, and
the broker behind the connection, in memory.
"""


class ZooKeeperServer(ServerEndpoint):
    """The part of one incarnation of a server that serves clients."""

    def __init__(self, host: Host, store: ServerStore) -> None:
        self._host = host
        self._store = store
        self._tree = store.tree
        self._processor: RequestProcessor | None = None
        # Whether this server is the first to apply the current transaction. Only the first server
        # emits events.
        self._is_first = False
        # Connections with a session, by session id; others, by connection id; requests, by session
        # id; and callbacks for transactions, by tag.
        self._connections: dict[int, Connection] = {}
        self._connecting: dict[int, Connection] = {}
        self._requests: dict[int, deque[_Request]] = {}
        self._waiting_callbacks: dict[int, Callable[[Outcome], None]] = {}
        self._data_watches: _Watchers = {}
        self._child_watches: _Watchers = {}

    @property
    def is_serving(self) -> bool:
        return self._processor is not None

    def serve(self, processor: RequestProcessor) -> None:
        """Start to accept clients."""
        self._processor = processor

    def stop_serving(self) -> None:
        """Close all clients' connections, and accept no more. Pending requests get no answer."""
        self._processor = None
        for connection in (*self._connections.values(), *self._connecting.values()):
            self._host.close_by_server(connection)
        self._connections.clear()
        self._connecting.clear()
        self._requests.clear()
        self._waiting_callbacks.clear()
        self._data_watches.clear()
        self._child_watches.clear()

    # Transactions

    def write(self, operation: zk.ZooKeeperOperation) -> None:
        """Write like an administrator with zkCli or a script."""
        self._submit(Write(0, (operation,)), lambda _: None)

    def end_session(self, session_id: int, *, expired: bool) -> None:
        self._submit(CloseSession(session_id, expired), lambda _: None)

    def apply(self, transaction: Transaction, tag: int | None, *, is_first: bool) -> None:
        """Apply a decided transaction. If it has a *tag*, this server submitted it.

        *is_first* says that no other server has applied the transaction before.
        """
        self._is_first = is_first
        outcome = self._tree.apply(transaction, self)
        on_applied = None if tag is None else self._waiting_callbacks.pop(tag, None)
        if on_applied is not None:
            on_applied(outcome)

    def _submit(self, transaction: Transaction, on_applied: Callable[[Outcome], None]) -> None:
        assert self._processor is not None, "a transaction while no client is served"
        self._store.last_tag += 1
        tag = self._store.last_tag
        self._waiting_callbacks[tag] = on_applied
        self._processor.submit(transaction, tag)

    def on_created(self, client: str | None, path: str, czxid: int) -> None:
        if self._is_first and client is not None:
            self._host.publish(ZnodeCreated, client, path, czxid)
        self._fire(self._data_watches, path, children=False)
        self._fire(self._child_watches, zk.parent_of(path), children=True)

    def on_written(self, client: str | None, path: str, before: object, data: object, version: int) -> None:
        if self._is_first:
            self._host.publish(ZnodeWritten, client or zk.NO_CLIENT, path, before, data, version)
        self._fire(self._data_watches, path, children=False)

    def on_deleted(self, path: str) -> None:
        if self._is_first:
            self._host.publish(ZnodeDeleted, path)
        self._fire(self._data_watches, path, children=False)
        self._fire(self._child_watches, zk.parent_of(path), children=True)

    def on_session_end(self, session: ZooKeeperSession, *, expired: bool) -> None:
        if self._is_first:
            event = SessionExpired if expired else SessionClosed
            self._host.emit(event, zk.broker_of(session.client), tuple(session.ephemerals))
        # The connection stays open, but this server refuses later requests of the session.
        self._connections.pop(session.id, None)
        self._requests.pop(session.id, None)

    # Connections

    def receive_request(self, exchange: Exchange[Body]) -> None:
        connection, correlation_id, request = exchange.connection, exchange.correlation_id, exchange.request
        if isinstance(request, zk.ConnectRequest):
            self._connect(connection, correlation_id, request)
        elif self._processor is None:
            pass  # The connection was closed while this request was in flight.
        elif isinstance(request, zk.CloseRequest):
            self._close(connection, correlation_id, request)
        else:
            assert isinstance(request, zk.ZooKeeperRequest), request.api
            self._handle(connection, correlation_id, request)

    def connection_closed(self, connection: Connection) -> None:
        """Forget a connection. The session lives until its timeout, or until the client returns."""
        self._connecting.pop(connection.id, None)
        for session_id, open_connection in self._connections.items():
            if open_connection is connection:
                del self._connections[session_id]
                self._requests.pop(session_id, None)
                return

    def _connect(self, connection: Connection, correlation_id: int, request: zk.ConnectRequest) -> None:
        # A client that has seen later changes than this server would read older data here.
        if self._processor is None or request.last_zxid > self._tree.zxid:
            self._host.close_by_server(connection)
            return
        self._connecting[connection.id] = connection
        if request.session_id:
            on_validated = partial(self._finish_revalidation, connection, correlation_id, request)
            self._processor.revalidate(request.session_id, on_validated)
            return
        self._store.last_session += 1
        session_id = (self._store.server_id << _SERVER_ID_SHIFT) + self._store.last_session
        create = CreateSession(session_id, connection.client.name, request.timeout_us)
        self._submit(create, lambda _: self._open(connection, correlation_id, session_id))

    def _finish_revalidation(
        self, connection: Connection, correlation_id: int, request: zk.ConnectRequest, is_valid: bool
    ) -> None:
        if not is_valid:
            self._connecting.pop(connection.id, None)
            answer = zk.ConnectResponse(zk.SESSION_EXPIRED, 0)
            self._host.send_response(connection, correlation_id, answer)
        elif connection.id in self._connecting:
            self._set_watches(connection, request)
            self._open(connection, correlation_id, request.session_id)

    def _open(self, connection: Connection, correlation_id: int, session_id: int) -> None:
        self._connecting.pop(connection.id, None)
        self._requests.pop(session_id, None)
        self._connections[session_id] = connection
        self._host.send_response(connection, correlation_id, zk.ConnectResponse(zk.OK, session_id))

    def _close(self, connection: Connection, correlation_id: int, request: zk.CloseRequest) -> None:
        def on_closed(_: Outcome) -> None:
            self._host.send_response(connection, correlation_id, zk.ZooKeeperResponse(zk.OK, ()))

        self._submit(CloseSession(request.session_id, expired=False), on_closed)

    # Requests

    def _handle(self, connection: Connection, correlation_id: int, body: zk.ZooKeeperRequest) -> None:
        session_id = body.session_id
        if self._connections.get(session_id) is not connection:
            answer = zk.ZooKeeperResponse(zk.SESSION_EXPIRED, (), body)
            self._host.send_response(connection, correlation_id, answer)
            return
        assert self._processor is not None, "a request while no client is served"
        self._processor.touch(session_id)
        request = _Request(connection, correlation_id, body)
        # Answers keep the order of requests, so a client reads its own writes
        # (``CommitProcessor``).
        self._requests.setdefault(session_id, deque()).append(request)
        for transaction in _transactions(body):
            self._submit(transaction, partial(self._add_outcome, request))
        self._advance(session_id)

    def _add_outcome(self, request: _Request, outcome: Outcome) -> None:
        request.outcomes.append(outcome)
        self._advance(request.body.session_id)

    def _advance(self, session_id: int) -> None:
        """Answer a session's completed requests, oldest first, until one must wait."""
        waiting = self._requests.get(session_id)
        while waiting and self._process_operations(waiting[0]):
            request = waiting.popleft()
            body = request.body
            results = tuple(request.results)
            answer = zk.ZooKeeperResponse(request.error, results, body, self._tree.zxid)
            self._host.send_response(request.connection, request.correlation_id, answer)
        if waiting is not None and not waiting:
            self._requests.pop(session_id, None)

    def _process_operations(self, request: _Request) -> bool:
        """Process a request's operations until one must wait. Return whether all are processed."""
        operations = request.body.operations
        while request.processed_count < len(operations):
            operation = operations[request.processed_count]
            if isinstance(operation, (zk.GetData, zk.GetChildren)) and not request.body.atomic:
                error, results = self._read(operation, request)
                request.processed_count += 1
            elif request.outcomes:
                error, results = request.outcomes.popleft()
                request.processed_count += len(operations) if request.body.atomic else 1
            else:
                return False
            if request.error == zk.OK and error != zk.OK:
                request.error = error
                request.results.clear()
            if request.error == error:
                request.results += results
        return True

    def _read(self, operation: zk.GetData | zk.GetChildren, request: _Request) -> Outcome:
        guard = request.body.guard
        if guard is not None and self._tree.first_error((guard,)) != zk.OK:
            return zk.BAD_VERSION, ()
        result = self._tree.read(operation)
        if operation.watch:
            session_id, connection_id = request.body.session_id, request.connection.id
            if isinstance(operation, zk.GetData):
                self._data_watches.setdefault(operation.path, {})[session_id] = connection_id
            elif result.error == zk.OK:
                self._child_watches.setdefault(operation.path, {})[session_id] = connection_id
        return zk.OK, (result,)

    # Watches

    def _fire(self, watches: _Watchers, path: str, *, children: bool) -> None:
        for session_id, connection_id in watches.pop(path, _NO_WATCHERS).items():
            connection = self._connections.get(session_id)
            if connection is not None and connection.id == connection_id:
                self._host.send_response(connection, PUSHED, zk.WatchEvent(path, children))

    def _set_watches(self, connection: Connection, request: zk.ConnectRequest) -> None:
        """Restore a client's watches. Those that missed a change fire at once (``setWatches``)."""
        session_id, connection_id = request.session_id, connection.id
        for path in request.data_watches:
            node = self._tree.node(path)
            if node is None or node.mzxid > request.last_zxid:
                self._host.send_response(connection, PUSHED, zk.WatchEvent(path, children=False))
            else:
                self._data_watches.setdefault(path, {})[session_id] = connection_id
        for path in request.exist_watches:
            if self._tree.node(path) is not None:
                self._host.send_response(connection, PUSHED, zk.WatchEvent(path, children=False))
            else:
                self._data_watches.setdefault(path, {})[session_id] = connection_id
        for path in request.child_watches:
            node = self._tree.node(path)
            if node is None or node.pzxid > request.last_zxid:
                self._host.send_response(connection, PUSHED, zk.WatchEvent(path, children=True))
            else:
                self._child_watches.setdefault(path, {})[session_id] = connection_id


_NO_WATCHERS: Final[dict[int, int]] = {}


def _transactions(body: zk.ZooKeeperRequest) -> Iterable[Transaction]:
    """Return a request's transactions: one for all its operations, or one for each write."""
    if body.atomic:
        return (Write(body.session_id, body.operations, body.guard, atomic=True),)
    return [
        Write(body.session_id, (operation,), body.guard)
        for operation in body.operations
        if not isinstance(operation, (zk.GetData, zk.GetChildren))
    ]
