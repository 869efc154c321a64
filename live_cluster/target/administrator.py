"""An administrator's requests to real brokers. A campaign goes on while they are not answered."""

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
"""``default.api.timeout.ms``: then a client gives up."""
_RETRY_S: Final = 0.1
"""``retry.backoff.ms``."""
_NOT_CONTROLLER: Final = "NOT_CONTROLLER"
_RETRIED: Final = (
    errors.NOT_LEADER_FOR_PARTITION,
    errors.UNKNOWN_TOPIC_OR_PARTITION,
    errors.KAFKA_STORAGE_ERROR,
)

_RETRIED_ORDERS: Final = (_NOT_CONTROLLER, errors.REQUEST_TIMED_OUT)


class Administrator:
    """Asks brokers past the proxies, so that no fault strikes what it asks, as on the model (`RecordDeletion`).

    *leader_of* returns the broker that leads a partition, *controller* whom orders for the cluster go to, if their processes are there
    and run; *report* is told of answers. Each request has a thread of its own, and all of them end with this context.
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
        """Return the offset below which a request may have deleted records of a partition; 0 without a request."""
        return self._deleted_below.get(partition, 0)

    def delete_records(self, partition: str, offset: int) -> None:
        """Have the leader of a partition delete what is below an offset, once there is a leader; `DeleteRecordsAnswered` tells the end."""
        below = LONG_MAX if offset == DELETE_TO_HIGH_WATERMARK else offset
        self._deleted_below[partition] = max(self.deleted_below(partition), below)
        self._start(DELETE_RECORDS, lambda: self._delete_records(partition, offset))

    def create_partitions(self, topic: str, total: int) -> None:
        """Ask that a topic have so many partitions; the new ones get the replicas that the model gives them."""
        known = self._seen.assignments
        numbers = (name.rpartition("-") for name in known.partition_names())
        existing = sum(1 for own, _, _ in numbers if own == topic)
        first, live = known.replicas_of(f"{topic}-0"), sorted(self._seen.registered())
        added: list[tuple[int, ...]] | None = None
        if refusal_of_partitions(live, first, existing, total) == errors.NONE:
            assigned = assign_partitions(live, self._racks, first, existing, total)
            added = [tuple(map(self._names.broker, replicas)) for replicas in assigned]
        there = self._names.topic(topic)
        self._order(
            CREATE_PARTITIONS_API,
            f"{topic}-{existing}",
            lambda connection: create_partitions(connection, there, total, added),
        )

    def alter_partition_reassignment(self, partition: str, target: tuple[int, ...] | None) -> None:
        """Ask for other replicas of a partition, or with None that its reassignment be cancelled."""
        self._seen.assignments.may_move = True
        there = self._names.partition(partition)
        replicas = None if target is None else [self._names.broker(broker) for broker in target]
        self._order(
            REASSIGNMENT_API,
            partition,
            lambda connection: alter_reassignment(connection, there, replicas),
        )

    def _order(self, api: str, partition: str, ask: Callable[[BrokerConnection], str]) -> None:
        """Ask for something that the controller decides, until it has answered: what it has done the watches tell."""
        self._start(api, lambda: self._ask_controller(api, partition, ask))

    def _ask_controller(self, api: str, partition: str, ask: Callable[[BrokerConnection], str]) -> None:
        until_s = time.monotonic() + _TIMEOUT_S
        while not self._over.is_set() and time.monotonic() < until_s:
            broker = self._controller()
            if broker is not None:
                with self._connect(broker) as connection, suppress(ConnectionLostError):
                    error = ask(connection)
                    if error not in _RETRIED_ORDERS:
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
            asked = self._leader_of(partition)
            answer = None if asked is None else self._deletion_by(asked, partition, offset, left_s)
            if asked is not None and answer is not None:
                leader, (error, low_watermark) = asked, answer
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
        """Return what a leader answers, None where it leads no more, or is gone, before it does."""
        until_s = time.monotonic() + left_s
        with self._connect(leader) as connection:
            try:
                there = self._names.partition(partition)
                request = delete_records_request(connection, there, offset, int(left_s * 1_000))
                connection.send(request)
                while not connection.has_answered(_RETRY_S):
                    is_in_time = time.monotonic() < until_s and not self._over.is_set()
                    if not is_in_time or self._leader_of(partition) != leader:
                        return None
                return delete_records_result(connection.receive(request))
            except ConnectionLostError:
                return None
