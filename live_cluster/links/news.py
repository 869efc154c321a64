"""Tells messages that may change a broker, or show a change, from those of an idle cluster."""

from typing import Final

from kafka.protocol.consumer import FetchResponse

from harrow.live_cluster.links.frame import CORRELATION_ID, RequestHeader
from harrow.live_cluster.wire.stored_batches import whole_batches

_FETCH: Final = 1
_HEARTBEAT: Final = 12
_BROKER_HEARTBEAT: Final = 63
_CONSUMER_GROUP_HEARTBEAT: Final = 68
_REPEATED: Final = frozenset({_FETCH, _HEARTBEAT, _BROKER_HEARTBEAT, _CONSUMER_GROUP_HEARTBEAT})
"""Requests that are repeated all the time. If the offset of a fetch changes, the last answer had
records."""
_QUORUM_CLIENT: Final = "raft-client-"
"""The client id of brokers and controllers that fetch metadata (``KafkaRaftManager``)."""
_NO_OP: Final = 20
"""The record that an idle controller writes twice a second (``NoOpRecord.json``, KIP-835)."""
_API_KEY: Final = 1
"""The position of the API key in a metadata record, after the frame version
(``AbstractApiMessageSerde``)."""
_PING_MAX_BYTES: Final = 20
"""The longest message that keeps a ZooKeeper session alive: the answer to a ping."""


class News:
    """Remembers the last answers on a connection, to notice new ones."""

    def __init__(self) -> None:
        self._last: dict[int, int] = {}

    def is_in_request(self, header: RequestHeader) -> bool:
        """Return whether a request may change something."""
        return header.api_key not in _REPEATED

    def is_in_answer(self, header: RequestHeader, frame: bytes) -> bool:
        """Return whether an answer differs from the last one of its API, and may show a change."""
        answer = hash(frame[CORRELATION_ID.size :])
        before, self._last[header.api_key] = self._last.get(header.api_key), answer
        if answer == before:
            return False
        is_quorum_fetch = header.api_key == _FETCH and header.client_id.startswith(_QUORUM_CLIENT)
        return not is_quorum_fetch or _has_metadata(header, frame)


def is_in_bytes(data: bytes) -> bool:
    """Return whether a message of ZooKeeper or its client is more than a ping."""
    return len(data) > _PING_MAX_BYTES


def _has_metadata(header: RequestHeader, frame: bytes) -> bool:
    """Return whether an answer of a controller has an error, or records other than no-ops."""
    answer = FetchResponse[header.version].decode(frame, header=True)
    if answer.error_code:
        return True
    for partition in (partition for topic in answer.responses for partition in topic.partitions):
        batches = [batch for batch, _ in whole_batches(bytes(partition.records or b""))]
        values = [record.value for batch in batches for record in batch]
        if partition.error_code or any(batch.is_control_batch for batch in batches):
            return True
        if any(value is None or value[_API_KEY] != _NO_OP for value in values):
            return True
    return False
