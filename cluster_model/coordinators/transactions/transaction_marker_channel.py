"""Sends a transaction's markers to partition leaders (``TransactionMarkerChannelManager.scala``).

A coordinator has one request in flight to each broker. If a marker fails, it is sent again to the
partition's current leader: here after a backoff, in Kafka at once.
"""

from collections.abc import Iterable
from functools import partial
from typing import Final

from harrow.cluster_model import errors
from harrow.cluster_model.broker.metadata_cache import MetadataCache
from harrow.cluster_model.clients.network_client import NetworkClient
from harrow.cluster_model.coordinators.protocol import (
    TxnMarker,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from harrow.cluster_model.coordinators.transactions.transaction_metadata import (
    COMPLETE_COMMIT,
    TransactionMetadata,
    Transition,
)
from harrow.cluster_model.coordinators.transactions.transaction_state_manager import TransactionStateManager
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.protocol import NO_LEADER
from harrow.cluster_model.release.transactions import TransactionSwitches
from harrow.cluster_model.sim.host import Host
from harrow.cluster_model.sim.virtual_time import US_PER_MS, US_PER_SECOND

INTER_BROKER_LISTENER: Final = "replication"
REQUEST_TIMEOUT_US: Final = 30 * US_PER_SECOND
"""Kafka's default for a broker's ``request.timeout.ms``."""
_RETRY_BACKOFF_US: Final = 50 * US_PER_MS

_PERMANENT: Final = (errors.INVALID_PRODUCER_EPOCH, errors.TRANSACTION_COORDINATOR_FENCED)
"""Errors after which a marker is not sent again.

Another coordinator has ended the transaction, or the producer has begun its next one.
"""


@dataclass(frozen=True, slots=True, eq=False)
class _Ending:
    """A prepared transaction, and the transition that completes it (``PendingCompleteTxn``)."""

    transactional_id: str
    coordinator_epoch: int
    metadata: TransactionMetadata
    transition: Transition

    def marker(self, producer_id: int, producer_epoch: int, partitions: tuple[str, ...]) -> TxnMarker:
        is_committed = self.transition.state == COMPLETE_COMMIT
        return TxnMarker(producer_id, producer_epoch, self.coordinator_epoch, is_committed, partitions)


_QueuedMarker = tuple[_Ending, TxnMarker]


class TransactionMarkerChannel:
    """Sends a coordinator's transaction markers, until all partitions have their markers."""

    def __init__(
        self,
        host: Host,
        metadata: MetadataCache,
        states: TransactionStateManager,
        switches: TransactionSwitches,
    ) -> None:
        self._host = host
        self._metadata = metadata
        self._states = states
        self._switches = switches
        self._endings: dict[str, _Ending] = {}
        self._queues: dict[int, list[_QueuedMarker]] = {}
        self._busy: dict[int, None] = {}
        self._clients: dict[int, NetworkClient] = {}
        # Markers to send again, and transactions whose final record must be written again.
        self._retries: list[_QueuedMarker] = []
        self._completions: list[_Ending] = []
        self._is_retry_scheduled = False
        self._is_closed = False

    def close(self) -> None:
        """Send no more markers."""
        self._is_closed = True
        for client in self._clients.values():
            client.close()

    def end(self, coordinator_epoch: int, metadata: TransactionMetadata, transition: Transition) -> None:
        """Send a prepared transaction's markers, then complete it (``addTxnMarkersToSend``)."""
        ending = _Ending(metadata.transactional_id, coordinator_epoch, metadata, transition)
        self._endings[metadata.transactional_id] = ending
        if not self._switches.markers_written_to_all_partitions:
            metadata.partitions = dict.fromkeys(tuple(metadata.partitions)[:1])
        self._enqueue(
            ending, ending.marker(metadata.producer_id, metadata.producer_epoch, tuple(metadata.partitions))
        )
        self._maybe_complete(metadata.transactional_id)

    def forget(self, partition: int) -> None:
        """Drop the markers of the transactional ids in a partition of ``__transaction_state``.

        The next coordinator of the partition sends them.
        """

        def is_kept(ending: _Ending) -> bool:
            return self._states.partition_of(ending.transactional_id) != partition

        for queue in (*self._queues.values(), self._retries):
            queue[:] = [queued for queued in queue if is_kept(queued[0])]
        self._completions = [ending for ending in self._completions if is_kept(ending)]
        self._endings = {name: ending for name, ending in self._endings.items() if is_kept(ending)}

    # Markers

    def _enqueue(self, ending: _Ending, marker: TxnMarker) -> None:
        """Queue a marker for the leaders of its partitions. Retry where there is no leader."""
        by_leader: dict[int, list[str]] = {}
        for name in marker.partitions:
            if self._metadata.leader_and_epoch(name) is None:
                ending.metadata.partitions.pop(name, None)  # The partition was probably deleted.
            else:
                by_leader.setdefault(self._metadata.live_leader(name), []).append(name)
        for leader, names in by_leader.items():
            queued = ending, marker._replace(partitions=tuple(names))
            if leader == NO_LEADER:
                self._retry(queued)
            else:
                self._queues.setdefault(leader, []).append(queued)
        for leader in by_leader:
            self._send(leader)

    def _send(self, broker: int) -> None:
        queued = self._queues.get(broker)
        if not queued or broker in self._busy or self._is_closed:
            return
        client = self._clients.get(broker)
        if client is None:
            client = self._clients[broker] = NetworkClient(
                self._host, f"broker-{broker}", INTER_BROKER_LISTENER, REQUEST_TIMEOUT_US
            )
        self._queues[broker] = []
        self._busy[broker] = None
        request = WriteTxnMarkersRequest(tuple(marker for _, marker in queued))
        client.send(request, partial(self._handle_response, broker), queued)

    def _handle_response(
        self, broker: int, answer: WriteTxnMarkersResponse | None, queued: Iterable[_QueuedMarker]
    ) -> None:
        """Note the partitions that have the marker, and retry the others.

        See ``TransactionMarkerRequestCompletionHandler``.
        """
        self._busy.pop(broker, None)
        for ending, marker in queued:
            lookup = self._states.find(ending.transactional_id)
            if lookup.error != errors.NONE or lookup.coordinator_epoch != ending.coordinator_epoch:
                self._drop(ending)
            elif answer is None:
                self._retry((ending, marker))
            else:
                self._handle_outcome(ending, marker, answer.markers[marker.producer_id])
        self._send(broker)

    def _handle_outcome(self, ending: _Ending, marker: TxnMarker, outcome: dict[str, str]) -> None:
        failed = []
        for name in marker.partitions:
            error = outcome[name]
            if error in _PERMANENT:
                self._drop(ending)
                return
            if error == errors.NONE:
                ending.metadata.partitions.pop(name, None)
            else:
                failed.append(name)
        if failed:
            self._retry((ending, marker._replace(partitions=tuple(failed))))
        else:
            self._maybe_complete(ending.transactional_id)

    def _drop(self, ending: _Ending) -> None:
        if self._endings.get(ending.transactional_id) is ending:
            del self._endings[ending.transactional_id]

    def _retry(self, queued: _QueuedMarker) -> None:
        self._retries.append(queued)
        self._schedule_retry()

    def _schedule_retry(self) -> None:
        if not self._is_retry_scheduled and not self._is_closed:
            self._is_retry_scheduled = True
            self._host.set_timer(_RETRY_BACKOFF_US, self._retry_all)

    def _retry_all(self, _: None) -> None:
        self._is_retry_scheduled = False
        retries, self._retries = self._retries, []
        completions, self._completions = self._completions, []
        for ending, marker in retries:
            self._enqueue(ending, marker)
            self._maybe_complete(ending.transactional_id)
        for ending in completions:
            self._complete(ending)

    # Completion

    def _maybe_complete(self, transactional_id: str) -> None:
        ending = self._endings.get(transactional_id)
        if ending is not None and not ending.metadata.partitions:
            del self._endings[transactional_id]
            self._complete(ending)

    def _complete(self, ending: _Ending) -> None:
        self._states.append(
            ending.transactional_id,
            ending.coordinator_epoch,
            ending.transition,
            partial(self._handle_completion, ending),
            is_retried=True,
        )

    def _handle_completion(self, ending: _Ending, error: str) -> None:
        """Retry the final record of a transaction if it could not be written.

        After other errors another coordinator completes the transaction.
        """
        if error == errors.COORDINATOR_NOT_AVAILABLE:
            self._completions.append(ending)
            self._schedule_retry()
