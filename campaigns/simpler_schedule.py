"""Simpler schedules: plans with fewer clients, plainer faults and rounder times than a given one."""

from collections.abc import Iterator
from dataclasses import MISSING, fields, replace
from typing import Any, Final

from campaigns.generated_sections import fault_fields
from campaigns.plan import Plan, RestartProducer, Send, Step
from campaigns.timeline import Moment, timeline, with_timeline
from cluster_model.virtual_time import US_PER_MS, US_PER_SECOND
from faults import fields as markers
from faults.broker_crash import BrokerCrash
from faults.broker_pause import BrokerPause
from faults.controller_failover import ControllerFailover
from faults.fault import Fault
from faults.message import Message
from faults.network_ack_loss import NetworkAckLoss

GRIDS_US: Final = (
    10 * US_PER_SECOND,
    5 * US_PER_SECOND,
    US_PER_SECOND,
    500 * US_PER_MS,
    100 * US_PER_MS,
    10 * US_PER_MS,
    US_PER_MS,
)
"""What times are rounded to, the roundest first."""

_SAID: Final[dict[type[Fault], frozenset[str]]] = {
    # One answer lost is plainer than every one, and a message that is named than any.
    NetworkAckLoss: frozenset({"count"}),
    Message: frozenset({"api", "kind", "from_", "to", "id"}),
}
"""What is not left out of a fault, although there is a default: it would be less plain."""

PRODUCER: Final = "producer-0"
HEALED: Final = "The cluster is healed."


def with_fewer_clients(plan: Plan) -> Iterator[Plan]:
    """Yield plans without consumers, without producers that do nothing, and with one producer for all."""
    if plan.consumers:
        yield replace(plan, consumers=())
        for consumer in plan.consumers:
            yield replace(plan, consumers=tuple(c for c in plan.consumers if c is not consumer))
    for producer in plan.producers:
        others = tuple(other for other in plan.producers if other is not producer)
        if others:
            yield replace(_sent_by(plan, producer.name, others[0].name), producers=others)
    if len(plan.producers) == 1 and plan.producers[0].name != PRODUCER:
        name = plan.producers[0].name
        yield replace(_sent_by(plan, name, PRODUCER), producers=(replace(plan.producers[0], name=PRODUCER),))


def _sent_by(plan: Plan, name: str, other: str) -> Plan:
    moments = []
    for moment in timeline(plan):
        action = moment.action
        if isinstance(action, (Send, RestartProducer)) and action.producer == name:
            moments.append(replace(moment, action=replace(action, producer=other)))
        elif moment.is_fault():
            moments.append(replace(moment, action=_of_client(action, name, other)))
        else:
            moments.append(moment)
    return with_timeline(plan, moments)


def _of_client(fault: Any, name: str, other: str) -> Fault:
    changed: dict[str, Any] = {}
    for item in fields(fault):
        value = getattr(fault, item.name)
        if value == name:
            changed[item.name] = other
        elif isinstance(value, tuple) and name in value:
            changed[item.name] = tuple(other if part == name else part for part in value)
    found: Fault = replace(fault, **changed)
    return found


def with_plain_values(plan: Plan) -> Iterator[Plan]:
    """Yield the plan with records m0, m1 and so on, which go where the partitioner puts them."""
    moments, count = [], 0
    for moment in timeline(plan):
        action = moment.action
        if isinstance(action, Send):
            moments.append(replace(moment, action=replace(action, value=f"m{count}")))
            count += 1
        else:
            moments.append(moment)
    renamed = with_timeline(plan, moments)
    if renamed != plan:
        yield renamed
    anywhere = [
        replace(moment, action=replace(moment.action, partition=None))
        if isinstance(moment.action, Send)
        else moment
        for moment in moments
    ]
    if len(plan.cluster.partition_names()) == 1 and anywhere != moments:
        yield with_timeline(plan, anywhere)


def with_plainer_faults(plan: Plan) -> Iterator[Plan]:
    """Yield plans with one fault that has less about it that is not as by default."""
    moments = timeline(plan)
    for place, moment in enumerate(moments):
        if moment.is_fault():
            for fault in _plainer(moment.action):
                changed = replace(moment, action=fault)
                yield with_timeline(plan, (*moments[:place], changed, *moments[place + 1 :]))


def _plainer(fault: Any) -> Iterator[Fault]:
    if isinstance(fault, NetworkAckLoss):
        once = NetworkAckLoss(count=1)
        if fault != once:
            yield once
        one = replace(fault, count=1, probability=1.0, duration=None)
        if fault != one:
            yield one
    defaults = {item.name: item.default for item in fields(fault) if item.default is not MISSING}
    bare = replace(fault, **defaults)
    if bare != fault and not isinstance(fault, (NetworkAckLoss, Message)):
        yield bare
    kept = _SAID.get(type(fault), frozenset())
    for name, default in defaults.items():
        if getattr(fault, name) != default and name not in kept:
            yield replace(fault, **{name: default})
    if isinstance(fault, ControllerFailover) and fault.how != "crash":
        yield replace(fault, how="crash")


def with_crashes(plan: Plan) -> Iterator[Plan]:
    """Yield plans in which a broker crashes, by its id, where it is paused or crashes as the controller."""
    moments = timeline(plan)
    for place, moment in enumerate(moments):
        for crash in _crashes(moment.action, plan):
            changed = replace(moment, action=crash)
            yield with_timeline(plan, (*moments[:place], changed, *moments[place + 1 :]))


def _crashes(fault: Any, plan: Plan) -> Iterator[BrokerCrash]:
    if isinstance(fault, BrokerPause):
        yield BrokerCrash(broker=fault.broker, restart_after=fault.duration)
        yield BrokerCrash(broker=fault.broker)
    elif isinstance(fault, ControllerFailover) and fault.how == "crash":
        for broker in plan.cluster.brokers:
            yield BrokerCrash(broker=broker.id, restart_after=fault.restart_after)


def with_end_in_script(plan: Plan) -> Iterator[Plan]:
    """Yield the plan with its end as the last step of the script, with a note, where nothing is generated."""
    generated = any(producer.interval_us is not None for producer in plan.producers)
    last_us = max((moment.at_us for moment in timeline(plan)), default=0)
    if plan.script and last_us < plan.duration_us and not generated and not plan.faults:
        end = Step(at_us=plan.duration_us, actions=(), note=HEALED)
        yield replace(plan, script=(*plan.script, end), duration_us=0)


def with_rounder_times(plan: Plan) -> Iterator[Plan]:
    """Yield plans with rounder or earlier times: of what happens, of what lasts, of the end."""
    yield from _sooner_ends(plan)
    moments = timeline(plan)
    before = _roughness(moments)
    for changed in _retimed(moments):
        if changed != moments and _roughness(changed) < before:
            yield with_timeline(plan, changed)
    for place, moment in enumerate(moments):
        if moment.is_fault():
            for fault in _rounder(moment.action):
                yield with_timeline(
                    plan, (*moments[:place], replace(moment, action=fault), *moments[place + 1 :])
                )


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
    """Yield times from *least_us* on that are rounder than a time, or as round and earlier."""
    seen: set[int] = set()
    for grid_us in GRIDS_US:
        soonest_us = -(-least_us // grid_us) * grid_us
        down_us = time_us // grid_us * grid_us
        for at_us in (least_us, soonest_us, soonest_us + grid_us, down_us, down_us + grid_us):
            if at_us >= least_us and at_us not in seen and _cost(at_us) < _cost(time_us):
                seen.add(at_us)
                yield at_us


def _roughness(moments: tuple[Moment, ...]) -> tuple[int, int, int]:
    """Return how far from plain the times are: fewer of them, rounder and earlier ones are plainer."""
    times = {moment.at_us for moment in moments}
    return sum(_grid(at_us) for at_us in times), len(times), sum(moment.at_us for moment in moments)


def _cost(time_us: int) -> tuple[int, int]:
    return _grid(time_us), time_us


def _grid(time_us: int) -> int:
    """Return how rough a time is: 0 for whole seconds."""
    grids = GRIDS_US[2:]
    return next((place for place, grid_us in enumerate(grids) if time_us % grid_us == 0), len(grids))


def _sooner_ends(plan: Plan) -> Iterator[Plan]:
    moments = timeline(plan)
    last_us = max((moment.at_us for moment in moments if not moment.scripted), default=0)
    if plan.duration_us:
        for end_us in (0, *_rounder_times(plan.duration_us, last_us)):
            if _cost(end_us) < _cost(plan.duration_us):
                yield replace(plan, duration_us=end_us)


def _rounder(fault: Any) -> Iterator[Fault]:
    kind: type[Fault] = type(fault)
    for item in fault_fields(kind):
        value = getattr(fault, item.attribute)
        if item.marker is markers.DurationRangeMarker and value is not None:
            for lasts_us in _rounder_times(value[1], 0):
                yield replace(fault, **{item.attribute: (lasts_us, lasts_us)})
        elif item.marker is markers.DurationMarker:
            for lasts_us in _rounder_times(value, US_PER_MS):
                yield replace(fault, **{item.attribute: lasts_us})
