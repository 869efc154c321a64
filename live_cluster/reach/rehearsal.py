"""Computes the effects that the faults of a plan would have on a cluster."""

from collections.abc import Callable, Iterator
from itertools import cycle

from harrow.campaigns.language.plan import Plan
from harrow.cluster_model.fields import BrokerMarker, all_fields_of, with_fields
from harrow.cluster_model.topology import ApplicationSpec
from harrow.faults.action import Action
from harrow.faults.effects import FaultEffect
from harrow.faults.fault import ClientApplication, Fault, LastingFault
from harrow.faults.forecast_environment import ANY_CLIENT, ForecastEnvironment
from harrow.faults.link_ends import with_link_ends

WhyImpossible = Callable[[FaultEffect], str | None]
"""Returns why an effect is impossible on a cluster, None if it is possible."""


def faults_of(plan: Plan) -> Iterator[Fault]:
    """Yield every fault in the script and in the injections of a plan."""
    for step in plan.script:
        yield from (action for action in step.actions if isinstance(action, Fault))
    for injection in plan.faults:
        yield from injection.faults


def actions_of(plan: Plan) -> Iterator[Action]:
    """Yield every action of a plan's script that is not a fault."""
    for step in plan.script:
        yield from (action for action in step.actions if not isinstance(action, Fault))


def applications_of(plan: Plan) -> tuple[ApplicationSpec, ...]:
    """Return the applications of a plan, without kinds of clients from extensions."""
    return tuple(spec for spec in plan.applications if isinstance(spec, ApplicationSpec))


def rehearse(fault: Fault, plan: Plan) -> tuple[FaultEffect, ...]:
    """Return the distinct effects of a fault and of its end.

    If the fault chooses a broker during the run, any broker stands in for it.
    """
    cluster = _HealthyCluster(plan)
    brokers = cluster.broker_ids()
    stand_ins = {
        item.attribute: brokers[0]
        for item in all_fields_of(type(fault))
        if item.kind is BrokerMarker and isinstance(item.value_in(fault), (str, tuple))
    }
    # Choose different brokers for the ends of links; a broker has no link to itself.
    others = cycle((*brokers[1:], brokers[0]))
    concrete = with_link_ends(
        with_fields(fault, stand_ins), brokers, cluster.client_names(), lambda _: (next(others),)
    )
    forecast = ForecastEnvironment(cluster)
    effects = list(forecast.effects_of(concrete))
    if isinstance(concrete, LastingFault) and concrete.is_lasting():
        effects += concrete.end(forecast)
    return tuple(dict.fromkeys(effects))


def reasons_against(plan: Plan, why_impossible: WhyImpossible) -> list[str]:
    """Return the distinct reasons why effects of a plan's faults are impossible."""
    reasons = {
        f"{fault.name}: {reason}"
        for fault in faults_of(plan)
        for effect in rehearse(fault, plan)
        if (reason := why_impossible(effect)) is not None
    }
    return sorted(reasons)


class _HealthyCluster:
    """A healthy cluster where everything is possible (`harrow.faults.fault.Environment`)."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def broker_ids(self) -> tuple[int, ...]:
        return tuple(broker.id for broker in self._plan.cluster.brokers)

    def client_names(self) -> tuple[str, ...]:
        return tuple(spec.name for spec in self._plan.clients())

    def client(self, name: str) -> ClientApplication:
        return ANY_CLIENT

    def controller(self) -> int | None:
        return self.broker_ids()[0]

    def log_dirs(self) -> int:
        return self._plan.cluster.disk.log_dirs

    def is_running(self, broker: int) -> bool:
        return True

    has_logs = may_lose_power = may_lose_disk = is_running

    def is_paused(self, broker: int) -> bool:
        return False

    is_stopping = is_paused

    def has_batch(self, broker: int, partition: str, offset: int | None) -> bool:
        return True

    def under_replicated_partitions(self) -> tuple[str, ...]:
        return ()

    def is_link_cut(self, sender: int | str, receiver: int | str) -> bool:
        return False

    def message_rules(self) -> tuple[()]:
        return ()
