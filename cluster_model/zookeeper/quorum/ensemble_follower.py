"""Implements a follower in an ensemble (``Follower.java``, ``Learner.java``)."""

from collections.abc import Callable
from typing import Any, Final

from harrow.cluster_model.clients.network_client import NetworkClient
from harrow.cluster_model.sim.host import Host
from harrow.cluster_model.sim.message import Body
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND
from harrow.cluster_model.zookeeper.quorum import protocol
from harrow.cluster_model.zookeeper.quorum.protocol import QUORUM_LISTENER
from harrow.cluster_model.zookeeper.quorum.quorum_store import QuorumStore
from harrow.cluster_model.zookeeper.service.data_tree import Transaction

_TRIES_MAX: Final = 5
_RETRY_US: Final = US_PER_SECOND


class EnsembleFollower:
    """A server while it follows one leader.

    The leader makes all decisions about transactions and sessions.

    *commit* applies the log up to a position, and *on_synced* lets the server accept clients.
    *on_lost* is called when the server has lost its leader.
    """

    def __init__(
        self,
        host: Host,
        store: QuorumStore,
        leader: str,
        init_limit_us: int,
        sync_limit_us: int,
        commit: Callable[[int], None],
        on_synced: Callable[[], None],
        on_lost: Callable[[], None],
    ) -> None:
        self._host = host
        self._store = store
        self._sync_limit_us = sync_limit_us
        self._limit_us = init_limit_us
        self._commit = commit
        self._on_synced = on_synced
        self._on_lost = on_lost
        self._client = NetworkClient(
            host,
            leader,
            QUORUM_LISTENER,
            init_limit_us,
            on_push=self._receive,
            on_disconnect=self._on_disconnect,
        )
        self._is_active = True
        self._is_accepted = False
        self._tries = 0
        self._last_message_us = host.clock.now_us
        self._watch_number = 0
        self._touched_sessions: dict[int, None] = {}
        self._revalidations: dict[int, list[Callable[[bool], None]]] = {}

    def start(self) -> None:
        """Connect to the leader. If the leader does not know yet that it is elected, try again."""
        self._watch_leader(self._limit_us)
        self._connect(None)

    def stop(self) -> None:
        """Disconnect from the leader."""
        self._is_active = False
        self._client.close()

    def _connect(self, _: None) -> None:
        if self._is_active:
            self._tries += 1
            self._send(protocol.FollowerInfo(self._store.server_id, self._store.accepted_epoch))

    def _send(self, body: Body) -> None:
        self._client.send_without_answer(body)

    def _on_disconnect(self) -> None:
        if not self._is_active:
            return
        if self._is_accepted or self._tries == _TRIES_MAX:
            self._lose()
        else:
            self._host.set_timer(_RETRY_US, self._connect)

    def _lose(self) -> None:
        self.stop()
        self._on_lost()

    def _watch_leader(self, limit_us: int) -> None:
        """Give up on a leader after a silence of *limit_us*: `initLimit`, later `syncLimit`."""
        self._limit_us = limit_us
        self._watch_number += 1
        self._watch(self._watch_number)

    def _watch(self, watch: int) -> None:
        if not self._is_active or watch != self._watch_number:
            return
        remaining_us = self._last_message_us + self._limit_us - self._host.clock.now_us
        if remaining_us <= 0:
            self._lose()
        else:
            self._host.set_timer(remaining_us, self._watch, watch)

    def _receive(self, body: Any) -> None:
        if not self._is_active:
            return
        self._last_message_us = self._host.clock.now_us
        if isinstance(body, protocol.Proposal):
            self._store.log.extend(body.entries)
            self._acknowledge()
        elif isinstance(body, protocol.Commit):
            self._commit(body.committed)
        elif isinstance(body, protocol.LeaderPing):
            touched, self._touched_sessions = tuple(self._touched_sessions), {}
            self._send(protocol.FollowerPing(touched))
        elif isinstance(body, protocol.Revalidated):
            for on_validated in self._revalidations.pop(body.session_id, ()):
                on_validated(body.is_valid)
        else:
            self._synchronize(body)

    def _acknowledge(self) -> None:
        self._send(protocol.QuorumAck(self._store.server_id, len(self._store.log)))

    def _synchronize(self, body: Any) -> None:
        store = self._store
        if isinstance(body, protocol.LeaderInfo):
            if body.epoch < store.accepted_epoch:
                self._lose()
                return
            self._is_accepted = True
            # If this server promised the same epoch to an earlier leader, which has since failed,
            # its promise does not count again.
            epoch = -1 if body.epoch == store.accepted_epoch else store.current_epoch
            store.accepted_epoch = body.epoch
            self._send(protocol.AckEpoch(store.server_id, epoch, store.position(), store.applied))
        elif isinstance(body, protocol.NewLeader):
            store.log[body.kept :] = body.entries
            store.current_epoch = body.epoch
            self._acknowledge()
        elif isinstance(body, protocol.UpToDate):
            self._watch_leader(self._sync_limit_us)
            self._commit(body.committed)
            self._on_synced()

    # Requests for clients of this server

    def submit(self, transaction: Transaction, tag: int) -> None:
        self._send(protocol.ForwardedRequest(transaction, tag))

    def revalidate(self, session_id: int, on_validated: Callable[[bool], None]) -> None:
        self._revalidations.setdefault(session_id, []).append(on_validated)
        self._send(protocol.Revalidate(session_id))

    def touch(self, session_id: int) -> None:
        self._touched_sessions[session_id] = None
