"""Sends an administrator's DeleteRecords request (KIP-107), with retries and a deadline."""

from collections.abc import Callable
from typing import Final, Protocol

from harrow.cluster_model import errors
from harrow.cluster_model.broker.broker import Broker
from harrow.cluster_model.controller.control_plane import ADMIN
from harrow.cluster_model.events import DeleteRecordsAnswered, RequestRejected
from harrow.cluster_model.log.unified_log import DELETE_RECORDS
from harrow.cluster_model.sim.virtual_time import US_PER_MS, US_PER_SECOND
from harrow.cluster_model.trace import Trace

_TIMEOUT_US: Final = 60 * US_PER_SECOND
"""``default.api.timeout.ms`` of the admin client."""
_RETRY_US: Final = 100 * US_PER_MS
"""``retry.backoff.ms``."""
_RETRIED_ERRORS: Final = (
    errors.NOT_LEADER_FOR_PARTITION,
    errors.UNKNOWN_TOPIC_OR_PARTITION,
    errors.KAFKA_STORAGE_ERROR,
)


class Timers(Protocol):
    """A function that calls *callback* back after *delay_us*."""

    def __call__(self, delay_us: int, callback: Callable[[None], None]) -> None: ...


class RecordDeletion:
    """A request to delete records below an offset (``KafkaAdminClient.deleteRecords``).

    The request is not a message on the simulated network, so faults cannot strike it. If its
    receiver does not lead, or dies before it answers, the request goes to the next leader.
    """

    def __init__(
        self,
        partition: str,
        offset: int,
        leader: Callable[[str], tuple[int, Broker | None]],
        trace: Trace,
        set_timer: Timers,
        now_us: Callable[[], int],
    ) -> None:
        self._partition = partition
        self._offset = offset
        self._leader = leader
        self._trace = trace
        self._set_timer = set_timer
        self._now_us = now_us
        self._deadline_us = now_us() + _TIMEOUT_US
        self._receiver: Broker | None = None

    def send(self, _: None = None) -> None:
        """Send the request to the leader, or try again later while there is none."""
        broker, receiver = self._leader(self._partition)
        timeout_us = self._deadline_us - self._now_us()
        if receiver is not None and timeout_us > 0:
            self._receiver = receiver
            self._set_timer(_RETRY_US, self._check_leader)
            receiver.delete_records(
                self._partition, self._offset, timeout_us, self._response_handler(broker, receiver)
            )
        elif timeout_us > 0:
            self._set_timer(_RETRY_US, self.send)
        else:
            self._end(broker, self._offset, errors.REQUEST_TIMED_OUT)

    def _response_handler(self, broker: int, receiver: Broker) -> Callable[[str, int, int], None]:
        def respond(error: str, offset: int, _low_watermark: int) -> None:
            if self._receiver is not receiver:
                return
            self._receiver = None
            if error in _RETRIED_ERRORS:
                self._trace.emit(RequestRejected, broker, DELETE_RECORDS, self._partition, ADMIN, error)
                self._set_timer(_RETRY_US, self.send)
            else:
                self._end(broker, offset, error)

        return respond

    def _check_leader(self, _: None) -> None:
        """Send the request again if its receiver has died or no longer leads."""
        if self._receiver is None:
            return
        if self._leader(self._partition)[1] is self._receiver:
            self._set_timer(_RETRY_US, self._check_leader)
        else:
            self._receiver = None
            self.send()

    def _end(self, broker: int, offset: int, error: str) -> None:
        self._trace.emit(DeleteRecordsAnswered, broker, self._partition, offset, error)
