"""What acks, flushes, lingering and replicas cost: ack latencies of real brokers and of the model.

Run ``python -m benchmarks.costs RELEASE [ROUNDS]`` with a release that ``harrow kafka get`` has
downloaded. Three brokers and a producer (librdkafka) run on this machine. The producer goes through
the cases in turn, several times, and sends 50 records of 1 kB per second. The model then runs the
same cases. It gets three measured numbers: how long the brokers flush, by their own metric; as the
latency of its network, half of the round trip of acks=1, by the client's statistics; and the time
that acks=1 takes beyond that, in the client itself (clients of the model need none). All else is
its prediction.

A busy machine measures its scheduler. Start the benchmark with ``chrt --rr 1`` if other processes
run. The table is that of docs/evidence/costs.md. The benchmark exits with 1 if a ratio of the model
is not within a factor of two of that of the brokers.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from confluent_kafka import Message, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks.kafka_jvm import median_flush_us
from harrow.campaigns.language.loader import load_text
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.record.markdown import table
from harrow.campaigns.run.runner import run_plan
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.sim.virtual_time import US_PER_MS, US_PER_SECOND
from harrow.live_cluster.local.java_program import JavaPrograms
from harrow.live_cluster.local.kraft_controller import LocalController, new_uuid
from harrow.live_cluster.processes.child_processes import ChildProcesses
from harrow.live_cluster.processes.ports import Ports
from harrow.live_cluster.releases.java import find_java
from harrow.live_cluster.releases.kafka_cache import default_cache
from harrow.live_cluster.releases.kafka_release import release_of

BROKERS: Final = 3
RECORDS_PER_SECOND: Final = 50
RECORD_BYTES: Final = 1_000
CASE_S: Final = 4.0
WARM_UP_S: Final = 20.0
_BASE: Final = "acks=1"
_START_MAX_S: Final = 180.0
CLOSE_FACTOR: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredCase:
    """Settings whose ack latency is compared with that of another case, *beside*."""

    name: str
    beside: str
    acks: str = "all"
    flush: int = 0
    linger_ms: int = 0
    replicas: int = BROKERS

    @property
    def topic(self) -> str:
        return f"r{self.replicas}-f{self.flush}"

    @property
    def topic_settings(self) -> dict[str, str]:
        return {"flush.messages": str(self.flush)} if self.flush else {}


CASES: Final = (
    MeasuredCase(name="acks=0", beside="acks=1", acks="0"),
    MeasuredCase(name="acks=1", beside="acks=1", acks="1"),
    MeasuredCase(name="acks=all", beside="acks=1"),
    MeasuredCase(name="acks=all, 2 replicas", beside="acks=1", replicas=2),
    MeasuredCase(name="acks=all, 1 replica", beside="acks=1", replicas=1),
    MeasuredCase(name="acks=1, flush.messages=1", beside="acks=1", acks="1", flush=1),
    MeasuredCase(name="acks=all, flush.messages=1", beside="acks=all", flush=1),
    MeasuredCase(name="acks=all, flush.messages=10", beside="acks=all", flush=10),
    MeasuredCase(name="acks=all, linger.ms=5", beside="acks=all", linger_ms=5),
    MeasuredCase(name="acks=all, linger.ms=50", beside="acks=all", linger_ms=50),
)


@dataclass(frozen=True, slots=True)
class MeasuredLatency:
    """The median and the 99th percentile of ack latencies, in microseconds."""

    p50: float
    p99: float


def main() -> int:
    """Print the table, and whether all ratios are close."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("release")
    parser.add_argument("rounds", nargs="?", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, brokers(options.release, Path(folder)) as servers:
        measured, round_trip_us = measure(servers, options.rounds)
        flush_us = median_flush_us(options.release, Path(folder))
    client_us = round(measured[_BASE].p50) - round_trip_us
    latency_us = round_trip_us // 2
    predicted = {case.name: predict(case, options.release, flush_us, latency_us, client_us) for case in CASES}
    print(
        f"A flush takes {flush_us / US_PER_MS:.2f} ms (median); a message {latency_us / US_PER_MS:.2f} ms; "
        f"the client {client_us / US_PER_MS:.2f} ms.\n"
    )
    print(cost_table(measured, predicted))
    close = sum(is_close(ratios_of(case, measured, predicted)) for case in CASES)
    print(f"\n{close} of {len(CASES)} ratios of the model are within a factor of {CLOSE_FACTOR:.0f}")
    return 0 if close == len(CASES) else 1


# Real brokers


@contextmanager
def brokers(release_name: str, folder: Path) -> Iterator[str]:
    """Start brokers that are also the controllers; yield their addresses for clients."""
    release = release_of(release_name)
    jars = default_cache().get(release)
    cluster_id = new_uuid()
    with ChildProcesses() as children, Ports() as ports:
        programs = JavaPrograms(find_java(), jars, children)
        client_ports = [ports.reserve() for _ in range(BROKERS)]
        quorum_ports = [ports.reserve() for _ in range(BROKERS)]
        voters = ",".join(f"{node}@127.0.0.1:{port}" for node, port in enumerate(quorum_ports))
        nodes = [
            LocalController(
                programs,
                node,
                folder / f"broker-{node}",
                ("127.0.0.1", client_ports[node]),
                {
                    "process.roles": "broker,controller",
                    "node.id": node,
                    "controller.quorum.voters": voters,
                    "controller.listener.names": "CONTROLLER",
                    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
                    "listeners": f"PLAINTEXT://127.0.0.1:{client_ports[node]},"
                    f"CONTROLLER://127.0.0.1:{quorum_ports[node]}",
                },
                cluster_id,
            )
            for node in range(BROKERS)
        ]
        first, *others = nodes
        first.format()
        for other in others:
            other.copy_storage(first.logs)
        for node in nodes:
            node.start()
        deadline = time.monotonic() + _START_MAX_S
        while not all(node.is_ready() for node in nodes):
            if time.monotonic() > deadline or not all(node.is_running for node in nodes):
                raise SystemExit(first.folder.joinpath("log").read_text(encoding="utf-8")[-2_000:])
            time.sleep(0.2)
        yield ",".join(f"127.0.0.1:{port}" for port in client_ports)


def measure(servers: str, rounds: int) -> tuple[Mapping[str, MeasuredLatency], int]:
    """Measure all cases in turn, several times; return medians, and the round trip of acks=1."""
    create_topics(servers)
    for case in CASES:
        ack_latencies(servers, case, WARM_UP_S / len(CASES), [])
    samples: dict[str, list[MeasuredLatency]] = {case.name: [] for case in CASES}
    round_trips: list[int] = []
    for _ in range(rounds):
        for case in CASES:
            into = round_trips if case.name == _BASE else []
            samples[case.name].append(latency_of(ack_latencies(servers, case, CASE_S, into)))
    medians = {
        name: MeasuredLatency(
            statistics.median(latency.p50 for latency in latencies),
            statistics.median(latency.p99 for latency in latencies),
        )
        for name, latencies in samples.items()
    }
    return medians, round(statistics.median(round_trips))


def create_topics(servers: str) -> None:
    topics = {
        case.topic: NewTopic(case.topic, 1, case.replicas, config=case.topic_settings) for case in CASES
    }
    admin = AdminClient({"bootstrap.servers": servers})
    for created in admin.create_topics([*topics.values()], operation_timeout=60).values():
        created.result()


def ack_latencies(servers: str, case: MeasuredCase, duration_s: float, round_trips: list[int]) -> list[float]:
    """Send records at a fixed rate; return how long each waited for its ack, in microseconds.

    Add the median time between a request and its response, once per second, to *round_trips*.
    """

    def on_statistics(text: str) -> None:
        for broker in json.loads(text)["brokers"].values():
            if broker["req"].get("Produce") and broker["rtt"]["cnt"] >= RECORDS_PER_SECOND // 2:
                round_trips.append(broker["rtt"]["p50"])

    producer = Producer(
        {
            "stats_cb": on_statistics,
            "statistics.interval.ms": 1_000,
            "bootstrap.servers": servers,
            "acks": case.acks,
            "linger.ms": case.linger_ms,
            "enable.idempotence": False,
            "socket.nagle.disable": True,
        }
    )
    producer.list_topics(case.topic)
    latencies: list[float] = []
    value = b"x" * RECORD_BYTES

    def send() -> None:
        begin = time.perf_counter()

        def on_delivery(error: object, _: Message) -> None:
            if error is not None:
                raise SystemExit(f"{case.name}: {error}")
            latencies.append((time.perf_counter() - begin) * US_PER_SECOND)

        producer.produce(case.topic, value, on_delivery=on_delivery)

    begin, number = time.perf_counter(), 0
    while (due := number / RECORDS_PER_SECOND) < duration_s:
        send()
        number += 1
        while (wait_s := begin + due + 1 / RECORDS_PER_SECOND - time.perf_counter()) > 0:
            producer.poll(wait_s)
    producer.flush()
    # The first records wait for the connection.
    return latencies[RECORDS_PER_SECOND // 2 :]


def latency_of(latencies: list[float]) -> MeasuredLatency:
    ordered = sorted(latencies)
    return MeasuredLatency(statistics.median(ordered), ordered[len(ordered) * 99 // 100])


# The model


def predict(
    case: MeasuredCase, release: str, flush_us: int, latency_us: int, client_us: int
) -> MeasuredLatency:
    """Return the latencies of the model with a measured flush, network and client."""
    plan = plan_of(case, release, flush_us, latency_us)
    latency = run_plan(plan, 1).service.total.ack_latency
    assert latency is not None
    return MeasuredLatency(latency.p50_us + client_us, latency.p99_us + client_us)


def plan_of(case: MeasuredCase, release: str, flush_us: int, latency_us: int) -> Plan:
    """Return a case for the model. The latency of a message varies as it does by default."""
    settings = "".join(f", {name}: {value}" for name, value in case.topic_settings.items())
    text = f"""
    kafka: "{release.rpartition(".")[0]}"
    settings: {{acks: {case.acks}, linger.ms: {case.linger_ms}, enable.idempotence: false}}
    cluster:
      brokers: {BROKERS}
      network: {{latency: {latency_us // 3}us..{latency_us * 5 // 3}us}}
      disk: {{flush: {flush_us}us}}
      topics:
        - {{name: t, replication_factor: {case.replicas}, settings: {{min.insync.replicas: 1{settings}}}}}
    workload: {{duration: 20s, producers: [{{rate: {RECORDS_PER_SECOND}/s, record_bytes: {RECORD_BYTES}}}]}}
    """
    (plan,) = load_text(text, "costs.yaml").plans
    return plan


# The table


def ratios_of(
    case: MeasuredCase, measured: Mapping[str, MeasuredLatency], predicted: Mapping[str, MeasuredLatency]
) -> tuple[float, float]:
    """Return the medians of the brokers and of the model, as multiples of those they are beside."""
    real, model = (of[case.name].p50 / of[case.beside].p50 for of in (measured, predicted))
    return real, model


def is_close(ratios: tuple[float, float]) -> bool:
    return max(ratios) <= CLOSE_FACTOR * min(ratios)


def cost_table(measured: Mapping[str, MeasuredLatency], predicted: Mapping[str, MeasuredLatency]) -> str:
    """Return the table: latencies, and each median as a multiple of the median it is beside."""
    rows = []
    for case in CASES:
        real, model = measured[case.name], predicted[case.name]
        ratios = ratios_of(case, measured, predicted)
        rows.append(
            (
                case.name,
                *(f"{us / US_PER_MS:.2f} ms" for us in (real.p50, model.p50, real.p99, model.p99)),
                case.beside,
                *(f"{ratio:.2f}" for ratio in ratios),
                "yes" if is_close(ratios) else "no",
            )
        )
    columns = ("p50, real", "p50, model", "p99, real", "p99, model", "beside", "ratio, real", "ratio, model")
    return table(("settings", *columns, "within a factor of 2"), rows)


if __name__ == "__main__":
    sys.exit(main())
