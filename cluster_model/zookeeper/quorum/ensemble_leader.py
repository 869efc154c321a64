"""Implements the leader of an ensemble (``Leader.java``, ``LearnerHandler.java``).

The leader agrees on an epoch with a majority, and sends each follower the missing part of its log.
Once a majority has the log, the leader serves clients. From then on it orders the transactions of
all servers, and commits each transaction that a majority has logged.
"""

from collections.abc import Callable

from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.sim.connection import PUSHED, Connection
from harrow.cluster_model.sim.host import Host
from harrow.cluster_model.sim.message import Body
from harrow.cluster_model.zookeeper.quorum import protocol
from harrow.cluster_model.zookeeper.quorum.protocol import LoggedTransaction
from harrow.cluster_model.zookeeper.quorum.quorum_store import QuorumStore
from harrow.cluster_model.zookeeper.service import protocol as zk
from harrow.cluster_model.zookeeper.service.data_tree import (
    NO_SESSION,
    CloseSession,
    CreateSession,
    ErrorTransaction,
    Transaction,
    Write,
)
from harrow.cluster_model.zookeeper.service.session_tracker import SessionTracker


@dataclass(slots=True, eq=False)
class _Learner:
    """A connected follower.

    ``logged`` is the length of its log. ``deadline_tick`` is the last tick at which the leader
    waits for its next message.
    """

    server_id: int
    connection: Connection
    deadline_tick: int
    # The steps of a follower: it has promised the epoch, is sent all proposals, and has logged the
    # entries that it lacked.
    has_promised: bool = False
    is_forwarding: bool = False
    is_synced: bool = False
    logged: int = 0
    position: protocol.Position = (0, 0)
    applied: int = 0


class EnsembleLeader:
    """A server while it leads, for one term. It decides for itself and for its followers.

    *commit* applies the log up to a position, and *on_majority* lets the server accept clients.
    *on_lost* is called at the end of the term. *expire* ends a session that has timed out.
    """

    def __init__(
        self,
        host: Host,
        store: QuorumStore,
        server_count: int,
        tick_us: int,
        init_limit: int,
        sync_limit: int,
        commit: Callable[[int], None],
        on_majority: Callable[[int], None],
        on_lost: Callable[[], None],
        expire: Callable[[int], None],
    ) -> None:
        self._host = host
        self._store = store
        self._majority = server_count // 2 + 1
        self._tick_us = tick_us
        self._init_limit = init_limit
        self._sync_limit = sync_limit
        self._commit = commit
        self._on_majority = on_majority
        self._on_lost = on_lost
        self._expire = expire
        self._is_active = True
        self._learners: dict[int, _Learner] = {}
        self._epoch = store.accepted_epoch + 1
        # The end of the log at the start of the term. A follower whose log is longer, or of a later
        # epoch, would be a better leader.
        self._initial_log = (store.current_epoch, store.position())
        # The servers that have sent the epoch that they know, and those that have promised the new
        # epoch (``connectingFollowers``, ``electingFollowers``).
        self._connecting = {store.server_id}
        self._electing = {store.server_id}
        self._waits_for_epoch = True
        self._is_elected = False
        self._tracker: SessionTracker | None = None
        self._tick = 0
        self._half_ticks = 0

    @property
    def _is_serving(self) -> bool:
        return self._tracker is not None

    def start(self) -> None:
        """Wait for followers until `initLimit`."""
        self._host.set_timer(self._init_limit * self._tick_us, self._check_init_limit)

    def stop(self) -> None:
        """Disconnect the followers, and stop expiring sessions."""
        self._is_active = False
        if self._tracker is not None:
            self._tracker.stop()
        for learner in self._learners.values():
            self._host.close_by_server(learner.connection)
        self._learners.clear()

    def _check_init_limit(self, _: None) -> None:
        if self._is_active and not self._is_serving:
            self._lose()

    def _lose(self) -> None:
        self.stop()
        self._on_lost()

    # Followers

    def receive(self, connection: Connection, body: Body) -> None:
        if isinstance(body, protocol.FollowerInfo):
            self._accept_follower(connection, body)
            return
        learner = self._learners.get(connection.id)
        if learner is None:
            return  # The follower was dropped while this message was in flight.
        if self._is_serving:
            learner.deadline_tick = self._tick + self._sync_limit
        if isinstance(body, protocol.QuorumAck):
            learner.logged = body.logged
            self._handle_log_ack(learner)
        elif isinstance(body, protocol.ForwardedRequest):
            self._propose(
                self._check_session(body.transaction, learner.server_id), learner.server_id, body.tag
            )
        elif isinstance(body, protocol.FollowerPing):
            for session_id in body.sessions:
                self._sessions.touch(session_id)
        elif isinstance(body, protocol.Revalidate):
            is_valid = self._sessions.move(body.session_id, learner.server_id)
            self._send(learner, protocol.Revalidated(body.session_id, is_valid))
        elif isinstance(body, protocol.AckEpoch):
            self._handle_epoch_ack(learner, body)

    def connection_closed(self, connection: Connection) -> None:
        self._learners.pop(connection.id, None)

    def _send(self, learner: _Learner, body: Body) -> None:
        self._host.send_response(learner.connection, PUSHED, body)

    @property
    def _sessions(self) -> SessionTracker:
        assert self._tracker is not None, "sessions before a majority"
        return self._tracker

    def _accept_follower(self, connection: Connection, info: protocol.FollowerInfo) -> None:
        # A follower may return before the leader notices the end of its former connection.
        for former in [each for each in self._learners.values() if each.server_id == info.sender]:
            del self._learners[former.connection.id]
            self._host.close_by_server(former.connection)
        learner = _Learner(info.sender, connection, self._tick + self._init_limit)
        self._learners[connection.id] = learner
        if not self._waits_for_epoch:
            self._send(learner, protocol.LeaderInfo(self._epoch))
            return
        # The epoch is later than any epoch that a majority knows (``getEpochToPropose``).
        self._epoch = max(self._epoch, info.accepted_epoch + 1)
        self._connecting.add(info.sender)
        if len(self._connecting) >= self._majority:
            self._waits_for_epoch = False
            self._store.accepted_epoch = self._epoch
            for each in self._learners.values():
                self._send(each, protocol.LeaderInfo(self._epoch))

    def _handle_epoch_ack(self, learner: _Learner, ack: protocol.AckEpoch) -> None:
        """Synchronize followers once a majority has promised the epoch (``waitForEpochAck``)."""
        learner.has_promised = True
        learner.position = ack.position
        learner.applied = ack.applied
        if self._is_elected:
            self._bring_up_to_date(learner)
            return
        if ack.current_epoch >= 0:
            if (ack.current_epoch, ack.position) > self._initial_log:
                self._lose()
                return
            self._electing.add(ack.sender)
        if len(self._electing) >= self._majority:
            self._is_elected = True
            self._store.current_epoch = self._epoch
            for each in self._learners.values():
                if each.has_promised:
                    self._bring_up_to_date(each)

    def _bring_up_to_date(self, learner: _Learner) -> None:
        """Send a follower the entries that it has not applied. Both logs have the earlier ones."""
        learner.is_forwarding = True
        entries = tuple(self._store.log[learner.applied :])
        self._send(learner, protocol.NewLeader(self._epoch, learner.applied, entries))

    def _handle_log_ack(self, learner: _Learner) -> None:
        if not learner.is_synced:
            learner.is_synced = True
            if self._is_serving:
                self._send(learner, protocol.UpToDate(self._store.applied))
            elif 1 + sum(each.is_synced for each in self._learners.values()) >= self._majority:
                self._begin_serving()
        if self._is_serving:
            self._commit_logged()

    def _begin_serving(self) -> None:
        """Commit the log, which a majority has, restart session timeouts, and serve clients."""
        self._commit(len(self._store.log))
        tree = self._store.tree
        self._tracker = SessionTracker(
            self._host, self._tick_us, tree.sessions.values(), self._store.server_id, self._expire
        )
        self._tracker.start()
        for learner in self._learners.values():
            learner.deadline_tick = self._tick + self._sync_limit
            if learner.is_synced:
                self._send(learner, protocol.UpToDate(self._store.applied))
        self._host.set_timer(self._tick_us // 2, self._ping)
        self._on_majority(self._epoch)

    def _ping(self, _: None) -> None:
        """Ping followers twice a tick, and end the term if fewer than a majority are connected."""
        if not self._is_active:
            return
        self._half_ticks += 1
        if self._half_ticks % 2 == 0:
            self._tick += 1
            for learner in list(self._learners.values()):
                if learner.deadline_tick < self._tick:
                    del self._learners[learner.connection.id]
                    self._host.close_by_server(learner.connection)
            if 1 + sum(each.is_synced for each in self._learners.values()) < self._majority:
                self._lose()
                return
        for learner in self._learners.values():
            if learner.is_forwarding:
                self._send(learner, protocol.LeaderPing())
        self._host.set_timer(self._tick_us // 2, self._ping)

    # Transactions

    def submit(self, transaction: Transaction, tag: int) -> None:
        """Propose a transaction for a client of this server."""
        server_id = self._store.server_id
        self._propose(self._check_session(transaction, server_id), server_id, tag)

    def revalidate(self, session_id: int, on_validated: Callable[[bool], None]) -> None:
        on_validated(self._sessions.move(session_id, self._store.server_id))

    def touch(self, session_id: int) -> None:
        self._sessions.touch(session_id)

    def _check_session(self, transaction: Transaction, server_id: int) -> Transaction:
        """Update the tracked sessions, and return the transaction to propose.

        A write is replaced by an error if its session is over, or if its client is connected to
        another server.
        """
        if isinstance(transaction, CreateSession):
            self._sessions.add(transaction.session_id, transaction.timeout_us, server_id)
        elif isinstance(transaction, CloseSession):
            self._sessions.remove(transaction.session_id)
        elif (
            isinstance(transaction, Write)
            and transaction.session_id != NO_SESSION
            and not self._sessions.is_owner(transaction.session_id, server_id)
        ):
            return ErrorTransaction(zk.SESSION_EXPIRED)
        return transaction

    def _propose(self, transaction: Transaction, server_id: int, tag: int) -> None:
        entry = LoggedTransaction(self._epoch, transaction, server_id, tag)
        self._store.log.append(entry)
        for learner in self._learners.values():
            if learner.is_forwarding:
                self._send(learner, protocol.Proposal((entry,)))

    def _commit_logged(self) -> None:
        """Commit the transactions that a majority, including this server, has logged."""
        logged = sorted((each.logged for each in self._learners.values() if each.is_synced), reverse=True)
        if len(logged) < self._majority - 1:
            return
        committed = logged[self._majority - 2]
        if committed > self._store.applied:
            for learner in self._learners.values():
                if learner.is_forwarding:
                    self._send(learner, protocol.Commit(committed))
            self._commit(committed)
