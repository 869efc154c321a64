"""Builds the chain of a finding: links in the order of the trace, with what made them possible.

To *tell* an event means to add a link about the event to a `Story`. A run can have hundreds of
findings, and few of their chains are ever read. So functions that only tell are `deferred`, and a
chain is built when it is first read.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from operator import itemgetter
from typing import Any, Concatenate, Final, NamedTuple, ParamSpec, TypeVar, overload

from harrow.checks.evidence import PartitionSettings
from harrow.checks.history.records import Value
from harrow.checks.index import Index, lines_before
from harrow.checks.link import ChainFact, FactValue, Gap, Link, LinkKind, fact_values, link, operand_kinds
from harrow.checks.replay.partition_state import Ack, LogEntry
from harrow.cluster_model.events import BecameLeader, Event, IsrChanged, LeaderElected, Number, event_fields
from harrow.cluster_model.lazy_dataclass import replace
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND
from harrow.cluster_model.trace import TraceLine

E = TypeVar("E", bound=Event)
P = ParamSpec("P")

_ROUNDS_MAX: Final = 6
"""How many rounds of look-ups a story makes. Each round looks up what made the newest links
possible."""

END: Final = 2**63 - 1
"""A line after every event of a trace."""

AFTER: Final = 0.5
"""Added to the line of an event to get a place after this event and before the next one."""

_UNKNOWN: Final = PartitionSettings(
    replicas=(), min_insync_replicas=1, unclean_leader_election=False, flush_messages=0
)


def seconds(time_us: int) -> str:
    """Format a duration: ``1.204s``."""
    return f"{time_us / US_PER_SECOND:.3f}s"


def words(name: object) -> str:
    """Return a cause or reason of the trace as words: ``high_watermark`` becomes high watermark."""
    return str(name).replace("_", " ")


def brokers(numbers: Iterable[int]) -> str:
    """Format brokers: ``broker 1``, ``brokers 1 and 2``, ``brokers 0, 1 and 2``."""
    names = [str(number) for number in sorted(numbers)]
    if len(names) == 1:
        return f"broker {names[0]}"
    return f"brokers {', '.join(names[:-1])} and {names[-1]}"


@link("folded", impersonal=True, needs_nothing_because="it counts links that are not shown")
def folded(*, count: Number) -> str:
    """Stands for the links that a long chain does not show."""
    return f"({count} more events)"


def _targets(strike_link: Link) -> dict[str, tuple[int, ...]]:
    """Return the operands of a fault that list its targets, each with the listed targets."""
    names = [name for made in strike_link.kind.makes for name in made.subject]
    return {
        name: strike_link.operands[name]
        for name in names
        if isinstance(strike_link.operands.get(name), tuple)
    }


Source = Callable[["Story", float, Gap], None]
"""A function that meets the need of a link: it looks before a line of the trace for the event that
established the fact, and tells it. If the trace has no such event, it tells nothing."""

SOURCES: Final[dict[ChainFact, Source]] = {}
"""The source of each fact. The decorator `source` registers it."""


def source(fact: ChainFact) -> Callable[[Source], Source]:
    """Register a function as the source of a fact."""

    def declare(tell: Source) -> Source:
        SOURCES[fact] = tell
        return tell

    return declare


Teller = Callable[Concatenate["Story", P], None]
"""A function that adds links to a story, and does nothing else."""


def deferred(tell: Teller[P]) -> Teller[P]:
    """Make calls of a function wait until the links of the story are needed.

    The calls then run in their order. Nothing may change their arguments meanwhile.
    """

    @wraps(tell)
    def defer(story: "Story", /, *args: P.args, **operands: P.kwargs) -> None:
        story.pending.append((tell, args, operands))

    return defer


class Story:
    """The links about one partition, each at the line of its event in the trace, counted from 1.

    ``pending`` has the calls of `deferred` functions that add further links.
    """

    __slots__ = (
        *("_fresh", "_own_lines", "_own_links"),
        *("elections", "evidence", "index", "partition", "settings", "pending"),
    )

    def __init__(self, index: Index, partition: str) -> None:
        self.index = index
        self.evidence = index.evidence
        self.partition = partition
        self.settings = index.evidence.partitions.get(partition, _UNKNOWN)
        self.elections: Sequence[TraceLine[LeaderElected]] = index.partition(partition).elections
        self.pending: list[tuple[Teller[...], tuple[Any, ...], Mapping[str, Any]]] = []
        self._own_links: dict[Hashable, tuple[float, Link]] = {}
        self._own_lines: set[float] = set()
        self._fresh: dict[Hashable, None] = {}

    # Looking up

    def copies(self, value: Value, offset: int | None = None) -> list[LogEntry]:
        """Return all copies of a value, or only those at one *offset*, in the order of storing."""
        stored = self.index.partition(self.partition).by_value.get(str(value), ())
        return [copy for copy in stored if offset in (None, copy.offset)]

    def copies_at(self, offset: int) -> list[LogEntry]:
        """Return all copies that were ever stored at an offset, grouped by value."""
        return self.index.copies_at(self.partition, offset)

    def acks(self, value: Value) -> Sequence[Ack]:
        """Return the acknowledgements of a value, at any offset."""
        return self.index.partition(self.partition).acks.get(str(value), ())

    def events(self, *kinds: type[E]) -> Sequence[TraceLine[E]]:
        """Return the events of some kinds that concern this partition, or no partition at all."""
        return self.index.events(*kinds, partition=self.partition)

    def last(self, *kinds: type[E], before: float = END, **fields: Any) -> TraceLine[E] | None:
        """Return the last event of some kinds before a line, among those with these *fields*."""
        for line in lines_before(self.events(*kinds), before):
            if all(getattr(line.event, name) == fields[name] for name in fields):
                return line
        return None

    def isr_at(self, leader: int, number: float) -> tuple[int, ...] | None:
        """Return the ISR that a leader knew before a line, None if it knew none."""
        change: TraceLine[BecameLeader | IsrChanged] | None
        change = self.last(BecameLeader, IsrChanged, before=number, broker=leader)
        return None if change is None else change.event.isr

    def start(self, at_us: int) -> float:
        """Return a place before all events of an instant, for links about operations."""
        return self.index.position_at(at_us) + AFTER

    # Telling

    @deferred
    def tell_event(
        self, /, line: TraceLine[Any], kind: LinkKind[...], *, decides: bool = False, **operands: Any
    ) -> None:
        """Add a link about an event.

        Operands that are not passed are the event's fields of the same name. The actor is the
        broker of the event, or else its client.
        """
        event = line.event
        fields = event_fields(event.name)
        actor = next((getattr(event, name) for name in ("broker", "client") if name in fields), None)
        own = {name: getattr(event, name) for name in operand_kinds(kind.name) if name in fields}
        self.tell(line.number, kind(event.at_us, actor, **{**own, **operands}), decides=decides)

    @deferred
    def tell(self, number: float, chain_link: Link, *, decides: bool = False) -> None:
        """Add a link at a line.

        If the story already has this link about the event, and it is a fault, the fault's new
        targets are added to the link. Without a link that *decides*, the finding would not exist. A
        link about a fault gets the fault's number (``strike``).
        """
        struck: dict[str, tuple[int, ...]] = {}
        if chain_link.kind.is_fault:
            chain_link = replace(chain_link, strike=self.index.strike_at(number, chain_link.actor))
            struck = _targets(chain_link)
        is_of_broker = chain_link.broker is not None and chain_link.at_us is not None
        others = (item for item in chain_link.operands.items() if item[0] not in struck)
        subject = chain_link.broker if is_of_broker else (chain_link.actor, *others)
        key = (number, chain_link.event, subject, chain_link.offset)
        _, merged = self._own_links.get(key, (number, chain_link))
        operands = merged.operands
        if struck:
            known = {name: merged.operands.get(name, ()) for name in struck}
            operands = {
                **operands,
                **{name: tuple(sorted({*known[name], *nodes})) for name, nodes in struck.items()},
            }
        if key not in self._own_links or operands != merged.operands:
            self._fresh[key] = None
        if decides or operands != merged.operands:
            merged = replace(merged, operands=operands, decides=decides or merged.decides)
        self._own_links[key] = number, merged
        self._own_lines.add(number)

    def _tell_pending(self) -> None:
        """Run the pending calls, each with the calls that it makes itself."""
        while self.pending:
            calls, self.pending = self.pending, []
            for tell, args, operands in calls:
                tell(self, *args, **operands)
                self._tell_pending()

    @property
    def _links(self) -> Mapping[Hashable, tuple[float, Link]]:
        self._tell_pending()
        return self._own_links

    def has_link_at(self, number: float) -> bool:
        """Return whether the story has a link at a line."""
        self._tell_pending()
        return number in self._own_lines

    def links_of(self, kind: str) -> list[tuple[float, Link]]:
        return sorted((each for each in self._links.values() if each[1].kind.name == kind), key=itemgetter(0))

    def last_link_for(self, fact: ChainFact, line: float) -> float:
        """Return the line of the last link before *line* that establishes a fact, 0 without one."""
        return max(
            (
                number
                for number, chain_link in self._links.values()
                if number < line
                and any(
                    each.fact is fact and each.value
                    for each in fact_values(chain_link, chain_link.kind.makes)
                )
            ),
            default=0,
        )

    def chain(self, *conclusions: Link) -> Sequence[Link]:
        """Return the story's links, the links that made them possible, and then the *conclusions*.

        The story must not change afterwards, because the chain is built when it is first read.
        """
        return _Chain(self, conclusions)

    def build_chain(self, conclusions: tuple[Link, ...]) -> tuple[Link, ...]:
        """Build the chain of the story.

        A need that no earlier link meets is looked up in the trace, and so are the needs of the
        links that this adds: from an election back to the expired session, and from the session
        back to the fault. See the law of chains in `harrow.checks.link`.
        """
        facts = _ChainFacts()
        for order, conclusion in enumerate(conclusions):
            facts.add(_LinkPlace(END, _AFTER_ALL + order), conclusion)
        orders: dict[Hashable, int] = {}
        self._note(facts, orders)
        for _ in range(_ROUNDS_MAX):
            is_done = True
            for line, gap in facts.gaps():
                if gap.need.fact in SOURCES:
                    SOURCES[gap.need.fact](self, line, gap)
                    is_done = not self._note(facts, orders) and is_done
            if is_done:
                break
        return (*(link for _, link in sorted(self._links.values(), key=itemgetter(0))), *conclusions)

    def _note(self, facts: "_ChainFacts", orders: dict[Hashable, int]) -> bool:
        """Add the facts of links that are new, or have new operands, to *facts*.

        Return whether there were such links.
        """
        links = self._links
        is_any = bool(self._fresh)
        for key in self._fresh:
            line, chain_link = links[key]
            facts.add(_LinkPlace(line, orders.setdefault(key, len(orders))), chain_link)
        self._fresh.clear()
        return is_any


class _Chain(Sequence[Link]):
    """The chain of a finding, which is built when it is first read.

    Until then, it keeps the index of the run. An error ends a story half-way, so every later read
    raises that error again.
    """

    __slots__ = ("_error", "_links", "_story")

    def __init__(self, story: Story, conclusions: tuple[Link, ...]) -> None:
        self._story: Story | None = story
        self._links = conclusions
        self._error: BaseException | None = None

    def _built(self) -> tuple[Link, ...]:
        if self._error is not None:
            raise self._error
        if self._story is not None:
            try:
                self._links, self._story = self._story.build_chain(self._links), None
            except BaseException as error:
                self._error = error
                raise
        return self._links

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (self._built(),)

    def __repr__(self) -> str:
        return repr(self._built())

    def __eq__(self, other: object) -> bool:
        return self._built() == (other._built() if isinstance(other, _Chain) else other)

    __hash__ = None  # type: ignore[assignment] # like links, whose operands are a mapping

    def __len__(self) -> int:
        return len(self._built())

    def __iter__(self) -> Iterator[Link]:
        return iter(self._built())

    @overload
    def __getitem__(self, place: int) -> Link: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[Link, ...]: ...

    def __getitem__(self, place: int | slice) -> Link | tuple[Link, ...]:
        return self._built()[place]


_AFTER_ALL: Final = 2**31
"""The order of the first conclusion, higher than the order of any link."""


class _LinkPlace(NamedTuple):
    """The place of a link in a story: its line and, within a line, the order of telling."""

    line: float
    order: int


class _ChainFacts:
    """The facts that the links of a story need and establish.

    Each link is examined once, even if links are added later.
    """

    __slots__ = ("_made", "_needs")

    def __init__(self) -> None:
        self._made: dict[tuple[ChainFact, tuple[Any, ...]], list[tuple[_LinkPlace, Any]]] = {}
        self._needs: list[tuple[_LinkPlace, Link, FactValue]] = []

    def add(self, place: _LinkPlace, chain_link: Link) -> None:
        for fact, subject, value in fact_values(chain_link, chain_link.kind.makes):
            insort(self._made.setdefault((fact, subject), []), (place, value), key=itemgetter(0))
        if not chain_link.kind.is_fault:
            self._needs += (
                (place, chain_link, need) for need in fact_values(chain_link, chain_link.kind.needs)
            )

    def gaps(self) -> Iterator[tuple[float, Gap]]:
        """Yield the needs that no earlier link meets, each with its line."""
        for place, chain_link, need in sorted(self._needs, key=itemgetter(0)):
            if not self._is_met(place, need):
                yield place.line, Gap(place.order, chain_link, need)

    def _is_met(self, place: _LinkPlace, need: FactValue) -> bool:
        made = self._made.get((need.fact, need.subject), ())
        before = bisect_left(made, place, key=itemgetter(0))
        value = made[before - 1][1] if before else None if need.fact.is_open else False
        return value is None or value == need.value
