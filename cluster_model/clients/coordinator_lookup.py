"""Finds the coordinator of a client's group or transactional id.

It models ``AbstractCoordinator.ensureCoordinatorReady`` and
``TransactionManager.lookupCoordinator``. Any broker can name the leader of the key's partition in
the internal topic. That leader may have died, or may be about to be deposed, without the other
broker's knowledge.
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


class CoordinatorLookup:
    """The coordinator that a client knows of, and the connection to it.

    *on_found* is called when a lookup succeeds, *on_failure* after each failed attempt, which is
    retried. A member of a group has a separate connection to its coordinator, so that no waiting
    fetch delays a heartbeat (``coordinator = new Node(Integer.MAX_VALUE - id)``). A producer has
    one connection for everything.
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
        """The broker with the coordinator, as far as the client knows."""
        return self._node

    def connection(self) -> NetworkClient | None:
        """Return the connection to the coordinator.

        If it is unavailable, forget it; return None.
        """
        if self._node is None:
            return None
        connection = self._connection_to(self._node)
        if not connection.is_usable():
            self._node = None
            return None
        return connection

    def find(self) -> None:
        """Look up the coordinator, unless the client knows it or is looking it up."""
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
            # The broker that answered does not know yet that the coordinator is gone.
            self._handle_failure(_SOON_US)
        else:
            self._node = response.node
            self._is_looking_up = False
            self._failures = 0
            self._on_found()

    def _handle_failure(self, least_us: int) -> None:
        wait_us = max(self._backoff.backoff_us(self._failures), least_us)
        self._failures += 1
        self._host.set_timer(wait_us, self._send_lookup)
        if self._on_failure is not None:
            self._on_failure()
