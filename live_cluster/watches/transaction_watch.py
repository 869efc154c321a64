"""Observes transactions in the coordinators' log."""

import threading
from collections.abc import Mapping
from typing import Any, Final

from harrow.cluster_model.events import ProducerInitialized, TransactionStateChanged
from harrow.cluster_model.topology import TRANSACTION_STATE
from harrow.live_cluster.links.observed_requests import Report
from harrow.live_cluster.names import SAME_NAMES, Names
from harrow.live_cluster.watches.activity import Activity
from harrow.live_cluster.watches.internal_topic_watch import InternalTopicWatch
from harrow.live_cluster.wire.connection import BrokerConnection
from harrow.live_cluster.wire.coordinator_messages import transaction_records

_UNKNOWN: Final = (-1, -1)


class TransactionWatch(InternalTopicWatch):
    """Reports the states of transactions and the producer ids of clients."""

    def __init__(
        self,
        connections: Mapping[int, BrokerConnection],
        report: Report,
        activity: Activity,
        names: Names = SAME_NAMES,
    ) -> None:
        super().__init__(TRANSACTION_STATE, connections, activity, names)
        self._report = report
        self._producers: dict[str, tuple[int, int]] = {}
        self._initialized: list[tuple[str, str]] = []
        self._lock = threading.Lock()

    def initialized(self, client: str, transactional_id: str) -> None:
        """Record that a client has initialized its transactional id."""
        with self._lock:
            self._initialized.append((client, transactional_id))

    def _poll(self) -> None:
        with self._lock:
            initialized, self._initialized = self._initialized, []
        super()._poll()
        for client, transactional_id in initialized:
            producer = self._producers.get(transactional_id, _UNKNOWN)
            self._report(ProducerInitialized, client, *producer)

    def handle_batch(self, coordinator: int, partition: str, batch: Any) -> None:
        for record in transaction_records(batch):
            self._producers[record.transactional_id] = record.producer_id, record.producer_epoch
            self._report(
                TransactionStateChanged,
                coordinator,
                record.transactional_id,
                record.producer_id,
                record.producer_epoch,
                record.state,
                tuple(map(self._names.campaign_partition, record.partitions)),
            )
