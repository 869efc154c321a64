"""Python programs start clusters in processes of their own, and leave none behind."""

import json
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Producer

from harrow.checks.finding import HELD, INCONCLUSIVE
from harrow.live_cluster.serve.kafka_cluster import BrokenPromiseError, KafkaCluster, KafkaClusterError
from tests.conftest import kill_after_test
from tests.patience import PATIENCE_S
from tests.plain_environment import PYTHONPATH, plain_environment

_CALM: Final = """
name: calm
cluster: {brokers: 3, topics: [{name: t, replication_factor: 3}]}
workload: {producers: [{name: app}], duration: 60s}
"""
_OWNER: Final = """
import sys
from harrow.live_cluster.serve.kafka_cluster import KafkaCluster
with KafkaCluster(sys.argv[1]) as cluster:
    print(cluster.control_url, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def calm(tmp_path: Path) -> Path:
    file = tmp_path / "calm.yaml"
    file.write_text(_CALM, encoding="utf-8")
    return file


def produce(cluster: KafkaCluster) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
    producer.produce("t", b"v")
    assert producer.flush(PATIENCE_S) == 0


def test_a_block_strikes_faults_and_gets_a_verdict(calm: Path) -> None:
    with KafkaCluster(calm, settings={"min.insync.replicas": 2}) as cluster:
        pause = cluster.pause("leader of t-0")
        assert pause.document["fault"] == "broker_pause"
        pause.end()
        pause.end()
        cut = cluster.fault("partition", {"between": 0, "and": [1]})
        assert [each["id"] for each in cluster.state()["faults"]] == [cut.document["id"]]
        cluster.end_faults()
        assert cluster.state()["faults"] == []
        produce(cluster)
        verdict = cluster.judge()
    assert (verdict.status, verdict.is_expected, cluster.judge()) == (HELD, True, verdict)
    assert [each["fault"] for each in verdict.run["faults"]] == ["broker_pause", "partition"]


def test_a_block_fails_if_the_run_is_not_as_expected(calm: Path) -> None:
    def use(settings: list[str]) -> None:
        with KafkaCluster(calm, settings=settings) as cluster:
            produce(cluster)

    with pytest.raises(BrokenPromiseError, match="the verdict is held, expected violated"):
        use(["expect.verdict=violated"])


def test_a_cluster_that_was_not_used_has_broken_nothing(calm: Path) -> None:
    with KafkaCluster(calm) as cluster:
        pass
    assert cluster.judge().status == INCONCLUSIVE


def test_a_mistake_is_an_error_with_the_message_of_the_command_line(calm: Path) -> None:
    with pytest.raises(KafkaClusterError, match=r"^none\.yaml: no such file or folder$"):
        KafkaCluster("none.yaml")
    with pytest.raises(KafkaClusterError, match="no campaign here has a variant `none`"):
        KafkaCluster(calm, variant="none")
    with (
        KafkaCluster(calm) as cluster,
        pytest.raises(KafkaClusterError, match="found nothing to act on") as error,
    ):
        cluster.fault("broker_restart", broker=0)
    assert error.value.status == 409


def test_ten_clusters_run_side_by_side(calm: Path) -> None:
    def use(_: int) -> str:
        with KafkaCluster(calm) as cluster:
            produce(cluster)
            return cluster.judge().status

    with ThreadPoolExecutor(10) as pool:
        assert list(pool.map(use, range(10))) == [HELD] * 10


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL is a POSIX matter")
def test_a_cluster_ends_with_the_process_that_started_it_however_that_ends(
    calm: Path, processes: ExitStack
) -> None:
    owner = subprocess.Popen(
        [sys.executable, "-c", _OWNER, str(calm)],
        env={**plain_environment(), "PYTHONPATH": PYTHONPATH},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    kill_after_test(processes, owner)
    assert owner.stdout is not None
    host, _, port = owner.stdout.readline().strip().rpartition("/")[2].partition(":")
    with socket.create_connection((host, int(port)), PATIENCE_S) as connection:
        owner.send_signal(signal.SIGKILL)
        # The connection is reset if the cluster ends before it has accepted it.
        with suppress(ConnectionResetError):
            assert connection.recv(1) == b""
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)), PATIENCE_S)


def test_the_report_of_a_run_is_what_the_command_line_prints(calm: Path) -> None:
    with KafkaCluster(calm, seed=3) as cluster:
        produce(cluster)
        verdict = cluster.judge()
    assert "✓ held" in verdict.report
    assert json.dumps(verdict.run["seed"]) == "3"
