"""How something came about: links in the order of the trace, with what each of them needs."""

from bisect import bisect_left, insort
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeVar

from harrow.checks.evidence import PartitionSettings
from harrow.checks.history.records import Value
from harrow.checks.index import Index
from harrow.checks.link import ChainFact, Gap, Link, Standing, link, standing
from harrow.checks.replay.partition_state import Ack, LogEntry
from harrow.cluster_model.events import BecameLeader, Event, IsrChanged, LeaderElected, Number
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND
from harrow.cluster_model.trace import TraceLine

E = TypeVar("E", bound=Event)

_ROUNDS_MAX: Final = 6
"""How far back a story goes from a link to what made it possible."""

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


@link("folded", impersonal=True, free_because="it counts links that are not shown")
def folded(*, count: Number) -> str:
    """Links of a long chain that are not shown."""
    return f"({count} more events)"


def _struck(told: Link) -> dict[str, tuple[int, ...]]:
    """Return the operands of a fault that say whom it struck, and how: one event may strike several brokers."""
    if not told.kind.is_fault:
        return {}
    names = [name for made in told.kind.makes for name in made.subject]
    return {name: told.operands[name] for name in names if isinstance(told.operands.get(name), tuple)}


Source = Callable[["Story", float, Gap], None]
"""Tells, into a story, the event before a line that meets the need of a link; nothing where the trace has none."""

SOURCES: Final[dict[ChainFact, Source]] = {}
"""Where each fact is looked up; `source` enters them."""


def source(fact: ChainFact) -> Callable[[Source], Source]:
    """Declare what tells the event that made a fact so."""

    def declare(tell: Source) -> Source:
        SOURCES[fact] = tell
        return tell

    return declare


class Story:
    """Links about one partition, and what the trace has of it: an event is at its line, from 1."""

    __slots__ = ("_fresh", "_links", "elections", "evidence", "index", "partition", "settings")

    def __init__(self, index: Index, partition: str) -> None:
        self.index = index
        self.evidence = index.evidence
        self.partition = partition
        self.settings = index.evidence.partitions.get(partition, _UNKNOWN)
        self.elections: Sequence[TraceLine[LeaderElected]] = index.partition(partition).elections
        self._links: dict[Hashable, tuple[float, Link]] = {}
        self._fresh: dict[Hashable, None] = {}

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

        Of one that *decides* the finding would not be without it. A fault gets the number of its strike.
        """
        if told.kind.is_fault:
            told = replace(told, strike=self.index.strike_at(number, told.actor))
        is_of_broker = told.broker is not None and told.at_us is not None
        struck = _struck(told)
        named = (item for item in told.operands.items() if item[0] not in struck)
        who = told.broker if is_of_broker else (told.actor, *named)
        key = (number, told.event, who, told.offset)
        _, known = self._links.get(key, (number, told))
        operands = dict(known.operands)
        for name, nodes in struck.items():
            operands[name] = tuple(sorted({*known.operands.get(name, ()), *nodes}))
        if key not in self._links or operands != known.operands:
            self._fresh[key] = None
        if decides or operands != known.operands:
            known = replace(known, operands=operands, decides=decides or known.decides)
        self._links[key] = number, known

    def is_told(self, number: float) -> bool:
        """Return whether there is a link about a line."""
        return any(line == number for line, _ in self._links.values())

    def told_by(self, kind: str) -> list[tuple[float, Link]]:
        """Return the links of a kind, each with its line."""
        return sorted((each for each in self._links.values() if each[1].kind.name == kind), key=itemgetter(0))

    def last_told(self, fact: ChainFact, line: float) -> float:
        """Return the line of the last link before a line that says what a fact is; 0 without one."""
        return max(
            (
                number
                for number, told in self._links.values()
                if number < line
                and any(each.fact is fact and each.value for each in standing(told, told.kind.makes))
            ),
            default=0,
        )

    def chain(self, *conclusions: Link) -> tuple[Link, ...]:
        """Return the links, with what made each of them possible, as far as the trace has it.

        A need that no earlier link meets is looked up in the trace, and so are the needs of what is found there: from an election
        to the expired session, from that to the fault. See the law of chains in `harrow.checks.link`.
        """
        known = _KnownFacts()
        for order, conclusion in enumerate(conclusions):
            known.add(_LinkPlace(END, _AFTER_ALL + order), conclusion)
        orders: dict[Hashable, int] = {}
        self._note(known, orders)
        for _ in range(_ROUNDS_MAX):
            is_done = True
            for line, gap in known.gaps():
                if gap.need.fact in SOURCES:
                    SOURCES[gap.need.fact](self, line, gap)
                    is_done = not self._note(known, orders) and is_done
            if is_done:
                break
        return (*(link for _, link in sorted(self._links.values(), key=itemgetter(0))), *conclusions)

    def _note(self, known: "_KnownFacts", orders: dict[Hashable, int]) -> bool:
        """Note the facts of links that were told, or got more operands, since the last time, and return whether there were any."""
        is_any = bool(self._fresh)
        for key in self._fresh:
            line, told = self._links[key]
            known.add(_LinkPlace(line, orders.setdefault(key, len(orders))), told)
        self._fresh.clear()
        return is_any


_AFTER_ALL: Final = 2**31
"""The order of the first conclusion: after all links of the last line."""


class _LinkPlace(NamedTuple):
    """Where a link stands in a story: at a line, and in the order of telling."""

    line: float
    order: int


class _KnownFacts:
    """What the links of a story make and need. Each link is looked at once, whatever is told after it."""

    __slots__ = ("_made", "_needs")

    def __init__(self) -> None:
        self._made: dict[tuple[ChainFact, tuple[Any, ...]], list[tuple[_LinkPlace, Any]]] = {}
        self._needs: list[tuple[_LinkPlace, Link, Standing]] = []

    def add(self, place: _LinkPlace, told: Link) -> None:
        for made in standing(told, told.kind.makes):
            insort(
                self._made.setdefault((made.fact, made.subject), []), (place, made.value), key=itemgetter(0)
            )
        if not told.kind.is_fault:
            self._needs += ((place, told, need) for need in standing(told, told.kind.needs))

    def gaps(self) -> Iterator[tuple[float, Gap]]:
        """Yield what no earlier link meets, each with its line; links that are added meanwhile count."""
        for place, told, need in sorted(self._needs, key=itemgetter(0)):
            if not self._is_met(place, need):
                yield place.line, Gap(place.order, told, need)

    def _is_met(self, place: _LinkPlace, need: Standing) -> bool:
        made = self._made.get((need.fact, need.subject), ())
        before = bisect_left(made, place, key=itemgetter(0))
        value = made[before - 1][1] if before else None if need.fact.is_open else False
        return value is None or value == need.value
