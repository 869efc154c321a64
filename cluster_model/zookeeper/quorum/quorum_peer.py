"""Implements a server of an ensemble: it looks for a leader, then leads or follows.

When a server loses its leader or its followers, it looks again (``QuorumPeer.java``).
"""

from collections.abc import Mapping

from harrow.cluster_model.events import EnsembleLeaderElected, EnsembleServerSuspended
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.sim.connection import Connection, Exchange, ServerEndpoint
from harrow.cluster_model.sim.host import Host
from harrow.cluster_model.sim.message import Body
from harrow.cluster_model.zookeeper.quorum.ensemble_follower import EnsembleFollower
from harrow.cluster_model.zookeeper.quorum.ensemble_leader import EnsembleLeader
from harrow.cluster_model.zookeeper.quorum.fast_leader_election import FastLeaderElection
from harrow.cluster_model.zookeeper.quorum.protocol import Notification, quorum_name
from harrow.cluster_model.zookeeper.quorum.quorum_store import CommittedHistory, QuorumStore
from harrow.cluster_model.zookeeper.service.server import ZooKeeperServer


@dataclass(frozen=True, slots=True)
class EnsembleConfig:
    """The content of ``zoo.cfg``: process names by server id, the tick, and limits in ticks."""

    servers: Mapping[int, str]
    tick_us: int
    init_limit: int
    sync_limit: int


class QuorumPeer(ServerEndpoint):
    """One incarnation of a server, which serves clients while it follows or leads a majority."""

    def __init__(
        self, host: Host, config: EnsembleConfig, store: QuorumStore, history: CommittedHistory
    ) -> None:
        self._host = host
        self._config = config
        self._store = store
        self._history = history
        self.clients = ZooKeeperServer(host, store.server)
        """The part of this server that serves clients."""
        self._leader: EnsembleLeader | None = None
        self._follower: EnsembleFollower | None = None
        self._is_stopped = False
        peers = {
            server: quorum_name(name) for server, name in config.servers.items() if server != store.server_id
        }
        self._election = FastLeaderElection(store.server_id, host, peers, store.ballot, self._on_election)

    def start(self) -> None:
        self._election.look()

    def stop(self) -> None:
        """Leave the ensemble, and close the connections of all clients."""
        self._is_stopped = True
        self._end_term()

    @property
    def epoch(self) -> int:
        """The epoch of the last leader whose log this server has."""
        return self._store.current_epoch

    @property
    def decides(self) -> bool:
        """Whether this server leads a majority, and decides about writes and sessions."""
        return self._leader is not None and self.clients.is_serving

    def expire_session(self, session_id: int) -> None:
        """End a session as if its client had been silent."""
        self.clients.end_session(session_id, expired=True)

    def _expire(self, session_id: int) -> None:
        self.clients.end_session(session_id, expired=True)

    # Terms

    def _on_election(self, leader: int) -> None:
        config = self._config
        if leader == self._store.server_id:
            self._leader = EnsembleLeader(
                self._host,
                self._store,
                len(config.servers),
                config.tick_us,
                config.init_limit,
                config.sync_limit,
                self._commit,
                self._begin_leading,
                self._look,
                self._expire,
            )
            self._leader.start()
        else:
            self._follower = EnsembleFollower(
                self._host,
                self._store,
                quorum_name(config.servers[leader]),
                config.init_limit * config.tick_us,
                config.sync_limit * config.tick_us,
                self._commit,
                self._begin_following,
                self._look,
            )
            self._follower.start()

    def _begin_leading(self, epoch: int) -> None:
        assert self._leader is not None, "a majority without a leader"
        self._host.emit(EnsembleLeaderElected, self._host.name, epoch)
        self.clients.serve(self._leader)

    def _begin_following(self) -> None:
        assert self._follower is not None, "a follower that follows no leader"
        self.clients.serve(self._follower)

    def _look(self) -> None:
        """Look for a leader after losing the leader or the followers."""
        self._end_term()
        self._election.look()

    def _end_term(self) -> None:
        leader, follower = self._leader, self._follower
        self._leader = self._follower = None
        if leader is not None:
            leader.stop()
        if follower is not None:
            follower.stop()
        if self.clients.is_serving:
            self._host.emit(EnsembleServerSuspended, self._host.name)
            self.clients.stop_serving()

    def _commit(self, committed: int) -> None:
        """Apply the log up to *committed*."""
        store = self._store
        while store.applied < min(committed, len(store.log)):
            entry = store.log[store.applied]
            store.applied += 1
            is_first = self._history.advance(store.applied, store.tree)
            tag = entry.tag if entry.server == store.server_id else None
            self.clients.apply(entry.transaction, tag, is_first=is_first)

    # Messages of other servers

    def receive_request(self, exchange: Exchange[Body]) -> None:
        connection, body = exchange.connection, exchange.request
        if self._is_stopped:
            return
        if isinstance(body, Notification):
            self._election.receive(body)
        elif self._leader is not None:
            self._leader.receive(connection, body)
        else:
            self._host.close_by_server(connection)

    def connection_closed(self, connection: Connection) -> None:
        if self._leader is not None:
            self._leader.connection_closed(connection)
