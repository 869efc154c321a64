"""Runs a single ZooKeeper server without an ensemble (``ZooKeeperServerMain.java``)."""

from collections.abc import Callable

from harrow.cluster_model.sim.host import Host
from harrow.cluster_model.zookeeper.service.data_tree import CloseSession, CreateSession, Transaction
from harrow.cluster_model.zookeeper.service.server import ServerStore, ZooKeeperServer
from harrow.cluster_model.zookeeper.service.session_tracker import SessionTracker


class StandaloneServer:
    """One incarnation of a single server. It restarts the timeouts of existing sessions."""

    def __init__(self, host: Host, tick_us: int, store: ServerStore) -> None:
        self.clients = ZooKeeperServer(host, store)
        """The part of this server that serves clients."""
        self._server_id = store.server_id
        self._tracker = SessionTracker(
            host, tick_us, store.tree.sessions.values(), store.server_id, self._expire
        )

    def start(self) -> None:
        self.clients.serve(self)
        self._tracker.start()

    def stop(self) -> None:
        """Close the connections of all clients."""
        self._tracker.stop()
        self.clients.stop_serving()

    @property
    def epoch(self) -> int:
        return 0

    @property
    def decides(self) -> bool:
        """Whether this server decides about writes and sessions."""
        return True

    def expire_session(self, session_id: int) -> None:
        """End a session as if its client had been silent."""
        self._tracker.remove(session_id)
        self._expire(session_id)

    def _expire(self, session_id: int) -> None:
        self.clients.end_session(session_id, expired=True)

    def submit(self, transaction: Transaction, tag: int) -> None:
        if isinstance(transaction, CreateSession):
            self._tracker.add(transaction.session_id, transaction.timeout_us, self._server_id)
        elif isinstance(transaction, CloseSession):
            self._tracker.remove(transaction.session_id)
        self.clients.apply(transaction, tag, is_first=True)

    def revalidate(self, session_id: int, on_validated: Callable[[bool], None]) -> None:
        on_validated(self._tracker.touch(session_id))

    def touch(self, session_id: int) -> None:
        self._tracker.touch(session_id)
