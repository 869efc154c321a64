"""Keeps the state of a ZooKeeper server: znodes, and the sessions that own ephemeral znodes.

Modelled on ``DataTree.java``. The tree is independent of clients, time and other servers. So all
servers of an ensemble, which apply the same transactions in the same order, have the same tree.
"""

from collections.abc import Iterable
from dataclasses import field
from typing import Any, Final, Protocol

from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.zookeeper.service import protocol as zk

NO_SESSION: Final = 0
"""The session of an administrator, whose writes have no client name."""


@dataclass(slots=True)
class Znode:
    """A node of the tree. ``owner`` is the session of an ephemeral node, 0 for other nodes.

    ``mzxid`` is the last change of its data, and ``pzxid`` is the last creation or deletion of a
    child. ``next_sequence`` is the number of the next sequential child.
    """

    data: Any
    version: int
    czxid: int
    owner: int = NO_SESSION
    next_sequence: int = 0
    mzxid: int = 0
    pzxid: int = 0


@dataclass(slots=True)
class ZooKeeperSession:
    """A client's session, the same on all servers."""

    id: int
    client: str
    timeout_us: int
    ephemerals: list[str] = field(default_factory=list)


# Transactions


@dataclass(slots=True, frozen=True)
class CreateSession:
    """The start of a client's session."""

    session_id: int
    client: str
    timeout_us: int


@dataclass(slots=True, frozen=True)
class CloseSession:
    """The end of a session. Its client has closed it, or it has ``expired``."""

    session_id: int
    expired: bool


@dataclass(slots=True, frozen=True)
class Write:
    """A write of several operations. If it is ``atomic``, all of them take effect or none.

    If the write has a ``guard`` that does not hold, no operation takes effect.
    """

    session_id: int
    operations: tuple[zk.ZooKeeperOperation, ...]
    guard: zk.Check | None = None
    atomic: bool = False


@dataclass(slots=True, frozen=True)
class ErrorTransaction:
    """A write that the leader refused. It has an entry in the log, but changes nothing."""

    error: str


Transaction = CreateSession | CloseSession | Write | ErrorTransaction

Outcome = tuple[str, tuple[zk.ZooKeeperResult, ...]]
"""The error of a whole transaction, and the result of each of its operations."""


class TreeListener(Protocol):
    """Receives each change of the tree right after a transaction has made it.

    *client* is None if no session made the change.
    """

    def on_created(self, client: str | None, path: str, czxid: int) -> None:
        """Handle a created znode."""

    def on_written(self, client: str | None, path: str, before: object, data: object, version: int) -> None:
        """Handle a change of a znode's data."""

    def on_deleted(self, path: str) -> None:
        """Handle a deleted znode."""

    def on_session_end(self, session: ZooKeeperSession, *, expired: bool) -> None:
        """Handle the end of a session. Its ephemeral nodes are deleted next."""


class DataTree:
    """The znodes and sessions of one server after its last applied change.

    ``zxid`` numbers the changes of znodes. ZooKeeper numbers transactions, and one of them may
    change several znodes.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        self.zxid = -1
        self.sessions: dict[int, ZooKeeperSession] = {}
        self._nodes: dict[str, Znode] = {"/": Znode(None, 0, 0)}
        self._children: dict[str, dict[str, None]] = {"/": {}}
        for path in paths:
            self._make_parents(path)
            self._add_node(path, 0 if path == zk.CONTROLLER_EPOCH else None, NO_SESSION)

    def dismantle(self) -> None:
        """Drop all znodes (`Cluster.dismantle`)."""
        self._nodes.clear()
        self._children.clear()

    # Reading

    def node(self, path: str) -> Znode | None:
        return self._nodes.get(path)

    def data(self, path: str) -> object:
        """Return a znode's data, None if there is no such node."""
        node = self._nodes.get(path)
        return None if node is None else node.data

    def read(self, operation: zk.GetData | zk.GetChildren) -> zk.ZooKeeperResult:
        node = self._nodes.get(operation.path)
        if node is None:
            return zk.ZooKeeperResult(zk.NO_NODE)
        if isinstance(operation, zk.GetData):
            return zk.ZooKeeperResult(zk.OK, node.data, node.version, node.czxid)
        children = tuple(self._children[operation.path])
        return zk.ZooKeeperResult(zk.OK, version=node.version, children=children)

    def first_error(self, operations: Iterable[zk.ZooKeeperOperation]) -> str:
        """Return the first error of the operations, which must be on different nodes."""
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

    # Transactions

    def apply(self, transaction: Transaction, listener: TreeListener) -> Outcome:
        """Apply a transaction, and return its outcome."""
        if isinstance(transaction, Write):
            return self._apply_write(transaction, listener)
        if isinstance(transaction, CreateSession):
            self.sessions[transaction.session_id] = ZooKeeperSession(
                transaction.session_id, transaction.client, transaction.timeout_us
            )
        elif isinstance(transaction, CloseSession):
            session = self.sessions.pop(transaction.session_id, None)
            if session is not None:
                listener.on_session_end(session, expired=transaction.expired)
                for path in tuple(session.ephemerals):
                    self._delete(path, listener)
        else:
            return transaction.error, ()
        return zk.OK, ()

    def _apply_write(self, write: Write, listener: TreeListener) -> Outcome:
        if write.guard is not None and self.first_error((write.guard,)) != zk.OK:
            return zk.BAD_VERSION, ()
        if write.atomic:
            error = self.first_error(write.operations)
            if error == zk.NODE_EXISTS:
                created = (each.path for each in write.operations if isinstance(each, zk.Create))
                return error, tuple([self._node_exists(path) for path in created if path in self._nodes])
            if error != zk.OK:
                return error, ()
        results = [self._execute(each, write.session_id, listener) for each in write.operations]
        return zk.OK, tuple(results)

    def _execute(
        self, operation: zk.ZooKeeperOperation, session_id: int, listener: TreeListener
    ) -> zk.ZooKeeperResult:
        if isinstance(operation, zk.Create):
            return self._create(operation, session_id, listener)
        if isinstance(operation, zk.GetData | zk.GetChildren):
            return self.read(operation)
        node = self._nodes.get(operation.path)
        if node is None:
            return zk.ZooKeeperResult(zk.NO_NODE)
        if not _version_fits(operation.version, node):
            return zk.ZooKeeperResult(zk.BAD_VERSION)
        if isinstance(operation, zk.SetData):
            self.zxid += 1
            before, node.data = node.data, operation.data
            node.version += 1
            node.mzxid = self.zxid
            listener.on_written(
                self._client(session_id), operation.path, before, operation.data, node.version
            )
        elif isinstance(operation, zk.Delete):
            self._delete(operation.path, listener)
        return zk.ZooKeeperResult(zk.OK, node.data, node.version, node.czxid)

    def _client(self, session_id: int) -> str | None:
        session = self.sessions.get(session_id)
        return None if session is None else session.client

    def _create(self, operation: zk.Create, session_id: int, listener: TreeListener) -> zk.ZooKeeperResult:
        path = operation.path
        if operation.sequential:
            parent_node = self._nodes.get(zk.parent_of(path))
            if parent_node is not None:
                path = f"{path}{parent_node.next_sequence:010d}"
                parent_node.next_sequence += 1
        if path in self._nodes:
            return self._node_exists(path)
        self._make_parents(path)
        node = self._add_node(path, operation.data, session_id if operation.ephemeral else NO_SESSION)
        session = self.sessions.get(session_id)
        if session is not None and operation.ephemeral:
            session.ephemerals.append(path)
        listener.on_created(None if session is None else session.client, path, node.czxid)
        return zk.ZooKeeperResult(zk.OK, node.data, node.version, node.czxid, path=path)

    def _make_parents(self, path: str) -> None:
        """Create the missing parents of a path, like KafkaZkClient's recursive create."""
        parent = path.rsplit("/", 1)[0]
        if parent and parent not in self._nodes:
            self._make_parents(parent)
            self._add_node(parent, None, NO_SESSION)

    def _node_exists(self, path: str) -> zk.ZooKeeperResult:
        node = self._nodes[path]
        return zk.ZooKeeperResult(zk.NODE_EXISTS, czxid=node.czxid, owner=node.owner)

    def _add_node(self, path: str, data: object, owner: int) -> Znode:
        self.zxid += 1
        node = Znode(data, 0, self.zxid, owner, 0, self.zxid, self.zxid)
        self._nodes[path] = node
        self._children[path] = {}
        parent, _, name = path.rpartition("/")
        self._nodes[parent or "/"].pzxid = self.zxid
        self._children[parent or "/"][name] = None
        return node

    def _delete(self, path: str, listener: TreeListener) -> None:
        self.zxid += 1
        node = self._nodes.pop(path)
        self._children.pop(path)
        parent = zk.parent_of(path)
        self._nodes[parent].pzxid = self.zxid
        self._children[parent].pop(path.rsplit("/", 1)[1])
        if node.owner in self.sessions:
            self.sessions[node.owner].ephemerals.remove(path)
        listener.on_deleted(path)


def _version_fits(version: int, node: Znode) -> bool:
    return version in (zk.ANY_VERSION, node.version)
