"""How a broker reaches the active controller (``NodeToControllerChannelManagerImpl.java``)."""

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final

from harrow.cluster_model import errors
from harrow.cluster_model.clients.network_client import NetworkClient
from harrow.cluster_model.kraft.protocol import (
    CONTROLLER_LISTENER,
    NO_NODE,
    ControllerRequest,
    server_name,
)
from harrow.cluster_model.sim.host import Host
from harrow.cluster_model.sim.virtual_time import US_PER_MS

RETRY_BACKOFF_US: Final = 50 * US_PER_MS

OnAnswer = Callable[[Any], None]


class NodeToControllerChannel:
    """Requests in their order, one under way, each repeated until the active controller has answered it."""

    def __init__(
        self, host: Host, voters: Iterable[int], timeout_us: int, active_controller: Callable[[], int]
    ) -> None:
        self._host = host
        self._clients = {
            voter: NetworkClient(host, server_name(voter), CONTROLLER_LISTENER, timeout_us, RETRY_BACKOFF_US)
            for voter in voters
        }
        self._active_controller = active_controller
        self._queue: deque[tuple[ControllerRequest, OnAnswer]] = deque()
        self._is_sending = False
        self._is_closed = False

    def send(self, request: ControllerRequest, on_answer: OnAnswer) -> None:
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
            self._clients[controller].send(self._queue[0][0], self._answered)

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
