"""Defines the links of the chain of events that leads to a finding, and the kinds of link.

A kind of link is declared by a function. Its keyword arguments, with the types of
`harrow.cluster_model.events`, are the operands of its links, and it returns a link's words. So a
plugin's rule can define a kind of its own, which harrow can show, record and compare. Rules only
create links; output turns them into words (`harrow.campaigns.record.phrases`).

The law of chains: an earlier link of the chain made each link possible, unless the link is the
first, is a fault, or needs nothing. A kind declares both sides of the law as data: the ``needs``
must hold before a link of this kind, and what it ``makes`` true holds afterwards. Each entry is a
`ChainCondition`: a `ChainFact`, its subject, and whether the fact holds. A kind without needs is a
fault, or says in ``needs_nothing_because`` why no earlier link has to make it possible. For
example, an election needs the former leader to be out of service, which a crash, an expired session
or a shutdown establishes. A broker that comes back must have been down. An acknowledgement by the
ISR needs a copy on each member, so it contradicts a link that truncated one of the copies. `unmet`
walks a chain and reports every need that no earlier link has established. A story looks up such a
need in the trace, and adds the event that meets it (`harrow.checks.causes.background`). A test
checks every finding of the library: a need that remains unmet breaks the law.

Faults are data as well. A kind ``is_fault`` if nothing in the cluster caused its links. If a fault
of the campaign caused a link, ``strike`` is the number of that fault: the ``strike`` of its
`FaultStruck` in the trace, which counts from 1, so the fault is ``RunResult.faults[strike - 1]``.
`strikes` lists the numbers of a chain.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from functools import cache
from itertools import product
from typing import Annotated, Any, Final, Generic, NamedTuple, ParamSpec, get_args, get_origin, get_type_hints

from harrow.cluster_model.events import Event, FieldKind, Text
from harrow.cluster_model.lazy_dataclass import dataclass

P = ParamSpec("P")

Actor = int | str | None
"""The id of the broker, or the name of the client, that acts."""

RecordValue = Annotated[str | int, FieldKind.VALUES]
"""An operand with the value of one record."""

CONCLUSION: Final = "conclusion"
"""The event of links that have no moment, because they follow from the other links."""

KINDS: Final[dict[str, "LinkKind[...]"]] = {}
"""Every kind of link by its name; `link` and `cause` register them."""


# Reasons why a kind of link needs no earlier link

OWN_ACTION: Final = "a client or an application does this by itself"
IN_HISTORY: Final = "it is an operation of the history, which may be the only evidence"
NOTHING_HAPPENED: Final = "it says that something did not happen"
FORBIDDEN: Final = "the rule forbids it, so nothing lawful leads to it"
FROM_LOGS: Final = "it compares the final contents of logs or of the history"
BY_SETTING: Final = "a setting permits it whenever the links before it happen"
FROM_TRACE: Final = "its evidence comes from the trace of other partitions or of the whole cluster"


ACTOR: Final = "actor"
"""Stands for a link's actor where a condition names operands."""


@dataclass(frozen=True, slots=True)
class ChainFact:
    """A fact that holds for a subject, such as a broker, or does not.

    Until a link establishes the fact, it does not hold; a fact that ``is_open`` is unknown instead.
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
        """Return the condition that the fact holds for a subject.

        The parameters are the fields of `ChainCondition`.
        """
        return ChainCondition(self, subject, then, where, unless)


class ChainCondition(NamedTuple):
    """A condition that a kind of link needs, or makes true.

    ``subject`` names operands, or `ACTOR`. An operand with several brokers stands for each of them.
    ``then`` is whether the fact holds, or the name of the operand with the fact's value, or None if
    the fact is unknown after such a link. ``where`` is an operand and a value: the condition
    applies only to links with this value. It does not apply if one of the operands ``unless`` is
    true.
    """

    fact: ChainFact
    subject: tuple[str, ...]
    then: str | bool | None
    where: tuple[str, Any] | None
    unless: tuple[str, ...]


class FactValue(NamedTuple):
    """The value of a fact for one subject."""

    fact: ChainFact
    subject: tuple[Any, ...]
    value: Any


@dataclass(frozen=True, slots=True)
class LinkKind(Generic[P]):
    """A kind of link.

    ``phrase`` makes the words from the operands: the predicate of a sentence about the actor (in
    its ``role``, if any), or a whole sentence if the kind is ``impersonal``. ``stems_from`` names
    the trace events that such a link may be about. ``event`` is the name under which recorded
    findings list the link. If the link is about another broker than the actor, ``about`` names the
    operand with that broker's id.

    A kind that ``is_cause`` says why an anomaly came about. ``needs`` and ``makes`` are the two
    sides of the law of chains. A kind without needs ``is_fault``, that is, comes from outside the
    cluster, or ``needs_nothing_because`` says why it needs no earlier link. A kind that ``is_turn``
    is an election, a truncation or a change of an ISR; output never hides such a link.
    ``no_remedy`` says why no setting that harrow can change prevents a cause. A cause that
    ``is_of_client`` lies with a client, so no switch of brokers guards against it.
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
    needs_nothing_because: str = ""
    no_remedy: str = ""
    is_of_client: bool = False

    def __post_init__(self) -> None:
        if (self.is_fault, bool(self.needs), bool(self.needs_nothing_because)).count(True) != 1:
            raise ValueError(
                f"the kind of link {self.name} is a fault, or has needs, or says in needs_nothing_because why it has none"
            )

    def __call__(self, at_us: int | None, actor: Actor, /, *_: P.args, **operands: P.kwargs) -> "Link":
        return self._link(at_us, actor, operands)

    def conclude(self, *_: P.args, **operands: P.kwargs) -> "Link":
        return self._link(None, None, operands)

    def _link(self, at_us: int | None, actor: Actor, operands: Mapping[str, Any]) -> "Link":
        defaults = getattr(self.phrase, "__kwdefaults__", None)
        if defaults:
            operands = {name: value for name, value in operands.items() if defaults.get(name, ...) != value}
        return Link(kind=self, at_us=at_us, actor=actor, operands=operands)

    def __reduce__(self) -> tuple[Callable[[str], Any], tuple[str]]:
        """Pickle the kind as its name, because pickle cannot find a decorated function."""
        return kind_named, (self.name,)


def kind_named(name: str) -> LinkKind[...]:
    return KINDS[name]


@dataclass(frozen=True, slots=True)
class Link:
    """One event of the chain that led to a finding, or a conclusion from the other links.

    ``at_us`` is the virtual time of the event in microseconds, None for a conclusion. Without a
    link that ``decides``, the finding would not exist. ``strike`` is the number of the fault of the
    campaign that caused the event, if one did.
    """

    kind: LinkKind[...]
    at_us: int | None = None
    actor: Actor = None
    operands: Mapping[str, Any] = field(default_factory=dict)
    decides: bool = False
    strike: int | None = None

    @property
    def is_pivotal(self) -> bool:
        """Whether a chain always shows this link."""
        return self.decides or self.kind.is_fault or self.kind.is_turn

    def operand(self, name: str) -> Any:
        if name == ACTOR:
            return self.actor
        if name in self.operands:
            return self.operands[name]
        return (getattr(self.kind.phrase, "__kwdefaults__", None) or {}).get(name)

    @property
    def event(self) -> str:
        return self.kind.event

    @property
    def broker(self) -> int | None:
        about = self.operands.get(self.kind.about) if self.kind.about else self.actor
        return about if isinstance(about, int) else None

    @property
    def offset(self) -> int | None:
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
    needs_nothing_because: str = "",
    no_remedy: str = "",
    is_of_client: bool = False,
) -> Callable[[Callable[P, str]], LinkKind[P]]:
    """Declare a kind of link by the function that makes its words.

    Raises:
        ValueError: another kind has this name, or this kind is not exactly one of a fault, a kind
            with needs, and a kind with a reason to need nothing.

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
            needs_nothing_because=needs_nothing_because,
            no_remedy=no_remedy,
            is_of_client=is_of_client,
        )
        if KINDS.setdefault(name, kind) is not kind:
            raise ValueError(f"two kinds of link are called {name}")
        return kind

    return declare


def described(
    module: str, doc: str | None, annotations: Mapping[str, Any], defaults: Mapping[str, Any]
) -> Callable[[Callable[P, str]], Callable[P, str]]:
    """Give a compiled function the docstring, annotations and defaults of its source."""

    def describe(phrase: Callable[P, str]) -> Callable[P, str]:
        def words(*args: P.args, **operands: P.kwargs) -> str:
            return phrase(*args, **operands)

        words.__module__, words.__qualname__ = module, phrase.__name__
        words.__doc__ = doc
        words.__annotations__ = dict(annotations)
        words.__kwdefaults__ = dict(defaults)
        return words

    return describe


def claim(name: str) -> Callable[[Callable[P, str]], LinkKind[P]]:
    """Declare a conclusion that says what is wrong, but not why."""
    return link(name, event=CONCLUSION, impersonal=True, needs_nothing_because="the chain has to explain it")


def cause(
    name: str,
    *,
    needs: tuple[ChainCondition, ...] = (),
    needs_nothing_because: str = "",
    no_remedy: str = "",
    is_of_client: bool = False,
) -> Callable[[Callable[P, str]], LinkKind[P]]:
    """Declare a conclusion that says why an anomaly came about.

    *no_remedy* says why no setting prevents it.
    """
    return link(
        name,
        event=CONCLUSION,
        impersonal=True,
        is_cause=True,
        needs=needs,
        needs_nothing_because=needs_nothing_because,
        no_remedy=no_remedy,
        is_of_client=is_of_client,
    )


# The law of chains


class Gap(NamedTuple):
    """A need that no earlier link has met, the link with the need, and its place in the chain."""

    place: int
    link: Link
    need: FactValue


def unmet(chain: Iterable[Link], *, of_first: bool = False) -> Iterator[Gap]:
    """Yield the needs that no earlier link has met.

    The needs of the first link are left out, unless *of_first*.
    """
    facts: dict[tuple[ChainFact, tuple[Any, ...]], Any] = {}
    for place, each in enumerate(chain):
        if (place or of_first) and not each.kind.is_fault:
            for need in fact_values(each, each.kind.needs):
                value = facts.get((need.fact, need.subject), None if need.fact.is_open else False)
                if value is not None and value != need.value:
                    yield Gap(place, each, need)
        for made in fact_values(each, each.kind.makes):
            facts[made.fact, made.subject] = made.value


def fact_values(link: Link, conditions: Iterable[ChainCondition]) -> Iterator[FactValue]:
    """Yield the facts, with values, that conditions state for the operands of a link."""
    for fact, names, then, where, unless in conditions:
        if where is not None and link.operand(where[0]) != where[1]:
            continue
        if unless and any(link.operand(name) for name in unless):
            continue
        value: Any = then
        if isinstance(then, str):
            value = link.operand(then)
            if value is None:
                continue
            # The order of the members of an ISR does not matter.
            value = tuple(sorted(value)) if isinstance(value, tuple) else value
        operands = tuple([link.operand(name) for name in names])
        if tuple not in map(type, operands):
            subjects: Iterable[tuple[Any, ...]] = (operands,)
        else:
            subjects = product(*(each if isinstance(each, tuple) else (each,) for each in operands))
        for subject in subjects:
            if None not in subject:
                yield FactValue(fact, subject, value)


def strikes(chain: Iterable[Link]) -> tuple[int, ...]:
    """Return the numbers of the faults that caused links of a chain, in ascending order."""
    return tuple(sorted({each.strike for each in chain if each.strike is not None}))


@cache
def operand_kinds(name: str) -> Mapping[str, FieldKind]:
    """Return the operands of a kind of link, each with the kind of its values.

    Raises:
        TypeError: an operand has a type without a kind.

    """
    hints = get_type_hints(KINDS[name].phrase, include_extras=True)
    return {operand: _kind_of(hint, name, operand) for operand, hint in hints.items() if operand != "return"}


def _kind_of(hint: Any, name: str, operand: str) -> FieldKind:
    for annotation in _annotations(hint):
        if isinstance(annotation, FieldKind):
            return annotation
    raise TypeError(f"{name}.{operand}: an operand of a link cannot have type {hint}")


def _annotations(hint: Any) -> Iterator[Any]:
    if get_origin(hint) is Annotated:
        yield from get_args(hint)[1:]
    else:
        for part in get_args(hint):
            yield from _annotations(part)


def cause_key(link: Link) -> tuple[str | bool, ...]:
    """Return a key that is equal for equal causes: the kind and the operands of flags and texts.

    Brokers, records, offsets, epochs and counts differ from run to run, so the key excludes them.
    """
    kinds = operand_kinds(link.kind.name)
    return (
        link.kind.name,
        *(
            part
            for name, value in sorted(link.operands.items())
            if value and kinds[name] in _COMPARED
            for part in (name, value)
        ),
    )


_COMPARED: Final = frozenset({FieldKind.FLAG, FieldKind.TEXT})


@link(
    "recorded", impersonal=True, needs_nothing_because="another release of harrow recorded it, in words only"
)
def recorded(*, text: Text) -> str:
    """A link whose kind this release does not know, in the words that the recording has."""
    return text
