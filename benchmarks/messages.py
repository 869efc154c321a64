"""How many messages of each kind a failover and a change in ZooKeeper cause.

The messages of a quiet cluster are subtracted.

Run ``python -m benchmarks.messages``, in plain Python (``HARROW_PURE=1``); the tables are those of
docs/evidence/speed.md. Fetches are left out, because the model replaces those of idle followers by
arithmetic (`harrow.cluster_model.sim.idle_fetch`). Kafka sends each operation of ZooKeeper as a
message, without waiting for the previous answer (``ZooKeeperClient.handleRequests``). The model
sends the operations of one step together, so this script counts the operations.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final

from harrow.cluster_model.cluster import Cluster
from harrow.cluster_model.kraft.protocol import RaftFetchRequest, RaftFetchResponse
from harrow.cluster_model.release.profiles import RELEASES
from harrow.cluster_model.sim.choices import Choices
from harrow.cluster_model.sim.connection import Connection
from harrow.cluster_model.sim.host import SimulatedHost
from harrow.cluster_model.sim.process import Process
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND
from harrow.cluster_model.topology import BrokerSpec, ClusterSpec, TopicSpec
from harrow.cluster_model.zookeeper.quorum.ensemble import ZooKeeperEnsemble
from harrow.cluster_model.zookeeper.service.client import ZooKeeperClient
from harrow.cluster_model.zookeeper.service.protocol import (
    NODE_EXISTS,
    Create,
    GetData,
    WatchEvent,
    ZooKeeperRequest,
    ZooKeeperResponse,
)

RELEASES_MEASURED: Final = ("2.4", "4.3")
PARTITIONS: Final = (1, 100, 10_000)
BROKERS: Final = (3, 10, 30)
TOPIC_PARTITIONS_MAX: Final = 1_000
BEGIN_US: Final = 5 * US_PER_SECOND
FAILOVER_US: Final = 20 * US_PER_SECOND
"""Longer than any session."""
SESSION_US: Final = 6 * US_PER_SECOND
BROKER_TOPICS: Final = "/brokers/topics"
HERD_US: Final = 3 * US_PER_SECOND

Count = Counter[str]


class CountingHost(SimulatedHost):
    """A host that counts what its process sends, by kind."""

    __slots__ = ("counts",)

    def __init__(self, counts: Count, *parts: Any) -> None:
        super().__init__(*parts)
        self.counts = counts

    def send_request(self, connection: Connection, correlation_id: int, request: Any) -> None:
        """Count a request, and the partitions or the operations of ZooKeeper in it."""
        api = request.api
        if isinstance(request, ZooKeeperRequest):
            for operation in request.operations:
                self.counts[f"ZooKeeper {type(operation).__name__}"] += 1
        elif isinstance(request, RaftFetchRequest):
            self.counts["Fetch requests for metadata"] += 1
        elif api not in {"Fetch", "ZooKeeper"}:
            self.counts[f"{api} requests"] += 1
            if api in {"LeaderAndIsr", "UpdateMetadata"}:
                self.counts[f"partitions in {api}"] += len(request.partition_states)
        super().send_request(connection, correlation_id, request)

    def send_response(self, connection: Connection, correlation_id: int, body: Any) -> None:
        """Count the messages with content: watches that fire, and records of the metadata log."""
        if isinstance(body, WatchEvent):
            self.counts["ZooKeeper watch events"] += 1
        elif isinstance(body, RaftFetchResponse) and body.records:
            self.counts["answers with metadata records"] += 1
            self.counts["metadata records in them"] += len(body.records)
        super().send_response(connection, correlation_id, body)


class CountingCluster(Cluster):
    """A cluster whose messages are counted."""

    def __init__(self, spec: ClusterSpec, release: str) -> None:
        self.counts: Count = Counter()
        super().__init__(spec, release, RELEASES[release].behaviours, Choices.from_seed(0), invariants=())

    def host(self, process: Process) -> SimulatedHost:
        return CountingHost(self.counts, process, self.simulator, self.network, self.choices, self.trace)


def spec_of(brokers: int, partitions: int) -> ClusterSpec:
    """Return a cluster in which broker 0 leads all partitions, and broker 1 is the controller."""
    topics = [
        TopicSpec(
            name=f"t{first}",
            assignment=tuple((0, 1, 2) for _ in range(min(TOPIC_PARTITIONS_MAX, partitions - first))),
        )
        for first in range(0, partitions, TOPIC_PARTITIONS_MAX)
    ]
    return ClusterSpec(
        brokers=tuple(BrokerSpec(id=number) for number in range(brokers)), topics=tuple(topics), controller=1
    )


def counted(spec: ClusterSpec, release: str, action: Callable[[Cluster], None], until_us: int) -> Count:
    """Return the messages that an action causes, beyond those of the same cluster without it."""
    counts = []
    for each_action in (action, lambda _: None):
        cluster = CountingCluster(spec, release)
        cluster.start()
        cluster.simulator.run_until(BEGIN_US)
        before = Counter(cluster.counts)
        each_action(cluster)
        cluster.simulator.run_until(BEGIN_US + until_us)
        counts.append(cluster.counts - before)
    return Counter({kind: counts[0][kind] - counts[1][kind] for kind in counts[0]})


class WatchingReplicas:
    """The replicas of a broker that elect leaders by watches, without a controller (until 0.7).

    Each replica watches the znode of its partition's leader. When the znode is gone, each replica
    tries to create it, and those that come too late watch it again.
    """

    def __init__(self, broker: int, host: SimulatedHost, partitions: Sequence[str]) -> None:
        self._broker = broker
        self._partitions = partitions
        self._zookeeper = ZooKeeperClient(host, SESSION_US, self)
        self._zookeeper.start()

    def session_established(self) -> None:
        """Try to lead every partition."""
        for path in self._partitions:
            self._elect(path)

    def session_expired(self) -> None:
        """Do nothing: no session expires while messages are counted."""

    def watch_fired(self, event: WatchEvent) -> None:
        """Try to lead the partition whose leader is gone."""
        self._elect(event.path)

    def _elect(self, path: str) -> None:
        def answered(response: ZooKeeperResponse) -> None:
            if response.results[-1].error == NODE_EXISTS:
                self._zookeeper.submit((GetData(path, watch=True),), lambda _: None)

        self._zookeeper.submit((Create(path, self._broker, ephemeral=True),), answered)


def herd(brokers: int, partitions: int) -> Count:
    """Return the messages that follow from the death of a broker that leads all partitions.

    Every other broker has a replica of each partition, and all replicas watch.
    """
    cluster = CountingCluster(spec_of(brokers, 1), "2.4")
    admin = cluster.host(Process("admin"))
    ensemble = ZooKeeperEnsemble(cluster.spec, cluster.host, cluster.network, admin, lambda _: None)
    ensemble.start()
    paths = [f"{BROKER_TOPICS}/leader-{number}" for number in range(partitions)]
    processes = [Process(f"replicas-{number}") for number in range(brokers)]
    for broker, process in enumerate(processes):
        cluster.network.add(process)
        WatchingReplicas(broker, cluster.host(process), paths)
        cluster.simulator.run_until(cluster.simulator.now_us + HERD_US)
    before = Counter(cluster.counts)
    processes[0].kill()
    cluster.network.process_died(processes[0], power_loss=False)
    cluster.simulator.run_until(cluster.simulator.now_us + FAILOVER_US)
    return cluster.counts - before


def crash(cluster: Cluster) -> None:
    cluster.crash_broker(0, power_loss=False)


def table(titles: Sequence[str], columns: Sequence[Count]) -> str:
    """Return counts as a Markdown table, with a row for each kind of message."""
    kinds = sorted({kind for column in columns for kind, count in column.items() if count > 0})
    rows = [f"| what is sent | {' | '.join(titles)} |", f"| --- | {' | '.join('---:' for _ in titles)} |"]
    rows += [f"| {kind} | {' | '.join(str(column[kind]) for column in columns)} |" for kind in kinds]
    return "\n".join(rows)


def main() -> None:
    """Print the tables."""
    sizes = [(release, number) for release in RELEASES_MEASURED for number in PARTITIONS]
    counts = [counted(spec_of(3, number), release, crash, FAILOVER_US) for release, number in sizes]
    print("\nFailover of a broker that leads so many partitions:\n")
    print(table([f"{release}: {number}" for release, number in sizes], counts), flush=True)
    counts = [herd(3, number) for number in PARTITIONS]
    print("\nThe same by watches of every replica, as before 0.8:\n")
    print(table([str(number) for number in PARTITIONS], counts), flush=True)
    for title, action in (
        ("/controller is deleted", lambda cluster: cluster.delete_controller_znode()),
        ("/brokers/ids changes", lambda cluster: cluster.expire_session(0)),
    ):
        counts = [counted(spec_of(number, 1), "2.4", action, HERD_US) for number in BROKERS]
        print(f"\n{title}, with so many brokers, 2.4:\n")
        print(table([str(number) for number in BROKERS], counts), flush=True)


if __name__ == "__main__":
    main()
