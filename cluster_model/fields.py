"""Declares the fields that a campaign can set: their kinds, bounds and documentation.

A fault, an action or a topic is a frozen dataclass, and its fields are the keys of its section in a
campaign. The type of a field is annotated with a `Marker`, which names the kind of its values.
`described` adds the documentation and the bounds, and says whether a swarm may draw the value. The
parser of campaign files (`harrow.campaigns.language`), the shrinker and the Hypothesis strategies
read these declarations, so a new field is declared once, in its dataclass.
"""

# Plain Python: it reads the `__doc__` of classes and the metadata of fields at run time.

from collections.abc import Mapping
from dataclasses import MISSING, field, fields, is_dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from harrow.cluster_model.lazy_dataclass import dataclass, replace
from harrow.cluster_model.registry import Registry, derived
from harrow.cluster_model.sim.choices import Stream, between

V = TypeVar("V")
D = TypeVar("D")


class Marker:
    """A kind of value. The docstring of each subclass is the syntax of the value in a campaign.

    The type of the value in the model follows after a semicolon.
    """


def words_of(kind: type[Marker]) -> str:
    """Return in words how a campaign writes a value of a kind, from the marker's docstring."""
    doc = str(kind.__doc__).partition("; ")[0].replace("``", "`")
    return " ".join(doc.split()).rstrip(".")


class DurationMarker(Marker):
    """A time such as ``500ms``, ``2s`` or ``1m``; microseconds."""


class DurationRangeMarker(Marker):
    """A time, or a random one from a range such as ``1s..10s``; a pair of microseconds."""


class LastsMarker(DurationRangeMarker):
    """A time, or a random one from a range such as ``1s..10s``.

    The key may also be written ``for``; a pair of microseconds.
    """


class DurationOrNeverMarker(Marker):
    """A time such as ``30s``, or ``never``; microseconds or None."""


class RateMarker(Marker):
    """How often, such as ``10/s``, ``12/m`` or ``1/h``; the mean time in microseconds."""


class RateRangeMarker(Marker):
    """How often, or a range of it such as ``1/m..30/m``; a pair of mean times."""


class BandwidthMarker(Marker):
    """An amount per second, such as ``64KB/s``, ``1MB/s`` or ``1Gbit/s``; bytes per second."""


class BrokerMarker(Marker):
    """A broker: its id, or ``any``, ``controller``, ``leader of t-0``, ``follower of t-0``.

    Some values mean several brokers, and the fault strikes them all: ``all``, ``leaders of t``,
    ``followers of t-0``, ``rack a``, ``random 2``, ``50%``, or a list. A partition or a rack can
    be drawn when the fault strikes: ``leader of any``, ``followers of any``, ``rack any``. A fault
    of processes or links can also strike a server of ZooKeeper (``zookeeper-1``, ``leader of
    zookeeper``, ``follower of zookeeper``, ``followers of zookeeper``) or a controller of KRaft
    (``controller-3000``, ``leader of quorum``, ``follower of quorum``, ``followers of quorum``).
    """


class BrokerIdMarker(Marker):
    """The id of a broker."""


class ControllerIdMarker(BrokerIdMarker):
    """The id of the controller, or in KRaft of a voter such as ``controller-3000``."""


class BrokerOrNoneMarker(Marker):
    """The id of a broker, or -1 for none."""


class EndpointMarker(Marker):
    """One end of a link: a broker's id, the name of a client, or the control plane.

    The control plane is ``zookeeper``, or one of its servers such as ``zookeeper-1``. In KRaft it
    is ``quorum``, or one of its controllers such as ``controller-3000``.
    """


class LinkEndMarker(EndpointMarker):
    """A broker's id, the name of a client, or the control plane.

    The control plane is ``zookeeper``, or one of its servers such as ``zookeeper-1``. In KRaft it
    is ``quorum``, or one of its controllers such as ``controller-3000``. An end may also be a name
    that is looked up when the fault strikes: ``brokers``, ``clients``, ``others`` (all that the
    fault does not name), or any name of one or several brokers, such as ``controller`` or
    ``leader of t-0``.
    """


class ClientMarker(Marker):
    """The name of a client."""


class ClientTargetMarker(ClientMarker):
    """The name of a client, ``all``, or ``any`` for one chosen at random when the fault strikes."""


class ProducerMarker(ClientMarker):
    """The name of a producer."""


class PartitionMarker(Marker):
    """A partition such as ``t-0``."""


class ProbabilityMarker(Marker):
    """A probability from 0 to 1."""


class CountMarker(Marker):
    """A whole number of at least 1."""


class SkipMarker(Marker):
    """A whole number of at least 0."""


class NumberRangeMarker(Marker):
    """A whole number, or a range of them such as ``3..5``; a pair."""


class DurationBoundMarker(Marker):
    """A bound of a duration such as ``< 500ms``; a comparison and microseconds."""


class CountBoundMarker(Marker):
    """A bound of a count such as ``<= 10``; a comparison and a number."""


class ShareBoundMarker(Marker):
    """A bound of a share such as ``> 99.9%``; a comparison and millionths."""


class MessageRuleNameMarker(Marker):
    """Text."""


class MessageRuleMarker(Marker):
    """The name of a message rule, as in the fault that made it."""


class ApiMarker(Marker):
    """The name of a request such as ``Fetch``."""


class ZnodePathMarker(Marker):
    """The path of a znode such as ``/controller``."""


class ReleaseMarker(Marker):
    """A release of Kafka such as ``2.4``."""


class TopicNameMarker(Marker):
    """The name of a topic, as Kafka allows them."""


class TopicMarker(TopicNameMarker):
    """The name of a topic of the campaign."""


class ClientNameMarker(Marker):
    """The name of a new client."""


class ConditionMarker(Marker):
    """A condition that must hold."""


class EventMarker(Marker):
    """The name of a trace event, with the fields that must match."""


class OffsetsByBrokerMarker(Marker):
    """Offsets by broker, -1 if unknown."""


class EpochStartsMarker(Marker):
    """A list of pairs of leader epoch and start offset."""


class SettingsMarker(Marker):
    """Settings under Kafka's names."""


class FaultMarker(Marker):
    """The name of a fault, with its fields (`harrow list faults`)."""


Duration = Annotated[int, DurationMarker]
DurationRange = Annotated[tuple[int, int], DurationRangeMarker]
Lasts = Annotated[tuple[int, int], LastsMarker]
"""How long a fault lasts (`harrow.faults.fault.LastingFault`)."""
DurationOrNever = Annotated[int | None, DurationOrNeverMarker]
Rate = Annotated[int, RateMarker]
Bandwidth = Annotated[int, BandwidthMarker]
RateRange = Annotated[tuple[int, int], RateRangeMarker]
Broker = Annotated[Any, BrokerMarker]
"""A broker's id, or a reference that is resolved to an id when the fault strikes."""
BrokerId = Annotated[int, BrokerIdMarker]
ControllerId = Annotated[int, ControllerIdMarker]
BrokerOrNone = Annotated[int, BrokerOrNoneMarker]
Endpoint = Annotated[int | str, EndpointMarker]
LinkEnd = Annotated[int | str, LinkEndMarker]
"""An `Endpoint`, or a reference that is resolved to one or several ends when the fault strikes."""
Client = Annotated[str, ClientMarker]
ClientTarget = Annotated[str, ClientTargetMarker]
Producer = Annotated[str, ProducerMarker]
Partition = Annotated[str, PartitionMarker]
Probability = Annotated[float, ProbabilityMarker]
Count = Annotated[int, CountMarker]
Skip = Annotated[int, SkipMarker]
NumberRange = Annotated[tuple[int, int], NumberRangeMarker]
DurationBound = Annotated[tuple[str, int], DurationBoundMarker]
CountBound = Annotated[tuple[str, int], CountBoundMarker]
ShareBound = Annotated[tuple[str, int], ShareBoundMarker]
MessageRuleName = Annotated[str, MessageRuleNameMarker]
MessageRuleReference = Annotated[str, MessageRuleMarker]
Api = Annotated[str, ApiMarker]
ZnodePath = Annotated[str, ZnodePathMarker]
EventMatch = Annotated[Any, EventMarker]
"""A `harrow.faults.event_pattern.EventPattern`."""
OffsetsByBroker = Annotated[tuple[tuple[int, int], ...], OffsetsByBrokerMarker]
EpochStarts = Annotated[tuple[tuple[int, int], ...], EpochStartsMarker]
Release = Annotated[str, ReleaseMarker]
TopicName = Annotated[str, TopicNameMarker]
Topic = Annotated[str, TopicMarker]
ClientName = Annotated[str, ClientNameMarker]

FOR: Final = "for"
"""Another key under which a campaign may write a field of the kind `Lasts`."""

EXTENSIONS: Final[Registry[type[Any], type[Any]]] = Registry()
"""Maps a dataclass to a subclass with more fields, which replaces it as the type of fields."""

_MINIMUM_BY_KIND: Final = {CountMarker: 1, SkipMarker: 0, NumberRangeMarker: 0, BrokerIdMarker: 0}
_PLAIN_TYPES: Final = (bool, int, str)
_OPTIONS: Final = "options"


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldOptions:
    """The options of a field, which `described` explains."""

    key: str | None = None
    minimum: int | None = None
    maximum: int | None = None
    scope: str = ""
    upper: str = ""
    implied: bool = False
    numbered: bool = False
    unique: bool = False
    emptiable: bool = False
    open: str = ""
    closed_by: tuple[str, ...] = ()
    shrinks: bool = True
    counts_if_set: bool = False
    example: str = ""
    safe: tuple[Any, ...] = ()
    guards: tuple[str, ...] = ()
    instead_of: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredField:
    """A field of a dataclass, as its declaration describes it.

    ``kind`` is a marker, a plain type, or a dataclass whose fields are a section of their own.
    ``choices`` are the words allowed for a text, if only some are. ``depth`` is 1 for a list, 2 for
    a list of lists, and 0 for any other value. ``optional`` says that the value may be None.
    """

    attribute: str
    key: str
    kind: type[Any]
    doc: str
    default: Any
    choices: tuple[str, ...]
    depth: int
    optional: bool
    options: FieldOptions

    @property
    def words(self) -> str:
        """Return in words how a campaign writes a value of this field."""
        if self.choices:
            return "One of " + ", ".join(f"`{choice}`" for choice in self.choices)
        if issubclass(self.kind, Marker):
            return words_of(self.kind)
        return {bool: "`true` or `false`", int: "A whole number"}.get(self.kind, "Text")

    @property
    def required(self) -> bool:
        return self.default is MISSING and not self.options.implied

    @property
    def many(self) -> bool:
        """Return whether the value is a list."""
        return self.depth > 0

    @property
    def minimum(self) -> int | None:
        return self.options.minimum if self.options.minimum is not None else _MINIMUM_BY_KIND.get(self.kind)

    def value_in(self, owner: Any) -> Any:
        value = getattr(owner, self.attribute)
        return (value, getattr(owner, self.options.upper)) if self.options.upper else value

    def named(self, value: Any) -> dict[str, Any]:
        """Return *value* by attribute; a pair that is a range is split between two attributes."""
        if self.options.upper:
            return {self.attribute: value[0], self.options.upper: value[1]}
        return {self.attribute: value}


def described(doc: str, *, default: Any = MISSING, factory: Any = MISSING, **options: Any) -> Any:
    """Return a dataclass field with its documentation and options.

    These are the options. ``key`` is the field's key in a campaign, by default the attribute's
    name. A key with dots leads through mappings (``disk.writeback``), and a field with an empty key
    is not in campaigns. ``minimum`` and ``maximum`` bound a number or a time. ``scope`` is the
    scope of the settings in a mapping. ``upper`` names the attribute that holds the upper end of a
    range. If an ``implied`` field is missing, its value follows from other fields. A ``numbered``
    list may be written as its length, and a ``unique`` list has no duplicates. An ``emptiable``
    section may be written without a value. ``open`` is the key under which a swarm lists the values
    that it draws the field from. ``closed_by`` are other places of a campaign that fix the field,
    so that a swarm cannot draw it. The shrinker tries the default of a field that ``shrinks``. A
    field that ``counts_if_set`` is part of a plan's digest only if it differs from the default, so
    that plans without the field keep their digests. ``example`` is the value in `harrow explain`,
    for a field whose kind and default suggest no good one. ``safe`` are the values, safest first,
    that may prevent what ``guards`` names (`harrow.cluster_model.settings.Setting`). ``instead_of``
    are Kafka settings that a campaign refuses because this field replaces them.
    """
    metadata = {"doc": doc, _OPTIONS: FieldOptions(**options)}
    if factory is not MISSING:
        return field(default_factory=factory, metadata=metadata)
    return field(metadata=metadata) if default is MISSING else field(default=default, metadata=metadata)


@derived
def counted_if_set(declared: type[Any]) -> Mapping[str, Any]:
    """Return the defaults of the fields with ``counts_if_set``, by attribute."""
    return {item.attribute: item.default for item in all_fields_of(declared) if item.options.counts_if_set}


@derived
def fields_of(declared: type[Any]) -> tuple[DeclaredField, ...]:
    """Return the fields of a dataclass that a campaign can set."""
    return tuple(item for item in all_fields_of(declared) if item.key)


@derived
def fields_of_kind(declared: type[Any], kind: type[Any]) -> tuple[DeclaredField, ...]:
    """Return the fields of a dataclass with values of a kind, or of a kind derived from it."""
    return tuple(item for item in all_fields_of(declared) if issubclass(item.kind, kind))


@derived
def all_fields_of(declared: type[Any]) -> tuple[DeclaredField, ...]:
    """Return all fields of a dataclass, including those that a campaign cannot set.

    Raises:
        TypeError: a field has a type for which a campaign has no syntax.

    """
    declared = EXTENSIONS.get(declared, declared)
    hints = get_type_hints(declared, include_extras=True)
    declarations: list[DeclaredField] = []
    for item in fields(declared):
        options = item.metadata.get(_OPTIONS) or FieldOptions()
        default = item.default_factory() if item.default_factory is not MISSING else item.default
        if options.upper and default is not MISSING:
            default = (default, declared.__dataclass_fields__[options.upper].default)
        where = f"{declared.__name__}.{item.name}"
        kind, choices, depth, optional = _kind(hints[item.name], where, needs_syntax=options.key != "")
        declarations.append(
            DeclaredField(
                attribute=item.name,
                key=item.name.rstrip("_") if options.key is None else options.key,
                kind=kind,
                doc=str(item.metadata.get("doc", "")),
                default=default,
                choices=choices,
                depth=depth,
                optional=optional,
                options=options,
            )
        )
    return tuple(declarations)


def _kind(
    hint: Any, where: str, *, needs_syntax: bool = True
) -> tuple[type[Any], tuple[str, ...], int, bool]:
    """Return the ``kind``, ``choices``, ``depth`` and ``optional`` of a `DeclaredField`."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType) and NoneType in arguments:
        parts = tuple(part for part in arguments if part is not NoneType)
        kind, choices, depth, _ = _kind(Union[parts], where, needs_syntax=needs_syntax)  # noqa: UP007 - known only here, so `|` cannot be written out
        return kind, choices, depth, True
    if origin is Annotated and isinstance(arguments[1], type) and issubclass(arguments[1], Marker):
        return arguments[1], (), 0, False
    if origin is tuple and arguments[1:] == (...,):
        kind, choices, depth, optional = _kind(arguments[0], where, needs_syntax=needs_syntax)
        return kind, choices, depth + 1, optional
    if origin is Literal:
        return str, arguments, 0, False
    if hint in _PLAIN_TYPES or (isinstance(hint, type) and is_dataclass(hint)):
        return EXTENSIONS.get(hint, hint), (), 0, False
    if not needs_syntax:
        return object, (), 0, False
    raise TypeError(f"{where}: a campaign has no syntax for {hint}")


def by_kind(table: Mapping[type[Any], V], kind: type[Any]) -> V | None:
    """Return the entry of a table for a kind of value, or for its closest base class."""
    return next((table[base] for base in kind.__mro__ if base in table), None)


def with_fields(spec: D, changes: Mapping[str, Any]) -> D:
    """Return a copy of a dataclass with *changes*.

    mypy accepts a *spec* of any type here, but not as an argument of `replace`.
    """
    changed: Any = spec
    result: D = replace(changed, **changes) if changes else changed
    return result


def draw_duration(stream: Stream, duration: tuple[int, int]) -> int:
    """Draw a duration, in microseconds, from a range. It is a whole number of milliseconds."""
    low, high = duration
    return low if low == high else between(stream, low // 1_000, high // 1_000) * 1_000
