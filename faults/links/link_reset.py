"""Connections that break."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from harrow.cluster_model.fields import LinkEnd, described
from harrow.faults.effects import Effects, ResetLink
from harrow.faults.fault import Environment, Fault
from harrow.faults.links.link_ends import OTHERS, links_between, vain_sides, with_fewer_ends


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkReset(Fault):
    """The connections between two sides are reset (RST), as when a firewall or a load balancer forgets them.

    Both ends learn at once, and connect anew. What was under way has arrived or has not: a producer does not
    know what became of its requests, and sends them again.
    """

    name: ClassVar[str] = "link_reset"

    between: tuple[LinkEnd, ...] = described("One side.")
    and_: tuple[LinkEnd, ...] = described(
        "The other side (written `and`); by default all `others`.", default=(OTHERS,), shrinks=False
    )

    def problem(self) -> str | None:
        return vain_sides(self.between, self.and_)

    def plainer(self) -> Iterator[Fault]:
        """Yield it with one end fewer on a side."""
        yield from with_fewer_ends(self)

    def applies(self, environment: Environment) -> bool:
        return bool(links_between(self.between, self.and_, one_way=True))

    def effects(self, environment: Environment) -> Effects:
        pairs = {frozenset(link): link for link in links_between(self.between, self.and_, one_way=True)}
        return [ResetLink(sender, receiver) for sender, receiver in pairs.values()]
