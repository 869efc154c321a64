"""An administrator's requests to real brokers; a campaign continues while they are pending."""

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Final, Self

from harrow.cluster_model import errors
from harrow.cluster_model.controller.assignment import assign_partitions, refusal_of_partitions
from harrow.cluster_model.controller.control_plane import ADMIN, CREATE_PARTITIONS_API, REASSIGNMENT_API
from harrow.cluster_model.events import DeleteRecordsAnswered, RequestRejected
from harrow.cluster_model.log.unified_log import DELETE_RECORDS
from harrow.cluster_model.protocol import DELETE_TO_HIGH_WATERMARK
from harrow.cluster_model.settings import LONG_MAX
from harrow.live_cluster.links.requests_seen import Report
from harrow.live_cluster.names import SAME, Names
from harrow.live_cluster.watches.metadata_seen import NO_BROKER, MetadataSeen
from harrow.live_cluster.wire.administration import (
    alter_reassignment,
    create_partitions,
    delete_records_request,
    delete_records_result,
)
from harrow.live_cluster.wire.connection import BrokerConnection, ConnectionLostError

_TIMEOUT_S: Final = 60.0
"""``default.api.timeout.ms``, after which a client gives up."""
_RETRY_S: Final = 0.1
"""``retry.backoff.ms``."""
_NOT_CONTROLLER: Final = "NOT_CONTROLLER"
_RETRIED: Final = (
    errors.NOT_LEADER_FOR_PARTITION,
    errors.UNKNOWN_TOPIC_OR_PARTITION,
    errors.KAFKA_STORAGE_ERROR,
)
_RETRIED_BY_CONTROLLER: Final = (_NOT_CONTROLLER, errors.REQUEST_TIMED_OUT)


class Administrator:
    """Sends requests past the proxies, so that faults do not affect them, as on the model.

    *leader_of* returns the leader of a partition, and *controller* the broker for controller
    requests; both return None unless its process runs. Each request has a thread of its own, which
    ends with this context, and *report* gets the answer.
    """

    def __init__(
        self,
        connect: Callable[[int], BrokerConnection],
        report: Report,
        *,
        leader_of: Callable[[str], int | None],
        controller: Callable[[], int | None],
        seen: MetadataSeen,
        racks: Mapping[int, str] = MappingProxyType({}),
        names: Names = SAME,
    ) -> None:
        self._connect = connect
        self._leader_of = leader_of
        self._controller = controller
        self._seen = seen
        self._racks = racks
        self._report = report
        self._names = names
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []
        self._deleted_below: dict[str, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def deleted_below(self, partition: str) -> int:
        """Return the offset below which requests may have deleted records, 0 without a request."""
        return self._deleted_below.get(partition, 0)

    def delete_records(self, partition: str, offset: int) -> None:
        """Delete records below an offset, once there is a leader.

        Report `DeleteRecordsAnswered`.
        """
        below = LONG_MAX if offset == DELETE_TO_HIGH_WATERMARK else offset
        self._deleted_below[partition] = max(self.deleted_below(partition), below)
        self._start(DELETE_RECORDS, lambda: self._delete_records(partition, offset))

    def create_partitions(self, topic: str, total: int) -> None:
        """Raise the number of a topic's partitions.

        The new ones get the same replicas as on the model.
        """
        assignments = self._seen.assignments
        topics = [name.rpartition("-")[0] for name in assignments.partition_names()]
        existing = topics.count(topic)
        first, live = assignments.replicas_of(f"{topic}-0"), sorted(self._seen.registered())
        added: list[tuple[int, ...]] | None = None
        if refusal_of_partitions(live, first, existing, total) == errors.NONE:
            new = assign_partitions(live, self._racks, first, existing, total)
            added = [tuple(map(self._names.broker, replicas)) for replicas in new]

        def ask(connection: BrokerConnection) -> str:
            return create_partitions(connection, self._names.topic(topic), total, added)

        self._start(
            CREATE_PARTITIONS_API,
            lambda: self._ask_controller(CREATE_PARTITIONS_API, f"{topic}-{existing}", ask),
        )

    def alter_partition_reassignment(self, partition: str, target: tuple[int, ...] | None) -> None:
        """Reassign a partition, or with None cancel its reassignment."""
        self._seen.assignments.may_move = True
        replicas = None if target is None else list(map(self._names.broker, target))

        def ask(connection: BrokerConnection) -> str:
            return alter_reassignment(connection, self._names.partition(partition), replicas)

        self._start(REASSIGNMENT_API, lambda: self._ask_controller(REASSIGNMENT_API, partition, ask))

    def _ask_controller(self, api: str, partition: str, ask: Callable[[BrokerConnection], str]) -> None:
        """Repeat a request to the controller until it answers; the watches report its effects."""
        until_s = time.monotonic() + _TIMEOUT_S
        while not self._over.is_set() and time.monotonic() < until_s:
            broker = self._controller()
            if broker is not None:
                with self._connect(broker) as connection, suppress(ConnectionLostError):
                    error = ask(connection)
                    if error not in _RETRIED_BY_CONTROLLER:
                        if error != errors.NONE:
                            self._report(RequestRejected, broker, api, partition, ADMIN, error)
                        return
            self._over.wait(_RETRY_S)

    def _start(self, name: str, ask: Callable[[], None]) -> None:
        thread = threading.Thread(target=ask, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _delete_records(self, partition: str, offset: int) -> None:
        until_s = time.monotonic() + _TIMEOUT_S
        leader = NO_BROKER
        while not self._over.is_set() and (left_s := until_s - time.monotonic()) > 0:
            candidate = self._leader_of(partition)
            answer = None if candidate is None else self._deletion_by(candidate, partition, offset, left_s)
            if candidate is not None and answer is not None:
                leader, (error, low_watermark) = candidate, answer
                if error not in _RETRIED:
                    if offset == DELETE_TO_HIGH_WATERMARK:
                        offset = self._deleted_below[partition] = max(low_watermark, 0)
                    self._report(DeleteRecordsAnswered, leader, partition, offset, error)
                    return
                self._report(RequestRejected, leader, DELETE_RECORDS, partition, ADMIN, error)
            self._over.wait(_RETRY_S)
        if not self._over.is_set():
            self._report(DeleteRecordsAnswered, leader, partition, offset, errors.REQUEST_TIMED_OUT)

    def _deletion_by(self, leader: int, partition: str, offset: int, left_s: float) -> tuple[str, int] | None:
        """Return a leader's answer, None if it stops leading or dies first."""
        until_s = time.monotonic() + left_s
        with self._connect(leader) as connection:
            try:
                on_cluster = self._names.partition(partition)
                request = delete_records_request(connection, on_cluster, offset, int(left_s * 1_000))
                connection.send(request)
                while not connection.has_answered(_RETRY_S):
                    is_in_time = time.monotonic() < until_s and not self._over.is_set()
                    if not is_in_time or self._leader_of(partition) != leader:
                        return None
                return delete_records_result(connection.receive(request))
            except ConnectionLostError:
                return None
