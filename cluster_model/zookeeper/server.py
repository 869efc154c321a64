"""ZooKeeper: a tree of znodes, sessions with ephemeral nodes, one-shot watches.

One linearizable server stands for the ensemble. Sessions expire at ticks, as
ZooKeeper's ``SessionTrackerImpl`` rounds them, so several that were last heard of
within one tick expire together.
"""

from dataclasses import dataclass, field
from typing import Any

from harrow.cluster_model.events import SessionClosed, SessionExpired
from harrow.cluster_model.protocol import LeaderAndIsr
from harrow.cluster_model.sim.connection import Connection, Message
from harrow.cluster_model.sim.host import Host
from harrow.cluster_model.zookeeper import protocol as zk


@dataclass(slots=True)
class Znode:
    """A node of the tree; ``owner`` is the session of an ephemeral one, 0 otherwise."""

    data: Any
    version: int
    czxid: int
    owner: int = 0
    next_sequence: int = 0


@dataclass(slots=True)
class ZooKeeperSession:
    """A client's session."""

    id: int
    client: str
    timeout_us: int
    expires_us: int
    connection: Connection
    ephemerals: list[str] = field(default_factory=list)
    announced: dict[zk.WatchEvent, None] = field(default_factory=dict)
    """What its watches have said since they were last set; said again on a new connection, for it
    may have been lost with the old one (the client's SetWatches)."""


class ZooKeeper:
    """The server. Clients see it through requests only; faults may expire a session."""

    def __init__(self, host: Host, tick_us: int) -> None:
        self._host = host
        self._tick_us = tick_us
        self._nodes: dict[str, Znode] = {"/": Znode(None, 0, 0)}
        self._children: dict[str, dict[str, None]] = {"/": {}}
        self._sessions: dict[int, ZooKeeperSession] = {}
        self._data_watches: dict[str, dict[int, None]] = {}
        self._child_watches: dict[str, dict[int, None]] = {}
        self._zxid = -1
        self._last_session_id = 0
        for path in (
            zk.LOG_DIR_EVENT_NOTIFICATION,
            zk.BROKER_IDS,
            zk.BROKER_TOPICS,
            zk.ISR_CHANGE_NOTIFICATION,
            "/admin",
            zk.CONTROLLER_EPOCH,
        ):
            self._make_parents(path)
            self._put(path, 0 if path == zk.CONTROLLER_EPOCH else None, 0)

    def start(self) -> None:
        """Begin to tick, at multiples of the tick."""
        now_us = self._host.clock.now_us
        self._host.set_timer(self._tick_after(now_us) - now_us, self._tick)

    # What can be looked at from outside

    def data(self, path: str) -> object:
        """Return a znode's data, None when there is no such node."""
        node = self._nodes.get(path)
        return None if node is None else node.data

    def partition_state(self, partition: str) -> LeaderAndIsr | None:
        """Return a partition's leader and ISR, with the version of its state znode for a partition epoch."""
        node = self._nodes.get(zk.state_path(partition))
        if node is None or not isinstance(node.data, zk.TopicPartitionState):
            return None
        return node.data.leader_and_isr(node.version)

    def exists(self, path: str) -> bool:
        return path in self._nodes

    # Faults and administrators

    def expire_session_of(self, client: str) -> bool:
        """End the sessions of a client; return whether it had one."""
        mine = [session for session in self._sessions.values() if session.client == client]
        for session in mine:
            self._expire(session)
        return bool(mine)

    def apply(self, operation: zk.ZooKeeperOperation) -> zk.ZooKeeperResult:
        """Do what an administrator does with zkCli or a script."""
        return self._execute(operation, 0)

    # Requests

    def receive_request(self, message: Message) -> None:
        connection, correlation_id, body = message
        if isinstance(body, zk.ConnectRequest):
            answer: object = self._connect(connection, body)
        elif isinstance(body, zk.CloseRequest):
            answer = self._close(body)
        else:
            answer = self._handle(connection, body)
        self._host.send_response(connection, correlation_id, answer)

    def connection_closed(self, connection: Connection) -> None:
        """A client is gone; its session lives on until it times out."""

    def _connect(self, connection: Connection, request: zk.ConnectRequest) -> zk.ConnectResponse:
        if request.session_id:
            session = self._sessions.get(request.session_id)
            if session is None:
                return zk.ConnectResponse(zk.SESSION_EXPIRED, 0)
            session.connection = connection
            self._touch(session)
            for event in session.announced:
                self._host.send_response(connection, -1, event)
            return zk.ConnectResponse(zk.OK, session.id)
        self._last_session_id += 1
        session = ZooKeeperSession(
            self._last_session_id, connection.client.name, request.timeout_us, 0, connection
        )
        self._touch(session)
        self._sessions[session.id] = session
        return zk.ConnectResponse(zk.OK, session.id)

    def _close(self, request: zk.CloseRequest) -> zk.ZooKeeperResponse:
        session = self._sessions.get(request.session_id)
        if session is not None:
            self._end(session, SessionClosed)
        return zk.ZooKeeperResponse(zk.OK, ())

    def _handle(self, connection: Connection, request: zk.ZooKeeperRequest) -> zk.ZooKeeperResponse:
        session = self._sessions.get(request.session_id)
        if session is None or session.connection is not connection:
            return zk.ZooKeeperResponse(zk.SESSION_EXPIRED, (), request)
        self._touch(session)
        if request.guard is not None and self._first_error((request.guard,)) != zk.OK:
            return zk.ZooKeeperResponse(zk.BAD_VERSION, (), request)
        if request.atomic:
            error = self._first_error(request.operations)
            if error == zk.NODE_EXISTS:
                created = (each.path for each in request.operations if isinstance(each, zk.Create))
                existing = tuple(self._existing(path) for path in created if path in self._nodes)
                return zk.ZooKeeperResponse(error, existing, request)
            if error != zk.OK:
                return zk.ZooKeeperResponse(error, (), request)
        results = tuple(self._execute(operation, session.id) for operation in request.operations)
        return zk.ZooKeeperResponse(zk.OK, results, request)

    def _first_error(self, operations: tuple[zk.ZooKeeperOperation, ...]) -> str:
        """Return why a transaction cannot happen (its operations are on different nodes)."""
        for operation in operations:
            node = self._nodes.get(operation.path)
            if isinstance(operation, zk.Create):
                if node is not None and not operation.sequential:
                    return zk.NODE_EXISTS
            elif node is None:
                return zk.NO_NODE
            elif isinstance(operation, zk.Check | zk.SetData | zk.Delete) and not _version_fits(
                operation.version, node
            ):
                return zk.BAD_VERSION
        return zk.OK

    def _execute(self, operation: zk.ZooKeeperOperation, session_id: int) -> zk.ZooKeeperResult:
        if isinstance(operation, zk.Create):
            return self._create(operation, session_id)
        if isinstance(operation, zk.GetData | zk.GetChildren):
            return self._read(operation, session_id)
        node = self._nodes.get(operation.path)
        if node is None:
            return zk.ZooKeeperResult(zk.NO_NODE)
        if not _version_fits(operation.version, node):
            return zk.ZooKeeperResult(zk.BAD_VERSION)
        if isinstance(operation, zk.SetData):
            self._zxid += 1
            before, node.data = node.data, operation.data
            node.version += 1
            session = self._sessions.get(session_id)
            if session is not None:
                self._host.publish(
                    zk.ZnodeWritten, session.client, operation.path, before, operation.data, node.version
                )
            self._fire(self._data_watches, operation.path, children=False)
        elif isinstance(operation, zk.Delete):
            self._delete(operation.path)
        return zk.ZooKeeperResult(zk.OK, node.data, node.version, node.czxid)

    def _read(self, operation: zk.GetData | zk.GetChildren, session_id: int) -> zk.ZooKeeperResult:
        node = self._nodes.get(operation.path)
        if isinstance(operation, zk.GetData):
            if operation.watch:
                self._watch(self._data_watches, operation.path, session_id, children=False)
            if node is None:
                return zk.ZooKeeperResult(zk.NO_NODE)
            return zk.ZooKeeperResult(zk.OK, node.data, node.version, node.czxid)
        if node is None:
            return zk.ZooKeeperResult(zk.NO_NODE)
        if operation.watch:
            self._watch(self._child_watches, operation.path, session_id, children=True)
        children = tuple(self._children[operation.path])
        return zk.ZooKeeperResult(zk.OK, version=node.version, children=children)

    def _create(self, operation: zk.Create, session_id: int) -> zk.ZooKeeperResult:
        path = operation.path
        parent = path.rsplit("/", 1)[0] or "/"
        if operation.sequential and parent in self._nodes:
            parent_node = self._nodes[parent]
            path = f"{path}{parent_node.next_sequence:010d}"
            parent_node.next_sequence += 1
        if path in self._nodes:
            return self._existing(path)
        self._make_parents(path)
        node = self._put(path, operation.data, session_id if operation.ephemeral else 0)
        session = self._sessions.get(session_id)
        if session is not None:
            if operation.ephemeral:
                session.ephemerals.append(path)
            self._host.publish(zk.ZnodeCreated, session.client, path, node.czxid)
        self._fire(self._data_watches, path, children=False)
        self._fire(self._child_watches, parent, children=True)
        return zk.ZooKeeperResult(zk.OK, node.data, node.version, node.czxid, path=path)

    # The tree

    def _make_parents(self, path: str) -> None:
        """Create what is missing above a path, as KafkaZkClient's recursive create does."""
        parent = path.rsplit("/", 1)[0]
        if parent and parent not in self._nodes:
            self._make_parents(parent)
            self._put(parent, None, 0)

    def _existing(self, path: str) -> zk.ZooKeeperResult:
        node = self._nodes[path]
        return zk.ZooKeeperResult(zk.NODE_EXISTS, czxid=node.czxid, owner=node.owner)

    def _put(self, path: str, data: object, owner: int) -> Znode:
        self._zxid += 1
        node = Znode(data, 0, self._zxid, owner)
        self._nodes[path] = node
        self._children[path] = {}
        self._children[path.rsplit("/", 1)[0] or "/"][path.rsplit("/", 1)[1]] = None
        return node

    def _delete(self, path: str) -> None:
        self._zxid += 1
        node = self._nodes.pop(path)
        self._children.pop(path)
        parent, name = path.rsplit("/", 1)
        self._children[parent or "/"].pop(name)
        if node.owner in self._sessions:
            self._sessions[node.owner].ephemerals.remove(path)
        self._host.publish(zk.ZnodeDeleted, path)
        self._fire(self._data_watches, path, children=False)
        self._fire(self._child_watches, parent or "/", children=True)

    def _fire(self, watches: dict[str, dict[int, None]], path: str, *, children: bool) -> None:
        for session_id in watches.pop(path, ()):
            session = self._sessions.get(session_id)
            if session is not None:
                event = zk.WatchEvent(path, children)
                session.announced[event] = None
                self._host.send_response(session.connection, -1, event)

    def _watch(
        self, watches: dict[str, dict[int, None]], path: str, session_id: int, *, children: bool
    ) -> None:
        watches.setdefault(path, {})[session_id] = None
        session = self._sessions.get(session_id)
        if session is not None:
            session.announced.pop(zk.WatchEvent(path, children), None)

    # Sessions

    def _touch(self, session: ZooKeeperSession) -> None:
        session.expires_us = self._tick_after(self._host.clock.now_us + session.timeout_us)

    def _tick_after(self, time_us: int) -> int:
        """Return the tick after a time, also when it is a tick itself (``roundToInterval``)."""
        return (time_us // self._tick_us + 1) * self._tick_us

    def _tick(self, _: None) -> None:
        now_us = self._host.clock.now_us
        for session in [s for s in self._sessions.values() if s.expires_us <= now_us]:
            self._expire(session)
        self._host.set_timer(self._tick_us, self._tick)

    def _expire(self, session: ZooKeeperSession) -> None:
        self._end(session, SessionExpired)

    def _end(self, session: ZooKeeperSession, how: type[SessionClosed | SessionExpired]) -> None:
        del self._sessions[session.id]
        ephemerals = tuple(session.ephemerals)
        self._host.emit(how, zk.broker_of(session.client), ephemerals)
        for path in ephemerals:
            self._delete(path)


def _version_fits(version: int, node: Znode) -> bool:
    return version in (zk.ANY_VERSION, node.version)
