"""What exists with one control plane alone, as a campaign says it.

A campaign about one release can be run as of another. Without this a step that waits for something of the
other control plane waits until the run is given up.
"""

from harrow.cluster_model import fields
from harrow.cluster_model.apis import APIS
from harrow.cluster_model.topology import CONTROL_PLANES, ZOOKEEPER
from harrow.faults.fault import Fault


def where_kept(release: str, metadata: str) -> str:
    """Return in words where a cluster of a release keeps its metadata."""
    return f"Kafka {release} keeps its metadata in {CONTROL_PLANES[metadata]} here"


def control_plane_of(fault: Fault) -> str | None:
    """Return the only control plane that has the messages which a fault meets; None where both have some."""
    for item in fields.fields_of(type(fault)):
        value = item.of(fault)
        if item.kind is fields.ZnodePathMarker and value is not None:
            return ZOOKEEPER
        if item.kind is fields.ApiMarker and APIS.get(value) in CONTROL_PLANES:
            return APIS[value]
    return None
