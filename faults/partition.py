"""Links that let nothing pass."""

from dataclasses import dataclass
from typing import ClassVar

from faults.fault import Surroundings
from faults.fields import DurationRange, Endpoint, described, draw_duration


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkPartition:
    """No packet passes from one side to the other.

    As with TCP, what is sent meanwhile is sent again when the link is back, unless
    one end has given the connection up.
    """

    name: ClassVar[str] = "partition"

    between: tuple[Endpoint, ...] = described("One side: brokers' ids, clients' names, `zookeeper`.")
    and_: tuple[Endpoint, ...] = described("The other side (written `and`).")
    one_way: bool = described("Cut only what the first side sends.", default=False)
    duration: DurationRange | None = described(
        "How long; by default until the cluster is healed.", default=None
    )

    def inject(self, surroundings: Surroundings) -> bool:
        """Cut the links; return False where there is none."""
        links = self.links()
        for sender, receiver in links:
            surroundings.cut_link(sender, receiver)
        if links and self.duration is not None:
            delay_us = draw_duration(surroundings.draw, self.duration)
            surroundings.after(delay_us, self._restore, surroundings)
        return bool(links)

    def _restore(self, surroundings: Surroundings) -> None:
        for sender, receiver in self.links():
            surroundings.restore_link(sender, receiver)

    def links(self) -> list[tuple[int | str, int | str]]:
        """Return what is cut: who sends, and to whom. Nobody has a link to itself."""
        links = [(one, other) for one in self.between for other in self.and_ if one != other]
        return links if self.one_way else links + [(other, one) for one, other in links]
