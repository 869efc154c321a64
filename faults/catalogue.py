"""The faults that a campaign can name: every fault with a name in these modules."""

from typing import Final

from harrow.cluster_model.registry import Registry, named_classes
from harrow.faults import brokers, clients, clocks, control_plane, disks, links, messages
from harrow.faults.fault import Fault

FAULTS: Final[Registry[str, type[Fault]]] = Registry(
    named_classes(
        Fault,
        *(module.__dict__ for module in (brokers, disks, clocks, control_plane, links, clients, messages)),
    )
)
"""Fault classes by their names in a campaign."""
