"""Computes which rare states the runs of a plan can reach.

Runs never reach states that belong to another control plane or release. If no client uses groups or
transactions, they never reach states of groups or transactions.
"""

from collections.abc import Iterable
from itertools import chain
from typing import Any

from harrow.campaigns.language.plan import Plan, Swarm
from harrow.campaigns.probes.reach import ProbeReach
from harrow.cluster_model.release.profiles import RELEASES, SWITCHES, behaviours_with
from harrow.cluster_model.settings import GROUP_PROTOCOL
from harrow.cluster_model.topology import (
    CONSUMER_OFFSETS,
    KRAFT,
    TRANSACTION_STATE,
    ApplicationSpec,
    Coordinated,
)

_METADATA = "cluster.metadata"


def reach_of(plan: Plan) -> ProbeReach:
    """Return the reach of all runs of a plan, whatever their seeds."""
    control_planes = frozenset(_control_planes(plan))
    behaviours = frozenset(_behaviours(plan))
    return ProbeReach(
        control_planes=control_planes,
        topics=frozenset(_topics(plan)),
        behaviours=behaviours | _always_in_kraft() if KRAFT in control_planes else behaviours,
        group_protocols=frozenset(_group_protocols(plan)),
    )


def reach_of_all(plans: Iterable[Plan]) -> ProbeReach:
    reach = ProbeReach()
    for plan in plans:
        reach |= reach_of(plan)
    return reach


def _control_planes(plan: Plan) -> Iterable[str]:
    swarm = plan.swarm
    drawn = () if swarm is None else dict(swarm.values).get(_METADATA, ())
    if drawn:
        return tuple(drawn)
    if swarm is None or not swarm.releases or plan.cluster.metadata is not None:
        return (plan.metadata,)
    return (RELEASES[release].metadata for release in swarm.releases)


def _topics(plan: Plan) -> Iterable[str]:
    # The application instances that a swarm draws are copies of the first one, which is in the
    # plan.
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
        switches = behaviours_with(release, plan.behaviours)
        yield from (name for name, value in switches.values().items() if value is True)


def _always_in_kraft() -> frozenset[str]:
    return frozenset(switch.name for switch in SWITCHES.values() if switch.is_always_in_kraft)


def _group_protocols(plan: Plan) -> Iterable[Any]:
    all_settings = (
        *(consumer.settings for consumer in plan.consumers),
        *(client.consumer for client in plan.applications if isinstance(client, ApplicationSpec)),
    )
    fixed = (settings[GROUP_PROTOCOL] for settings in all_settings if GROUP_PROTOCOL in settings)
    drawn = (value for swarm in _swarms(plan) for value in dict(swarm.settings).get(GROUP_PROTOCOL, ()))
    return chain(fixed, drawn)


def _swarms(plan: Plan) -> Iterable[Swarm]:
    """Return the choices of seeds without an aim, and of seeds with each of the aims."""
    if plan.swarm is None:
        return ()
    aims = () if plan.swarm.aims is None else plan.swarm.aims.kinds
    return (plan.swarm, *(aim.instead for aim in aims))
