"""The interface of a real cluster's control plane, for faults and administrators."""

from collections.abc import Iterable, Mapping
from typing import Protocol

from harrow.live_cluster.errors import LiveError
from harrow.live_cluster.processes.node_process import NodeProcess


class CannotBeDoneError(LiveError):
    """The cluster does not support a request; the message says why."""


class ControlPlaneAccess(Protocol):
    """ZooKeeper or KRaft controllers."""

    process_names: tuple[str, ...]
    """The names of its processes. Links have these names as ends."""
    controllers: Mapping[int, NodeProcess]
    """The KRaft controllers whose processes harrow can control."""

    @property
    def keeps_registrations(self) -> bool:
        """Whether a killed broker cannot start before its registration ends, which harrow sees."""

    def elect_preferred_leaders(self, partitions: Iterable[str]) -> None:
        """Ask for an election of the preferred leaders."""
