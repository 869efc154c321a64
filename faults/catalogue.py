"""Collects the faults and actions that a campaign can name, from the modules that define them."""

from typing import Final

from harrow.cluster_model.registry import Registry, named_classes
from harrow.faults import actions, brokers, clients, clocks, control_plane, disks, links, messages
from harrow.faults.action import Action
from harrow.faults.fault import Fault

FAULTS: Final[Registry[str, type[Fault]]] = Registry(
    named_classes(
        Fault,
        *(module.__dict__ for module in (brokers, disks, clocks, control_plane, links, clients, messages)),
    )
)
"""The classes of faults, by their names in campaigns."""

ACTIONS: Final[Registry[str, type[Action]]] = Registry(named_classes(Action, actions.__dict__))
"""The classes of actions that are not faults, by their names in campaigns."""
