"""Models network interfaces, and degraded links: latency, jitter, bandwidth, slow servers.

A quality applies to one direction of a link, as `tc qdisc ... netem` applies to what an interface
sends. Several qualities of a link add up, except that the lowest of several bandwidths applies.
"""

from typing import Final

from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.sim.choices import Stream
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND

LinkName = tuple[str, str]
"""One direction of a link: the names of the processes that send and receive."""

MESSAGE_BYTES: Final = 100
"""The assumed size of a message without its records: headers of TCP and Kafka, and some fields."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkQuality:
    """A degradation of a link.

    Each message takes ``latency_us`` longer, and a random time of up to ``jitter_us`` on top. All
    messages over the link share ``bytes_per_second``. The receiver needs ``request_us`` longer for
    each request, and the next request on the same connection waits meanwhile.
    """

    latency_us: int = 0
    jitter_us: int = 0
    bytes_per_second: int | None = None
    request_us: int = 0


class LinkQualities:
    """The qualities in force, and the times until which links with limited bandwidth are busy."""

    __slots__ = ("_busy_until_us", "by_link")

    def __init__(self) -> None:
        self.by_link: dict[LinkName, list[LinkQuality]] = {}
        self._busy_until_us: dict[LinkName, int] = {}

    def add(self, link: LinkName, quality: LinkQuality) -> None:
        self.by_link.setdefault(link, []).append(quality)

    def remove(self, link: LinkName, quality: LinkQuality) -> None:
        """Undo one `add`, unless `clear` or `keep_links_of` has done so."""
        qualities = self.by_link.get(link, [])
        if quality in qualities:
            qualities.remove(quality)
        if not qualities:
            self._forget(link)

    def clear(self) -> None:
        self.by_link.clear()
        self._busy_until_us.clear()

    def keep_links_of(self, names: frozenset[str]) -> None:
        """Remove the qualities of all links that have no end among these processes."""
        for link in list(self.by_link):
            if names.isdisjoint(link):
                self._forget(link)

    def disturbs(self, name: str) -> bool:
        """Return whether any link of a process is degraded."""
        return any(name in link for link in self.by_link)

    def delay_us(self, link: LinkName, now_us: int, size_bytes: int, draw: Stream) -> int:
        """Return how much longer a message takes if it is sent now, and count it as traffic."""
        qualities = self.by_link.get(link)
        if qualities is None:
            return 0
        delay_us = 0
        bandwidths = []
        for quality in qualities:
            delay_us += quality.latency_us
            if quality.jitter_us:
                delay_us += draw.below(quality.jitter_us + 1)
            if quality.bytes_per_second is not None:
                bandwidths.append(quality.bytes_per_second)
        if bandwidths:
            begin_us = max(now_us, self._busy_until_us.get(link, now_us))
            self._busy_until_us[link] = begin_us + size_bytes * US_PER_SECOND // min(bandwidths)
            delay_us += self._busy_until_us[link] - now_us
        return delay_us

    def request_us(self, link: LinkName) -> int:
        """Return how much longer the receiver needs for each request over the link."""
        return sum(quality.request_us for quality in self.by_link.get(link, ()))

    def _forget(self, link: LinkName) -> None:
        self.by_link.pop(link, None)
        self._busy_until_us.pop(link, None)


class NetworkInterfaces:
    """The network interfaces of all processes, which send and receive at a limited rate.

    An interface sends one message after the other, whatever the receiver, and receives them so.
    """

    __slots__ = ("_bytes_per_second", "_received_us", "_sent_us")

    def __init__(self, bytes_per_second: int) -> None:
        self._bytes_per_second = bytes_per_second
        # By process: when everything is sent, and when everything that was sent to it is received.
        self._sent_us: dict[str, int] = {}
        self._received_us: dict[str, int] = {}

    def arrival_us(self, link: LinkName, now_us: int, at_us: int, size_bytes: int) -> int:
        """Return when a message arrives that is sent now and would otherwise arrive at *at_us*."""
        sender, receiver = link
        transfer_us = size_bytes * US_PER_SECOND // self._bytes_per_second
        sent_us = max(now_us, self._sent_us.get(sender, now_us)) + transfer_us
        at_us = max(at_us + sent_us - now_us, self._received_us.get(receiver, now_us) + transfer_us)
        self._sent_us[sender], self._received_us[receiver] = sent_us, at_us
        return at_us
