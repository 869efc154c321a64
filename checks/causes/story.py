"""How something came about: links in the order of the trace."""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, TypeVar

from harrow.checks.evidence import PartitionSettings
from harrow.checks.history.records import Value
from harrow.checks.index import Index
from harrow.checks.link import Link, link
from harrow.checks.replay.partition_state import Ack, LogEntry
from harrow.cluster_model.events import BecameLeader, Event, IsrChanged, LeaderElected, Number
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND
from harrow.cluster_model.trace import TraceLine

E = TypeVar("E", bound=Event)

_LINKS_MAX: Final = 11
"""How many links a chain has before its conclusion, unless more decide."""
_ENDS: Final = 5
"""How many links stay at the beginning and at the end of a longer one, besides those that decide."""

END: Final = 2**63 - 1
"""A line after every event of a trace."""

AFTER: Final = 0.5
"""Added to the line of an event: after it, and before the next."""

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


@link("folded", impersonal=True)
def folded(*, count: Number) -> str:
    """The middle of a long chain."""
    return f"({count} more events)"


class Story:
    """Links about one partition, and what the trace has of it: an event is at its line, from 1."""

    __slots__ = ("_links", "elections", "evidence", "index", "partition", "settings")

    def __init__(self, index: Index, partition: str) -> None:
        self.index = index
        self.evidence = index.evidence
        self.partition = partition
        self.settings = index.evidence.partitions.get(partition, _UNKNOWN)
        self.elections: Sequence[TraceLine[LeaderElected]] = index.partition(partition).elections
        self._links: dict[Hashable, tuple[float, Link]] = {}

    # What there is to tell

    def copies(self, value: Value, offset: int | None = None) -> list[LogEntry]:
        """Return all copies of a value, or those at an offset, in the order of storing."""
        stored = self.index.partition(self.partition).by_value.get(str(value), ())
        return [copy for copy in stored if offset in (None, copy.offset)]

    def copies_at(self, offset: int) -> list[LogEntry]:
        """Return the copies that ever stood at an offset: value by value, each in the order of storing."""
        return self.index.copies_at(self.partition, offset)

    def acks(self, value: Value) -> Sequence[Ack]:
        """Return the acknowledgements of a value, at whatever offset."""
        return self.index.partition(self.partition).acks.get(str(value), ())

    def events(self, *kinds: type[E]) -> Sequence[TraceLine[E]]:
        """Return the events of some kinds that are about this partition, or about none."""
        return self.index.events(*kinds, partition=self.partition)

    def last(self, *kinds: type[E], before: float = END, **fields: Any) -> TraceLine[E] | None:
        """Return the last event of some kinds before a line of which some *fields* are as given."""
        for line in reversed(self.events(*kinds)):
            if line.number < before and all(getattr(line.event, name) == fields[name] for name in fields):
                return line
        return None

    def isr_at(self, leader: int, number: float) -> tuple[int, ...] | None:
        """Return the ISR as a leader knew it before a line, None if it did not know any."""
        known: TraceLine[BecameLeader | IsrChanged] | None
        known = self.last(BecameLeader, IsrChanged, before=number, broker=leader)
        return None if known is None else known.event.isr

    def start(self, at_us: int) -> float:
        """Return the place before all events of an instant, for what only the history tells."""
        return self.index.position_at(at_us) + AFTER

    # What is told

    def tell(self, number: float, told: Link, *, decides: bool = False) -> None:
        """Add a link at a line; of an event the same is not told twice.

        One that *decides* is never left out.
        """
        is_of_broker = told.broker is not None and told.at_us is not None
        who = told.broker if is_of_broker else (told.actor, *told.operands.items())
        key = (number, told.event, who, told.offset)
        self._links.setdefault(key, (number, replace(told, decides=True) if decides else told))

    def chain(self, *conclusions: Link) -> tuple[Link, ...]:
        """Return the links; of a long story what does not decide is left out of the middle."""
        told = [link for _, link in sorted(self._links.values(), key=itemgetter(0))]
        return (*(_shortened(told) if len(told) > _LINKS_MAX else told), *conclusions)


def _shortened(told: Sequence[Link]) -> Iterator[Link]:
    """Yield the ends of a story, and of its middle the links that decide."""
    last = len(told) - _ENDS
    places = enumerate(told)
    for left_out, group in groupby(places, lambda each: _ENDS <= each[0] < last and not each[1].decides):
        links = [link for _, link in group]
        if left_out and len(links) > 1:
            yield folded.conclude(count=len(links))
        else:
            yield from links
