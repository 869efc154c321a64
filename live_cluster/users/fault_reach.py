"""Finds out which faults are possible on each kind of target.

For each fault, it checks small campaigns with one form of the fault each: with only the required
fields, with each choice of a field, with links between brokers, and on a producer and an
application. So the table of faults and targets follows from `harrow.live_cluster.reach.feasible`,
even for a new fault.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from harrow.campaigns.language.plan import Plan, Step
from harrow.campaigns.run.targets.model_environment import MODEL
from harrow.cluster_model import fields as kinds
from harrow.cluster_model.events import Sight
from harrow.cluster_model.fields import DeclaredField, all_fields_of, by_kind, fields_of
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.topology import (
    IDEMPOTENT_SINK,
    ApplicationSpec,
    BrokerSpec,
    ClusterSpec,
    ProducerSpec,
    TopicSpec,
)
from harrow.faults.fault import Fault
from harrow.live_cluster.local.started_effects import started_reach
from harrow.live_cluster.reach.feasible import Reach, obstacles_within
from harrow.live_cluster.reach.rehearsal import reasons_against
from harrow.live_cluster.releases.kafka_release import KRAFT, ZOOKEEPER, pinned_releases
from harrow.live_cluster.users.users_reach import UNOBSERVABLE_COLUMNS, USER_CLUSTER_EFFECTS

_PRODUCER: Final = "producer-0"
_APPLICATION: Final = "application-0"
_BROKERS: Final = (0, 1, 2)
_EXAMPLES: Final[Mapping[type[Any], Any]] = {
    kinds.BrokerMarker: 1,
    kinds.EndpointMarker: 1,
    kinds.LinkEndMarker: 0,
    kinds.ClientMarker: _PRODUCER,
    kinds.PartitionMarker: "t-0",
}
_LINK_ENDS: Final = (1, 2)
"""Brokers as ends of links. They differ from the end in `_EXAMPLES`."""


@dataclass(frozen=True, slots=True)
class FaultReach:
    """Whether some form of a fault is possible on a target, and the obstacles to other forms."""

    is_possible: bool
    obstacles: tuple[str, ...]

    def __str__(self) -> str:
        if not self.is_possible:
            return "no"
        return "in part" if self.obstacles else "yes"


def targets_of(fault: type[Fault]) -> dict[str, FaultReach]:
    """Return the reach of a fault on each kind of target, by the target's name."""
    plans = [_plan(example) for example in _examples(fault)]
    return {name: _reach(plans, obstacles_of) for name, obstacles_of in _targets().items()}


def _reach(plans: list[Plan], obstacles_of: Callable[[Plan], Iterable[str]]) -> FaultReach:
    obstacles = [tuple(obstacles_of(plan)) for plan in plans]
    reasons = dict.fromkeys(reason for plan_obstacles in obstacles for reason in plan_obstacles)
    return FaultReach(is_possible=not all(obstacles), obstacles=tuple(reasons))


def _targets() -> dict[str, Callable[[Plan], Iterable[str]]]:
    """Return, for each kind of target, a function that yields the obstacles to a plan.

    The newest release with ZooKeeper, or KRaft, stands for all releases with it.
    """
    newest = {mode: release for release in pinned_releases() for mode in release.modes}
    users = Reach(
        release=newest[ZOOKEEPER],
        metadata=ZOOKEEPER,
        sight=Sight.ANY_BROKERS,
        unobservable=UNOBSERVABLE_COLUMNS,
        why_impossible=USER_CLUSTER_EFFECTS.lack,
    )
    return {
        "model": partial(reasons_against, why_impossible=MODEL.lack),
        "ZooKeeper": partial(obstacles_within, reach=started_reach(newest[ZOOKEEPER], ZOOKEEPER)),
        "KRaft": partial(obstacles_within, reach=started_reach(newest[KRAFT], KRAFT)),
        "yours": partial(obstacles_within, reach=users),
    }


def _plan(fault: Fault) -> Plan:
    cluster = ClusterSpec(
        brokers=tuple(BrokerSpec(id=broker) for broker in _BROKERS),
        topics=(TopicSpec(name="t", replication_factor=len(_BROKERS)),),
    )
    return Plan(
        campaign="fault",
        kafka="2.4",
        cluster=cluster,
        producers=(ProducerSpec(name=_PRODUCER),),
        applications=(ApplicationSpec(name=_APPLICATION, source="t", delivery=IDEMPOTENT_SINK),),
        script=(Step(actions=(fault,)),),
    )


def _examples(fault: type[Fault]) -> Iterator[Fault]:
    required = {item.attribute: _example(item) for item in all_fields_of(fault) if item.required}
    examples = [fault(**required)]
    for item in fields_of(fault):
        examples += [fault(**{**required, item.attribute: choice}) for choice in item.choices]
        if item.kind is kinds.LinkEndMarker and not item.required:
            examples.append(fault(**{**required, item.attribute: _LINK_ENDS}))
        if item.kind is kinds.ClientTargetMarker:
            examples.append(fault(**{**required, item.attribute: _APPLICATION}))
    yield from (example for example in examples if example.problem() is None)


def _example(item: DeclaredField) -> Any:
    if item.choices:
        return item.choices[0]
    value = by_kind(_EXAMPLES, item.kind)
    if value is None:
        raise KeyError(f"{item.attribute}: no example of {item.kind.__name__}")
    return (value,) if item.many else value
