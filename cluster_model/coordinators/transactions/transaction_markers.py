"""Appends transaction markers to partitions, as their leader, for a coordinator.

It models ``KafkaApis.handleWriteTxnMarkersRequest``.
"""

from collections.abc import Callable
from functools import partial

from harrow.cluster_model.broker.delayed_requests import PendingAck
from harrow.cluster_model.broker.replica_manager import ReplicaManager
from harrow.cluster_model.coordinators.coordinator_log import ALL
from harrow.cluster_model.coordinators.protocol import (
    TxnMarker,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from harrow.cluster_model.coordinators.transactions.transaction_marker_channel import REQUEST_TIMEOUT_US
from harrow.cluster_model.log.record_batch import ABORT, COMMIT, MARKER_BYTES, ControlBatch


def write_txn_markers(
    request: WriteTxnMarkersRequest,
    replicas: ReplicaManager,
    now_us: int,
    on_written: Callable[[TxnMarker, dict[str, str]], None],
    respond: Callable[[WriteTxnMarkersResponse], None],
) -> None:
    """Append markers, and respond once all in-sync replicas have all of them.

    *on_written* gets each marker with the error in each of its partitions.
    """
    answer = WriteTxnMarkersResponse({})
    remaining = len(request.markers)

    def appended(marker: TxnMarker, acks: dict[str, PendingAck]) -> None:
        nonlocal remaining
        outcome = {name: ack.error for name, ack in acks.items()}
        answer.markers.setdefault(marker.producer_id, {}).update(outcome)
        on_written(marker, outcome)
        remaining -= 1
        if not remaining:
            respond(answer)

    for marker in request.markers:
        batch = ControlBatch(
            (),
            marker.producer_id,
            marker.producer_epoch,
            size_bytes=MARKER_BYTES,
            is_transactional=True,
            control_type=COMMIT if marker.committed else ABORT,
            max_timestamp_us=now_us,
            coordinator_epoch=marker.coordinator_epoch,
        )
        batches = dict.fromkeys(marker.partitions, batch)
        replicas.append_records(dict(batches), ALL, REQUEST_TIMEOUT_US, partial(appended, marker))
