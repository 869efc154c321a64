"""The axes of the lattice of settings that `harrow advise` searches, from cheap to dear values."""

from collections.abc import Mapping, Sequence
from typing import Final

from harrow.campaigns.advise.axis import (
    Axis,
    Chosen,
    Line,
    application_axis,
    consumer_axis,
    consumer_configs,
    producer_axis,
    topic_axis,
    topics_of,
)
from harrow.campaigns.advise.harm import FAILED, OUTAGE, has_transactions
from harrow.campaigns.advise.placement import Assignment, has_racks, is_across_racks, reassigned
from harrow.campaigns.assess.trials import UNCOMMITTED
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.remedies import option_text
from harrow.checks.rule import DOUBLED, LOST, REORDERED
from harrow.cluster_model.registry import Registry
from harrow.cluster_model.settings import (
    AUTO_OFFSET_RESET,
    IDEMPOTENCE,
    IN_FLIGHT,
    INT_MAX,
    ISOLATION_LEVEL,
    LONG_MAX,
    MIN_ISR,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    Value,
)
from harrow.cluster_model.sim.virtual_time import US_PER_MS
from harrow.cluster_model.topology import (
    AT_LEAST_ONCE,
    AT_MOST_ONCE,
    AUTO_COMMITTED,
    EXACTLY_ONCE,
    KRAFT,
)

REPLICATION_FACTOR: Final = "replication.factor"
PLACEMENT: Final = "placement"
RACK_AWARE: Final = "across racks"
ASSIGNED: Final = "as assigned"
_ELR: Final = "eligible.leader.replicas.version"
_LONG_DELIVERY_MS: Final = 600_000


def _replication_factors(plan: Plan) -> Sequence[int]:
    return [
        min(map(len, topic.assignment)) if topic.assignment else topic.replication_factor
        for _, topic in topics_of(plan)
    ]


def _with_replication_factor(plan: Plan, chosen: Chosen) -> Sequence[str]:
    """Return options that give each topic as many replicas."""
    factor = int(chosen[REPLICATION_FACTOR])
    options = [
        f"cluster.topics.{number}.replication_factor={factor}"
        for number, topic in topics_of(plan)
        if not topic.assignment
    ]
    return options if PLACEMENT in chosen else [*options, *_with_assignments(plan, chosen)]


def _with_assignments(plan: Plan, chosen: Chosen) -> Sequence[str]:
    return [
        f"cluster.topics.{number}.assignment={option_text(assignment)}"
        for number, assignment in _reassigned(plan, chosen).items()
    ]


def _reassigned(plan: Plan, chosen: Chosen) -> Mapping[int, Assignment]:
    factor = int(chosen.get(REPLICATION_FACTOR, 0))
    return reassigned(plan, factor=factor, across_racks=PLACEMENT in chosen)


def _replica_lines(plan: Plan, chosen: Chosen) -> Sequence[Line]:
    factor = chosen[REPLICATION_FACTOR]
    return [
        Line(
            place=f"topic {topic.name}",
            text=f"replication factor {factor} (kafka-reassign-partitions)",
            before=f"replication factor {own}",
        )
        for (_, topic), own in zip(topics_of(plan), _replication_factors(plan), strict=True)
        if own != factor
    ]


def _placement_lines(plan: Plan, chosen: Chosen) -> Sequence[Line]:
    topics = plan.cluster.topics
    return [
        Line(
            place=f"topic {topics[number].name}",
            text=f"replicas {option_text(assignment)} (kafka-reassign-partitions)",
            before=f"replicas {option_text(topics[number].assignment)}",
        )
        for number, assignment in _reassigned(plan, chosen).items()
    ]


def _placements(plan: Plan) -> Sequence[Value]:
    """Return whether all assigned topics are spread over the racks; nothing if none is assigned."""
    spread = [is_across_racks(plan, topic.assignment) for _, topic in topics_of(plan) if topic.assignment]
    return [RACK_AWARE if all(spread) else ASSIGNED] if spread else []


def _brokers(plan: Plan) -> int:
    return len(plan.cluster.initial_brokers())


def _has_elr(plan: Plan, chosen: Chosen) -> bool:
    """Return whether the cluster has eligible leader replicas, with the chosen feature level.

    It then has a dynamic default of ``min.insync.replicas``, and ignores ``server.properties``.
    """
    is_on = plan.metadata == KRAFT and plan.behaviour_switches().kraft.eligible_leader_replicas
    return bool(chosen.get(_ELR, is_on))


def _isolation_levels(plan: Plan) -> Sequence[Value]:
    return [config.isolation_level for config in consumer_configs(plan)] if has_transactions(plan) else []


def _offset_resets(plan: Plan) -> Sequence[Value]:
    """Return what groups do without an offset; nothing if one of them wants an error then."""
    resets = [config.auto_offset_reset for config in consumer_configs(plan, in_groups=True)]
    return resets if "none" not in resets else []


_AXES: Final = (
    producer_axis(
        "acks",
        "A producer waits for nothing, for the leader, or for every replica in the ISR.",
        *("0", "1", "all"),
        own=lambda config: "all" if config.acks < 0 else str(config.acks),
        cost="latency",
        protects=(LOST, REORDERED),
        exposes=(OUTAGE, FAILED),
    ),
    producer_axis(
        IDEMPOTENCE,
        "Leaders recognise retries of a batch.",
        *(False, True),
        own=lambda config: config.idempotence,
        cost="none",
        protects=(REORDERED, DOUBLED),
        since="0.11",
    ),
    producer_axis(
        IN_FLIGHT,
        "Fewer requests in flight: a retry cannot overtake a later batch.",
        *(5, 1),
        own=lambda config: config.max_in_flight,
        cost="latency",
        protects=(REORDERED,),
    ),
    topic_axis(
        MIN_ISR,
        "acks=all is refused while fewer replicas are in sync.",
        *(1, 2, 3),
        own=lambda config: config.min_insync_replicas,
        cost="outage",
        protects=(LOST,),
        exposes=(OUTAGE, FAILED),
        most=_brokers,
        is_dynamic=_has_elr,
    ),
    topic_axis(
        "unclean.leader.election.enable",
        "Only replicas in the ISR become leader, so a partition may have to wait for one.",
        *(True, False),
        own=lambda config: config.unclean_leader_election,
        cost="outage",
        protects=(LOST, REORDERED),
        exposes=(OUTAGE, FAILED),
    ),
    # Replicas also protect against faults that the user does not name, so none are taken away.
    Axis(
        name=REPLICATION_FACTOR,
        only_dearer=True,
        meaning="More brokers keep a copy of each record.",
        values=(2, 3, 4),
        cost="storage",
        protects=(LOST, OUTAGE, FAILED),
        own=_replication_factors,
        options=_with_replication_factor,
        lines=_replica_lines,
        rank=int,
        most=_brokers,
    ),
    Axis(
        name=PLACEMENT,
        meaning="The replicas of a partition are in different racks.",
        values=(RACK_AWARE,),
        cost="none",
        protects=(LOST, OUTAGE, FAILED),
        own=_placements,
        options=_with_assignments,
        lines=_placement_lines,
        rank=(ASSIGNED, RACK_AWARE).index,
        applies=has_racks,
    ),
    Axis(
        name=_ELR,
        meaning="A replica that stopped uncleanly is elected only if no other can lead (KIP-966).",
        values=(1,),
        cost="none",
        protects=(LOST,),
        since="4.0",
        own=lambda plan: [int(plan.behaviour_switches().kraft.eligible_leader_replicas)],
        options=lambda _, chosen: [f"behaviours.eligible_leader_replicas={option_text(bool(chosen[_ELR]))}"],
        lines=lambda _, chosen: [
            Line(place="cluster", text=f"kafka-features upgrade --feature {_ELR}={chosen[_ELR]}")
        ],
        rank=int,
        applies=lambda plan: plan.metadata == KRAFT,
    ),
    topic_axis(
        "log.flush.interval.messages",
        "A broker flushes every record to its disk before it answers.",
        *(LONG_MAX, 1),
        own=lambda config: config.flush_messages,
        cost="latency",
        protects=(LOST, REORDERED),
        topic_name="flush.messages",
    ),
    producer_axis(
        "retries",
        "A producer repeats a send after an error.",
        INT_MAX,
        own=lambda config: config.retries,
        cost="none",
        protects=(FAILED,),
        exposes=(DOUBLED, REORDERED),
    ),
    producer_axis(
        "delivery.timeout.ms",
        "A producer gives up later.",
        _LONG_DELIVERY_MS,
        own=lambda config: config.delivery_timeout_us // US_PER_MS,
        cost="none",
        protects=(FAILED,),
        since="2.1",
    ),
    consumer_axis(
        ISOLATION_LEVEL,
        "Consumers receive only records of committed transactions.",
        *(READ_UNCOMMITTED, READ_COMMITTED),
        own=_isolation_levels,
        cost="latency",
        protects=(UNCOMMITTED,),
        since="0.11",
    ),
    consumer_axis(
        AUTO_OFFSET_RESET,
        "Where nothing is committed, a group starts at the oldest record, not after the newest.",
        *("latest", "earliest"),
        own=_offset_resets,
        cost="none",
        protects=(LOST,),
        exposes=(DOUBLED,),
    ),
    application_axis(
        "delivery",
        "Applications commit their input after their output, or in one transaction with it.",
        *(AT_MOST_ONCE, AUTO_COMMITTED, AT_LEAST_ONCE, EXACTLY_ONCE),
        own=lambda client: client.delivery,
        words={
            AT_LEAST_ONCE: "commit the input after its output is acknowledged",
            EXACTLY_ONCE: "commit input and output in one transaction (transactional.id, sendOffsetsToTransaction)",
        },
        cost="latency",
        protects=(LOST, DOUBLED),
        since="0.11",
    ),
    application_axis(
        "group_metadata",
        "Transactions name the member and the generation for which they commit offsets (KIP-447).",
        *(False, True),
        own=lambda client: client.group_metadata,
        words={True: "give consumer.groupMetadata() to sendOffsetsToTransaction"},
        cost="none",
        protects=(DOUBLED,),
        since="2.5",
    ),
)

AXES: Final[Registry[str, Axis]] = Registry((axis.name, axis) for axis in _AXES)
"""All axes, by name."""
