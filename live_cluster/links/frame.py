"""Decodes the parts of Kafka's frames that a proxy needs: the API and the sender."""

import re
import struct
from collections.abc import Mapping
from typing import Final

from harrow.cluster_model.lazy_dataclass import dataclass
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
"""The campaigns' names of requests, by API key; any other request has its number as its name."""

REPLICATION: Final = "replication"
CONTROL: Final = "control"
CLIENTS: Final = "clients"
"""The purpose of a connection: a follower's fetches, other requests of brokers, requests of
clients."""

_FETCH: Final = 1
_FIRST_WITH_REPLICA_STATE: Final = 12
"""Before this version a Fetch begins with the replica id; since then its header has more parts, and
fetchers have names."""
_REPLICA: Final = struct.Struct(">i")
_CLIENT_PREFIX: Final = "harrow."
_FETCHER_ID: Final = re.compile(r"broker-(\d+)-fetcher-\d+")
_BROKER_ID: Final = re.compile(r"(?:broker-|raft-client-)?(\d+)(?:-txn-marker-sender)?")


@dataclass(frozen=True, slots=True)
class RequestHeader:
    """The first *size* bytes of a request.

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
    """Return the header of a request; raise ValueError if the frame is too short."""
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
    """Return the ``client.id`` of a campaign's client, which no broker uses."""
    return f"{_CLIENT_PREFIX}{client}"


def process_of(header: RequestHeader, frame: bytes) -> tuple[str, str]:
    """Return the name of the process that opened a connection, and its purpose.

    The client id of a follower's fetcher is ``broker-<id>-fetcher-<number>``
    (``ReplicaFetcherManager``). Up to 0.10.2 it is arbitrary, but each fetch contains the replica
    id. Other requests of a broker have its bare id (``ControllerChannelManager``,
    ``BrokerToControllerChannelManager``). Any other process keeps its client id as its name.
    """
    client_id = header.client_id
    if client_id.startswith(_CLIENT_PREFIX):
        return client_id.removeprefix(_CLIENT_PREFIX), CLIENTS
    if match := _FETCHER_ID.fullmatch(client_id):
        return process_name(int(match[1])), REPLICATION
    if header.api_key == _FETCH and header.version < _FIRST_WITH_REPLICA_STATE:
        (replica,) = _REPLICA.unpack_from(frame, header.size)
        if replica >= 0:
            return process_name(replica), REPLICATION
    if match := _BROKER_ID.fullmatch(client_id):
        return process_name(int(match[1])), CONTROL
    return client_id, CLIENTS
