"""Partitions of the servers in the shapes that Jepsen has names for."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Literal, Self

from harrow.cluster_model.fields import Lasts, LinkEnd, described
from harrow.cluster_model.sim.choices import Stream, pick
from harrow.faults.fault import BrokerProcesses, Environment, Fault, Link, LinkFault
from harrow.faults.links.link_ends import BROKERS, ZOOKEEPER, End, links_between, may_be_several
from harrow.faults.links.partition import NetworkPartition

_LEAST: Final = {"halves": 2, "bridge": 3, "majorities_ring": 4}
"""How many nodes it takes that any link is cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkSplit(LinkFault):
    """The network falls apart in one of the shapes that Jepsen tests: which servers are where is drawn when it strikes.

    `halves`: the first half of the nodes, rounded down, and the others cannot reach each other. `bridge`:
    so, but the node in the middle still reaches everybody. `majorities_ring`: each node reaches a
    majority, and no two of them the same one; it takes four nodes, of fewer each reaches all.
    """

    name: ClassVar[str] = "network_split"
    parts_control_plane: ClassVar[bool] = True

    shape: Literal["halves", "bridge", "majorities_ring"] = described("How it falls apart.", default="halves")
    nodes: tuple[LinkEnd, ...] = described(
        "Which servers fall apart; links with all others are whole. By default the brokers and ZooKeeper, or the quorum of KRaft: each of "
        "their servers is a node of its own.",
        default=(BROKERS, ZOOKEEPER),
        shrinks=False,
    )
    order: Literal["random", "given"] = described(
        "In which order the nodes stand side by side, or in the ring: drawn, or as in `nodes`.",
        default="random",
        shrinks=False,
    )
    duration: Lasts | None = described("How long; by default until the cluster is healed.", default=None)

    def problem(self) -> str | None:
        least = _LEAST[self.shape]
        if len(self.nodes) >= least or any(end == ZOOKEEPER or may_be_several(end) for end in self.nodes):
            return None
        return f"this cuts no link: it takes {least} nodes"

    def decided(self, draw: Stream) -> Self:
        """Return it with the order of its nodes drawn."""
        if self.order == "given":
            return self
        left, drawn = list(self.nodes), []
        while left:
            drawn.append(pick(draw, left))
            left.remove(drawn[-1])
        return replace(self, nodes=tuple(drawn), order="given")

    def applies(self, environment: Environment) -> bool:
        return bool(self.links(environment))

    def links(self, environment: BrokerProcesses) -> list[Link]:
        if self.shape == "majorities_ring":
            count = len(self.nodes)
            # Of a majority each node is one, and half of the others stand on either side of it.
            reach = (count // 2 + 1) // 2
            return [
                (one, other)
                for place, one in enumerate(self.nodes)
                for further, other in enumerate(self.nodes)
                if min((place - further) % count, (further - place) % count) > reach
            ]
        first, *_, last = self.groups()
        return links_between(first, last, one_way=False)

    def groups(self) -> tuple[tuple[End, ...], ...]:
        """Return who stands together: of halves both, with the bridge between them; of a ring each node alone."""
        middle, nodes = len(self.nodes) // 2, self.nodes
        if self.shape == "majorities_ring":
            return tuple((node,) for node in nodes)
        if self.shape == "bridge":
            return nodes[:middle], nodes[middle : middle + 1], nodes[middle + 1 :]
        return nodes[:middle], nodes[middle:]

    def plainer(self) -> Iterator[Fault]:
        """Yield the partition between its halves, whom it names."""
        if self.order == "given":
            middle = len(self.nodes) // 2
            if middle:
                yield NetworkPartition(
                    between=self.nodes[:middle], and_=self.nodes[middle:], duration=self.duration
                )
