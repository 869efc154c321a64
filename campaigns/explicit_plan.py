"""A run written down as a plan: what was drawn, generated or waited for becomes an action at its time."""

from collections.abc import Iterator
from dataclasses import replace

from campaigns.plan import Action, Expectation, Plan, Send
from campaigns.run_result import RunResult
from campaigns.timeline import Moment, timeline, with_timeline
from cluster_model.history import INVOKE
from cluster_model.topology import ClusterSpec
from faults.broker_crash import BrokerCrash
from faults.controller_failover import ControllerFailover


def explicit_plans(result: RunResult) -> Iterator[Plan]:
    """Yield plans that should do what a run did, the most explicit first, the run's own plan last.

    An action at a time need not fall between the same events of that microsecond as what it
    stands for, so whether a plan fails like the run has to be tried.
    """
    plan = _without_words(result.plan)
    sends = list(_sends(result))
    operated = [Moment(at_us=at_us, action=action) for at_us, action in result.operated]
    written = replace(
        plan,
        script=(),
        faults=(),
        cluster=_assigned(plan.cluster, result),
        producers=tuple(replace(p, interval_us=None, start_us=0, stop_us=None) for p in plan.producers),
    )
    for scripted in (True, False):
        yield with_timeline(written, [*sends, *operated, *_faults(result, scripted=scripted)])
    scripted_faults = any(hasattr(action, "inject") for step in plan.script for action in step.actions)
    if not scripted_faults:
        struck = with_timeline(replace(plan, script=(), faults=()), _faults(result, scripted=False))
        yield replace(plan, faults=struck.faults)
    yield plan


def with_named_controllers(plan: Plan, result: RunResult) -> Plan:
    """Return a plan in which a controller's crash is that of the broker which *result*, its run, had as controller.

    Which broker is the controller depends on all that happened before.
    """
    crashes: dict[tuple[int, Action], Action] = {
        (fault.at_us, fault.concrete): BrokerCrash(broker=broker, restart_after=fault.concrete.restart_after)
        for fault in result.faults
        if isinstance(fault.concrete, ControllerFailover) and fault.concrete.how == "crash"
        for broker in [dict(fault.details).get("broker")]
        if isinstance(broker, int)
    }
    moments = [
        replace(moment, action=crashes.get((moment.at_us, moment.action), moment.action))
        for moment in timeline(plan)
    ]
    return with_timeline(plan, moments)


def _without_words(plan: Plan) -> Plan:
    return replace(plan, variant=None, description="", swarm=None, expect=Expectation())


def _sends(result: RunResult) -> Iterator[Moment]:
    names = result.evidence.process_names
    for operation in result.evidence.operations:
        if operation.type == INVOKE and operation.f == "send":
            _, partition, value = operation.value[0]
            send = Send(producer=names[operation.process], value=str(value), partition=partition)
            yield Moment(at_us=operation.time_us, action=send)


def _faults(result: RunResult, *, scripted: bool) -> Iterator[Moment]:
    for fault in result.faults:
        if fault.concrete is not None:
            yield Moment(at_us=fault.at_us, action=fault.concrete, scripted=scripted)


def _assigned(cluster: ClusterSpec, result: RunResult) -> ClusterSpec:
    """Return the cluster with the assignment of replicas that the run had, whoever made it."""
    partitions = result.evidence.partitions
    return replace(
        cluster,
        topics=tuple(
            replace(topic, assignment=tuple(partitions[name].replicas for name in topic.partition_names()))
            for topic in cluster.topics
        ),
    )
