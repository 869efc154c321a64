"""Real brokers start as their campaign says, and harrow observes their state correctly."""

from confluent_kafka import Producer

from harrow.live_cluster.local.local_cluster import LocalCluster
from harrow.live_cluster.local.storage.segments import stored_log
from tests.live.conftest import StartedCluster, Wait
from tests.patience import PATIENCE_S

CLUSTER = """
name: live
cluster:
  brokers: [{id: 1, rack: a}, {id: 2, rack: b}, {id: 5, rack: c}]
  controller: 5
  topics:
    - {name: t, assignment: [[2, 1, 5], [1, 5, 2]], settings: {min.insync.replicas: 2}}
    - {name: u, partitions: 2, replication_factor: 1}
settings: {zookeeper.session.timeout.ms: 4s, replica.lag.time.max.ms: 5s}
workload: {duration: 1s}
"""


def produce(cluster: LocalCluster, topic: str, partition: int, *values: str) -> None:
    servers = ",".join(f"{host}:{port}" for host, port in cluster.addresses.values())
    producer = Producer({"bootstrap.servers": servers, "acks": "all", "log_level": 0})
    for value in values:
        producer.produce(topic, value, partition=partition)
    assert producer.flush(PATIENCE_S) == 0


def test_a_started_cluster_matches_its_campaign(
    release: str, started: StartedCluster, wait_until: Wait
) -> None:
    cluster = started(release, CLUSTER)
    assert cluster.observed_metadata.controller() == 5
    assert cluster.observed_metadata.registered() == {1, 2, 5}
    assert cluster.observed_metadata.partition_state("t-0") == (2, 0, (2, 1, 5))
    assert cluster.observed_metadata.partition_state("t-2") is None
    produce(cluster, "t", 0, "a", "b", "c")

    def has_copied(broker: int) -> bool:
        offsets = cluster.offsets(broker)
        return (offsets["t-0"].leo, offsets["t-0"].hw) == (3, 3)

    wait_until(lambda: all(map(has_copied, (1, 2, 5))))
    assert cluster.offsets(5).keys() == {
        "t-0",
        "t-1",
        *(f"u-{n}" for n in (0, 1) if cluster.replicas_of(f"u-{n}") == (5,)),
    }
    stored = stored_log(cluster.brokers[2].logs / "t-0")
    assert [value for batch in stored.batches for value in batch.values] == ["a", "b", "c"]
    assert (stored.leo, stored.epochs) == (3, () if release.startswith("0.10") else ((0, 0),))
    # A killed broker leaves the ISR, and returns to it after its restart.
    cluster.brokers[2].kill()
    assert cluster.offsets(2) == {}
    wait_until(lambda: cluster.observed_metadata.partition_state("t-0") == (1, 1, (1, 5)))
    wait_until(lambda: 2 not in cluster.observed_metadata.registered())
    cluster.brokers[2].start()
    wait_until(lambda: cluster.observed_metadata.partition_state("t-0") == (1, 1, (1, 5, 2)))
    # A paused broker falls behind.
    cluster.brokers[5].pause()
    assert (cluster.brokers[5].is_running, cluster.brokers[5].is_paused) == (True, True)
    wait_until(lambda: 5 not in cluster.observed_metadata.registered())
    cluster.brokers[5].resume()
    wait_until(lambda: 5 in cluster.observed_metadata.registered())
    wait_until(lambda: len((cluster.observed_metadata.partition_state("t-0") or (0, 0, ()))[2]) == 3)
    # A controlled shutdown ends with SIGTERM's exit code.
    cluster.brokers[1].stop()
    wait_until(lambda: not cluster.brokers[1].is_running)
    assert cluster.brokers[1].process is not None
    assert cluster.brokers[1].process.code == 143
    before = cluster.observed_metadata.controller()
    cluster.control.delete_controller()
    wait_until(lambda: cluster.observed_metadata.controller() is not None)
    assert before is not None
    wait_until(lambda: (cluster.observed_metadata.partition_state("t-0") or (1,))[0] in (2, 5))
