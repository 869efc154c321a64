"""Describes what a set of runs offers to probes: control planes, topics and behaviours.

A probe may need, for example, KRaft or a behaviour of some releases. Runs without it cannot reach
the probe.
"""

from harrow.cluster_model.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeReach:
    """The control planes that runs may have, and the internal topics that their clients use.

    ``behaviours`` are the behaviours that are on in at least one run, and ``group_protocols`` are
    the values of ``group.protocol`` that clients have. None means unknown: any is possible.
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
            behaviours=_union(self.behaviours, other.behaviours),
            group_protocols=_union(self.group_protocols, other.group_protocols),
        )


def _union(first: frozenset[str] | None, second: frozenset[str] | None) -> frozenset[str] | None:
    return None if first is None or second is None else first | second
