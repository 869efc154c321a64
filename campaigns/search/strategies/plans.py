"""Strategies for schedules of faults, and for whole campaigns."""

from typing import Any, Final

from hypothesis import strategies as st

from harrow.campaigns.language.plan import Plan
from harrow.campaigns.search.strategies.clusters import Options, clusters, drawn_part
from harrow.campaigns.search.strategies.conditions import conditions
from harrow.campaigns.search.strategies.faults import faults
from harrow.campaigns.search.strategies.scripts import scripts, values
from harrow.campaigns.search.strategies.workloads import DURATION_US, Workload, workloads
from harrow.cluster_model.lazy_dataclass import replace
from harrow.cluster_model.release.profiles import RELEASES, REPAIRED_SINCE
from harrow.cluster_model.release.switch import DEFAULT_RELEASE
from harrow.cluster_model.sim.virtual_time import US_PER_MS, US_PER_SECOND
from harrow.cluster_model.topology import KRAFT, ClusterSpec
from harrow.faults.condition import Condition
from harrow.faults.fault import Fault
from harrow.faults.injection import At, Injection, When

SCHEDULE_MAX: Final = 6
SCRIPT_LIMIT_US: Final = 60 * US_PER_SECOND
"""The time limit of a drawn script. The conditions in it hold soon or never."""
_GRAIN_US: Final = 100 * US_PER_MS
"""Drawn times are multiples of this."""
_RECORDS: Final = 4
"""Conditions name only the first so many records of each producer."""

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
    waits: st.SearchStrategy[Condition] | None = None,
) -> st.SearchStrategy[tuple[Injection, ...]]:
    """Return a strategy for schedules of faults, each at its own time, in order of time.

    *size* bounds the number of faults. With *waits*, a fault may wait for one of these conditions
    in place of a time. Such faults come last.
    """
    times = st.integers(0, max(0, duration_us - 1) // _GRAIN_US).map(lambda tenths: tenths * _GRAIN_US)
    moments: st.SearchStrategy[int | Condition] = times if waits is None else times | waits
    strikes = st.tuples(moments, faults() if struck is None else struck)
    return st.lists(strikes, min_size=size[0], max_size=size[1]).map(_at_times_or_upon)


def _at_times_or_upon(strikes: list[tuple[int | Condition, Fault]]) -> tuple[Injection, ...]:
    upon = [(moment, fault) for moment, fault in strikes if isinstance(moment, Condition)]
    return (
        *injections([(moment, fault) for moment, fault in strikes if isinstance(moment, int)]),
        *(Injection(timing=When(condition=condition), faults=(fault,)) for condition, fault in upon),
    )


def injections(strikes: list[tuple[int, Fault]]) -> tuple[Injection, ...]:
    """Return strikes as injections in order of time. For equal times, the order is kept."""
    return tuple(
        Injection(timing=At(at_us=(at_us, at_us)), faults=(fault,))
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
    triggered: bool = False,
    steps: tuple[int, int] = (0, 0),
    **parts: Any,
) -> Plan:
    """Draw a campaign.

    Everything in *base* is kept except for the parts passed here, and drawn faults are added to the
    faults of *base*. Without *base*, a small cluster with safe settings is drawn, so that a broken
    promise is a finding. *kinds* and *size* are those of `faults` and `schedules`. If *triggered*,
    faults may wait for conditions. *steps* bounds the number of steps of a script. The steps send
    records, restart producers and elect leaders, and may wait for conditions too. Further *parts*
    are fields of `Plan`, as values or strategies.
    """
    drawn_parts = {name: drawn_part(draw, part) for name, part in parts.items()}
    plan = base if base is not None else _empty(drawn_parts)
    plan = replace(plan, **drawn_parts)
    if cluster is not None or base is None:
        usual = clusters(kafka=plan.kafka, broker_settings=BROKER_SETTINGS)
        plan = replace(plan, cluster=drawn_part(draw, usual if cluster is None else cluster))
    if workload is not None or base is None:
        partitions = plan.cluster.partition_names()
        clients = workloads(kafka=plan.kafka, duration_us=plan.duration_us, partitions=partitions)
        drawn_workload: Workload = drawn_part(draw, clients if workload is None else workload)
        plan = replace(
            plan,
            producers=drawn_workload.producers,
            consumers=drawn_workload.consumers,
            applications=drawn_workload.applications,
        )
    if schedule is None:
        waits = conditions_of(plan) if triggered else None
        schedule = schedules(faults_of(plan, kinds), duration_us=plan.duration_us, size=size, waits=waits)
    plan = replace(plan, faults=(*plan.faults, *draw(schedule)))
    if steps == (0, 0):
        return plan
    script = scripts(
        waits=conditions_of(plan),
        producers=[producer.name for producer in plan.producers],
        partitions=plan.cluster.partition_names(),
        brokers=[broker.id for broker in plan.cluster.brokers],
        kafka=plan.kafka,
        size=steps,
    )
    limit_us = min(plan.script_limit_us, SCRIPT_LIMIT_US) if base is None else plan.script_limit_us
    return replace(plan, script=(*plan.script, *draw(script)), script_limit_us=limit_us)


def faults_of(plan: Plan, kinds: Any = None) -> st.SearchStrategy[Fault]:
    """Return faults that can strike a plan's cluster and clients."""
    return faults(
        kinds=kinds,
        brokers=[broker.id for broker in plan.cluster.brokers],
        partitions=plan.cluster.partition_names(),
        clients=[client.name for client in plan.clients()],
    )


def conditions_of(plan: Plan) -> st.SearchStrategy[Condition]:
    """Return conditions on a plan's cluster, and on the first records that its clients send."""
    metadata = plan.cluster.metadata or RELEASES[plan.kafka].metadata
    generated = [producer.name for producer in plan.producers if producer.interval_us is not None]
    return conditions(
        brokers=[broker.id for broker in plan.cluster.brokers],
        partitions=plan.cluster.partition_names(),
        values=[*values(_RECORDS), *(f"{name}:{number}" for name in generated for number in range(_RECORDS))],
        replicas={
            f"{topic.name}-{number}": replicas
            for topic in plan.cluster.topics
            for number, replicas in enumerate(topic.assignment)
        },
        controllers=plan.cluster.controller_ids() if metadata == KRAFT else None,
    )


def _empty(parts: dict[str, Any]) -> Plan:
    """Return an empty plan of ten seconds. Power losses leave enough copies (`Plan.survivable`)."""
    return Plan(
        campaign="drawn",
        cluster=ClusterSpec(brokers=(), topics=()),
        kafka=parts.get("kafka", DEFAULT_RELEASE),
        # Flaws that Kafka has fixed since are known, and would be found again and again.
        behaviours=REPAIRED_SINCE,
        duration_us=DURATION_US,
        survivable=True,
    )
