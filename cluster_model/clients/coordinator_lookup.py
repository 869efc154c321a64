"""Finds the coordinator of a client's group or transactional id.

Modelled on ``AbstractCoordinator.ensureCoordinatorReady`` and
``TransactionManager.lookupCoordinator``. The id is hashed to a partition of an internal topic, and
the leader of that partition is the coordinator. Any broker can name that leader, but may not know
that the leader has died or is about to lose its leadership.
"""

from collections.abc import Callable
from typing import Final

from harrow.cluster_model import errors
from harrow.cluster_model.clients.client_metadata import CLIENT_LISTENER, ClientMetadata
from harrow.cluster_model.clients.exponential_backoff import ExponentialBackoff
from harrow.cluster_model.clients.network_client import NetworkClient
from harrow.cluster_model.coordinators.protocol import FindCoordinatorRequest, FindCoordinatorResponse
from harrow.cluster_model.settings import ConsumerConfig, ProducerConfig
from harrow.cluster_model.sim.host import Host

_SOON_US: Final = 1
"""The shortest possible wait before a retry. The backoff is usually longer."""


class CoordinatorLookup:
    """The coordinator of a client, as far as the client knows, and the connection to it.

    *on_found* is called when a lookup succeeds, and *on_failure* after each failed attempt. Failed
    attempts are repeated. A member of a group has a separate connection to its coordinator, so that
    no waiting fetch delays a heartbeat (``coordinator = new Node(Integer.MAX_VALUE - id)``). A
    producer uses one connection to a broker for everything.
    """

    def __init__(
        self,
        host: Host,
        metadata: ClientMetadata,
        config: ConsumerConfig | ProducerConfig,
        topic: str,
        key: str,
        backoff: ExponentialBackoff,
        on_found: Callable[[], None],
        *,
        on_failure: Callable[[], None] | None = None,
        has_own_connection: bool = False,
    ) -> None:
        self._host = host
        self._metadata = metadata
        self._config = config
        self._topic = topic
        self._key = key
        self._backoff = backoff
        self._on_found = on_found
        self._on_failure = on_failure
        self._own_connections: dict[int, NetworkClient] | None = {} if has_own_connection else None
        self._node: int | None = None
        self._is_looking_up = False
        self._failures = 0

    @property
    def node(self) -> int | None:
        """The broker that the client believes to be the coordinator; None if it knows none."""
        return self._node

    def connection(self) -> NetworkClient | None:
        """Return the connection to the coordinator; None if the coordinator is unknown.

        If the connection is not usable, forget the coordinator and return None.
        """
        if self._node is None:
            return None
        connection = self._connection_to(self._node)
        if not connection.is_usable():
            self._node = None
            return None
        return connection

    def find(self) -> None:
        """Look up the coordinator, unless it is known or a lookup is in progress."""
        if self._node is None and not self._is_looking_up:
            self._is_looking_up = True
            self._send_lookup(None)

    def forget(self) -> None:
        """Forget the coordinator, because it has moved or cannot be reached."""
        self._node = None

    def _connection_to(self, node: int) -> NetworkClient:
        if self._own_connections is None:
            return self._metadata.connections[node]
        connection = self._own_connections.get(node)
        if connection is None:
            config = self._config
            connection = self._own_connections[node] = NetworkClient(
                self._host,
                f"broker-{node}",
                CLIENT_LISTENER,
                config.request_timeout_us,
                config.reconnect_backoff_us,
                config.reconnect_backoff_max_us,
                on_disconnect=self._metadata.request_update,
            )
        return connection

    def _send_lookup(self, _: None) -> None:
        connection = self._metadata.least_loaded()
        if connection is None:
            self._handle_failure(self._metadata.usable_in_us())
        else:
            connection.send(FindCoordinatorRequest(self._topic, self._key), self._handle_response)

    def _handle_response(self, response: FindCoordinatorResponse | None, _: None) -> None:
        if response is None or response.error != errors.NONE:
            self._handle_failure(_SOON_US)
        elif not self._connection_to(response.node).is_usable():
            # The broker that answered may not know yet that the coordinator has died.
            self._handle_failure(_SOON_US)
        else:
            self._node = response.node
            self._is_looking_up = False
            self._failures = 0
            self._on_found()

    def _handle_failure(self, min_wait_us: int) -> None:
        wait_us = max(self._backoff.backoff_us(self._failures), min_wait_us)
        self._failures += 1
        self._host.set_timer(wait_us, self._send_lookup)
        if self._on_failure is not None:
            self._on_failure()
