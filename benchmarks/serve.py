"""How soon a served cluster acknowledges a record, and what hostile frames cost it.

``python -m benchmarks.serve start [ROUNDS]`` prints the time from the start of `harrow serve` to
its first acknowledged record, and the CPU time of its process, which other work does not change.
``python -m benchmarks.serve hostile [FRAMES]`` sends damaged requests and random bytes to a served
cluster. It prints the memory of its process on the way, and whether an unharmed client still gets
its acknowledgement.
"""

import argparse
import os
import re
import socket
import statistics
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from itertools import islice
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Final

from confluent_kafka import Producer
from kafka.protocol.metadata import ApiVersionsRequest, FindCoordinatorRequest, MetadataRequest
from kafka.protocol.producer import InitProducerIdRequest, ProduceRequest
from kafka.record import MemoryRecordsBuilder

from harrow.live_cluster.serve.kafka_cluster import KafkaCluster

_CLUSTER: Final = "brokers: 3\ntopics: [{name: t, partitions: 3, replication_factor: 3}]\n"
_LISTENS, _ACKED = "until its brokers listen", "until a record is acknowledged"
_PATIENCE_S: Final = 600.0
_PARTS: Final = 10
_AT_ONCE: Final = 100
_READ_BYTES: Final = 1 << 12
_RANDOM_SHARE: Final = 0.1
_CHANGES_MAX: Final = 4
_LENGTH_BYTES: Final = 4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("start", "hostile"))
    parser.add_argument("number", nargs="?", type=int)
    arguments = parser.parse_args()
    with TemporaryDirectory() as folder:
        file = Path(folder) / "cluster.yaml"
        file.write_text(_CLUSTER, encoding="utf-8")
        if arguments.what == "start":
            _print_start(file, arguments.number or 7)
        else:
            _print_hostile(file, arguments.number or 100_000)


def _print_start(file: Path, rounds: int) -> None:
    measured: dict[str, list[tuple[float, float]]] = {_LISTENS: [], _ACKED: []}
    for _ in range(rounds):
        began_s = time.perf_counter()
        with KafkaCluster(file) as cluster:
            measured[_LISTENS].append((time.perf_counter() - began_s, _cpu_s(cluster.pid)))
            _produce(cluster)
            measured[_ACKED].append((time.perf_counter() - began_s, _cpu_s(cluster.pid)))
    print("| from the start of harrow serve | median s | min s | min CPU s |")
    print("| --- | --- | --- | --- |")
    for name, times in measured.items():
        wall_s, cpu_s = zip(*times, strict=True)
        print(f"| {name} | {statistics.median(wall_s):.2f} | {min(wall_s):.2f} | {min(cpu_s):.2f} |")


def _cpu_s(pid: int) -> float:
    """Return the CPU time of a process, in user space and in the kernel (proc(5))."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _produce(cluster: KafkaCluster) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "linger.ms": 0})
    producer.produce("t", b"v")
    if producer.flush(_PATIENCE_S):
        raise SystemExit("the record was not acknowledged")


def _print_hostile(file: Path, frames: int) -> None:
    print("| frames | memory MiB |")
    print("| --- | --- |")
    with KafkaCluster(file) as cluster:
        hosts = [address.rpartition(":") for address in cluster.bootstrap_servers.split(",")]
        places = [(host, int(port)) for host, _, port in hosts]
        sent = 0
        for part in _batches(hostile_frames(Random(0), frames)):  # noqa: S311 - no secrets
            if sent * _PARTS // frames != (sent - _AT_ONCE) * _PARTS // frames:
                print(f"| {sent} | {_memory_mib(cluster.pid):.1f} |", flush=True)
            send_hostile(places[sent // _AT_ONCE % len(places)], part)
            sent += len(part)
        print(f"| {sent} | {_memory_mib(cluster.pid):.1f} |", flush=True)
        _produce(cluster)
        verdict = cluster.judge()
    print(f"verdict: {verdict.status}; an unharmed client got its acknowledgement")
    if verdict.messages:
        raise SystemExit(f"harrow wrote messages:\n{verdict.messages}")


def _batches(frames: Iterator[bytes]) -> Iterator[list[bytes]]:
    while part := list(islice(frames, _AT_ONCE)):
        yield part


def send_hostile(place: tuple[str, int], frames: Sequence[bytes]) -> None:
    """Send each frame on a connection of its own, and wait until the broker has ended them all."""
    with ExitStack() as stack:
        connections = [stack.enter_context(socket.create_connection(place, _PATIENCE_S)) for _ in frames]
        for connection, frame in zip(connections, frames, strict=True):
            # A connection that ends with RST leaves no port in use.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            with suppress(ConnectionError):
                connection.sendall(frame)
                connection.shutdown(socket.SHUT_WR)
        for connection in connections:
            with suppress(ConnectionError):
                while connection.recv(_READ_BYTES):
                    pass


def hostile_frames(random: Random, count: int) -> Iterator[bytes]:
    """Yield frames of clients with some bytes changed, and frames of random bytes."""
    records = MemoryRecordsBuilder(2, 0, 1_000)
    records.append(timestamp=0, key=None, value=b"v")
    records.close()
    batch = bytes(records.buffer())
    topic, partition = ProduceRequest.TopicProduceData, ProduceRequest.TopicProduceData.PartitionProduceData
    produce = [topic(name="t", partition_data=[partition(index=0, records=batch)])]
    requests = [
        MetadataRequest[9](topics=None, allow_auto_topic_creation=False),
        ApiVersionsRequest[3](client_software_name="x", client_software_version="1"),
        FindCoordinatorRequest[3](key="g", key_type=0),
        InitProducerIdRequest[4](transactional_id="x", transaction_timeout_ms=1_000),
        ProduceRequest[8](transactional_id=None, acks=-1, timeout_ms=100, topic_data=produce),
    ]
    for _ in range(count):
        if random.random() < _RANDOM_SHARE:
            yield random.randbytes(random.randrange(1, 60))
            continue
        request = random.choice(requests)
        request.with_header(1, "hostile")
        frame = bytearray(request.encode(header=True, framed=True))
        for _ in range(random.randrange(1, _CHANGES_MAX)):
            frame[random.randrange(_LENGTH_BYTES, len(frame))] = random.randrange(256)
        yield bytes(frame)


def _memory_mib(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    match = re.search(r"VmRSS:\s+(\d+) kB", status)
    return int(match[1]) / 1024 if match else 0.0


if __name__ == "__main__":
    main()
