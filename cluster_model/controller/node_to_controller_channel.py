"""How a broker reaches the active controller (``NodeToControllerChannelManagerImpl.java``)."""

from collections import deque
from collections.abc import Callable
from typing import Any, Final

from harrow.cluster_model import errors
from harrow.cluster_model.clients.network_client import NetworkClient
from harrow.cluster_model.sim.host import Host
from harrow.cluster_model.sim.virtual_time import US_PER_MS

RETRY_BACKOFF_US: Final = 50 * US_PER_MS

NO_NODE: Final = -1

OnAnswer = Callable[[Any], None]


class NodeToControllerChannel:
    """Requests in their order, one under way, each repeated until the active controller has answered it.

    ``server_of`` is what a controller listens as, ``listener`` on what; ``active_controller`` who that is, as far as is known.
    """

    def __init__(
        self,
        host: Host,
        server_of: Callable[[int], str],
        listener: str,
        timeout_us: int,
        active_controller: Callable[[], int],
    ) -> None:
        self._host = host
        self._server_of = server_of
        self._listener = listener
        self._timeout_us = timeout_us
        self._clients: dict[int, NetworkClient] = {}
        self._active_controller = active_controller
        self._queue: deque[tuple[Any, OnAnswer]] = deque()
        self._is_sending = False
        self._is_closed = False

    def send(self, request: Any, on_answer: OnAnswer) -> None:
        """Send a request after those before it."""
        self._queue.append((request, on_answer))
        self._send_next(None)

    def close(self) -> None:
        """Send nothing more."""
        self._is_closed = True
        for client in self._clients.values():
            client.close()

    def _send_next(self, _: None) -> None:
        if self._is_sending or self._is_closed or not self._queue:
            return
        self._is_sending = True
        controller = self._active_controller()
        if controller == NO_NODE:
            self._retry()
        else:
            self._client_of(controller).send(self._queue[0][0], self._answered)

    def _client_of(self, controller: int) -> NetworkClient:
        client = self._clients.get(controller)
        if client is None:
            client = self._clients[controller] = NetworkClient(
                self._host, self._server_of(controller), self._listener, self._timeout_us, RETRY_BACKOFF_US
            )
        return client

    def _answered(self, response: Any, _: Any) -> None:
        if response is None or response.error == errors.NOT_CONTROLLER:
            self._retry()
            return
        self._is_sending = False
        _, on_answer = self._queue.popleft()
        on_answer(response)
        self._send_next(None)

    def _retry(self) -> None:
        self._is_sending = False
        self._host.set_timer(RETRY_BACKOFF_US, self._send_next)
