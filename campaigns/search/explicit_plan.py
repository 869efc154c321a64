"""Writes a run as a plan, in which random, generated and conditional actions have fixed times."""

from collections.abc import Iterator
from typing import Final

from harrow.campaigns.language.plan import Expectation, Plan
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.search.timeline import Moment, timeline, with_timeline
from harrow.cluster_model.events import TransactionEnding, TransactionOpened
from harrow.cluster_model.lazy_dataclass import replace
from harrow.cluster_model.topology import ClusterSpec
from harrow.cluster_model.trace import select
from harrow.faults.action import Action
from harrow.faults.actions import (
    AbortTransaction,
    BeginTransaction,
    CommitTransaction,
    Send,
    TransactionAction,
)
from harrow.faults.fault import Fault

_END: Final[dict[bool, type[TransactionAction]]] = {True: CommitTransaction, False: AbortTransaction}


def explicit_plans(result: RunResult) -> Iterator[Plan]:
    """Yield plans that should repeat a run, from the most explicit one to the run's own plan.

    Within a microsecond, an action of such a plan may fall between other events than in the run. So
    only a trial shows whether a plan fails like the run.
    """
    plan = replace(result.plan, variant=None, description="", swarm=None, expect=Expectation())
    sends = list(sends_of(result))
    other_actions = [Moment(at_us=at_us, action=action) for at_us, action in result.other_actions]
    without_moments = replace(
        plan,
        script=(),
        faults=(),
        cluster=_assigned(plan.cluster, result),
        producers=tuple(replace(p, interval_us=None, start_us=0, stop_us=None) for p in plan.producers),
    )
    starts, ends = _transaction_starts(result), _transaction_ends(result)
    for scripted in (True, False):
        moments = [*starts, *sends, *ends, *other_actions, *_faults(result, scripted=scripted)]
        yield with_timeline(without_moments, moments)
    scripted_faults = any(isinstance(action, Fault) for step in plan.script for action in step.actions)
    if not scripted_faults:
        with_faults = with_timeline(replace(plan, script=(), faults=()), _faults(result, scripted=False))
        yield replace(plan, faults=with_faults.faults)
    yield plan


def with_named_controllers(plan: Plan, result: RunResult) -> Plan:
    """Return a plan in which faults of the controller name the broker that it was in the run.

    Which broker is the controller depends on everything that happened before, so a removal could
    make such a fault strike another broker.
    """
    by_moment: dict[tuple[int, Action | None], Action] = {
        (fault.at_us, fault.concrete): fault.named for fault in result.faults if fault.named is not None
    }
    moments = [
        replace(moment, action=by_moment.get((moment.at_us, moment.action), moment.action))
        for moment in timeline(plan)
    ]
    return with_timeline(plan, moments)


def _producers(result: RunResult) -> frozenset[str]:
    """Return the names of a plan's producers, whose sends a plan can list.

    Other clients send and begin transactions by themselves.
    """
    return frozenset(producer.name for producer in result.plan.producers)


def sends_of(result: RunResult) -> Iterator[Moment]:
    """Yield the sends of producers in a run, with their times."""
    names = result.evidence.process_names
    producers = _producers(result)
    for operation in result.evidence.operations:
        if operation.is_completion or names[operation.process] not in producers:
            continue
        for partition, _, value in operation.sends():
            send = Send(producer=names[operation.process], value=str(value), partition=partition)
            yield Moment(at_us=operation.time_us, action=send)


def _transaction_starts(result: RunResult) -> list[Moment]:
    """Return the starts of producers' transactions.

    A start has to come before the sends of the same time.
    """
    producers = _producers(result)
    return [
        Moment(at_us=opened.at_us, action=BeginTransaction(producer=opened.client))
        for opened in select(result.evidence.trace, TransactionOpened)
        if opened.client in producers
    ]


def _transaction_ends(result: RunResult) -> list[Moment]:
    """Return the ends of producers' transactions. An end comes after the sends of the same time."""
    producers = _producers(result)
    return [
        Moment(at_us=ending.at_us, action=_END[ending.committed](producer=ending.client))
        for ending in select(result.evidence.trace, TransactionEnding)
        if ending.client in producers
    ]


def _faults(result: RunResult, *, scripted: bool) -> Iterator[Moment]:
    for fault in result.faults:
        if fault.concrete is not None:
            yield Moment(at_us=fault.at_us, action=fault.concrete, scripted=scripted)


def _assigned(cluster: ClusterSpec, result: RunResult) -> ClusterSpec:
    """Return the cluster with the replica assignment of the run."""
    partitions = result.evidence.partitions
    return replace(
        cluster,
        topics=tuple(
            replace(topic, assignment=tuple(partitions[name].replicas for name in topic.partition_names()))
            for topic in cluster.topics
        ),
    )
