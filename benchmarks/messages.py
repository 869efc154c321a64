"""How many messages a failover takes, by their kind, and what a change in ZooKeeper wakes, beyond what a quiet cluster sends.

Run ``python -m benchmarks.messages``, in plain Python (``HARROW_PURE=1``); the tables are those of docs/speed.md. Fetches are
left out, for those of idle followers are arithmetic here. An operation of ZooKeeper is a message of its own in Kafka, one after the
other without waiting (``ZooKeeperClient.handleRequests``); the model sends those of one step together.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final

from harrow.cluster_model.kraft.protocol import RaftFetchResponse
from harrow.cluster_model.release import RELEASES
from harrow.cluster_model.sim.choices import Choices
from harrow.cluster_model.sim.cluster import Cluster
from harrow.cluster_model.sim.connection import Connection
from harrow.cluster_model.sim.host import SimulatedHost
from harrow.cluster_model.sim.process import Process
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND
from harrow.cluster_model.topology import BrokerSpec, ClusterSpec, TopicSpec
from harrow.cluster_model.zookeeper.protocol import WatchEvent, ZooKeeperRequest

RELEASES_MEASURED: Final = ("2.4", "4.3")
PARTITIONS: Final = (1, 100, 10_000)
BROKERS: Final = (3, 10, 30)
TOPIC_PARTITIONS_MAX: Final = 1_000
BEGIN_US: Final = 5 * US_PER_SECOND
FAILOVER_US: Final = 20 * US_PER_SECOND
"""Longer than any session."""
HERD_US: Final = 3 * US_PER_SECOND

Count = Counter[str]


class CountingHost(SimulatedHost):
    """A host that counts what its process sends, by kind."""

    __slots__ = ("counts",)

    def __init__(self, counts: Count, *parts: Any) -> None:
        super().__init__(*parts)
        self.counts = counts

    def send_request(self, connection: Connection, correlation_id: int, body: Any) -> None:
        """Count a request, and what it is about: partitions, or operations of ZooKeeper."""
        api = body.api
        if isinstance(body, ZooKeeperRequest):
            for operation in body.operations:
                self.counts[f"ZooKeeper {type(operation).__name__}"] += 1
        elif api not in {"Fetch", "ZooKeeper"}:
            self.counts[f"{api} requests"] += 1
            if api in {"LeaderAndIsr", "UpdateMetadata"}:
                self.counts[f"partitions in {api}"] += len(body.partition_states)
        super().send_request(connection, correlation_id, body)

    def send_response(self, connection: Connection, correlation_id: int, body: Any) -> None:
        """Count what says something by itself: watches that fire, and records of the metadata log."""
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
    """Return a cluster whose partitions are all led by broker 0, which is not the controller."""
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


def counted(spec: ClusterSpec, release: str, act: Callable[[Cluster], None], until_us: int) -> Count:
    """Return what is sent from an act on, so long, beyond what the same cluster sends without it."""
    counts = []
    for does in (act, lambda _: None):
        cluster = CountingCluster(spec, release)
        cluster.start()
        cluster.simulator.run_until(BEGIN_US)
        before = Counter(cluster.counts)
        does(cluster)
        cluster.simulator.run_until(BEGIN_US + until_us)
        counts.append(cluster.counts - before)
    return Counter({kind: counts[0][kind] - counts[1][kind] for kind in counts[0]})


def crash(cluster: Cluster) -> None:
    cluster.crash_broker(0, power_loss=False)


def table(titles: Sequence[str], columns: Sequence[Count]) -> str:
    """Return counts as Markdown, a row for each kind that any of them has."""
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
    for title, act in (
        ("/controller is deleted", lambda cluster: cluster.delete_controller_znode()),
        ("/brokers/ids changes", lambda cluster: cluster.expire_session(0)),
    ):
        counts = [counted(spec_of(number, 1), "2.4", act, HERD_US) for number in BROKERS]
        print(f"\n{title}, with so many brokers, 2.4:\n")
        print(table([str(number) for number in BROKERS], counts), flush=True)


if __name__ == "__main__":
    main()
