"""Requests that are sent only with ZooKeeper, or only in KRaft. Which events happen only there their declarations say.

A campaign about one release can be run as of another. Without this a step that waits for something of the
other control plane waits until the run is given up.
"""

from collections.abc import Mapping
from typing import Final

from harrow.cluster_model import fields
from harrow.cluster_model.topology import KRAFT, ZOOKEEPER
from harrow.faults.fault import Fault

NAMES: Final[Mapping[str, str]] = {ZOOKEEPER: "ZooKeeper", KRAFT: "KRaft"}

_APIS: Final[Mapping[str, tuple[str, ...]]] = {
    ZOOKEEPER: ("LeaderAndIsr", "UpdateMetadata", "StopReplica", "ControlledShutdown", "ZooKeeper"),
    KRAFT: ("BrokerRegistration", "BrokerHeartbeat"),
}
API_CONTROL_PLANES: Final[Mapping[str, str]] = {
    api: metadata for metadata, apis in _APIS.items() for api in apis
}
"""The only control plane with which a request is sent, by its API."""


def where_kept(release: str, metadata: str) -> str:
    """Return in words where a cluster of a release keeps its metadata."""
    return f"Kafka {release} keeps its metadata in {NAMES[metadata]} here"


def control_plane_of(fault: Fault) -> str | None:
    """Return the only control plane that has the messages which a fault meets; None where both have some."""
    for item in fields.fields_of(type(fault)):
        value = item.of(fault)
        if item.kind is fields.ZnodePathMarker and value is not None:
            return ZOOKEEPER
        if item.kind is fields.ApiMarker and value in API_CONTROL_PLANES:
            return API_CONTROL_PLANES[value]
    return None
