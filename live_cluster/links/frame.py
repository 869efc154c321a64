"""The frames of Kafka's protocol, as far as a proxy has to understand them: who asks what."""

import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from harrow.faults.fault import process_name

_HEADER_START: Final = struct.Struct(">hhi")
_LENGTH: Final = struct.Struct(">h")
CORRELATION_ID: Final = struct.Struct(">i")

API_NAMES: Final[Mapping[int, str]] = {
    0: "Produce",
    1: "Fetch",
    2: "ListOffsets",
    3: "Metadata",
    4: "LeaderAndIsr",
    5: "StopReplica",
    6: "UpdateMetadata",
    7: "ControlledShutdown",
    8: "OffsetCommit",
    9: "OffsetFetch",
    10: "FindCoordinator",
    11: "JoinGroup",
    12: "Heartbeat",
    13: "LeaveGroup",
    14: "SyncGroup",
    22: "InitProducerId",
    23: "OffsetsForLeaderEpoch",
    24: "AddPartitionsToTxn",
    25: "AddOffsetsToTxn",
    26: "EndTxn",
    27: "WriteTxnMarkers",
    28: "TxnOffsetCommit",
    52: "Vote",
    53: "BeginQuorumEpoch",
    54: "EndQuorumEpoch",
    56: "AlterPartition",
    62: "BrokerRegistration",
    63: "BrokerHeartbeat",
    67: "AllocateProducerIds",
}
"""What campaigns call the requests of the model, by API key; any other goes by its number."""

REPLICATION: Final = "replication"
CONTROL: Final = "control"
CLIENTS: Final = "clients"
"""What a connection is for: a follower's fetches, what brokers ask each other beside, what clients ask."""

_FETCH: Final = 1
_FIRST_WITH_REPLICA_STATE: Final = 12
"""Up to here a Fetch begins with the id of the replica; from here on its header has more parts, and fetchers have names."""
_REPLICA: Final = struct.Struct(">i")
_OF_CLIENT: Final = "harrow."
_OF_FETCHER: Final = re.compile(r"broker-(\d+)-fetcher-\d+")
_OF_BROKER: Final = re.compile(r"(?:broker-|raft-client-)?(\d+)(?:-txn-marker-sender)?")


@dataclass(frozen=True, slots=True)
class RequestHeader:
    """The beginning of every request, of so many bytes.

    Before version 1 a ControlledShutdown has no client id.
    """

    api_key: int
    version: int
    correlation_id: int
    client_id: str
    size: int

    @property
    def api(self) -> str:
        return API_NAMES.get(self.api_key, str(self.api_key))


def request_header(frame: bytes) -> RequestHeader:
    """Return the header of a request.

    Raises:
        ValueError: it is no request.

    """
    try:
        api_key, version, correlation_id = _HEADER_START.unpack_from(frame)
        start = _HEADER_START.size + _LENGTH.size
        (length,) = _LENGTH.unpack_from(frame, _HEADER_START.size)
    except struct.error as error:
        raise ValueError("the frame has no header of a request") from error
    client_id = frame[start : start + max(length, 0)].decode("utf-8", "replace")
    size = start + max(length, 0)
    return RequestHeader(api_key, version, correlation_id, client_id, size)


def client_id_of(client: str) -> str:
    """Return the ``client.id`` by which a client of a campaign is known on its way: no broker has such a one."""
    return f"{_OF_CLIENT}{client}"


def process_of(header: RequestHeader, frame: bytes) -> tuple[str, str]:
    """Return the name of the process that has made a connection, by its first request, and what it is for.

    A follower's fetcher calls itself ``broker-<id>-fetcher-<number>`` (``ReplicaFetcherManager``), up to 0.10.2 anything, and tells
    its id with each fetch; a broker that asks something else its bare id (``ControllerChannelManager``,
    ``BrokerToControllerChannelManager``). Whatever else there is keeps the name that it gives itself.
    """
    client_id = header.client_id
    if client_id.startswith(_OF_CLIENT):
        return client_id.removeprefix(_OF_CLIENT), CLIENTS
    if found := _OF_FETCHER.fullmatch(client_id):
        return process_name(int(found[1])), REPLICATION
    if header.api_key == _FETCH and header.version < _FIRST_WITH_REPLICA_STATE:
        (replica,) = _REPLICA.unpack_from(frame, header.size)
        if replica >= 0:
            return process_name(replica), REPLICATION
    if found := _OF_BROKER.fullmatch(client_id):
        return process_name(int(found[1])), CONTROL
    return client_id, CLIENTS
