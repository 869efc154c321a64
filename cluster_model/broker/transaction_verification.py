"""Asks transaction coordinators whether a transaction includes a leader's partitions (KIP-890).

Modelled on ``AddPartitionsToTxnManager.scala``.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from harrow.cluster_model import errors
from harrow.cluster_model.broker.metadata_cache import MetadataCache
from harrow.cluster_model.clients.network_client import NetworkClient
from harrow.cluster_model.coordinators.internal_topics import partition_for
from harrow.cluster_model.coordinators.protocol import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from harrow.cluster_model.protocol import NO_LEADER
from harrow.cluster_model.sim.host import Host
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND
from harrow.cluster_model.topology import TRANSACTION_STATE

_LISTENER: Final = "replication"
_REQUEST_TIMEOUT_US: Final = 30 * US_PER_SECOND
"""Kafka's default for the ``request.timeout.ms`` of a broker."""

VerificationCallback = Callable[[dict[str, str]], None]
"""Receives the error of each verified partition, or `NONE`, by partition."""


class TransactionVerification:
    """The verification requests of one broker, with at most one in flight to each coordinator.

    *transaction_state_partitions* is the number of partitions of ``__transaction_state``.
    """

    def __init__(self, host: Host, metadata: MetadataCache, transaction_state_partitions: int) -> None:
        self._host = host
        self._metadata = metadata
        self._transaction_state_partitions = transaction_state_partitions
        self._clients: dict[int, NetworkClient] = {}
        self._queues: dict[int, list[tuple[AddPartitionsToTxnRequest, VerificationCallback]]] = {}
        # The coordinators with a request in flight.
        self._busy_coordinators: dict[int, None] = {}
        self._is_closed = False

    def close(self) -> None:
        """Stop sending requests."""
        self._is_closed = True
        for client in self._clients.values():
            client.close()

    def verify(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: tuple[str, ...],
        on_verified: VerificationCallback,
        *,
        adds: bool,
    ) -> None:
        """Ask the coordinator of a transactional id to verify *partitions*, or to add them.

        It adds them if the producer uses transactions v2 (``TransactionSupportedOperation``).
        """
        number = partition_for(transactional_id, self._transaction_state_partitions)
        coordinator = self._metadata.live_leader(f"{TRANSACTION_STATE}-{number}")
        if coordinator == NO_LEADER:
            on_verified(dict.fromkeys(partitions, errors.COORDINATOR_NOT_AVAILABLE))
            return
        request = AddPartitionsToTxnRequest(
            *(transactional_id, producer_id, producer_epoch, partitions),
            verify_only=not adds,
            is_v2=True,
        )
        self._queues.setdefault(coordinator, []).append((request, on_verified))
        self._send(coordinator)

    def _send(self, coordinator: int) -> None:
        queue = self._queues.get(coordinator)
        if not queue or coordinator in self._busy_coordinators or self._is_closed:
            return
        client = self._clients.get(coordinator)
        if client is None:
            client = self._clients[coordinator] = NetworkClient(
                self._host, f"broker-{coordinator}", _LISTENER, _REQUEST_TIMEOUT_US
            )
        self._busy_coordinators[coordinator] = None
        pending = queue.pop(0)
        client.send(pending[0], partial(self._handle_response, coordinator), pending)

    def _handle_response(
        self,
        coordinator: int,
        answer: AddPartitionsToTxnResponse | None,
        pending: tuple[AddPartitionsToTxnRequest, VerificationCallback],
    ) -> None:
        self._busy_coordinators.pop(coordinator, None)
        request, on_verified = pending
        if answer is None:
            on_verified(dict.fromkeys(request.partitions, errors.NETWORK_EXCEPTION))
        else:
            on_verified({name: _producer_error(error) for name, error in answer.partitions.items()})
        self._send(coordinator)


def _producer_error(error: str) -> str:
    """Translate an error for producers, which do not expect PRODUCER_FENCED from a leader."""
    return errors.INVALID_PRODUCER_EPOCH if error == errors.PRODUCER_FENCED else error
