"""Measures how fast a served cluster is, beside a real broker and the mock of librdkafka.

Run ``python -m benchmarks.served_speed``. The table is that of docs/evidence/served-clients.md.
Each cluster has one broker and a topic with one partition. harrow is measured with and without a
recording of the requests. The client is librdkafka with acks=all. A producer with its defaults
writes the first record of the cluster; the time to its acknowledgement counts from the start of the
cluster's process. Then an idempotent producer starts. It writes a first record, too, ``--count``
records of a hundred bytes as fast as it can, and ``--single`` records one after another, each after
the acknowledgement of the last.
"""

import argparse
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Producer

from harrow.campaigns.record.markdown import table
from harrow.compilation import PURE, compilation
from harrow.live_cluster.local.java_program import OPTIONS, class_path
from harrow.live_cluster.releases.java import find_java
from harrow.live_cluster.releases.kafka_cache import default_cache
from harrow.live_cluster.releases.kafka_release import release_of

CLUSTER: Final = 'kafka: "4.3"\ncluster: {brokers: 1, topics: [{name: t}]}\n'
RECORD: Final = b"x" * 100
MS_PER_S: Final = 1_000
PROPERTIES: Final = """\
process.roles=broker,controller
node.id=0
controller.quorum.voters=0@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{broker}
controller.listener.names=CONTROLLER
log.dirs={folder}/data
offsets.topic.replication.factor=1
"""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--single", type=int, default=1_000)
    parser.add_argument("--release", default="4.3.1")
    options = parser.parse_args()
    rows = []
    harrow = f"harrow serve, {'plain Python' if compilation()[0] == PURE else 'compiled'}"
    clusters = {
        harrow: lambda folder: _served(folder, "--no-results"),
        f"{harrow}, recorded": lambda folder: _served(folder, "--results", str(folder)),
        f"a broker of {options.release}": lambda folder: _real(folder, options.release),
        "librdkafka's mock": _mock,
    }
    for name, start in clusters.items():
        with tempfile.TemporaryDirectory() as folder:
            began_s = time.monotonic()
            with start(Path(folder)) as settings:
                rows.append((name, *_measured(settings, options.count, options.single, began_s)))
    header = ("cluster", "first ack", "then, idempotent", "records a second", "p50", "p99")
    print(table(header, rows))


def _measured(settings: dict[str, Any], count: int, single: int, began_s: float) -> Iterator[str]:
    yield f"{_write(Producer(settings), 1) - began_s:.2f} s"
    since_s = time.monotonic()
    producer = Producer({**settings, "enable.idempotence": True, "queue.buffering.max.messages": count + 1})
    yield f"{_write(producer, 1) - since_s:.2f} s"
    since_s = time.monotonic()
    yield f"{count / (_write(producer, count) - since_s):,.0f}".replace(",", " ")
    times_ms = []
    for _ in range(single):
        since_s = time.monotonic()
        times_ms.append((_write(producer, 1) - since_s) * MS_PER_S)
    times_ms.sort()
    yield f"{statistics.median(times_ms):.1f} ms"
    yield f"{times_ms[len(times_ms) * 99 // 100]:.1f} ms"


def _write(producer: Producer, count: int) -> float:
    """Write records, and return the time when all are acknowledged."""
    failures: list[Any] = []

    def on_delivery(error: Any, _: Any) -> None:
        if error is not None:
            failures.append(error)

    for _ in range(count):
        producer.produce("t", RECORD, partition=0, on_delivery=on_delivery)
        producer.poll(0)
    producer.flush()
    if failures:
        raise SystemExit(f"{len(failures)} of {count} records failed: {failures[0]}")
    return time.monotonic()


@contextmanager
def _served(folder: Path, *options: str) -> Iterator[dict[str, Any]]:
    file = folder / "cluster.yaml"
    file.write_text(CLUSTER, encoding="utf-8")
    serve = [sys.executable, "-m", "harrow", "serve", str(file), *options]
    with _process(serve, folder, stdout=subprocess.PIPE) as process:
        assert process.stderr is not None, "it is a pipe"
        line = next(line for line in process.stderr if "bootstrap.servers=" in line)
        yield {"bootstrap.servers": line.strip().partition("=")[2], "linger.ms": 0.5}


@contextmanager
def _real(folder: Path, release: str) -> Iterator[dict[str, Any]]:
    jars = class_path(default_cache().get(release_of(release)))
    java = [str(find_java()), *OPTIONS, "-cp", jars]
    broker, controller = _free_ports(2)
    file = folder / "server.properties"
    file.write_text(PROPERTIES.format(broker=broker, controller=controller, folder=folder), encoding="utf-8")
    cluster = ["--cluster-id", "AAAAAAAAAAAAAAAAAAAAAQ", "--config", str(file)]
    subprocess.run(  # noqa: S603 - the program is Kafka
        [*java, "kafka.tools.StorageTool", "format", *cluster], check=True, stdout=subprocess.DEVNULL
    )
    with _process([*java, "kafka.Kafka", str(file)], folder, stdout=subprocess.DEVNULL):
        yield {"bootstrap.servers": f"127.0.0.1:{broker}", "linger.ms": 0.5, "log_level": 0}


@contextmanager
def _mock(_: Path) -> Iterator[dict[str, Any]]:
    yield {"test.mock.num.brokers": 1, "bootstrap.servers": "unused:1", "linger.ms": 0.5, "log_level": 0}


@contextmanager
def _process(command: list[str], folder: Path, **options: Any) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(  # noqa: S603 - harrow or Kafka
        command, cwd=folder, text=True, stderr=subprocess.PIPE, **options
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


if __name__ == "__main__":
    main()
