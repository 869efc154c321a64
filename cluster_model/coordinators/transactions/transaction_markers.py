"""Appends a coordinator's transaction markers to partitions that this broker leads.

Modelled on ``KafkaApis.handleWriteTxnMarkersRequest``.
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
    """Append markers, and respond once all in-sync replicas have all markers.

    *on_written* gets each marker, and the error of each of its partitions, possibly `errors.NONE`.
    """
    response = WriteTxnMarkersResponse({})
    remaining = len(request.markers)

    def on_appended(marker: TxnMarker, acks: dict[str, PendingAck]) -> None:
        nonlocal remaining
        error_by_partition = {name: ack.error for name, ack in acks.items()}
        response.markers.setdefault(marker.producer_id, {}).update(error_by_partition)
        on_written(marker, error_by_partition)
        remaining -= 1
        if not remaining:
            respond(response)

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
        replicas.append_records(dict(batches), ALL, REQUEST_TIMEOUT_US, partial(on_appended, marker))
