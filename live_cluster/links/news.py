"""Which messages may change a broker, or tell that it has changed: an idle cluster is not silent."""

from typing import Final

from kafka.protocol.consumer import FetchResponse

from harrow.live_cluster.links.frame import CORRELATION_ID, RequestHeader
from harrow.live_cluster.wire.stored_batches import whole_batches

_FETCH: Final = 1
_HEARTBEAT: Final = 12
_BROKER_HEARTBEAT: Final = 63
_CONSUMER_GROUP_HEARTBEAT: Final = 68
_REPEATED: Final = frozenset({_FETCH, _HEARTBEAT, _BROKER_HEARTBEAT, _CONSUMER_GROUP_HEARTBEAT})
"""What is asked again and again. Where a fetch begins elsewhere than the last one, an answer with records came before it."""
_OF_QUORUM: Final = "raft-client-"
"""How brokers and controllers call themselves that fetch metadata (``KafkaRaftManager``)."""
_NO_OP: Final = 20
"""The record that an idle controller writes twice a second (``NoOpRecord.json``, KIP-835)."""
_API_KEY: Final = 1
"""Where it is in a record of metadata, behind the version of the frame (``AbstractApiMessageSerde``)."""
_PING_MAX_BYTES: Final = 20
"""The longest that a client of ZooKeeper and its server say to keep a session: the answer to a ping."""


class News:
    """Remembers what a server has answered on a connection, to tell what it has not said before."""

    def __init__(self) -> None:
        self._said: dict[int, int] = {}

    def is_in_request(self, header: RequestHeader) -> bool:
        """Return whether a request may change something."""
        return header.api_key not in _REPEATED

    def is_in_answer(self, header: RequestHeader, frame: bytes) -> bool:
        """Return whether an answer tells something that the one before it to the same kind of request did not."""
        said = hash(frame[CORRELATION_ID.size :])
        before, self._said[header.api_key] = self._said.get(header.api_key), said
        if said == before:
            return False
        is_of_quorum = header.api_key == _FETCH and header.client_id.startswith(_OF_QUORUM)
        return not is_of_quorum or _has_metadata(header, frame)


def is_in_bytes(data: bytes) -> bool:
    """Return whether something is more than a sign of life between ZooKeeper and a client."""
    return len(data) > _PING_MAX_BYTES


def _has_metadata(header: RequestHeader, frame: bytes) -> bool:
    """Return whether an answer of a controller has records that say something, or an error."""
    answer = FetchResponse[header.version].decode(frame, header=True)
    if answer.error_code:
        return True
    for told in (told for topic in answer.responses for told in topic.partitions):
        batches = [batch for batch, _ in whole_batches(bytes(told.records or b""))]
        values = [record.value for batch in batches for record in batch]
        if told.error_code or any(batch.is_control_batch for batch in batches):
            return True
        if any(value is None or value[_API_KEY] != _NO_OP for value in values):
            return True
    return False
