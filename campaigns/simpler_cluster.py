"""Smaller clusters: plans with fewer partitions, brokers, replicas and settings than a given one."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from campaigns.generated_sections import fault_fields
from campaigns.plan import Plan, Send
from campaigns.timeline import timeline, with_timeline
from cluster_model.settings import Value
from cluster_model.topology import BrokerSpec, ClusterSpec, DiskSpec, NetworkSpec, ProducerSpec, TopicSpec
from cluster_model.virtual_time import US_PER_MS
from faults import fields as markers
from faults.fault import Fault

_ACKS: Final = "acks"
"""Kept rather than what implies it, such as idempotence: it says what was promised."""


def with_fixed_latency(plan: Plan) -> Iterator[Plan]:
    """Yield the plan with a network that takes the same time for every message, a millisecond if that will do.

    Then nothing is left to chance, and what is taken away does not change how the rest falls.
    """
    network = plan.cluster.network
    low_us, high_us = network.latency_min_us, network.latency_max_us
    options_us = [US_PER_MS]
    if low_us != high_us:
        options_us += [high_us, (low_us + high_us) // 2 // US_PER_MS * US_PER_MS, low_us]
    for latency_us in options_us:
        fixed = NetworkSpec(latency_min_us=latency_us, latency_max_us=latency_us)
        if latency_us and fixed != network:
            yield _with_cluster(plan, network=fixed)


def with_one_partition(plan: Plan, partition: str) -> Iterator[Plan]:
    """Yield the plan with this partition alone, as the first of its topic."""
    name, _, number = partition.rpartition("-")
    if plan.cluster.partition_names() == (f"{name}-0",):
        return
    for topic in plan.cluster.topics:
        if topic.name == name:
            assignment = topic.assignment[int(number) : int(number) + 1]
            yield _only(plan, replace(topic, partitions=1, assignment=assignment), partition)


def _only(plan: Plan, topic: TopicSpec, partition: str) -> Plan:
    left = topic.partition_names()[0]
    moments = []
    for moment in timeline(plan):
        action = moment.action
        if not isinstance(action, Send):
            moments.append(moment)
        elif action.partition in (None, partition):
            moments.append(replace(moment, action=replace(action, partition=left)))
    clients: dict[str, Any] = {
        "producers": tuple(replace(client, partitions=()) for client in plan.producers),
        "consumers": tuple(replace(client, partitions=()) for client in plan.consumers),
    }
    return replace(_with_cluster(with_timeline(plan, moments), topics=(topic,)), **clients)


def with_fewer_replicas(plan: Plan) -> Iterator[Plan]:
    """Yield plans without one of the brokers, or without one replica of every partition."""
    cluster = plan.cluster
    for broker in reversed(cluster.brokers):
        if len(cluster.brokers) > 1:
            rest = tuple(other for other in cluster.brokers if other.id != broker.id)
            moments = [moment for moment in timeline(plan) if broker.id not in _brokers(moment.action)]
            controller = None if cluster.controller == broker.id else cluster.controller
            fewer = _with_cluster(with_timeline(plan, moments), brokers=rest, controller=controller)
            yield _without_replica(_with_core(fewer, {b.id: b.id for b in rest}), broker.id)
        yield _without_replica(plan, broker.id)


def _without_replica(plan: Plan, broker: int) -> Plan:
    topics = []
    for topic in plan.cluster.topics:
        if not topic.assignment:
            count = min(topic.replication_factor, len(plan.cluster.brokers))
            topics.append(replace(topic, replication_factor=count))
            continue
        rows = tuple(tuple(replica for replica in row if replica != broker) for row in topic.assignment)
        if any(not row for row in rows) or len({len(row) for row in rows}) > 1:
            return plan
        topics.append(replace(topic, assignment=rows, replication_factor=len(rows[0])))
    return _with_cluster(plan, topics=tuple(topics))


def with_plain_numbers(plan: Plan) -> Iterator[Plan]:
    """Yield the plan with brokers from 0 on, in the order of the replicas, and what is then by default."""
    cluster = plan.cluster
    for topic in cluster.topics:
        if topic.assignment:
            first = topic.assignment[0]
            order = [*first, *(broker.id for broker in cluster.brokers if broker.id not in first)]
            numbers = {broker: number for number, broker in enumerate(order)}
            if any(broker != number for broker, number in numbers.items()):
                yield _renumbered(plan, numbers)
            break
    without = tuple(replace(topic, assignment=()) for topic in cluster.topics)
    if without != cluster.topics:
        yield _with_cluster(plan, topics=without)
    if cluster.controller is not None:
        yield _with_cluster(plan, controller=None)


def _renumbered(plan: Plan, numbers: Mapping[int, int]) -> Plan:
    cluster = plan.cluster
    brokers = sorted((replace(b, id=numbers[b.id]) for b in cluster.brokers), key=lambda b: b.id)
    topics = tuple(
        replace(topic, assignment=tuple(tuple(numbers[b] for b in row) for row in topic.assignment))
        for topic in cluster.topics
    )
    controller = None if cluster.controller is None else numbers[cluster.controller]
    moments = [
        replace(moment, action=_mapped(moment.action, lambda broker: numbers.get(broker, broker)))
        if moment.is_fault()
        else moment
        for moment in timeline(plan)
    ]
    renumbered = _with_cluster(
        with_timeline(plan, moments), brokers=tuple(brokers), topics=topics, controller=controller
    )
    return _with_core(renumbered, numbers)


def _with_core(plan: Plan, numbers: Mapping[int, int]) -> Plan:
    """Return the plan with other brokers' ids in the order of healing, and without those that have none."""
    if plan.core is None:
        return plan
    order = tuple(numbers[broker] for broker in plan.core.order if broker in numbers)
    return replace(plan, core=replace(plan.core, order=order))


def _brokers(action: Any) -> set[int]:
    """Return the brokers that a fault names."""
    named: set[int] = set()
    if hasattr(action, "inject"):

        def note(broker: int) -> int:
            named.add(broker)
            return broker

        _mapped(action, note)
    return named


def _mapped(fault: Any, number: Callable[[int], int]) -> Fault:
    """Return a fault with other brokers' ids."""
    changed: dict[str, Any] = {}
    kind: type[Fault] = type(fault)
    for item in fault_fields(kind):
        if item.marker in (markers.BrokerMarker, markers.EndpointMarker):
            value = getattr(fault, item.attribute)
            changed[item.attribute] = (
                tuple(number(v) if isinstance(v, int) else v for v in value)
                if isinstance(value, tuple)
                else number(value)
                if isinstance(value, int)
                else value
            )
    found: Fault = replace(fault, **changed)
    return found


def with_fewer_settings(plan: Plan) -> Iterator[Plan]:
    """Yield plans with less that is not as by default: all settings at once, then one by one."""
    names = {name for settings in _all_settings(plan) for name in settings}
    yield from _without_settings(plan, names)
    for name in sorted(names, key=lambda name: (name == _ACKS, name)):
        yield from _without_settings(plan, {name})
    for switch in sorted(plan.behaviours):
        yield replace(plan, behaviours=_without(plan.behaviours, {switch}))


def with_defaults(plan: Plan) -> Iterator[Plan]:
    """Yield plans with a part of the cluster, of the limits or of the demands as by default."""
    cluster = plan.cluster
    empty = ClusterSpec(brokers=(), topics=())
    default = Plan(campaign=plan.campaign, cluster=cluster)
    bare = tuple(BrokerSpec(id=broker.id) for broker in cluster.brokers)
    sized = ProducerSpec(name="").record_bytes
    for simpler in (
        _with_cluster(plan, brokers=bare),
        _with_cluster(plan, disk=DiskSpec()),
        _with_cluster(plan, zookeeper_tick_us=empty.zookeeper_tick_us),
        replace(plan, survivable=False),
        replace(plan, core=None),
        *_with_plainer_core(plan),
        replace(plan, demand=()),
        replace(plan, script_limit_us=default.script_limit_us),
        replace(plan, recovery_limit_us=default.recovery_limit_us),
        replace(plan, events_limit=default.events_limit),
        replace(plan, invariants=default.invariants),
        replace(plan, producers=tuple(replace(p, record_bytes=sized) for p in plan.producers)),
        replace(plan, producers=tuple(replace(p, partitions=()) for p in plan.producers)),
    ):
        if simpler != plan:
            yield simpler


def _with_plainer_core(plan: Plan) -> Iterator[Plan]:
    """Yield the plan with a core that has its time by default, or fewer brokers in a given order."""
    core = plan.core
    if core is not None:
        yield replace(plan, core=replace(core, within_us=None))
        for count in range(len(core.order)):
            yield replace(plan, core=replace(core, order=core.order[:count]))


def _all_settings(plan: Plan) -> list[Mapping[str, Value]]:
    cluster = plan.cluster
    return [
        cluster.settings,
        *(broker.settings for broker in cluster.brokers),
        *(topic.settings for topic in cluster.topics),
        *(client.settings for client in plan.producers),
        *(client.settings for client in plan.consumers),
    ]


def _without_settings(plan: Plan, names: Collection[str]) -> Iterator[Plan]:
    def rest(holders: Any) -> Any:
        return tuple(replace(holder, settings=_without(holder.settings, names)) for holder in holders)

    cluster = plan.cluster
    simpler = replace(
        _with_cluster(
            plan,
            settings=_without(cluster.settings, names),
            brokers=rest(cluster.brokers),
            topics=rest(cluster.topics),
        ),
        producers=rest(plan.producers),
        consumers=rest(plan.consumers),
    )
    if simpler != plan:
        yield simpler


def _without(values: Mapping[str, Value], names: Collection[str]) -> dict[str, Value]:
    return {name: value for name, value in values.items() if name not in names}


def _with_cluster(plan: Plan, **changes: Any) -> Plan:
    return replace(plan, cluster=replace(plan.cluster, **changes))
