"""Runs a cluster's ZooKeeper: one server, or an ensemble."""

from collections.abc import Callable, Mapping
from dataclasses import field
from functools import partial
from typing import Final

from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.sim.host import Host
from harrow.cluster_model.sim.network import Network
from harrow.cluster_model.sim.process import Process
from harrow.cluster_model.sim.virtual_time import US_PER_MS
from harrow.cluster_model.topology import ZOOKEEPER, ClusterSpec, process_name
from harrow.cluster_model.zookeeper.quorum.protocol import quorum_name
from harrow.cluster_model.zookeeper.quorum.quorum_peer import EnsembleConfig, QuorumPeer
from harrow.cluster_model.zookeeper.quorum.quorum_store import CommittedHistory, QuorumStore
from harrow.cluster_model.zookeeper.service import protocol as zk
from harrow.cluster_model.zookeeper.service.data_tree import DataTree
from harrow.cluster_model.zookeeper.service.server import ServerStore
from harrow.cluster_model.zookeeper.service.standalone_server import StandaloneServer

_ADMIN_RETRY_US: Final = 100 * US_PER_MS
_STANDALONE_ID: Final = 0
"""The server id in session ids if there is only one server (``ZooKeeperServer.getServerId``)."""


@dataclass(slots=True)
class _Member:
    """A server of the ensemble: its process, its disk, and its current incarnation."""

    process: Process
    host: Host
    store: ServerStore
    quorum_store: QuorumStore | None
    server: StandaloneServer | QuorumPeer | None = field(default=None)


class ZooKeeperEnsemble:
    """The servers of a cluster's ZooKeeper, and their committed state."""

    def __init__(
        self,
        spec: ClusterSpec,
        host_of: Callable[[Process], Host],
        network: Network,
        admin: Host,
        end_process: Callable[[int], None],
    ) -> None:
        nodes = spec.zookeeper_ids()
        is_standalone = len(nodes) == 1
        self.processes: Mapping[int, Process] = {
            node: Process(ZOOKEEPER if is_standalone else process_name(node), partial(end_process, node))
            for node in nodes
        }
        """The processes by node id."""
        self.names = tuple([process.name for process in self.processes.values()])
        self._admin = admin
        self._network = network
        self._tick_us = spec.zookeeper_tick_us
        self._config = EnsembleConfig(
            dict(zip(nodes, self.names, strict=True)),
            spec.zookeeper_tick_us,
            spec.zookeeper_init_limit,
            spec.zookeeper_sync_limit,
        )
        self._members: dict[int, _Member] = {}
        for node, process in self.processes.items():
            store = ServerStore(_STANDALONE_ID if is_standalone else node, DataTree(zk.ROOTS))
            quorum_store = None if is_standalone else QuorumStore(store)
            self._members[node] = _Member(process, host_of(process), store, quorum_store)
        self._history = CommittedHistory(self._members[nodes[0]].store.tree)

    def start(self) -> None:
        for server in [self._start_incarnation(member) for member in self._members.values()]:
            server.start()

    def dismantle(self) -> None:
        """Drop the znodes of all servers (`Cluster.dismantle`)."""
        for member in self._members.values():
            member.store.tree.dismantle()

    def start_server(self, node: int) -> None:
        """Start a server whose process has just started."""
        self._start_incarnation(self._members[node]).start()

    def _start_incarnation(self, member: _Member) -> StandaloneServer | QuorumPeer:
        """Return a new incarnation, which accepts connections from servers that start before it."""
        if member.quorum_store is not None:
            peer = QuorumPeer(member.host, self._config, member.quorum_store, self._history)
            self._network.listen(member.process, peer, quorum_name(member.process.name))
            member.server = peer
        else:
            member.server = StandaloneServer(member.host, self._tick_us, member.store)
        self._network.listen(member.process, member.server.clients)
        return member.server

    def stop_server(self, node: int) -> None:
        """Close a server's connections before its process ends."""
        server = self._members[node].server
        assert server is not None, "a stop before the start"
        server.stop()

    # For administrators and faults

    def write(self, operation: zk.ZooKeeperOperation) -> None:
        """Write like an administrator with zkCli, and retry until a server accepts the write."""
        deciding = self._deciding_server()
        if deciding is None:
            self._admin.set_timer(_ADMIN_RETRY_US, lambda _: self.write(operation))
        else:
            deciding.clients.write(operation)

    def expire_session_of(self, client: str) -> bool:
        """End the sessions of a client. Return whether it had one and a server could end it."""
        deciding = self._deciding_server()
        sessions = self._history.tree.sessions.values()
        session_ids = [session.id for session in sessions if session.client == client]
        if deciding is None:
            return False
        for session_id in session_ids:
            deciding.expire_session(session_id)
        return bool(session_ids)

    def _deciding_server(self) -> StandaloneServer | QuorumPeer | None:
        """Return the server that decides about writes and sessions, None if there is none.

        This is the only server, or the leader of a majority. A leader that does not know yet that
        it has lost its majority still decides, unless there is a later leader.
        """
        deciding = [
            (member.server.epoch, member.server)
            for member in self._members.values()
            if member.process.running
            and not member.process.paused
            and member.server is not None
            and member.server.decides
        ]
        return max(deciding, key=lambda each: each[0])[1] if deciding else None

    # For observers

    @property
    def tree(self) -> DataTree:
        """The committed state. Every server reaches it, and no fault reverts it."""
        return self._history.tree

    def leader(self) -> int | None:
        """Return the leader of a majority or the only server, None if there is none."""
        deciding = self._deciding_server()
        return next(
            (node for node, member in self._members.items() if deciding and member.server is deciding), None
        )
