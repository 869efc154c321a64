"""Links that carry what they carry late."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from harrow.cluster_model.fields import Bandwidth, Duration, Lasts, LinkEnd, described
from harrow.cluster_model.sim.link_quality import LinkQuality
from harrow.cluster_model.sim.virtual_time import US_PER_MS
from harrow.faults.effects import Effects, SlowLink
from harrow.faults.fault import Environment, Fault, LastingFault, Link
from harrow.faults.links.link_ends import OTHERS, links_between, vain_sides, with_fewer_ends


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkSlow(LastingFault):
    """What passes between two sides takes longer: a congested switch, a link over an ocean, `tc qdisc ... netem`.

    Connections keep their order. A limit of `bandwidth` is shared by all connections from one process to
    another. Nothing is lost; whether a follower keeps up, and a request is answered before it times out, is
    for Kafka's settings to decide.
    """

    name: ClassVar[str] = "link_slow"

    between: tuple[LinkEnd, ...] = described("One side.")
    and_: tuple[LinkEnd, ...] = described(
        "The other side (written `and`); by default all `others`.", default=(OTHERS,), shrinks=False
    )
    one_way: bool = described("Only what the first side sends.", default=False)
    latency: Duration = described("How much longer each message takes.", default=100 * US_PER_MS)
    jitter: Duration = described("Up to how much longer still, drawn for each message.", default=0)
    bandwidth: Bandwidth | None = described(
        "How much passes in each direction; by default as much as there is.", default=None
    )
    duration: Lasts | None = described("How long; by default until the cluster is healed.", default=None)

    def problem(self) -> str | None:
        if not self.latency and not self.jitter and self.bandwidth is None:
            return "this slows nothing: give it a `latency`, a `jitter` or a `bandwidth`"
        return vain_sides(self.between, self.and_)

    def plainer(self) -> Iterator[Fault]:
        """Yield it with one end fewer on a side."""
        yield from with_fewer_ends(self)

    def applies(self, environment: Environment) -> bool:
        return bool(self._links())

    def _links(self) -> list[Link]:
        return links_between(self.between, self.and_, one_way=self.one_way)

    def effects(self, environment: Environment) -> Effects:
        quality = LinkQuality(latency_us=self.latency, jitter_us=self.jitter, bytes_per_second=self.bandwidth)
        return [SlowLink(sender, receiver, quality) for sender, receiver in self._links()]
