"""An administrator's DeleteRecords (KIP-107): its target, its retries and its deadline."""

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
_RETRIED: Final = (
    errors.NOT_LEADER_FOR_PARTITION,
    errors.UNKNOWN_TOPIC_OR_PARTITION,
    errors.KAFKA_STORAGE_ERROR,
)


class Timers(Protocol):
    """Schedules something for later."""

    def __call__(self, delay_us: int, callback: Callable[[None], None]) -> None: ...


class RecordDeletion:
    """A request to delete records below an offset (``KafkaAdminClient.deleteRecords``).

    It is not a message on the network, so faults cannot strike it. If the broker dies before it
    answers, or does not lead, the request goes to the next leader.
    """

    def __init__(
        self,
        partition: str,
        offset: int,
        leader: Callable[[str], tuple[int, Broker | None]],
        trace: Trace,
        after: Timers,
        now_us: Callable[[], int],
    ) -> None:
        self._partition = partition
        self._offset = offset
        self._leader = leader
        self._trace = trace
        self._after = after
        self._now_us = now_us
        self._deadline_us = now_us() + _TIMEOUT_US
        self._asked: Broker | None = None

    def ask(self, _: None = None) -> None:
        """Send the request to the leader, as soon as there is one."""
        broker, life = self._leader(self._partition)
        left_us = self._deadline_us - self._now_us()
        if life is not None and left_us > 0:
            self._asked = life
            self._after(_RETRY_US, self._look)
            life.delete_records(self._partition, self._offset, left_us, self._answer_to(broker, life))
        elif left_us > 0:
            self._after(_RETRY_US, self.ask)
        else:
            self._end(broker, self._offset, errors.REQUEST_TIMED_OUT)

    def _answer_to(self, broker: int, life: Broker) -> Callable[[str, int, int], None]:
        def answer(error: str, offset: int, _low_watermark: int) -> None:
            if self._asked is not life:
                return
            self._asked = None
            if error in _RETRIED:
                self._trace.emit(RequestRejected, broker, DELETE_RECORDS, self._partition, ADMIN, error)
                self._after(_RETRY_US, self.ask)
            else:
                self._end(broker, offset, error)

        return answer

    def _look(self, _: None) -> None:
        """Send the request again if the broker has died or no longer leads."""
        if self._asked is None:
            return
        if self._leader(self._partition)[1] is self._asked:
            self._after(_RETRY_US, self._look)
        else:
            self._asked = None
            self.ask()

    def _end(self, broker: int, offset: int, error: str) -> None:
        self._trace.emit(DeleteRecordsAnswered, broker, self._partition, offset, error)
