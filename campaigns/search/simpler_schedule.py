"""Yields plans with simpler schedules: fewer clients, simpler faults and rounder times."""

from collections.abc import Iterator
from dataclasses import MISSING
from itertools import count
from typing import Any, Final

from harrow.campaigns.language.plan import Plan, Step
from harrow.campaigns.search.simpler_cluster import with_defaults
from harrow.campaigns.search.timeline import (
    Moment,
    timeline,
    with_actions,
    with_one_fault,
    with_timeline,
    with_values,
)
from harrow.cluster_model import fields as kinds
from harrow.cluster_model.fields import fields_of
from harrow.cluster_model.lazy_dataclass import replace
from harrow.cluster_model.sim.virtual_time import US_PER_MS, US_PER_SECOND
from harrow.faults.action import Action
from harrow.faults.actions import Send
from harrow.faults.fault import Fault

GRIDS_US: Final = (
    10 * US_PER_SECOND,
    5 * US_PER_SECOND,
    US_PER_SECOND,
    500 * US_PER_MS,
    100 * US_PER_MS,
    10 * US_PER_MS,
    US_PER_MS,
)
"""Times are rounded to multiples of these, the coarsest first."""

PRODUCER: Final = "producer-0"
HEALED: Final = "The cluster is healed."


def with_fewer_clients(plan: Plan) -> Iterator[Plan]:
    """Yield plans without consumers and other clients, and with fewer producers.

    Another producer sends the records of a removed producer. A client's quota is removed with it.
    """
    for fewer in _with_fewer_clients(plan):
        names = {client.name for client in fewer.clients()}
        quotas = tuple(
            quota for quota in fewer.cluster.quotas if quota.client is None or quota.client in names
        )
        yield replace(fewer, cluster=replace(fewer.cluster, quotas=quotas))


def _with_fewer_clients(plan: Plan) -> Iterator[Plan]:
    if plan.consumers:
        yield replace(plan, consumers=())
        for consumer in plan.consumers:
            yield replace(plan, consumers=tuple(c for c in plan.consumers if c is not consumer))
    for application in plan.applications:
        yield replace(plan, applications=tuple(a for a in plan.applications if a is not application))
    for producer in plan.producers:
        others = tuple(other for other in plan.producers if other is not producer)
        if others:
            yield replace(_sent_by(plan, producer.name, others[0].name), producers=others)
    if len(plan.producers) == 1 and plan.producers[0].name != PRODUCER:
        name = plan.producers[0].name
        yield replace(_sent_by(plan, name, PRODUCER), producers=(replace(plan.producers[0], name=PRODUCER),))


def _sent_by(plan: Plan, name: str, other: str) -> Plan:
    clients = (kinds.ClientMarker, kinds.EndpointMarker)
    sent = with_actions(
        plan, lambda action: with_values(action, clients, lambda value: other if value == name else value)
    )
    quotas = plan.cluster.quotas
    if any(quota.client == other for quota in quotas):
        return sent
    quotas = tuple(replace(quota, client=other) if quota.client == name else quota for quota in quotas)
    return replace(sent, cluster=replace(sent.cluster, quotas=quotas))


def with_plain_values(plan: Plan) -> Iterator[Plan]:
    """Yield the plan with the records m0, m1 and so on, then also without their partitions."""
    numbers = count()

    def numbered(action: Action) -> Action:
        return replace(action, value=f"m{next(numbers)}") if isinstance(action, Send) else action

    def without_partition(action: Action) -> Action:
        return replace(action, partition=None) if isinstance(action, Send) else action

    renamed = with_actions(plan, numbered)
    if renamed != plan:
        yield renamed
    anywhere = with_actions(renamed, without_partition)
    if len(plan.cluster.partition_names()) == 1 and anywhere != renamed:
        yield anywhere


def with_plainer_faults(plan: Plan) -> Iterator[Plan]:
    """Yield plans in which one fault is simpler, that is, closer to its defaults."""
    yield from with_one_fault(plan, _plainer)


def _plainer(fault: Any) -> Iterator[Fault]:
    yield from fault.simpler()
    items = [item for item in fields_of(type(fault)) if item.default is not MISSING]
    if all(item.options.shrinks for item in items):
        bare = replace(fault, **{item.attribute: item.default for item in items})
        if bare != fault:
            yield bare
    yield from with_defaults(fault)


def with_crashes(plan: Plan) -> Iterator[Plan]:
    """Yield plans in which a crash of a given broker replaces another fault that stops a broker."""
    brokers = tuple(broker.id for broker in plan.cluster.brokers)
    yield from with_one_fault(plan, lambda fault: fault.crashes(brokers))


def with_end_in_script(plan: Plan) -> Iterator[Plan]:
    """Yield the plan with its end as the last step of its script, if the script has everything."""
    generated = any(producer.interval_us is not None for producer in plan.producers)
    last_us = max((moment.at_us for moment in timeline(plan)), default=0)
    if plan.script and last_us < plan.duration_us and not generated and not plan.faults:
        end = Step(at_us=plan.duration_us, actions=(), note=HEALED)
        yield replace(plan, script=(*plan.script, end), duration_us=0)


def with_rounder_times(plan: Plan) -> Iterator[Plan]:
    """Yield plans with rounder or earlier times of the end, of moments, or of faults' durations."""
    last_us = max((moment.at_us for moment in timeline(plan) if not moment.scripted), default=0)
    if plan.duration_us:
        for end_us in (0, *_rounder_times(plan.duration_us, last_us)):
            if _cost(end_us) < _cost(plan.duration_us):
                yield replace(plan, duration_us=end_us)
    moments = timeline(plan)
    for changed in _retimed(moments):
        if changed != moments and _roughness(changed) < _roughness(moments):
            yield with_timeline(plan, changed)
    yield from with_one_fault(plan, _rounder)


def _retimed(moments: tuple[Moment, ...]) -> Iterator[tuple[Moment, ...]]:
    for grid_us in GRIDS_US:
        yield tuple(replace(m, at_us=-(-m.at_us // grid_us) * grid_us) for m in moments)
    for place, moment in enumerate(moments):
        earlier_us = moments[place - 1].at_us if place else 0
        for at_us in _rounder_times(moment.at_us, earlier_us):
            shift_us = at_us - moment.at_us
            head, tail = moments[:place], moments[place + 1 :]
            yield (*head, *(replace(m, at_us=m.at_us + shift_us) for m in moments[place:]))
            yield (*head, replace(moment, at_us=at_us), *tail)


def _rounder_times(time_us: int, least_us: int) -> Iterator[int]:
    """Yield times that are rounder than a time, or as round and earlier; none before *least_us*."""
    tried: set[int] = set()
    for grid_us in GRIDS_US:
        soonest_us = -(-least_us // grid_us) * grid_us
        down_us = time_us // grid_us * grid_us
        for at_us in (least_us, soonest_us, soonest_us + grid_us, down_us, down_us + grid_us):
            if at_us >= least_us and at_us not in tried and _cost(at_us) < _cost(time_us):
                tried.add(at_us)
                yield at_us


def _roughness(moments: tuple[Moment, ...]) -> tuple[int, int, int]:
    """Return how rough the times are. The rounder, the fewer and the earlier, the smaller."""
    times = {moment.at_us for moment in moments}
    return sum(_grid(at_us) for at_us in times), len(times), sum(moment.at_us for moment in moments)


def _cost(time_us: int) -> tuple[int, int]:
    return _grid(time_us), time_us


def _grid(time_us: int) -> int:
    """Return how rough a time is: 0 for whole seconds."""
    grids = GRIDS_US[2:]
    return next((place for place, grid_us in enumerate(grids) if time_us % grid_us == 0), len(grids))


def _rounder(fault: Any) -> Iterator[Fault]:
    for item in fields_of(type(fault)):
        value = getattr(fault, item.attribute)
        if issubclass(item.kind, kinds.DurationRangeMarker) and value is not None:
            for duration_us in _rounder_times(value[1], 0):
                yield replace(fault, **{item.attribute: (duration_us, duration_us)})
        elif item.kind is kinds.DurationMarker:
            for duration_us in _rounder_times(value, US_PER_MS):
                yield replace(fault, **{item.attribute: duration_us})
