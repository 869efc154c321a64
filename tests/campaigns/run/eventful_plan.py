"""Plans with many kinds of events, for tests without YAML and other libraries."""

import sys
from collections.abc import Iterable

from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.runner import run_plan
from harrow.cluster_model.packed_log import digest
from harrow.cluster_model.release.profiles import REPAIRED_SINCE
from harrow.cluster_model.settings import Value
from harrow.cluster_model.topology import BrokerSpec, ClusterSpec, ConsumerSpec, ProducerSpec, TopicSpec
from harrow.faults.brokers import BrokerCrash, BrokerPause
from harrow.faults.control_plane import ControllerFailover
from harrow.faults.fault import Fault
from harrow.faults.injection import Injection, Rate
from harrow.faults.links import NetworkAckLoss, NetworkPartition, SlowFollower
from harrow.faults.messages import Message

MS = 1_000
SECOND = 1_000_000

FAULTS: tuple[Fault, ...] = (
    BrokerCrash(broker="any", restart_after=(SECOND, 8 * SECOND)),
    BrokerCrash(broker="leader of u-1", kind="power_loss", restart_after=(SECOND, 3 * SECOND)),
    BrokerPause(broker="follower of t-0", duration=(SECOND, 12 * SECOND)),
    ControllerFailover(how="session_expiry"),
    ControllerFailover(how="delete_znode"),
    NetworkAckLoss(probability=0.5, duration=(SECOND, 3 * SECOND)),
    NetworkPartition(between=(0,), and_=(1, "zookeeper"), duration=(SECOND, 9 * SECOND)),
    SlowFollower(broker="any", mode="slow", duration=(SECOND, 5 * SECOND)),
    SlowFollower(broker="any", duration=(6 * SECOND, 12 * SECOND)),
    Message(action="duplicate", api="Produce", kind="request", count=3),
)


def eventful_plan(release: str = "2.4", *, idempotence: bool = True, seconds: int = 30) -> Plan:
    """Return a plan with two topics, three clients and a fault every other second."""
    topics = (
        TopicSpec(name="t", partitions=2, replication_factor=3),
        TopicSpec(name="u", partitions=3, replication_factor=2),
    )
    end_us = seconds * SECOND
    settings: dict[str, Value] = {
        "acks": "all",
        "retries": 100,
        "linger.ms": 5,
        "enable.idempotence": idempotence,
    }
    return Plan(
        campaign="eventful",
        kafka=release,
        behaviours=REPAIRED_SINCE,
        cluster=ClusterSpec(
            brokers=tuple(BrokerSpec(id=number, rack=f"rack-{number % 2}") for number in range(4)),
            topics=topics,
            settings={"replica.lag.time.max.ms": 3_000},
        ),
        producers=tuple(
            ProducerSpec(name=f"producer-{n}", settings=settings, interval_us=50 * MS, stop_us=end_us)
            for n in range(2)
        ),
        consumers=(ConsumerSpec(name="consumer-0", settings={"auto.offset.reset": "earliest"}),),
        faults=(Injection(timing=Rate(mean_us=2 * SECOND, start_us=0, stop_us=end_us), faults=FAULTS),),
        duration_us=end_us,
    )


def digests(seeds: Iterable[int] = (0, 1)) -> list[str]:
    """Return the digests of trace and history of some runs."""
    outcomes = []
    for release, idempotence in (("2.4", True), ("0.10.2", False)):
        for seed in seeds:
            result = run_plan(eventful_plan(release, idempotence=idempotence), seed)
            history = digest(
                [list(o.as_mapping().items()) for o in result.evidence.operations if o.f == "send"]
            )
            outcomes.append(f"{result.plan.digest()} {result.trace_digest} {history} {result.verdict.status}")
    return outcomes


if __name__ == "__main__":
    sys.stdout.write("\n".join(digests()))
