"""Links of the chain that leads to a finding, as data, and the kinds of link there are.

A kind is a function: its keyword arguments, with the types of `harrow.cluster_model.events`, are the
operands of its links, what it returns are their words. So a rule from anywhere brings a kind of its own
along, with all that is needed to show, record and compare it. Rules only ever make data; words are made
where they are shown (`harrow.campaigns.record.phrases`).

The law of chains: each link after the first is a fault, or an earlier link made it possible. A link
decides if the next one could not have happened without it. A kind declares both sides as data:
``needs`` is what must hold before such a link, ``makes`` is what holds after it. Each is a `ChainCondition`:
a `ChainFact`, its subject, and whether the fact holds. No kind may leave its side of the law out: one that
needs nothing is a fault, or says in ``free_because`` why it may stand without an earlier link. An election needs the former leader to be gone; a
crash, an expired session or a shutdown make it so. A broker that comes back needs to have been down.
An acknowledgement by the ISR needs the copies that it claims, so a link that cut one off contradicts it.
`unmet` walks a chain and reports every need that no earlier link has made. Stories look such a need up
in the trace and tell the event that meets it (`harrow.checks.causes.background`). A test does the same
for every finding of the library: what is left is a chain that breaks the law.

Faults are data as well. The kind of a link ``is_fault`` where nothing in the cluster brought it about.
Where a fault of the campaign struck it, the link has that fault's number in ``strike``: the ``strike``
of its `FaultStruck` in the trace, which counts from 1, so the fault is ``RunResult.faults[strike - 1]``.
`strikes` lists the numbers of a chain.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from typing import Annotated, Any, Final, Generic, NamedTuple, ParamSpec, get_args, get_origin, get_type_hints

from harrow.cluster_model.events import Event, FieldKind, Text

P = ParamSpec("P")

Actor = int | str | None
"""Who did it: the id of a broker, the name of a client."""

RecordValue = Annotated[str | int, FieldKind.VALUES]
"""An operand: the value of one record."""

CONCLUSION: Final = "conclusion"
"""The event of links that have no moment of their own: what follows from the others."""

KINDS: Final[dict[str, "LinkKind[...]"]] = {}
"""Every kind of link by its name; `link` and `cause` enter them."""


# Why a kind of link may stand without an earlier one

OWN_DEED: Final = "a client or an application does this by itself"
IN_HISTORY: Final = "it is an operation of the history, which may be all that there is"
NOTHING_HAPPENED: Final = "it says that something did not happen"
FORBIDDEN: Final = "it is what the rule forbids, so nothing lawful leads to it"
FROM_LOGS: Final = "it compares what logs or the history have at the end"
BY_SETTING: Final = "a setting permits it whenever what stands before it happens"
FROM_TRACE: Final = "what it rests on was looked up in the trace of other partitions or of the whole cluster"


ACTOR: Final = "actor"
"""Names who acts as the subject of a condition."""


@dataclass(frozen=True, slots=True)
class ChainFact:
    """Something that holds of a subject, or does not.

    ``is_open``: as long as no link tells, it may be either way. Without that it does not hold until a link makes it so.
    """

    name: str
    is_open: bool = False

    def of(
        self,
        *subject: str,
        then: str | bool | None = True,
        where: tuple[str, Any] | None = None,
        unless: tuple[str, ...] = (),
    ) -> "ChainCondition":
        """Return the condition that it holds of a subject; *subject* names operands, or `ACTOR`."""
        return ChainCondition(self, subject, then, where, unless)


class ChainCondition(NamedTuple):
    """What a kind of link needs, or makes.

    ``subject`` names operands, or `ACTOR`: of an operand with several brokers it is each of them. ``then`` is whether the fact holds
    of it, the name of the operand that has its value, or None where nothing is known after such a link. It applies only
    ``where`` an operand has a value, and not where one of the operands ``unless`` is true.
    """

    fact: ChainFact
    subject: tuple[str, ...]
    then: str | bool | None
    where: tuple[str, Any] | None
    unless: tuple[str, ...]


class Standing(NamedTuple):
    """What a fact is of one subject."""

    fact: ChainFact
    subject: tuple[Any, ...]
    value: Any


@dataclass(frozen=True, slots=True)
class LinkKind(Generic[P]):
    """A kind of link.

    ``phrase`` makes the words from the operands: the predicate of a sentence about the actor (in the
    ``role`` that it has in this, if any), a whole sentence where the kind is ``impersonal``. ``stems_from``
    names the events that such a link may be about; ``event`` is what
    it is called in a chain of events, for programs. Where it tells of another broker than the one that
    acts, ``about`` is the operand with that broker's id. A ``is_cause`` kind says why an anomaly came about.
    ``needs`` and ``makes`` are the two sides of the law of chains. A kind without needs ``is_fault``, which comes from outside,
    or ``free_because`` says why such a link needs no earlier one. ``is_turn``: an election, a truncation or a change of an ISR,
    which is never folded away. ``no_remedy`` says of a cause why nothing that harrow can set prevents it. Where a cause
    ``is_of_client``, no switch of brokers guards against it.
    """

    name: str
    phrase: Callable[P, str]
    stems_from: tuple[str, ...] = ()
    event: str = ""
    role: str = ""
    about: str = ""
    impersonal: bool = False
    is_cause: bool = False
    is_fault: bool = False
    is_turn: bool = False
    needs: tuple[ChainCondition, ...] = ()
    makes: tuple[ChainCondition, ...] = ()
    free_because: str = ""
    no_remedy: str = ""
    is_of_client: bool = False

    def __post_init__(self) -> None:
        if (self.is_fault, bool(self.needs), bool(self.free_because)).count(True) != 1:
            raise ValueError(
                f"the kind of link {self.name} is a fault, or has needs, or says in free_because why it has none"
            )

    def __call__(self, at_us: int | None, actor: Actor, /, *_: P.args, **operands: P.kwargs) -> "Link":
        return self._link(at_us, actor, operands)

    def conclude(self, *_: P.args, **operands: P.kwargs) -> "Link":
        """Return a link without a time and an actor."""
        return self._link(None, None, operands)

    def _link(self, at_us: int | None, actor: Actor, operands: Mapping[str, Any]) -> "Link":
        """Return a link; operands that are as they are by default are left out."""
        defaults = getattr(self.phrase, "__kwdefaults__", None)
        told = (
            {name: value for name, value in operands.items() if defaults.get(name, ...) != value}
            if defaults
            else operands
        )
        return Link(kind=self, at_us=at_us, actor=actor, operands=told)

    def __reduce__(self) -> tuple[Callable[[str], Any], tuple[str]]:
        """Be pickled by name: the function is known by the kind's name only."""
        return kind_named, (self.name,)


def kind_named(name: str) -> LinkKind[...]:
    return KINDS[name]


@dataclass(frozen=True, slots=True)
class Link:
    """One event of the chain that led to a finding, or what follows from the others.

    ``at_us`` is its time in virtual microseconds, None for what has no moment of its own. Without one that
    ``decides`` the finding would not be. ``strike`` is the number of the fault that struck here.
    """

    kind: LinkKind[...]
    at_us: int | None = None
    actor: Actor = None
    operands: Mapping[str, Any] = field(default_factory=dict)
    decides: bool = False
    strike: int | None = None

    @property
    def is_pivotal(self) -> bool:
        """Whether a chain is never shown without it."""
        return self.decides or self.kind.is_fault or self.kind.is_turn

    def operand(self, name: str) -> Any:
        """Return an operand, or who acts."""
        if name == ACTOR:
            return self.actor
        return self.operands.get(name, (getattr(self.kind.phrase, "__kwdefaults__", None) or {}).get(name))

    @property
    def event(self) -> str:
        """What kind of event it was, for programs."""
        return self.kind.event

    @property
    def broker(self) -> int | None:
        """The broker that it is about, None if it is about none."""
        about = self.operands.get(self.kind.about) if self.kind.about else self.actor
        return about if isinstance(about, int) else None

    @property
    def offset(self) -> int | None:
        """The offset of the record that it is about."""
        return self.operands.get("offset")


def link(
    name: str,
    *stems_from: type[Event],
    event: str = "",
    role: str = "",
    about: str = "",
    impersonal: bool = False,
    is_cause: bool = False,
    is_fault: bool = False,
    is_turn: bool = False,
    needs: tuple[ChainCondition, ...] = (),
    makes: tuple[ChainCondition, ...] = (),
    free_because: str = "",
    no_remedy: str = "",
    is_of_client: bool = False,
) -> Callable[[Callable[P, str]], LinkKind[P]]:
    """Declare a kind of link by the function that makes its words.

    Raises:
        ValueError: another kind of link has this name, or this one does not say from what it follows.

    """

    def declare(phrase: Callable[P, str]) -> LinkKind[P]:
        kind = LinkKind(
            name=name,
            phrase=phrase,
            stems_from=tuple(kind.name for kind in stems_from),
            event=event or name,
            role=role,
            about=about,
            impersonal=impersonal,
            is_cause=is_cause,
            is_fault=is_fault,
            is_turn=is_turn,
            needs=needs,
            makes=makes,
            free_because=free_because,
            no_remedy=no_remedy,
            is_of_client=is_of_client,
        )
        if KINDS.setdefault(name, kind) is not kind:
            raise ValueError(f"two kinds of link are called {name}")
        return kind

    return declare


def claim(name: str) -> Callable[[Callable[P, str]], LinkKind[P]]:
    """Declare a conclusion that says what is wrong, and not why."""
    return link(name, event=CONCLUSION, impersonal=True, free_because="it says what the chain has to explain")


def cause(
    name: str,
    *,
    needs: tuple[ChainCondition, ...] = (),
    free_because: str = "",
    no_remedy: str = "",
    is_of_client: bool = False,
) -> Callable[[Callable[P, str]], LinkKind[P]]:
    """Declare a conclusion that says why an anomaly came about; *no_remedy* says why nothing can be set against it."""
    return link(
        name,
        event=CONCLUSION,
        impersonal=True,
        is_cause=True,
        needs=needs,
        free_because=free_because,
        no_remedy=no_remedy,
        is_of_client=is_of_client,
    )


# The law of chains


class Gap(NamedTuple):
    """A need of a link, by its place in the chain, that no earlier link has met."""

    place: int
    link: Link
    need: Standing


def unmet(chain: Iterable[Link], *, of_first: bool = False) -> Iterator[Gap]:
    """Yield what links need and earlier links have not made; the first link needs nothing, unless *of_first*."""
    known: dict[tuple[ChainFact, tuple[Any, ...]], Any] = {}
    for place, each in enumerate(chain):
        if (place or of_first) and not each.kind.is_fault:
            for need in standing(each, each.kind.needs):
                value = known.get((need.fact, need.subject), None if need.fact.is_open else False)
                if value is not None and value != need.value:
                    yield Gap(place, each, need)
        for made in standing(each, each.kind.makes):
            known[made.fact, made.subject] = made.value


def standing(link: Link, conditions: Iterable[ChainCondition]) -> Iterator[Standing]:
    """Yield what conditions say of the operands of a link."""
    for fact, names, then, where, unless in conditions:
        if where is not None and link.operand(where[0]) != where[1]:
            continue
        if any(link.operand(name) for name in unless):
            continue
        value: Any = then
        if isinstance(then, str):
            value = link.operand(then)
            if value is None:
                continue
            # The members of an ISR are the same in whatever order.
            value = tuple(sorted(value)) if isinstance(value, tuple) else value
        operands = [link.operand(name) for name in names]
        each = [operand if isinstance(operand, tuple) else (operand,) for operand in operands]
        for subject in product(*each):
            if None not in subject:
                yield Standing(fact, subject, value)


def strikes(chain: Iterable[Link]) -> tuple[int, ...]:
    """Return the numbers of the faults that struck in a chain, rising."""
    return tuple(sorted({each.strike for each in chain if each.strike is not None}))


@cache
def operand_kinds(name: str) -> Mapping[str, FieldKind]:
    """Return the operands of a kind of link, with what each holds.

    Raises:
        TypeError: an operand has a type without a kind.

    """
    hints = get_type_hints(KINDS[name].phrase, include_extras=True)
    return {operand: _kind_of(hint, name, operand) for operand, hint in hints.items() if operand != "return"}


def _kind_of(hint: Any, name: str, operand: str) -> FieldKind:
    for found in _annotations(hint):
        if isinstance(found, FieldKind):
            return found
    raise TypeError(f"{name}.{operand}: no operand of a link has type {hint}")


def _annotations(hint: Any) -> Iterator[Any]:
    if get_origin(hint) is Annotated:
        yield from get_args(hint)[1:]
    else:
        for part in get_args(hint):
            yield from _annotations(part)


def cause_key(link: Link) -> tuple[str | bool, ...]:
    """Return what makes two causes the same cause: their kind, and what of their operands is no name.

    Brokers, records, offsets, epochs and counts are other ones in every run.
    """
    kinds = operand_kinds(link.kind.name)
    told = [(name, value) for name, value in sorted(link.operands.items()) if value]
    return (
        link.kind.name,
        *(part for name, value in told if kinds[name] in _NO_NAMES for part in (name, value)),
    )


_NO_NAMES: Final = frozenset({FieldKind.FLAG, FieldKind.TEXT})


@link("recorded", impersonal=True, free_because="another release of harrow recorded it, in words only")
def recorded(*, text: Text) -> str:
    """A link of a kind that is not known here, in the words in which it was recorded."""
    return text
