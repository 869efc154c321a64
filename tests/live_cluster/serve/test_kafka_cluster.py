"""Python programs start clusters in processes of their own, and leave none behind."""

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
_SCRIPTED: Final = f"{_CALM}script: [{{do: {{wait: {{}}}}}}]\n"
# Stands for harrow: it writes more than a pipe holds before it answers.
_TALKATIVE: Final = """
import socket
import sys

with socket.create_server(("127.0.0.1", 0)) as server:
    print(f"harrow: control=http://127.0.0.1:{server.getsockname()[1]}", file=sys.stderr)
    print("harrow: bootstrap.servers=127.0.0.1:9092", file=sys.stderr, flush=True)
    client, _ = server.accept()
    with client:
        client.recv(1 << 16)
        print("x" * COUNT, flush=True)
        print("y" * COUNT, file=sys.stderr, flush=True)
        body = b'{"runs": [{"verdict": "held", "expected": true}]}'
        client.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n" % (len(body) + MISSING))
        client.sendall(body)
"""
_COUNT: Final = 1 << 18
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


def test_a_cluster_whose_script_has_ended_serves_until_it_is_judged(tmp_path: Path) -> None:
    file = tmp_path / "scripted.yaml"
    file.write_text(_SCRIPTED, encoding="utf-8")
    with KafkaCluster(file) as cluster:
        produce(cluster)
        assert cluster.judge().status == HELD


def talkative(folder: Path, monkeypatch: pytest.MonkeyPatch, missing: int) -> KafkaCluster:
    """Return a cluster of another program called harrow, whose answer lacks *missing* bytes."""
    text = _TALKATIVE.replace("COUNT", str(_COUNT)).replace("MISSING", str(missing))
    (folder / "harrow.py").write_text(text, encoding="utf-8")
    monkeypatch.chdir(folder)
    return KafkaCluster("any")


def test_a_report_and_messages_of_any_size_do_not_hold_up_the_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with talkative(tmp_path, monkeypatch, missing=0) as cluster:
        verdict = cluster.judge()
    assert (verdict.report, verdict.messages) == ("x" * _COUNT + "\n", "y" * _COUNT + "\n")


def test_a_cluster_that_dies_before_it_has_answered_leaves_its_messages_in_the_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(KafkaClusterError, match=r"(?s)does not answer: .*\ny{1000}"):
        talkative(tmp_path, monkeypatch, missing=1).__exit__(None, None, None)


def test_a_verdict_has_the_report_and_the_document_of_its_run(calm: Path) -> None:
    with KafkaCluster(calm, seed=3) as cluster:
        produce(cluster)
        verdict = cluster.judge()
    assert ("✓ held" in verdict.report, "1 sent: 1 acked" in verdict.report) == (True, True)
    assert (verdict.run["verdict"], verdict.run["seed"]) == (HELD, 3)


def test_clients_log_in_as_one_of_the_users_of_a_cluster(calm: Path) -> None:
    with KafkaCluster(calm, users={"ann": "s3cret=word"}) as cluster:
        login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "ann"}
        settings = {"bootstrap.servers": cluster.bootstrap_servers, **login}
        producer = Producer({**settings, "sasl.password": "s3cret=word"})
        producer.produce("t", b"v")
        assert producer.flush(PATIENCE_S) == 0
        errors: list[str] = []
        refused = Producer(
            {**settings, "sasl.password": "wrong", "error_cb": lambda error: errors.append(error.name())}
        )
        while not errors:
            refused.poll(0.1)
        assert errors[0] == "_AUTHENTICATION"


def test_a_user_that_cannot_be_written_down_is_refused(calm: Path) -> None:
    with pytest.raises(KafkaClusterError, match="write USER=PASSWORD"):
        KafkaCluster(calm, users={"": "word"})


@pytest.mark.parametrize("users", [{"a=b": "word"}, {"#a": "word"}, {"a\nb": "word"}, {"a": "wo\nrd"}])
def test_a_user_that_would_be_read_as_another_is_refused(calm: Path, users: dict[str, str]) -> None:
    with pytest.raises(KafkaClusterError, match="a name has no `=`"):
        KafkaCluster(calm, users=users)
