"""Schedules of faults, and whole campaigns."""

from dataclasses import replace
from typing import Any, Final

from hypothesis import strategies as st

from campaigns.plan import Plan
from campaigns.strategies.clusters import Options, clusters, drawn_part
from campaigns.strategies.faults import faults
from campaigns.strategies.workloads import DURATION_US, Workload, workloads
from cluster_model.release import DEFAULT_RELEASE
from cluster_model.topology import ClusterSpec
from cluster_model.virtual_time import US_PER_MS
from faults.fault import Fault
from faults.injection import At, Injection

SCHEDULE_MAX: Final = 6
_GRAIN_US: Final = 100 * US_PER_MS

BROKER_SETTINGS: Final[Options] = {
    "min.insync.replicas": [1, 2],
    "replica.lag.time.max.ms": [10_000, 1_000],
    "unclean.leader.election.enable": [False],
}


def schedules(
    struck: st.SearchStrategy[Fault] | None = None,
    *,
    duration_us: int = DURATION_US,
    size: tuple[int, int] = (0, SCHEDULE_MAX),
) -> st.SearchStrategy[tuple[Injection, ...]]:
    """Return schedules: so many faults, each at a time of its own, in the order of time."""
    times = st.integers(0, max(0, duration_us - 1) // _GRAIN_US).map(lambda tenths: tenths * _GRAIN_US)
    strikes = st.tuples(times, faults() if struck is None else struck)
    return st.lists(strikes, min_size=size[0], max_size=size[1]).map(injections)


def injections(strikes: list[tuple[int, Fault]]) -> tuple[Injection, ...]:
    """Return strikes as a campaign has them, those at one time in the order in which they were drawn."""
    return tuple(
        Injection(timing=At(at_us=at_us), faults=(fault,))
        for at_us, fault in sorted(strikes, key=lambda strike: strike[0])
    )


@st.composite
def plans(
    draw: st.DrawFn,
    /,
    *,
    base: Plan | None = None,
    cluster: ClusterSpec | st.SearchStrategy[ClusterSpec] | None = None,
    workload: Workload | st.SearchStrategy[Workload] | None = None,
    schedule: st.SearchStrategy[tuple[Injection, ...]] | None = None,
    kinds: Any = None,
    size: tuple[int, int] = (0, SCHEDULE_MAX),
    **parts: Any,
) -> Plan:
    """Draw a campaign.

    Of *base* everything stays but what is given here, and faults are added to those that it has.
    Without it, a small cluster with safe settings is drawn: a promise that is broken there is a
    finding. *kinds* and *size* are those of `faults` and `schedules`; further *parts* are fields
    of `Plan`, as they are or as strategies.
    """
    given = {name: drawn_part(draw, part) for name, part in parts.items()}
    plan = base if base is not None else _empty(given)
    plan = replace(plan, **given)
    if cluster is not None or base is None:
        usual = clusters(kafka=plan.kafka, broker_settings=BROKER_SETTINGS)
        plan = replace(plan, cluster=drawn_part(draw, usual if cluster is None else cluster))
    if workload is not None or base is None:
        clients = workloads(kafka=plan.kafka, duration_us=plan.duration_us)
        made: Workload = drawn_part(draw, clients if workload is None else workload)
        plan = replace(plan, producers=made.producers, consumers=made.consumers)
    if schedule is None:
        struck = faults_of(plan, kinds)
        schedule = schedules(struck, duration_us=plan.duration_us, size=size)
    return replace(plan, faults=(*plan.faults, *draw(schedule)))


def faults_of(plan: Plan, kinds: Any = None) -> st.SearchStrategy[Fault]:
    """Return faults that can strike a plan's cluster and clients."""
    return faults(
        kinds=kinds,
        brokers=[broker.id for broker in plan.cluster.brokers],
        partitions=plan.cluster.partition_names(),
        clients=Workload(producers=plan.producers, consumers=plan.consumers).names(),
    )


def _empty(given: dict[str, Any]) -> Plan:
    """Return a plan to draw the rest of: ten seconds, of which power losses take what can be spared."""
    return Plan(
        campaign="drawn",
        cluster=ClusterSpec(brokers=(), topics=()),
        kafka=given.get("kafka", DEFAULT_RELEASE),
        # As from 2.6.1 on (KAFKA-10706): a follower that never comes back tells of nothing else.
        behaviours={"epoch_cache_cut_at_log_end": True},
        duration_us=DURATION_US,
        survivable=True,
    )
