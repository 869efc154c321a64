"""The interface of a cluster of real brokers, started by harrow or by the user."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.targets.shared_environment import LinkControl
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.log.record_batch import RecordBatch
from harrow.cluster_model.sim.choices import Choices
from harrow.cluster_model.topology import ClusterSpec
from harrow.cluster_model.trace import Trace
from harrow.live_cluster.broker_logs.log_lines import RefusalLine
from harrow.live_cluster.links.observed_requests import Report
from harrow.live_cluster.names import Names
from harrow.live_cluster.processes.child_processes import ChildProcesses
from harrow.live_cluster.processes.node_process import NodeProcess
from harrow.live_cluster.target.control_plane import ControlPlaneAccess
from harrow.live_cluster.watches.activity import Activity
from harrow.live_cluster.watches.event_queue import WallClock
from harrow.live_cluster.watches.observed_metadata import ObservedMetadata
from harrow.live_cluster.wire.connection import BrokerConnection


class Links(LinkControl, Protocol):
    """The links between processes. An end of a link is a broker's id, or a name."""

    def restore_all(self) -> None:
        """Undo every cut, and end every rule."""

    def restore_all_but(self, outside: Collection[int]) -> None:
        """Restore all links but those of brokers *outside* a core."""

    def are_disturbed(self, broker: int, control: Sequence[str]) -> bool:
        """Return whether faults disturb a broker but do not cut it off from its control plane."""

    def remote_leo(self, leader: int, partition: str, replica: int) -> int:
        """Return a follower's LEO as its leader knows it."""

    def forget(self, broker: int) -> None:
        """Forget the requests of a broker's previous process."""
        return

    def watch_messages(self) -> None:
        """Start to report each message."""
        return

    def watch_fetches(self) -> None:
        """Start to report fetches that wait."""
        return


class ReplicaLogs(Protocol):
    """The part of a broker's logs that harrow can read."""

    def observe(self, now_us: int, led: frozenset[str]) -> None:
        """Report changes since the last call; the broker leads the partitions in *led*."""
        return

    def reread(self, now_us: int) -> None:
        """Read all logs from the beginning."""

    def open(self) -> None:
        """Report that the broker starts with these logs."""
        return

    def has_log(self, partition: str) -> bool:
        """Return whether the log of a partition could be read."""

    def log_start(self, partition: str) -> int:
        """Return the start offset of the stored log."""

    def size_bytes(self, partition: str) -> int:
        """Return the size of a log, 0 if it is unknown."""
        return 0

    def leo(self, partition: str) -> int:
        """Return the log end offset."""

    def batches(self, partition: str) -> tuple[RecordBatch, ...]:
        """Return the known batches of a log, from its start."""

    def epochs(self, partition: str) -> tuple[tuple[int, int], ...]:
        """Return the leader epoch cache, empty if it is unknown."""
        return ()

    def flushed(self, partition: str) -> int | None:
        """Return the offset up to which a log survives a power loss, None if it is unknown."""
        return None


class RealCluster(Protocol):
    """Brokers by the campaign's ids, with their links, logs and control plane.

    Clients connect to ``servers`` with the settings in ``security`` (by librdkafka's names), and
    run as ``children``. A cluster that ``follows_logs`` reports every append and truncation.
    """

    follows_logs: bool
    spec: ClusterSpec
    names: Names
    observed_metadata: ObservedMetadata
    brokers: Mapping[int, NodeProcess]
    servers: Mapping[int, tuple[str, int]]
    security: Mapping[str, str]
    children: ChildProcesses
    control: ControlPlaneAccess
    links: Links
    logs: Mapping[int, ReplicaLogs]

    def start(self) -> None:
        """Start the brokers, create the topics, and wait until all replicas are in sync.

        Raise `LiveError` if that fails.
        """

    def refusals(self) -> Iterable[tuple[int, RefusalLine]]:
        """Return the logged truncations that brokers have refused since the last call."""

    def logged_epoch(self, broker: int, partition: str) -> int:
        """Return the leader epoch in a broker's log, -1 if there is none or no log."""

    def resignations(self) -> Iterable[tuple[int, int]]:
        """Return the controllers that resigned since the last call, each with its last epoch."""

    def replicas_of(self, partition: str) -> tuple[int, ...]: ...

    def connect(self, broker: int) -> BrokerConnection:
        """Return harrow's own connection to a broker; the caller closes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterContext:
    """What a run gives to the cluster that it uses.

    A cluster that reports all of its activity calls ``activity.begin``. While it starts, it
    regularly calls ``wait`` with the condition that it waits for; ``wait`` raises if the run must
    end.
    """

    plan: Plan
    folder: Path
    choices: Choices
    clock: WallClock
    trace: Trace
    report: Report
    activity: Activity
    wait: Callable[[str], None] = lambda _: None

    def partitions_of(self, broker: int, replicas_of: Callable[[str], tuple[int, ...]]) -> tuple[str, ...]:
        return tuple(name for name in self.plan.cluster.partition_names() if broker in replicas_of(name))


MakeCluster = Callable[[ClusterContext], AbstractContextManager[RealCluster]]
