"""How something came about: links in the order of the trace, with times in virtual seconds."""

from bisect import bisect_left
from collections.abc import Iterable
from operator import itemgetter
from typing import Final

from checks.copies import PartitionCopies
from checks.evidence import Evidence, PartitionSettings
from checks.finding import Link
from cluster_model.virtual_time import US_PER_SECOND

_LINKS_MAX: Final = 11
"""How many links a chain has at most, before its conclusion."""


AFTER: Final = 0.5
"""Added to the position of an event: after it, and before the next."""

_UNKNOWN: Final = PartitionSettings(
    replicas=(), min_insync_replicas=1, unclean_leader_election=False, flush_messages=0
)


def seconds(time_us: int) -> str:
    """Return a time as a story tells it: ``1.204s``."""
    return f"{time_us / US_PER_SECOND:.3f}s"


def words(name: object) -> str:
    """Return a cause or reason of the trace in words: ``high_watermark`` is high watermark."""
    return str(name).replace("_", " ")


def brokers(numbers: Iterable[int]) -> str:
    """Return brokers by name: ``broker 1``, ``brokers 1 and 2``, ``brokers 0, 1 and 2``."""
    names = [str(number) for number in sorted(numbers)]
    if len(names) == 1:
        return f"broker {names[0]}"
    return f"brokers {', '.join(names[:-1])} and {names[-1]}"


class Story:
    """Links about one partition. A link's text begins with its time, where it has one."""

    __slots__ = ("_links", "_times", "copies", "settings")

    def __init__(self, evidence: Evidence, copies: PartitionCopies, partition: str) -> None:
        self.copies = copies
        self.settings = evidence.partitions.get(partition, _UNKNOWN)
        self._times = evidence.trace
        self._links: dict[tuple[float, str, int | str | None, int | None], Link] = {}

    def position(self, at_us: int) -> float:
        """Return the position before all events of an instant, for what only the history tells."""
        return bisect_left(self._times, at_us, key=itemgetter(0)) - AFTER

    def tell(
        self,
        position: float,
        event: str,
        text: str,
        at_us: int | None = None,
        broker: int | None = None,
        offset: int | None = None,
    ) -> None:
        """Add a link; what has been told of an event is not told again."""
        told = text if at_us is None else f"{seconds(at_us)} {text}"
        link = Link(event=event, text=told, at_us=at_us, broker=broker, offset=offset)
        self._links.setdefault((position, event, text if broker is None else broker, offset), link)

    def chain(self, *conclusions: str) -> tuple[Link, ...]:
        """Return the links; of a long story the middle is left out."""
        told = [link for _, link in sorted(self._links.items(), key=lambda item: item[0][0])]
        if len(told) > _LINKS_MAX:
            left_out = len(told) - _LINKS_MAX + 1
            head = _LINKS_MAX // 2
            told[head : head + left_out] = [Link(event="folded", text=f"({left_out} more events)")]
        told += [Link(event="conclusion", text=conclusion) for conclusion in conclusions]
        return tuple(told)
