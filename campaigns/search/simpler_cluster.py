"""Yields plans with simpler clusters: fewer partitions, brokers, replicas and settings."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import MISSING, is_dataclass
from typing import Any, Final, TypeVar

from harrow.campaigns.language.plan import Plan
from harrow.campaigns.search.timeline import timeline, values_of, with_actions, with_timeline, with_values
from harrow.cluster_model import fields as kinds
from harrow.cluster_model.fields import DeclaredField, fields_of, with_fields
from harrow.cluster_model.lazy_dataclass import replace
from harrow.cluster_model.settings import SETTINGS, Value, conflicts
from harrow.cluster_model.sim.virtual_time import US_PER_MS

S = TypeVar("S")

_BROKERS: Final = (kinds.BrokerMarker, kinds.BrokerIdMarker, kinds.EndpointMarker)
_PARTITIONS: Final = (kinds.PartitionMarker,)
_TOPICS: Final = (kinds.TopicMarker,)
_ACKS: Final = "acks"
"""The setting that is removed last, after those that imply it, such as idempotence.

It states what the producer is promised.
"""


def with_fixed_latency(plan: Plan) -> Iterator[Plan]:
    """Yield the plan with one latency for all messages, first with a millisecond.

    Without random latencies, a removal does not change the latencies of other messages.
    """
    network = plan.cluster.network
    low_us, high_us = network.latency_min_us, network.latency_max_us
    options_us = [US_PER_MS]
    if low_us != high_us:
        options_us += [high_us, (low_us + high_us) // 2 // US_PER_MS * US_PER_MS, low_us]
    for latency_us in options_us:
        fixed = replace(network, latency_min_us=latency_us, latency_max_us=latency_us)
        if latency_us and fixed != network:
            yield _with_cluster(plan, network=fixed)


def with_one_partition(plan: Plan, partition: str) -> Iterator[Plan]:
    """Yield the plan with only this partition, as the first of its topic."""
    name, _, number = partition.rpartition("-")
    remaining = f"{name}-0"
    if plan.cluster.partition_names() == (remaining,):
        return
    moments = [
        replace(moment, action=with_values(moment.action, _PARTITIONS, lambda _: remaining))
        for moment in timeline(plan)
        if all(value in (None, partition) for value in values_of(moment.action, _PARTITIONS))
        and all(topic == name for topic in values_of(moment.action, _TOPICS))
    ]
    alone = replace(
        with_timeline(plan, moments),
        producers=tuple(replace(client, partitions=()) for client in plan.producers),
        consumers=tuple(replace(client, partitions=()) for client in plan.consumers),
    )
    for topic in plan.cluster.topics:
        if topic.name == name:
            assignment = topic.assignment[int(number) : int(number) + 1]
            yield _with_cluster(alone, topics=(replace(topic, partitions=1, assignment=assignment),))


def with_fewer_replicas(plan: Plan) -> Iterator[Plan]:
    """Yield plans without one of the brokers, or without one replica of every partition."""
    cluster = plan.cluster
    for broker in reversed(cluster.brokers):
        if any(other is not broker for other in cluster.initial_brokers()):
            rest = tuple(other for other in cluster.brokers if other.id != broker.id)
            moments = [m for m in timeline(plan) if broker.id not in values_of(m.action, _BROKERS)]
            controller = None if cluster.controller == broker.id else cluster.controller
            fewer = _with_cluster(with_timeline(plan, moments), brokers=rest, controller=controller)
            fewer = _with_fewer_voters(_with_core(fewer, {b.id: b.id for b in rest}))
            yield _without_replica(fewer, broker.id)
        yield _without_replica(plan, broker.id)


def _with_fewer_voters(plan: Plan) -> Plan:
    """Return the plan with no more voters than brokers, so that its campaign file is valid."""
    cluster = plan.cluster
    return _with_cluster(plan, voters=len(cluster.controller_ids())) if cluster.combined else plan


def _without_replica(plan: Plan, broker: int) -> Plan:
    topics = []
    for topic in plan.cluster.topics:
        if not topic.assignment:
            count = min(topic.replication_factor, len(plan.cluster.initial_brokers()))
            topics.append(replace(topic, replication_factor=count))
            continue
        rows = tuple(tuple(replica for replica in row if replica != broker) for row in topic.assignment)
        if any(not row for row in rows) or len({len(row) for row in rows}) > 1:
            return plan
        topics.append(replace(topic, assignment=rows, replication_factor=len(rows[0])))
    return _with_cluster(plan, topics=tuple(topics))


def with_plain_numbers(plan: Plan) -> Iterator[Plan]:
    """Yield the plan with brokers numbered in the order of the first partition's replicas.

    Then yield it without replica assignments, and without a chosen controller.
    """
    cluster = plan.cluster
    first = next((topic.assignment[0] for topic in cluster.topics if topic.assignment), None)
    if first is not None:
        order = [*first, *(broker.id for broker in cluster.brokers if broker.id not in first)]
        numbers = {broker: number for number, broker in enumerate(order)}
        if order != list(range(len(order))):
            yield _renumbered(plan, numbers)
    without_it = tuple(replace(topic, assignment=()) for topic in cluster.topics)
    if without_it != cluster.topics:
        yield _with_cluster(plan, topics=without_it)
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
    renumbered = with_actions(
        plan, lambda action: with_values(action, _BROKERS, lambda value: numbers.get(value, value))
    )
    renumbered = _with_cluster(renumbered, brokers=tuple(brokers), topics=topics, controller=controller)
    return _with_core(renumbered, numbers)


def _with_core(plan: Plan, numbers: Mapping[int, int]) -> Plan:
    """Return the plan with a core of the renumbered brokers, without those that were removed."""
    if plan.core is None:
        return plan
    order = tuple(numbers[broker] for broker in plan.core.order if broker in numbers)
    return replace(plan, core=replace(plan.core, order=order))


def with_fewer_settings(plan: Plan) -> Iterator[Plan]:
    """Yield plans without all settings, then without each setting, then without each switch."""
    cluster = plan.cluster
    holders: list[Any] = [cluster, *cluster.brokers, *cluster.topics, *plan.producers, *plan.consumers]
    names = {name for holder in holders for name in holder.settings}
    yield from _without_settings(plan, names)
    for name in sorted(names, key=lambda name: (name == _ACKS, name)):
        yield from _without_settings(plan, {name})
    for switch in sorted(plan.behaviours):
        needing = {setting.name for setting in SETTINGS.values() if setting.needs == switch}
        without_it = replace(plan, behaviours=_without(plan.behaviours, {switch}))
        yield from _without_settings(without_it, needing) if needing & names else (without_it,)


def with_defaults(spec: S) -> Iterator[S]:
    """Yield a plan, or a part of a plan, with one of its shrinkable fields simplified.

    The field gets its default, a shorter list, or a simpler part.
    """
    for item in fields_of(type(spec)):
        value = item.value_in(spec)
        if item.options.shrinks and value != item.default:
            for simpler in _simpler_values(item, value):
                yield with_fields(spec, item.named(simpler))


def _simpler_values(item: DeclaredField, value: Any) -> Iterator[Any]:
    if is_dataclass(item.kind):
        if item.optional:
            yield item.default
        yield from _with_default_in_each(value) if item.many else with_defaults(value)
    elif item.kind is not kinds.SettingsMarker and item.default is not MISSING:
        yield item.default
        if item.default == ():
            yield from (value[:count] for count in range(1, len(value)))


def _with_default_in_each(specs: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Yield parts of one kind, with the same field of all of them set to its default."""
    for item in fields_of(type(specs[0])) if specs else ():
        plain = item.options.shrinks and item.default is not MISSING and item.kind is not kinds.SettingsMarker
        changed = tuple(replace(spec, **item.named(item.default)) for spec in specs) if plain else specs
        if changed != specs:
            yield changed


def _without_settings(plan: Plan, names: Collection[str]) -> Iterator[Plan]:
    def rest(holders: Any) -> Any:
        return tuple(replace(holder, settings=_without(holder.settings, names)) for holder in holders)

    cluster = plan.cluster
    simpler = _with_cluster(
        plan,
        settings=_without(cluster.settings, names),
        brokers=rest(cluster.brokers),
        topics=rest(cluster.topics),
    )
    simpler = replace(simpler, producers=rest(plan.producers), consumers=rest(plan.consumers))
    behaviours = plan.behaviour_switches()
    # Without the removed setting, Kafka may reject the producer's other settings.
    refused = any(list(conflicts(plan.kafka, client.settings, behaviours)) for client in simpler.producers)
    if simpler != plan and not refused:
        yield simpler


def _without(values: Mapping[str, Value], names: Collection[str]) -> dict[str, Value]:
    return {name: value for name, value in values.items() if name not in names}


def _with_cluster(plan: Plan, **changes: Any) -> Plan:
    return replace(plan, cluster=replace(plan.cluster, **changes))
