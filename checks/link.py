"""Links of the chain that leads to a finding, as data, and the kinds of link there are.

A kind is a function: its keyword arguments, with the types of `harrow.cluster_model.events`, are the
operands of its links, what it returns are their words. So a rule from anywhere brings a kind of its own
along, with all that is needed to show, record and compare it. Rules only ever make data; words are made
where they are shown (`harrow.campaigns.record.phrases`).
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, Final, Generic, ParamSpec, get_args, get_origin, get_type_hints

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


@dataclass(frozen=True, slots=True)
class LinkKind(Generic[P]):
    """A kind of link.

    ``phrase`` makes the words from the operands: the predicate of a sentence about the actor (in the
    ``role`` that it has in this, if any), a whole sentence where the kind is ``impersonal``. ``stems_from``
    names the events that such a link may be about; ``event`` is what
    it is called in a chain of events, for programs. Where it tells of another broker than the one that
    acts, ``about`` is the operand with that broker's id. A ``is_cause`` kind says why an anomaly came about.
    """

    name: str
    phrase: Callable[P, str]
    stems_from: tuple[str, ...] = ()
    event: str = ""
    role: str = ""
    about: str = ""
    impersonal: bool = False
    is_cause: bool = False

    def __call__(self, at_us: int | None, actor: Actor, /, *_: P.args, **operands: P.kwargs) -> "Link":
        return self._link(at_us, actor, operands)

    def conclude(self, *_: P.args, **operands: P.kwargs) -> "Link":
        """Return a link without a time and an actor."""
        return self._link(None, None, operands)

    def _link(self, at_us: int | None, actor: Actor, operands: Mapping[str, Any]) -> "Link":
        """Return a link; operands that are as they are by default are left out."""
        defaults = getattr(self.phrase, "__kwdefaults__", None) or {}
        told = {name: value for name, value in operands.items() if defaults.get(name, ...) != value}
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
    ``decides`` the finding would not be: it is never left out of a chain.
    """

    kind: LinkKind[...]
    at_us: int | None = None
    actor: Actor = None
    operands: Mapping[str, Any] = field(default_factory=dict)
    decides: bool = False

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
) -> Callable[[Callable[P, str]], LinkKind[P]]:
    """Declare a kind of link by the function that makes its words.

    Raises:
        ValueError: another kind of link has this name.

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
        )
        if KINDS.setdefault(name, kind) is not kind:
            raise ValueError(f"two kinds of link are called {name}")
        return kind

    return declare


def claim(name: str) -> Callable[[Callable[P, str]], LinkKind[P]]:
    """Declare a conclusion that says what is wrong, and not why."""
    return link(name, event=CONCLUSION, impersonal=True)


def cause(name: str) -> Callable[[Callable[P, str]], LinkKind[P]]:
    """Declare a conclusion that says why an anomaly came about."""
    return link(name, event=CONCLUSION, impersonal=True, is_cause=True)


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


@link("recorded", impersonal=True)
def recorded(*, text: Text) -> str:
    """A link of a kind that is not known here, in the words in which it was recorded."""
    return text
