"""Clients under test on real brokers: their reports agree with the logs of the brokers."""

import time
from pathlib import Path
from typing import Any

import pytest

from harrow.live_cluster.clients.client_process import ClientProcess
from harrow.live_cluster.clients.client_settings import LIBRARIES, consumer_settings, producer_settings
from harrow.live_cluster.local.storage.segments import stored_log
from harrow.live_cluster.processes.child_processes import ChildProcesses
from tests.live.conftest import StartedCluster, Wait

CLUSTER = """
name: live
cluster: {brokers: 3, topics: [{name: t, assignment: [[0, 1, 2], [1, 2, 0]]}]}
settings: {zookeeper.session.timeout.ms: 4s, min.insync.replicas: 2}
workload: {duration: 1s}
"""

Reports = list[dict[str, Any]]


@pytest.mark.parametrize("library", LIBRARIES)
def test_acked_records_are_read_and_stored_once_although_a_leader_dies(
    library: str, release: str, started: StartedCluster, wait_until: Wait, tmp_path: Path
) -> None:
    cluster = started(release, CLUSTER)
    model = "2.4" if release != "0.10.2.2" else "0.10.2"
    servers = [f"{host}:{port}" for host, port in cluster.addresses.values()]
    connection = LIBRARIES[library].connection(servers, "client")
    # Without idempotence, before 0.11, a retry may double a record.
    wanted = {"acks": "all"} if model == "0.10.2" else {"enable.idempotence": True}
    sent: Reports = []
    read: Reports = []
    partitions = {"partitions": ["t-0", "t-1"], "start_ns": 0}
    with ChildProcesses() as children:
        producer = {
            "role": "producer",
            "library": library,
            "name": "p",
            "gaps_ns": [20_000_000],
            "stop_ns": None,
            **partitions,
            "settings": {**connection, **producer_settings(library, model, wanted)},
        }
        consumer = {
            "role": "consumer",
            "library": library,
            "name": "c",
            "poll_interval_ns": 10_000_000,
            "max_poll_records": 500,
            **partitions,
            "settings": {**connection, **consumer_settings(library, model, {})},
        }
        sender = ClientProcess(children, tmp_path / "p", producer, sent.append)
        reader = ClientProcess(children, tmp_path / "c", consumer, read.append)
        for client in (sender, reader):
            client.begin(time.monotonic_ns())
        wait_until(lambda: sum(r["type"] == "ok" for r in sent) > 50)
        cluster.brokers[0].kill()
        wait_until(lambda: (cluster.observed_metadata.partition_state("t-0") or (0,))[0] == 1)
        acked = len(sent)
        wait_until(lambda: sum(r["type"] == "ok" for r in sent[acked:]) > 50)
        sender.kill()
        oks = [(r["partition"], r["offset"], r["value"]) for r in sent if r["type"] == "ok"]

        def consumed() -> set[tuple[str, int, str]]:
            return {
                (partition, offset, value)
                for report in read
                for partition, records in report["records"].items()
                for offset, value in records
            }

        def is_all_read() -> bool:
            """Return whether both logs end where the reader is.

            The sender's last records may still be in flight.
            """
            ends = [offsets["t-0"].leo for b in (1, 2) if (offsets := cluster.offsets(b))]
            return bool(read[-1]["at_end"]) and ends == [read[-1]["positions"]["t-0"]] * 2

        wait_until(lambda: consumed() >= set(oks))
        wait_until(is_all_read)
        reader.kill()
    values = [
        value for batch in stored_log(cluster.brokers[1].logs / "t-0").batches for value in batch.values
    ]
    assert [value for p, _, value in sorted(consumed()) if p == "t-0"] == values
    assert len(values) == len(set(values)) or model == "0.10.2"
    invoked = [r["value"] for r in sent if r["type"] == "invoke"]
    assert set(values) <= set(invoked)
    assert all(values[offset] == value for p, offset, value in oks if p == "t-0")
