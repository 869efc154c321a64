"""The control plane of a real cluster, as faults and administrators act on it."""

from collections.abc import Iterable, Mapping
from typing import Protocol

from harrow.live_cluster.errors import LiveError
from harrow.live_cluster.processes.node_process import NodeProcess


class CannotBeDoneError(LiveError):
    """This control plane has no such thing; the message says what."""


class ControlPlaneAccess(Protocol):
    """ZooKeeper, or controllers of KRaft, as faults and administrators act on it."""

    process_names: tuple[str, ...]
    """What its ends of links are called."""
    controllers: Mapping[int, NodeProcess]
    """Controllers that are no brokers, as far as their processes are at hand."""

    @property
    def keeps_registrations(self) -> bool:
        """Return whether a broker that was killed cannot start again before its registration is over, and who is registered is seen."""

    def elect_preferred_leaders(self, partitions: Iterable[str]) -> None:
        """Ask that the first replica of each partition lead."""
