"""Describes the needs of probes that a set of runs can meet."""

from harrow.cluster_model.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeReach:
    """The control planes that runs may have, and the internal topics that their clients use.

    ``behaviours`` are those that are on in at least one run, and ``group_protocols`` are the values
    of ``group.protocol`` that clients have. None means unknown: any is possible.
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
