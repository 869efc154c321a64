"""What runs of a plan can reach at all: rare states of another control plane, of groups or of transactions they may have none of."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

from harrow.campaigns.language.plan import Plan
from harrow.cluster_model.release import RELEASES
from harrow.cluster_model.topology import CONSUMER_OFFSETS, TRANSACTION_STATE, Coordinated

_METADATA = "cluster.metadata"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeReach:
    """What runs have of what probes need: the control planes that they may have, and the internal topics that their clients use."""

    control_planes: frozenset[str] = frozenset()
    topics: frozenset[str] = frozenset()

    def __or__(self, other: "ProbeReach") -> "ProbeReach":
        return ProbeReach(
            control_planes=self.control_planes | other.control_planes, topics=self.topics | other.topics
        )


def reach_of(plan: Plan) -> ProbeReach:
    """Return what runs of a plan have, whatever a seed draws."""
    return ProbeReach(control_planes=frozenset(_control_planes(plan)), topics=frozenset(_topics(plan)))


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
