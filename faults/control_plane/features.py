"""What only one control plane has: events that happen and requests that are sent only with ZooKeeper, or only in KRaft.

A campaign about one release can be run as of another. Without this a step that waits for something of the
other control plane waits until the run is given up.
"""

from collections.abc import Mapping
from typing import Final

from harrow.cluster_model import events, fields
from harrow.cluster_model.topology import KRAFT, ZOOKEEPER
from harrow.faults.fault import Fault

NAMES: Final[Mapping[str, str]] = {ZOOKEEPER: "ZooKeeper", KRAFT: "KRaft"}

_EVENTS: Final[Mapping[str, tuple[type[events.Event], ...]]] = {
    ZOOKEEPER: (
        events.EnsembleLeaderElected,
        events.EnsembleServerSuspended,
        events.ControlledShutdownAnswered,
        events.ControlledShutdownGivenUp,
    ),
    KRAFT: (
        events.MetadataSnapshotTaken,
        events.MetadataSnapshotFetched,
        events.MetadataLogStarted,
        events.MetadataLogLost,
        *(events.MetadataLogTruncated, events.QuorumElectionUndecided, events.QuorumMajorityLost),
    ),
}
_APIS: Final[Mapping[str, tuple[str, ...]]] = {
    ZOOKEEPER: ("LeaderAndIsr", "UpdateMetadata", "StopReplica", "ControlledShutdown", "ZooKeeper"),
    KRAFT: ("BrokerRegistration", "BrokerHeartbeat"),
}
KIND_CONTROL_PLANES: Final[Mapping[type[events.Event], str]] = {
    kind: metadata for metadata, kinds in _EVENTS.items() for kind in kinds
}
"""The only control plane with which an event happens, or subscribers are told; all others happen with both."""
EVENT_CONTROL_PLANES: Final[Mapping[str, str]] = {
    kind.name: metadata for kind, metadata in KIND_CONTROL_PLANES.items() if kind.name in events.EVENTS
}
"""The only control plane with which an event happens, by the event's name; all others happen with both."""
API_CONTROL_PLANES: Final[Mapping[str, str]] = {
    api: metadata for metadata, apis in _APIS.items() for api in apis
}
"""The only control plane with which a request is sent, by its API."""
CONTROLLER_FIELDS: Final[Mapping[str, str]] = {
    events.ControllerElected.name: "broker",
    events.ControllerResigned.name: "broker",
    events.ControllerChanged.name: "controller",
    events.LeaderElected.name: "controller",
    events.IsrReduced.name: "controller",
}
"""The field of an event that names a controller: a broker with ZooKeeper, and a voter of the quorum in KRaft."""


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
