"""Sends an administrator's requests to real brokers. The campaign continues meanwhile."""

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
from harrow.live_cluster.links.observed_requests import Report
from harrow.live_cluster.names import SAME_NAMES, Names
from harrow.live_cluster.watches.observed_metadata import NO_BROKER, ObservedMetadata
from harrow.live_cluster.wire.administration import (
    alter_reassignment,
    create_partitions,
    delete_records_request,
    delete_records_result,
)
from harrow.live_cluster.wire.connection import BrokerConnection, ConnectionLostError

_TIMEOUT_S: Final = 60.0
"""How long a client repeats a request: the default of ``default.api.timeout.ms``."""
_RETRY_S: Final = 0.1
"""How long a client waits before a retry: the default of ``retry.backoff.ms``."""
_NOT_CONTROLLER: Final = "NOT_CONTROLLER"
_RETRIED: Final = (
    errors.NOT_LEADER_FOR_PARTITION,
    errors.UNKNOWN_TOPIC_OR_PARTITION,
    errors.KAFKA_STORAGE_ERROR,
)
_RETRIED_BY_CONTROLLER: Final = (_NOT_CONTROLLER, errors.REQUEST_TIMED_OUT)


class Administrator:
    """Sends requests past the proxies, so that faults do not affect them, as on the model.

    *leader_of* returns the leader of a partition, and *controller* the broker that gets controller
    requests. Both return None if the broker's process does not run. Each request has its own
    thread, which ends with this context. *report* gets the answer.
    """

    def __init__(
        self,
        connect: Callable[[int], BrokerConnection],
        report: Report,
        *,
        leader_of: Callable[[str], int | None],
        controller: Callable[[], int | None],
        observed_metadata: ObservedMetadata,
        racks: Mapping[int, str] = MappingProxyType({}),
        names: Names = SAME_NAMES,
    ) -> None:
        self._connect = connect
        self._leader_of = leader_of
        self._controller = controller
        self._observed_metadata = observed_metadata
        self._racks = racks
        self._report = report
        self._names = names
        self._has_ended = threading.Event()
        self._threads: list[threading.Thread] = []
        self._deleted_below: dict[str, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._has_ended.set()
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

        The new partitions get the same replicas as on the model.
        """
        assignments = self._observed_metadata.assignments
        topics = [name.rpartition("-")[0] for name in assignments.partition_names()]
        existing = topics.count(topic)
        first, live = assignments.replicas_of(f"{topic}-0"), sorted(self._observed_metadata.registered())
        added: list[tuple[int, ...]] | None = None
        if refusal_of_partitions(live, first, existing, total) == errors.NONE:
            new = assign_partitions(live, self._racks, first, existing, total)
            added = [tuple(map(self._names.cluster_broker, replicas)) for replicas in new]

        def send_request(connection: BrokerConnection) -> str:
            return create_partitions(connection, self._names.cluster_topic(topic), total, added)

        self._start(
            CREATE_PARTITIONS_API,
            lambda: self._request_from_controller(CREATE_PARTITIONS_API, f"{topic}-{existing}", send_request),
        )

    def alter_partition_reassignment(self, partition: str, target: tuple[int, ...] | None) -> None:
        """Reassign a partition, or with None cancel its reassignment."""
        self._observed_metadata.assignments.may_move = True
        replicas = None if target is None else list(map(self._names.cluster_broker, target))

        def send_request(connection: BrokerConnection) -> str:
            return alter_reassignment(connection, self._names.cluster_partition(partition), replicas)

        self._start(
            REASSIGNMENT_API, lambda: self._request_from_controller(REASSIGNMENT_API, partition, send_request)
        )

    def _request_from_controller(
        self, api: str, partition: str, send_request: Callable[[BrokerConnection], str]
    ) -> None:
        """Repeat a request to the controller until it answers. The watches report the effects."""
        until_s = time.monotonic() + _TIMEOUT_S
        while not self._has_ended.is_set() and time.monotonic() < until_s:
            broker = self._controller()
            if broker is not None:
                with self._connect(broker) as connection, suppress(ConnectionLostError):
                    error = send_request(connection)
                    if error not in _RETRIED_BY_CONTROLLER:
                        if error != errors.NONE:
                            self._report(RequestRejected, broker, api, partition, ADMIN, error)
                        return
            self._has_ended.wait(_RETRY_S)

    def _start(self, name: str, send_request: Callable[[], None]) -> None:
        thread = threading.Thread(target=send_request, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _delete_records(self, partition: str, offset: int) -> None:
        until_s = time.monotonic() + _TIMEOUT_S
        leader = NO_BROKER
        while not self._has_ended.is_set() and (left_s := until_s - time.monotonic()) > 0:
            candidate = self._leader_of(partition)
            answer = (
                None if candidate is None else self._delete_on_leader(candidate, partition, offset, left_s)
            )
            if candidate is not None and answer is not None:
                leader, (error, low_watermark) = candidate, answer
                if error not in _RETRIED:
                    if offset == DELETE_TO_HIGH_WATERMARK:
                        offset = self._deleted_below[partition] = max(low_watermark, 0)
                    self._report(DeleteRecordsAnswered, leader, partition, offset, error)
                    return
                self._report(RequestRejected, leader, DELETE_RECORDS, partition, ADMIN, error)
            self._has_ended.wait(_RETRY_S)
        if not self._has_ended.is_set():
            self._report(DeleteRecordsAnswered, leader, partition, offset, errors.REQUEST_TIMED_OUT)

    def _delete_on_leader(
        self, leader: int, partition: str, offset: int, left_s: float
    ) -> tuple[str, int] | None:
        """Return a leader's answer, None if it stops leading or dies first."""
        until_s = time.monotonic() + left_s
        with self._connect(leader) as connection:
            try:
                on_cluster = self._names.cluster_partition(partition)
                request = delete_records_request(connection, on_cluster, offset, int(left_s * 1_000))
                connection.send(request)
                while not connection.has_answered(_RETRY_S):
                    is_in_time = time.monotonic() < until_s and not self._has_ended.is_set()
                    if not is_in_time or self._leader_of(partition) != leader:
                        return None
                return delete_records_result(connection.receive(request))
            except ConnectionLostError:
                return None
