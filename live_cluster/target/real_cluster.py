"""What a campaign needs of a cluster of real brokers, started by harrow or not."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.targets.shared_environment import Wires
from harrow.cluster_model.log.record_batch import RecordBatch
from harrow.cluster_model.sim.choices import Choices
from harrow.cluster_model.topology import ClusterSpec
from harrow.cluster_model.trace import Trace
from harrow.live_cluster.broker_logs.log_lines import RefusalLine
from harrow.live_cluster.links.requests_seen import Report
from harrow.live_cluster.names import Names
from harrow.live_cluster.processes.child_processes import ChildProcesses
from harrow.live_cluster.processes.node_process import NodeProcess
from harrow.live_cluster.target.control_plane import ControlPlaneAccess
from harrow.live_cluster.watches.activity import Activity
from harrow.live_cluster.watches.happenings import WallClock
from harrow.live_cluster.watches.metadata_seen import MetadataSeen
from harrow.live_cluster.wire.connection import BrokerConnection


class Links(Wires, Protocol):
    """What passes between processes. An end of a link is a broker's id, or a name."""

    def restore_all(self) -> None:
        """Undo every cut, and end every rule."""

    def restore_all_but(self, outside: Collection[int]) -> None:
        """Do so, but for what stands against the brokers *outside* a core; nothing stands between two others any more."""

    def are_disturbed(self, broker: int, control: Sequence[str]) -> bool:
        """Return whether a fault stands against a broker that does not cut it off from the processes of its *control* plane."""

    def remote_leo(self, leader: int, partition: str, replica: int) -> int:
        """Return the LEO of a follower that a leader knows of."""

    def forget(self, broker: int) -> None:
        """Take note that a broker's process is a new one."""

    def watch_messages(self) -> None:
        """Report each message from now on."""

    def watch_fetches(self) -> None:
        """Report fetches that wait."""


class ReplicaLogs(Protocol):
    """The logs of a broker's replicas of a campaign's partitions, as far as they can be seen."""

    def look(self, now_us: int, led: frozenset[str]) -> None:
        """Take note of what has changed; the broker leads the partitions in *led*."""

    def read_anew(self, now_us: int) -> None:
        """Read all of them from their beginnings."""

    def open(self) -> None:
        """Take note that the broker starts with them."""

    def knows(self, partition: str) -> bool:
        """Return whether the broker's log of a partition could be read."""

    def begin(self, partition: str) -> int:
        """Return the offset at which what is stored of a log begins."""

    def size_bytes(self, partition: str) -> int:
        """Return how large a log is, 0 where that is not known."""

    def leo(self, partition: str) -> int:
        """Return a log's end offset."""

    def batches(self, partition: str) -> tuple[RecordBatch, ...]:
        """Return a log's batches, from its beginning up to where they are known."""

    def epochs(self, partition: str) -> tuple[tuple[int, int], ...]:
        """Return the leader epoch cache, empty where it is not known."""

    def flushed(self, partition: str) -> int | None:
        """Return the offset up to which a log survives a power loss, None where it is not known."""


class RealCluster(Protocol):
    """Brokers, by the ids that the campaign has for them, and what is between and in them.

    Clients are told of the brokers in ``servers``, are let in with the settings in ``security``, under the names of
    librdkafka, and are ``children``. One that ``follows_logs`` reports what each log takes and loses.
    """

    follows_logs: bool
    spec: ClusterSpec
    names: Names
    seen: MetadataSeen
    brokers: Mapping[int, NodeProcess]
    servers: Mapping[int, tuple[str, int]]
    security: Mapping[str, str]
    children: ChildProcesses
    control: ControlPlaneAccess
    links: Links
    logs: Mapping[int, ReplicaLogs]

    def start(self) -> None:
        """Have brokers up, the topics there, and all of their replicas in sync.

        Raises:
            LiveError: they are not.

        """

    def refusals(self) -> Iterable[tuple[int, RefusalLine]]:
        """Return the truncations that brokers have refused since this was asked last, as far as their logs can be read."""

    def logged_epoch(self, broker: int, partition: str) -> int:
        """Return the leader epoch that a broker says in its log that it takes part in; -1 where it does not, or no log is at hand."""

    def resignations(self) -> Iterable[tuple[int, int]]:
        """Return which controllers have resigned, from which epoch, since this was asked last, as far as can be read."""

    def replicas_of(self, partition: str) -> tuple[int, ...]:
        """Return the brokers that a partition is assigned to."""

    def connect(self, broker: int) -> BrokerConnection:
        """Return a connection of harrow's own to a broker, to look at it; the caller closes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a cluster finds in a run: the *plan*, where files go, and where to tell what happens.

    A cluster that notes all that goes on in it says so to ``activity``.
    While it starts it says now and then what it waits for (``wait``), and is stopped there if the run is not to go on.
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
        """Return the partitions that a broker has replicas of."""
        return tuple(name for name in self.plan.cluster.partition_names() if broker in replicas_of(name))


MakeCluster = Callable[[Surroundings], AbstractContextManager[RealCluster]]
