"""Implements a broker's ZooKeeper client: one session, several servers, watches, and retries.

Modelled on ``KafkaZkClient.scala`` and ``ZooKeeperClient.scala``. Requests wait until the client is
connected. When a connection breaks, its requests in flight are sent again over the next connection.
A client learns that its session has expired when it next reaches ZooKeeper. Then its requests fail.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Protocol, final

from harrow.cluster_model.clients.network_client import NetworkClient
from harrow.cluster_model.compiling import mypyc_attr
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.sim.choices import between, pick
from harrow.cluster_model.sim.host import Host
from harrow.cluster_model.sim.message import Body
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND
from harrow.cluster_model.zookeeper.service import protocol as zk

OnResponse = Callable[[zk.ZooKeeperResponse], None]

_ROUND_US: Final = US_PER_SECOND
"""The wait after all servers have been tried (``StaticHostProvider.next``)."""
_SPREAD_US: Final = US_PER_SECOND
"""The longest random wait before the next server is tried (``ClientCnxn``).

Because of these waits the clients do not all connect at once.
"""
CLIENT_LISTENER: Final = "zookeeper"

_EXPIRED: Final = zk.ZooKeeperResponse(zk.SESSION_EXPIRED, ())


class SessionListener(Protocol):
    """Receives the beginnings and ends of sessions, and the events of watches."""

    def session_established(self) -> None:
        """A new session has begun."""

    def session_expired(self) -> None:
        """The session has expired. The client is about to request a new session."""

    def watch_fired(self, event: zk.WatchEvent) -> None:
        """A watched znode has changed."""


@final
@dataclass(slots=True, eq=False)
class _Pending:
    """Operations in flight, or waiting for a connection."""

    operations: tuple[zk.ZooKeeperOperation, ...]
    atomic: bool
    guard: zk.Check | None
    on_response: OnResponse


@mypyc_attr(allow_interpreted_subclasses=True)
class ZooKeeperClient:
    """Keeps one session with ZooKeeper at a time. It replaces a session that has expired."""

    def __init__(
        self,
        host: Host,
        session_timeout_us: int,
        listener: SessionListener,
        servers: Sequence[str] = ("zookeeper",),
    ) -> None:
        self._host = host
        self._servers = self._shuffle(servers)
        # The server that is used or tried now, and the last one that accepted the client.
        self._server_index = 0
        self._last_server_index = 0
        self._session_timeout_us = session_timeout_us
        self._listener = listener
        # The client gives up a silent server after two thirds of the session timeout, and pings
        # after half of that (``ClientCnxn``).
        self._read_timeout_us = session_timeout_us * 2 // 3
        self._ping_interval_us = self._read_timeout_us // 2
        self._connect_timeout_us = min(self._read_timeout_us, session_timeout_us // len(servers))
        self._client = NetworkClient(
            host,
            self._servers[0],
            CLIENT_LISTENER,
            self._read_timeout_us,
            on_push=self._on_watch,
            on_disconnect=lambda: self._on_disconnect(None),
        )
        # The watches of which the client has not received an event, and the last change that it has
        # seen.
        self._data_watches: dict[str, None] = {}
        self._exist_watches: dict[str, None] = {}
        self._child_watches: dict[str, None] = {}
        self._last_zxid = -1
        self._session_id = 0
        self._connected = False
        self._expiring = False
        self._closing = False
        self._waiting: deque[_Pending] = deque()
        self._last_sent_us = 0

    def _shuffle(self, servers: Sequence[str]) -> tuple[str, ...]:
        """Return the servers in this session's order of attempts (``StaticHostProvider``)."""
        remaining, shuffled = list(servers), []
        while remaining:
            server = pick(self._host.choices.network, remaining)
            remaining.remove(server)
            shuffled.append(server)
        return tuple(shuffled)

    def owns(self, result: zk.ZooKeeperResult) -> bool:
        """Return whether a Create failed because this session had already created the znode.

        The response to the first attempt was lost. ``KafkaZkClient.CheckedEphemeral`` and
        ``checkControllerAndEpoch`` treat this error as success.
        """
        return result.error == zk.NODE_EXISTS and result.owner == self._session_id != 0

    def start(self) -> None:
        """Connect, and open a session."""
        self._connect()
        self._host.set_timer(self._ping_interval_us, self._ping)

    def close(self, on_closed: Callable[[], None]) -> None:
        """Close the session, and call *on_closed* when it is closed or cannot be closed.

        As in ``ClientCnxn.close``, a client without a connection does not wait for one, so its
        session expires later. If the server does not answer, the client gives up after its usual
        timeout. Operations that are submitted later are dropped.
        """
        is_connected = self._connected
        self._closing = True
        if is_connected:
            self._client.send(zk.CloseRequest(self._session_id), lambda *_: on_closed())
        else:
            on_closed()

    def submit(
        self,
        operations: tuple[zk.ZooKeeperOperation, ...],
        on_response: OnResponse,
        *,
        atomic: bool = False,
        guard: zk.Check | None = None,
    ) -> None:
        """Send operations; *on_response* is called once.

        *on_response* gets the error SESSIONEXPIRED if the session expires before the response. If
        the connection breaks, the operations are sent again, although they may have taken effect.
        """
        pending = _Pending(operations, atomic, guard, on_response)
        if self._closing:
            return
        if self._connected:
            self._send(pending)
        else:
            self._waiting.append(pending)

    def _send(self, pending: _Pending) -> None:
        self._last_sent_us = self._host.clock.now_us
        request = zk.ZooKeeperRequest(self._session_id, pending.operations, pending.atomic, pending.guard)
        self._client.send(request, self._handle_response, pending)

    def _handle_response(self, response: zk.ZooKeeperResponse | None, pending: _Pending | None) -> None:
        if response is None:
            self._on_disconnect(pending)
        elif response.error == zk.SESSION_EXPIRED:
            self._on_expiry(pending)
        elif pending is not None:
            self._note(pending.operations, response)
            pending.on_response(response)

    def _note(self, operations: Sequence[zk.ZooKeeperOperation], response: zk.ZooKeeperResponse) -> None:
        """Record the last change that this client has seen, and its watches."""
        self._last_zxid = max(self._last_zxid, response.zxid)
        for operation, result in zip(operations, response.results, strict=False):
            if isinstance(operation, zk.GetData) and operation.watch:
                self._data_watches.pop(operation.path, None)
                self._exist_watches.pop(operation.path, None)
                watches = self._data_watches if result.error == zk.OK else self._exist_watches
                watches[operation.path] = None
            elif isinstance(operation, zk.GetChildren) and operation.watch and result.error == zk.OK:
                self._child_watches[operation.path] = None

    def _on_watch(self, event: Body) -> None:
        assert isinstance(event, zk.WatchEvent), event.api
        if event.children:
            self._child_watches.pop(event.path, None)
        else:
            self._data_watches.pop(event.path, None)
            self._exist_watches.pop(event.path, None)
        self._listener.watch_fired(event)

    def _on_disconnect(self, pending: _Pending | None) -> None:
        if pending is not None:
            if self._expiring:
                pending.on_response(_EXPIRED)
            else:
                self._waiting.append(pending)
        if self._connected:
            self._connected = False
            self._try_next()

    def _try_next(self) -> None:
        """Connect to the next server, after a second if all servers have been tried in vain."""
        self._server_index = (self._server_index + 1) % len(self._servers)
        delay_us = _ROUND_US if self._server_index == self._last_server_index else 0
        if len(self._servers) > 1:
            delay_us += between(self._host.choices.network, 0, _SPREAD_US - 1)
        self._client.server = self._servers[self._server_index]
        self._host.set_timer(delay_us, self._reconnect)

    def _reset_session(self) -> None:
        """Forget an expired session with its watches, and shuffle the servers again."""
        self._session_id = 0
        self._last_zxid = -1
        self._data_watches.clear()
        self._exist_watches.clear()
        self._child_watches.clear()
        if len(self._servers) > 1:
            self._servers = self._shuffle(self._servers)
            self._server_index = self._last_server_index = 0

    def _on_expiry(self, pending: _Pending | None) -> None:
        self._connected = False
        self._reset_session()
        self._listener.session_expired()
        self._expiring = True
        if pending is not None:
            pending.on_response(_EXPIRED)
        self._client.disconnect()
        self._fail_waiting()
        self._expiring = False
        self._connect()

    def _fail_waiting(self) -> None:
        """Fail the requests that wait for a connection, because they belong to the old session.

        ``ZooKeeperClient.waitUntilConnected`` throws ZooKeeperClientExpiredException. In the next
        session, a delayed Create of ``/controller`` would elect a controller that does not know
        that it is elected.
        """
        waiting, self._waiting = self._waiting, deque()
        for pending in waiting:
            pending.on_response(_EXPIRED)

    def _reconnect(self, _: None) -> None:
        if not self._connected:
            self._connect()

    def _connect(self) -> None:
        if self._closing:
            return
        self._last_sent_us = self._host.clock.now_us
        request = zk.ConnectRequest(
            self._session_id,
            self._session_timeout_us,
            self._last_zxid,
            tuple(self._data_watches),
            tuple(self._exist_watches),
            tuple(self._child_watches),
        )
        self._client.server = self._servers[self._server_index]
        self._client.timeout_us = self._connect_timeout_us
        self._client.send(request, self._handle_connect_response)

    def _handle_connect_response(self, response: zk.ConnectResponse | None, _: None) -> None:
        if response is None:
            self._try_next()
            return
        if response.error == zk.SESSION_EXPIRED:
            if len(self._servers) > 1:
                self._client.disconnect()
            self._reset_session()
            self._listener.session_expired()
            self._fail_waiting()
            self._connect()
            return
        is_new = response.session_id != self._session_id
        self._session_id = response.session_id
        self._connected = True
        self._last_server_index = self._server_index
        self._client.timeout_us = self._read_timeout_us
        waiting, self._waiting = self._waiting, deque()
        for pending in waiting:
            self._send(pending)
        if is_new:
            self._listener.session_established()

    def _ping(self, _: None) -> None:
        """Keep the session alive if no other request has been sent for a while."""
        now_us = self._host.clock.now_us
        due_us = self._last_sent_us + self._ping_interval_us
        if due_us <= now_us:
            if self._connected and not self._closing:
                self._last_sent_us = now_us
                self._client.send(zk.ZooKeeperRequest(self._session_id, ()), self._handle_response)
            due_us = now_us + self._ping_interval_us
        self._host.set_timer(due_us - now_us, self._ping)
