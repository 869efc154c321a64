"""What runs of a plan can reach at all: rare states of another control plane, release, of groups or of transactions they may have none of."""

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from itertools import chain
from typing import Any

from harrow.campaigns.language.plan import Plan, Swarm
from harrow.cluster_model.release import RELEASES, Behaviours
from harrow.cluster_model.settings import GROUP_PROTOCOL
from harrow.cluster_model.topology import (
    CONSUMER_OFFSETS,
    KRAFT,
    TRANSACTION_STATE,
    ApplicationSpec,
    Coordinated,
)

_METADATA = "cluster.metadata"
_ALWAYS_IN_KRAFT = frozenset({"isr_altered_by_controller", "isr_expansion_checks_registration"})
"""What controllers of KRaft do in every release; the switches are about those with ZooKeeper."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeReach:
    """What runs have of what probes need: the control planes that they may have, and the internal topics that their clients use.

    Then the behaviours that are on in one of them, and what ``group.protocol`` their clients have. Of these None is for those
    that are not known: they may be any.
    """

    control_planes: frozenset[str] = frozenset()
    topics: frozenset[str] = frozenset()
    behaviours: frozenset[str] | None = None
    group_protocols: frozenset[str] | None = None

    def __or__(self, other: "ProbeReach") -> "ProbeReach":
        if not self.control_planes:
            return other
        if not other.control_planes:
            return self
        return ProbeReach(
            control_planes=self.control_planes | other.control_planes,
            topics=self.topics | other.topics,
            behaviours=_either(self.behaviours, other.behaviours),
            group_protocols=_either(self.group_protocols, other.group_protocols),
        )


def _either(some: frozenset[str] | None, others: frozenset[str] | None) -> frozenset[str] | None:
    return None if some is None or others is None else some | others


def reach_of(plan: Plan) -> ProbeReach:
    """Return what runs of a plan have, whatever a seed draws."""
    control_planes = frozenset(_control_planes(plan))
    behaviours = frozenset(_behaviours(plan))
    return ProbeReach(
        control_planes=control_planes,
        topics=frozenset(_topics(plan)),
        behaviours=behaviours | _ALWAYS_IN_KRAFT if KRAFT in control_planes else behaviours,
        group_protocols=frozenset(_group_protocols(plan)),
    )


def reach_of_all(plans: Iterable[Plan]) -> ProbeReach:
    found = ProbeReach()
    for plan in plans:
        found |= reach_of(plan)
    return found


def _control_planes(plan: Plan) -> Iterable[str]:
    swarm = plan.swarm
    drawn = () if swarm is None else dict(swarm.values).get(_METADATA, ())
    if drawn:
        return tuple(drawn)
    if swarm is None or not swarm.releases or plan.cluster.metadata is not None:
        return (plan.metadata,)
    return (RELEASES[release].metadata for release in swarm.releases)


def _topics(plan: Plan) -> Iterable[str]:
    # Instances of an application that a swarm draws are like the first of its kind, which the plan has.
    clients = chain(plan.producers, plan.consumers, plan.applications)
    used = {
        topic for client in clients if isinstance(client, Coordinated) for topic in client.internal_topics()
    }
    return used & {CONSUMER_OFFSETS, TRANSACTION_STATE}


def _behaviours(plan: Plan) -> Iterable[str]:
    releases = [release for swarm in _swarms(plan) for release in swarm.releases]
    if plan.swarm is None or not plan.swarm.releases:
        releases.append(plan.kafka)
    for release in releases:
        switches = replace(plan, kafka=release).behaviour_switches()
        yield from (switch.name for switch in fields(Behaviours) if getattr(switches, switch.name) is True)


def _group_protocols(plan: Plan) -> Iterable[Any]:
    settings = (
        *(consumer.settings for consumer in plan.consumers),
        *(client.consumer for client in plan.applications if isinstance(client, ApplicationSpec)),
    )
    given = (each[GROUP_PROTOCOL] for each in settings if GROUP_PROTOCOL in each)
    drawn = (value for swarm in _swarms(plan) for value in dict(swarm.settings).get(GROUP_PROTOCOL, ()))
    return chain(given, drawn)


def _swarms(plan: Plan) -> Iterable[Swarm]:
    """Return what seeds draw from: those without an aim, and those with each."""
    if plan.swarm is None:
        return ()
    aims = () if plan.swarm.aims is None else plan.swarm.aims.kinds
    return (plan.swarm, *(aim.instead for aim in aims))
