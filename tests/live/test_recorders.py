"""The recorders of docs/how-to/recorders/ and Kafka's tools log what clients do on real brokers."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from harrow.live_cluster.releases.maven import MavenError, copy_jars
from tests.live.conftest import kafka_of, newest_tried, start_cluster
from tests.plain_environment import PYTHONPATH, ROOT, plain_environment

RECORDERS = ROOT / "docs" / "how-to" / "recorders"
NAMES = ("confluent-kafka", "kafka-python", "java", "franz-go")
ASSIGNMENTS = {**dict.fromkeys(NAMES, "[[0], [0]]"), "tools": "[[0]]"}
TOPICS = ", ".join(
    f"{{name: {kind}-{name}, assignment: {assignment}}}"
    for kind in ("sound", "planted")
    for name, assignment in ASSIGNMENTS.items()
)
CLUSTER = f"""
name: recorders
cluster: {{brokers: 1, topics: [{TOPICS}]}}
settings: {{offsets.topic.num.partitions: 1, transaction.state.log.num.partitions: 1}}
workload: {{duration: 1s}}
"""
PATIENCE_S = 300.0
RECORDS = "".join(f"{number % 2} m{number}\n" for number in range(10))
TRANSACTIONS = "0 a\n1 b\ncommit\n0 c\n1 d\nabort\n0 e\ncommit\n"


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    tried = newest_tried()
    if tried is None:
        pytest.skip("`make live` runs it")
    with ExitStack() as clusters:
        cluster = start_cluster(clusters, tmp_path_factory.mktemp("recorded"), *tried, CLUSTER)
        yield ",".join(f"{host}:{port}" for host, port in cluster.addresses.values())


@pytest.fixture(scope="module")
def recorder(
    servers: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> list[str]:
    """Return the command of a recorder, or skip the test without its toolchain."""
    name = str(request.param)
    if name == "java":
        tried = newest_tried()
        assert tried is not None
        java, jars = kafka_of(tried[0])
        classes = compiled_by_java(java, jars, tmp_path_factory.mktemp("java"))
        return [str(java), "-XX:TieredStopAtLevel=1", "-cp", f"{classes}:{jars}/*", "Recorder"]
    if name == "franz-go":
        return [str(built_by_go(tmp_path_factory.mktemp("go")))]
    script = {"confluent-kafka": "confluent_recorder.py", "kafka-python": "kafka_python_recorder.py"}[name]
    return [sys.executable, str(RECORDERS / script)]


def compiled_by_java(java: Path, jars: Path, folder: Path) -> Path:
    compiler = shutil.which("javac", path=str(java.resolve().parent))
    if compiler is None:
        pytest.skip("there is a Java runtime, but no compiler")
    words = [compiler, "-cp", f"{jars}/*", "-d", str(folder), str(RECORDERS / "Recorder.java")]
    subprocess.run(words, check=True)
    return folder


def built_by_go(folder: Path) -> Path:
    go = shutil.which("go")
    if go is None:
        pytest.skip("Go is missing")
    source = folder / "source"
    shutil.copytree(RECORDERS / "franz-go", source)
    environment = {**os.environ, "GOTOOLCHAIN": "local"}
    for words in (["mod", "download"], ["build", "-o", str(folder / "recorder"), "."]):
        ended = subprocess.run(
            [go, *words], cwd=source, env=environment, capture_output=True, text=True, check=False
        )
        # An older Go or no network is no fault of the recorder; what does not compile is one.
        if ended.returncode and words[0] == "mod":
            pytest.skip(f"go mod download: {ended.stderr.strip().splitlines()[-1]}")
        assert ended.returncode == 0, ended.stderr
    return folder / "recorder"


def judged_by_harrow(*words: str) -> dict[str, Any]:
    ended = subprocess.run(
        [sys.executable, "-m", "harrow", "check", *words, "--format", "json"],
        env={**plain_environment(), "PYTHONPATH": PYTHONPATH},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert ended.returncode in {0, 1, 3}, ended.stderr
    document: dict[str, Any] = json.loads(ended.stdout)
    return document


def delete_first_record(servers: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    for deleted in admin.delete_records([TopicPartition(topic, 0, 1)]).values():
        deleted.result()


class Session:
    """Clients of one topic, which share a history."""

    def __init__(self, recorder: list[str], servers: str, topic: str, history: Path) -> None:
        self._recorder, self._servers, self._topic, self._history = recorder, servers, topic, history

    def run(self, mode: str, process: int, *more: str, typed: str = "") -> None:
        words = [*self._recorder, mode, self._servers, self._topic, self._history.name, str(process), *more]
        ended = subprocess.run(
            words,
            cwd=self._history.parent,
            input=typed,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr

    def judged(self) -> dict[str, Any]:
        return judged_by_harrow(str(self._history))

    def text(self) -> str:
        return self._history.read_text(encoding="utf-8")

    def operations(self) -> set[tuple[str, str]]:
        lines = map(json.loads, self.text().splitlines())
        return {(line["f"], line["type"]) for line in lines}


@pytest.mark.parametrize("recorder", NAMES, indirect=True)
class TestRecorders:
    def test_a_sound_run_holds_every_promise(
        self, recorder: list[str], servers: str, request: pytest.FixtureRequest, tmp_path: Path
    ) -> None:
        topic = f"sound-{request.node.callspec.params['recorder']}"
        session = Session(recorder, servers, topic, tmp_path / "h.jsonl")
        session.run("send", 0, typed=RECORDS)
        session.run("send", 1, topic, typed=TRANSACTIONS)
        session.run("read", 2)
        judged = session.judged()
        assert judged["verdict"] == "held", judged
        assert [judged["history"][count] for count in ("sent", "acked", "polled")] == [15, 13, 13]
        ended = {
            ("send", "ok"),
            ("txn", "ok"),
            ("txn", "fail"),
            ("poll", "ok"),
            ("assign", "ok"),
            ("commit", "ok"),
        }
        assert session.operations() >= ended

    def test_a_record_sent_twice_and_one_that_is_deleted_are_found(
        self, recorder: list[str], servers: str, request: pytest.FixtureRequest, tmp_path: Path
    ) -> None:
        topic = f"planted-{request.node.callspec.params['recorder']}"
        session = Session(recorder, servers, topic, tmp_path / "h.jsonl")
        session.run("send", 0, typed=f"{RECORDS}0 m2\n")
        delete_first_record(servers, topic)
        session.run("read", 1)
        judged = session.judged()
        assert judged["verdict"] == "violated"
        assert judged["anomalies"].keys() >= {"lost-write", "duplicate"}, session.text()
        found = {
            rule: [each["value"] for each in judged["anomalies"][rule]]
            for rule in ("lost-write", "duplicate")
        }
        assert found == {"lost-write": ["m0"], "duplicate": ["m2"]}


@pytest.fixture(scope="module")
def tools(servers: str, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return the command that runs a class of Kafka's tools."""
    tried = newest_tried()
    assert tried is not None
    java, jars = kafka_of(tried[0])
    folder = tmp_path_factory.mktemp("tools")
    try:
        copy_jars([f"org.apache.kafka:kafka-tools:{tried[0]}"], folder, with_dependencies=False)
    except MavenError as error:
        pytest.skip(str(error).splitlines()[0])
    (jar,) = folder.rglob("kafka-tools-*.jar")
    return [str(java), "-XX:TieredStopAtLevel=1", "-cp", f"{jar}:{jars}/*"]


@pytest.mark.parametrize(("kind", "verdict"), [("sound", "held"), ("planted", "violated")])
def test_the_output_of_kafkas_tools_shows_whether_records_are_lost(
    kind: str, verdict: str, tools: list[str], servers: str, tmp_path: Path
) -> None:
    topic, count = f"{kind}-tools", 20

    def logged(tool: str, *options: str) -> str:
        words = [*tools, f"org.apache.kafka.tools.{tool}", "--bootstrap-server", servers, "--topic", topic]
        ended = subprocess.run(
            [*words, *options], capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        log = tmp_path / f"{tool}-{len(options)}.log"
        log.write_text(ended.stdout, encoding="utf-8")
        return str(log)

    producer = logged("VerifiableProducer", "--max-messages", str(count))
    if kind == "planted":
        delete_first_record(servers, topic)
        count -= 1
    group = ("--reset-policy", "earliest", "--max-messages", str(count), "--group-id")
    consumer = logged("VerifiableConsumer", *group, f"{topic}-1", "--verbose")
    judged = judged_by_harrow("--sent", producer, "--read", consumer)
    assert (judged["verdict"], len(judged["anomalies"].get("lost-write", []))) == (
        verdict,
        int(kind == "planted"),
    )
    assert judged_by_harrow(consumer)["verdict"] == "inconclusive"
    silent = logged("VerifiableConsumer", *group, f"{topic}-2")
    assert judged_by_harrow("--sent", producer, "--read", silent)["verdict"] == "inconclusive"
    if kcat := shutil.which("kcat"):
        words = [kcat, "-C", "-J", "-e", "-b", servers, "-t", topic, "-o", "beginning"]
        read = tmp_path / "kcat.jsonl"
        read.write_bytes(subprocess.run(words, capture_output=True, timeout=PATIENCE_S, check=True).stdout)
        assert judged_by_harrow("--sent", producer, "--read", str(read))["verdict"] == verdict
