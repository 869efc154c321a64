"""The interface of a control plane that harrow starts with its cluster."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Protocol

from harrow.live_cluster.processes.child_processes import ChildProcess
from harrow.live_cluster.target.control_plane import ControlPlaneAccess
from harrow.live_cluster.wire.connection import BrokerConnection


class LocalControlPlane(ControlPlaneAccess, Protocol):
    """A control plane that reports the metadata to an `ObservedMetadata`."""

    is_waited_for: bool
    """Whether a broker that starts earlier waits for the control plane."""

    def expire_session(self, broker: int) -> None:
        """End the session of a broker, or the term of a KRaft controller."""

    def delete_controller(self) -> None:
        """Delete ``/controller``; with KRaft, end the active controller's term."""

    def start(self) -> None:
        """Start the processes."""

    def processes(self) -> Iterable[ChildProcess]: ...

    def is_ready(self) -> bool:
        """Return whether brokers can start."""

    def settings(self, broker: int) -> Mapping[str, object]:
        """Return the settings that a broker needs to find the control plane."""

    def prepare(self, broker: int, folder: Path) -> None:
        """Prepare a log directory before the first start of its broker."""

    def watch(self, connect: Callable[[int], BrokerConnection], alive: Callable[[int], bool]) -> None:
        """Start to observe metadata, if necessary through brokers that are alive."""

    def knows_controller(self) -> bool: ...

    def close(self) -> None:
        """Stop watching."""
