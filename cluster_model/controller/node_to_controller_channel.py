"""Sends a broker's requests to the active controller (``NodeToControllerChannelManagerImpl``)."""

from collections import deque
from collections.abc import Callable
from typing import Any, Final

from harrow.cluster_model import errors
from harrow.cluster_model.clients.network_client import NetworkClient
from harrow.cluster_model.protocol import AlterPartitionResponse
from harrow.cluster_model.sim.host import Host
from harrow.cluster_model.sim.virtual_time import US_PER_MS

RECONNECT_BACKOFF_US: Final = 50 * US_PER_MS
NO_CONTROLLER_BACKOFF_US: Final = 100 * US_PER_MS
"""The wait if no controller is known (``NodeToControllerRequestThread.doWork``)."""

NO_NODE: Final = -1

OnAnswer = Callable[[Any], None]
"""A callback that gets the answer, or None if the request was given up."""


class NodeToControllerChannel:
    """Sends requests in order, each again and again until the active controller has answered it.

    One request is in flight at a time. *server_of* returns the network name of a controller, and
    *listener* is the listener to which the channel connects. *active_controller* returns the active
    controller, as far as the broker knows. After *retry_timeout_us* a request is given up.
    """

    def __init__(
        self,
        host: Host,
        server_of: Callable[[int], str],
        listener: str,
        timeout_us: int,
        active_controller: Callable[[], int],
        retry_timeout_us: int | None = None,
    ) -> None:
        self._host = host
        if retry_timeout_us is not None:
            timeout_us = min(timeout_us, retry_timeout_us)
        self._server_of = server_of
        self._listener = listener
        self._timeout_us = timeout_us
        self._clients: dict[int, NetworkClient] = {}
        self._active_controller = active_controller
        self._retry_timeout_us = retry_timeout_us
        self._queue: deque[tuple[Any, OnAnswer, int]] = deque()
        self._is_sending = False
        self._is_closed = False

    def send(self, request: Any, on_answer: OnAnswer) -> None:
        """Send a request, after all requests that were sent earlier."""
        self._queue.append((request, on_answer, self._host.clock.now_us))
        if not self._is_sending:
            self._send_next(None)

    def close(self) -> None:
        """Send no more requests."""
        self._is_closed = True
        for client in self._clients.values():
            client.close()

    def _send_next(self, _: None) -> None:
        self._is_sending = False
        if self._is_closed or not self._queue:
            return
        request, on_answer, created_us = self._queue[0]
        timeout_us = self._retry_timeout_us
        if timeout_us is not None and self._host.clock.now_us - created_us >= timeout_us:
            self._complete(on_answer, None)
            return
        self._is_sending = True
        controller = self._active_controller()
        if controller == NO_NODE:
            self._host.set_timer(NO_CONTROLLER_BACKOFF_US, self._send_next)
        else:
            self._client_of(controller).send(request, self._handle_response)

    def _client_of(self, controller: int) -> NetworkClient:
        client = self._clients.get(controller)
        if client is None:
            client = self._clients[controller] = NetworkClient(
                self._host, self._server_of(controller), self._listener, self._timeout_us
            )
        return client

    def _handle_response(self, response: Any, _: Any) -> None:
        if response is None or _is_of_other_controller(response):
            self._host.set_timer(RECONNECT_BACKOFF_US, self._send_next)
        else:
            self._complete(self._queue[0][1], response)

    def _complete(self, on_answer: OnAnswer, response: Any) -> None:
        self._queue.popleft()
        # If the callback sends a request, that request must come after those that already wait.
        self._is_sending = True
        on_answer(response)
        self._send_next(None)


def _is_of_other_controller(response: Any) -> bool:
    """Return whether an answer comes from a node that is not, or no longer, the active controller.

    As in ``errorCounts`` of a Kafka response, this includes the errors of partitions.
    """
    return bool(response.error == errors.NOT_CONTROLLER) or (
        isinstance(response, AlterPartitionResponse)
        and any(error == errors.NOT_CONTROLLER for error, _ in response.partitions.values())
    )
