"""A served cluster compacts the topics of clients as a real broker does."""

from contextlib import ExitStack
from pathlib import Path

from harrow.live_cluster.local.started_brokers import StartedBrokers
from tests.live.conftest import start_cluster
from tests.live_cluster.serve.test_compacted_topics import REMAINING, compact_topics

CLUSTER = """
name: compacting
cluster: {brokers: 1, topics: [{name: t}]}
settings: {log.cleaner.backoff.ms: 1000}
workload: {duration: 1s}
"""


def test_real_brokers_leave_the_records_that_served_brokers_leave(
    brokers: StartedBrokers, tmp_path: Path
) -> None:
    with ExitStack() as clusters:
        started = start_cluster(clusters, tmp_path, brokers.release.name, brokers.metadata, CLUSTER)
        host, port = started.addresses[0]
        assert compact_topics(f"{host}:{port}") == {"made": REMAINING, "altered": REMAINING}
