"""Where the brokers of a local cluster keep their metadata, as the cluster needs to know it."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Protocol

from harrow.live_cluster.errors import LiveError
from harrow.live_cluster.processes.child_processes import ChildProcess
from harrow.live_cluster.wire.connection import BrokerConnection


class CannotBeDoneError(LiveError):
    """This control plane has no such thing; the message says what."""


class NodeProcess(Protocol):
    """The process of a broker, or of a controller that is none, as far as something can be done to it."""

    id: int

    @property
    def is_running(self) -> bool:
        """Return whether it is there; it may be paused."""

    @property
    def is_paused(self) -> bool:
        """Return whether it stands still."""

    def look_after(self) -> None:
        """Do the work that is due. The thread that runs the campaign calls this repeatedly."""

    def start(self) -> None:
        """Start it, unless it is there."""

    def kill(self) -> None:
        """End it at once (SIGKILL), and come back when it is gone."""

    def stop(self) -> None:
        """Tell it to stop in good order; it takes the time that it needs."""

    def pause(self) -> None:
        """Let it stand still (SIGSTOP)."""

    def resume(self) -> None:
        """Let it go on (SIGCONT)."""


class ControlPlaneAccess(Protocol):
    """ZooKeeper, or controllers of KRaft, as faults and administrators act on it."""

    process_names: tuple[str, ...]
    """What its ends of links are called."""
    controllers: Mapping[int, NodeProcess]
    """Controllers that are no brokers, as far as their processes are at hand."""

    @property
    def keeps_registrations(self) -> bool:
        """Return whether a broker that was killed cannot start again before its registration is over, and who is registered is seen."""

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

    def elect_preferred_leaders(self, partitions: Iterable[str]) -> None:
        """Ask that the first replica of each partition lead."""


class LocalControlPlane(ControlPlaneAccess, Protocol):
    """One that was started with its cluster. What it says goes to a `harrow.live_cluster.watches.metadata_seen.MetadataSeen`."""

    is_waited_for: bool
    """Whether brokers that are started before it is ready wait for it."""

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
