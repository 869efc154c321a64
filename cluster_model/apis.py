"""Lists the APIs that a campaign can name, and what a cluster needs for each."""

from collections.abc import Mapping
from typing import Final

from harrow.cluster_model.topology import CONSUMER_OFFSETS, KRAFT, TRANSACTION_STATE, ZOOKEEPER

APIS: Final[Mapping[str, str | None]] = {
    "Produce": None,
    "Fetch": None,
    "OffsetsForLeaderEpoch": None,
    "ListOffsets": None,
    "Metadata": None,
    "InitProducerId": None,
    "FindCoordinator": None,
    "JoinGroup": CONSUMER_OFFSETS,
    "SyncGroup": CONSUMER_OFFSETS,
    "Heartbeat": CONSUMER_OFFSETS,
    "LeaveGroup": CONSUMER_OFFSETS,
    "ConsumerGroupHeartbeat": CONSUMER_OFFSETS,
    "OffsetCommit": CONSUMER_OFFSETS,
    "OffsetFetch": CONSUMER_OFFSETS,
    "LeaderAndIsr": ZOOKEEPER,
    "UpdateMetadata": ZOOKEEPER,
    "StopReplica": ZOOKEEPER,
    "ControlledShutdown": ZOOKEEPER,
    "AlterPartition": None,
    "AddPartitionsToTxn": TRANSACTION_STATE,
    "AddOffsetsToTxn": TRANSACTION_STATE,
    "EndTxn": TRANSACTION_STATE,
    "WriteTxnMarkers": TRANSACTION_STATE,
    "TxnOffsetCommit": CONSUMER_OFFSETS,
    "BrokerRegistration": KRAFT,
    "BrokerHeartbeat": KRAFT,
    "ZooKeeper": ZOOKEEPER,
}
"""Maps each API that a campaign can name to what a cluster needs before it has such requests.

That is a control plane, or the internal topic of the coordinators that answer them. It is None if
every cluster has such requests.
"""
GROUP_APIS: Final = tuple(api for api, owner in APIS.items() if owner == CONSUMER_OFFSETS)
