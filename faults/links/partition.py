"""Links that let nothing pass."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from harrow.cluster_model.fields import Lasts, LinkEnd, described
from harrow.faults.fault import BrokerProcesses, Environment, Fault, Link, LinkFault
from harrow.faults.links.link_ends import OTHERS, links_between, vain_sides, with_fewer_ends


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkPartition(LinkFault):
    """No packet passes from one side to the other. Who stands on a side is looked up when it strikes.

    As with TCP, what is sent meanwhile is sent again when the link is back, unless
    one end has given the connection up. `between: leader of t-0` alone cuts that broker off from
    everybody, `between: clients, and: brokers` leaves the cluster whole and cuts the clients off,
    `between: brokers, and: brokers` is the reverse, and `between: brokers, and: zookeeper` takes away
    the control plane alone.
    """

    name: ClassVar[str] = "partition"

    between: tuple[LinkEnd, ...] = described("One side.")
    and_: tuple[LinkEnd, ...] = described(
        "The other side (written `and`); by default all `others`.", default=(OTHERS,), shrinks=False
    )
    one_way: bool = described("Cut only what the first side sends.", default=False)
    duration: Lasts | None = described("How long; by default until the cluster is healed.", default=None)

    def problem(self) -> str | None:
        return vain_sides(self.between, self.and_)

    def plainer(self) -> Iterator[Fault]:
        """Yield it with one end fewer on a side."""
        yield from with_fewer_ends(self)

    def applies(self, environment: Environment) -> bool:
        return bool(self.links(environment))

    def links(self, environment: BrokerProcesses) -> list[Link]:
        return links_between(self.between, self.and_, one_way=self.one_way)
