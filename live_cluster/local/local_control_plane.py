"""Where the brokers of a local cluster keep their metadata, as the cluster needs to know it."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Protocol

from harrow.live_cluster.processes.child_processes import ChildProcess
from harrow.live_cluster.target.control_plane import ControlPlaneAccess
from harrow.live_cluster.wire.connection import BrokerConnection


class LocalControlPlane(ControlPlaneAccess, Protocol):
    """One that was started with its cluster. What it says goes to a `harrow.live_cluster.watches.metadata_seen.MetadataSeen`."""

    is_waited_for: bool
    """Whether brokers that are started before it is ready wait for it."""

    def expire_session(self, broker: int) -> None:
        """End the session of a broker, the term of a controller that is none.

        Raises:
            CannotBeDoneError: brokers have none.

        """

    def delete_controller(self) -> None:
        """Delete ``/controller``; in KRaft, end the active controller's term.

        Raises:
            CannotBeDoneError: there is no such thing.

        """

    def start(self) -> None:
        """Start its processes."""

    def processes(self) -> Iterable[ChildProcess]:
        """Return those that were started."""

    def is_ready(self) -> bool:
        """Return whether brokers can be started."""

    def settings(self, broker: int) -> Mapping[str, object]:
        """Return what a broker has to be told to find it."""

    def prepare(self, broker: int, folder: Path) -> None:
        """Do what this log directory of a broker needs before the broker starts for the first time."""

    def watch(self, connect: Callable[[int], BrokerConnection], alive: Callable[[int], bool]) -> None:
        """Begin to look at metadata; what has to be asked of brokers goes to those that are alive, over connections of its own."""

    def knows_controller(self) -> bool:
        """Return whether the cluster has a controller."""

    def close(self) -> None:
        """Look no more."""
