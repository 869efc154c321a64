"""Links that let nothing pass."""

from dataclasses import dataclass
from typing import ClassVar

from harrow.cluster_model.fields import Endpoint, Lasts, described
from harrow.faults.fault import BrokerProcesses, Environment, Link, LinkFault


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkPartition(LinkFault):
    """No packet passes from one side to the other.

    As with TCP, what is sent meanwhile is sent again when the link is back, unless
    one end has given the connection up.
    """

    name: ClassVar[str] = "partition"

    between: tuple[Endpoint, ...] = described("One side: brokers' ids, clients' names, `zookeeper`.")
    and_: tuple[Endpoint, ...] = described("The other side (written `and`).")
    one_way: bool = described("Cut only what the first side sends.", default=False)
    duration: Lasts | None = described("How long; by default until the cluster is healed.", default=None)

    def problem(self) -> str | None:
        is_vain = self.between and self.and_ and len({*self.between, *self.and_}) == 1
        return "this cuts no link: the same stands on both sides" if is_vain else None

    def applies(self, environment: Environment) -> bool:
        return bool(self.links(environment))

    def links(self, environment: BrokerProcesses) -> list[Link]:  # noqa: ARG002  # it names all ends itself
        # A process has no link to itself.
        links = [(one, other) for one in self.between for other in self.and_ if one != other]
        return links if self.one_way else links + [(other, one) for one, other in links]
