"""Derives the shapes of values from the fields of dataclasses (`harrow.cluster_model.fields`).

A shape (`harrow.campaigns.language.shapes`) reads a value of a campaign, and describes it in the
JSON Schema.
"""

from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from functools import partial
from typing import Any, Final

from harrow.campaigns.language import literals, shapes
from harrow.campaigns.language.shapes import (
    Key,
    LazyShape,
    ListShape,
    NumberedShape,
    OneOrListShape,
    SectionShape,
    Shape,
    ValueShape,
)
from harrow.cluster_model import fields as kinds
from harrow.cluster_model.apis import APIS
from harrow.cluster_model.fields import DeclaredField, by_kind, fields_of
from harrow.cluster_model.registry import derived
from harrow.cluster_model.release.profiles import RELEASES
from harrow.cluster_model.settings import LONG_MAX
from harrow.cluster_model.topology import BROKER_ID_MAX

Keys = dict[str, Key]

_NUMBERS: Final = (kinds.CountMarker, kinds.SkipMarker, int)

_BROKER_ID: Final = shapes.number_schema(0, BROKER_ID_MAX)
_BROKER: Final = {
    "type": "string",
    "pattern": f"^({literals.BROKER_PATTERN}|{literals.SERVER_PATTERN}|[0-9]+)$",
}
_SERVER: Final = {"type": "string", "pattern": f"^{literals.SERVER_PATTERN}$"}
_DURATION: Final = shapes.spelling_schema(literals.DURATION_PATTERN, "500ms", "2s")
_DURATIONS: Final = shapes.spelling_schema(literals.range_pattern(literals.DURATION_PATTERN), "2s", "1s..10s")
_RATE: Final = shapes.spelling_schema(literals.RATE_PATTERN, "10/s", "12/m")
_RATES: Final = shapes.spelling_schema(literals.range_pattern(literals.RATE_PATTERN), "12/m", "1/m..30/m")
_RELEASES: Final = [*RELEASES, literals.LATEST_RELEASE]
_RELEASE: Final = {"anyOf": [{"enum": _RELEASES}, {"type": "number"}], "examples": _RELEASES}


def _bound(read: Callable[[str], int], pattern: str, example: str) -> ValueShape:
    schema = shapes.spelling_schema(f"{literals.BOUND_PATTERN}{pattern}", example)
    return ValueShape(literals.bound_of(read), schema)


SHAPES: Final[dict[type[Any], Shape]] = {
    kinds.DurationMarker: ValueShape(literals.duration, _DURATION),
    kinds.DurationRangeMarker: ValueShape(literals.duration_range, _DURATIONS),
    kinds.DurationOrNeverMarker: ValueShape(
        literals.duration_or_never, {"anyOf": [{"const": "never"}, _DURATION]}
    ),
    kinds.RateMarker: ValueShape(literals.rate, _RATE),
    kinds.RateRangeMarker: ValueShape(literals.rate_range, _RATES),
    kinds.BandwidthMarker: ValueShape(
        literals.bandwidth, shapes.spelling_schema(literals.BANDWIDTH_PATTERN, "64KB/s", "1MB/s")
    ),
    kinds.BrokerMarker: OneOrListShape(literals.broker_reference, {"anyOf": [_BROKER_ID, _BROKER]}),
    kinds.BrokerIdMarker: ValueShape(literals.broker_id, _BROKER_ID),
    kinds.ControllerIdMarker: ValueShape(literals.controller_id, {"anyOf": [_BROKER_ID, _SERVER]}),
    kinds.BrokerOrNoneMarker: shapes.whole(-1, BROKER_ID_MAX),
    kinds.EndpointMarker: ValueShape(literals.endpoint, {"type": ["integer", "string"]}),
    kinds.LinkEndMarker: ValueShape(literals.link_end, {"type": ["integer", "string"]}),
    kinds.ClientMarker: shapes.TEXT,
    kinds.PartitionMarker: ValueShape(str, {"type": "string", "examples": ["t-0"]}),
    kinds.MessageRuleNameMarker: shapes.TEXT,
    kinds.MessageRuleMarker: shapes.TEXT,
    kinds.DurationBoundMarker: _bound(literals.duration, literals.DURATION_PATTERN, "< 500ms"),
    kinds.CountBoundMarker: _bound(literals.whole_number(0), "[0-9]+", "<= 10"),
    kinds.ShareBoundMarker: _bound(literals.share, "[0-9]+([.][0-9]+)?%", "> 99.9%"),
    kinds.ProbabilityMarker: ValueShape(literals.probability, {"type": "number", "minimum": 0, "maximum": 1}),
    kinds.ApiMarker: shapes.one_of(*APIS),
    kinds.ZnodePathMarker: ValueShape(
        literals.znode_path, shapes.spelling_schema(literals.ZNODE_PATH_PATTERN, "/controller")
    ),
    kinds.ReleaseMarker: ValueShape(literals.release, _RELEASE),
    kinds.TopicNameMarker: ValueShape(literals.topic_name, shapes.TEXT.json_schema),
    kinds.ClientNameMarker: ValueShape(literals.client_name, shapes.NAME.json_schema),
    bool: ValueShape(literals.boolean, {"type": "boolean"}),
    str: shapes.TEXT,
}
"""The shapes of values by their kind, if the bounds and choices of the field do not matter.

Other modules add the kinds that they define.
"""

NAMES: Final[dict[type[Any], Callable[[], ValueShape]]] = {}
"""Functions that build a shape from the names in a catalogue. Plugins may add names to it."""

SECTIONS: Final[dict[type[Any], Callable[[DeclaredField], SectionShape]]] = {}
"""Functions that build a section from a catalogue when the section is first needed."""


@derived
def section_of(declared: type[Any], *, emptiable: bool = False) -> SectionShape:
    """Return the section with a key for each field of *declared*."""
    return SectionShape(
        title=f"{declared.__name__.removesuffix('Spec')}Section",
        doc=declared.__doc__ or "",
        keys=keys_of(declared),
        emptiable=emptiable,
    )


def keys_of(declared: type[Any], **inner_keys: Keys) -> Keys:
    """Return a key for each field of *declared*.

    A key with a dot, such as ``limits.step``, becomes a key of a section (``limits``). *inner_keys*
    adds keys to such sections.
    """
    docs: Mapping[str, str] = getattr(declared, "SECTIONS", {})
    keys: Keys = {}
    inner: dict[str, Keys] = {}
    for item in fields_of(declared):
        head, dot, key = item.key.partition(".")
        if not dot:
            keys[head] = key_of(item)
            continue
        if head not in inner:
            inner[head] = {}
            title = f"{head.capitalize()}Section"
            section = SectionShape(title=title, doc=docs[head], keys=inner[head])
            keys[head] = Key(section, docs[head])
        inner[head][key] = key_of(item)
    for head, added in inner_keys.items():
        inner[head] |= added
    return keys


def key_of(item: DeclaredField, *, optional: bool = False) -> Key:
    return Key(shape_of(item), item.doc, required=item.required and not optional)


def shape_of(item: DeclaredField) -> Shape:
    """Return the shape of a field's values."""
    shape = _single(item)
    for _ in range(item.depth - 1):
        shape = ListShape(shape)
    if not item.many:
        return shape
    if item.options.numbered:
        return NumberedShape(shape, maximum=item.options.maximum or LONG_MAX)
    return ListShape(shape, accepts_single=not is_dataclass(item.kind) and item.depth == 1)


def _single(item: DeclaredField) -> Shape:
    shape = _leaf(item) or by_kind(SHAPES, item.kind)
    if shape is not None:
        return shape
    if (names := by_kind(NAMES, item.kind)) is not None:
        return names()
    if (section := by_kind(SECTIONS, item.kind)) is not None:
        return LazyShape(partial(section, item))
    if is_dataclass(item.kind):
        return LazyShape(partial(section_of, item.kind, emptiable=item.options.emptiable))
    raise TypeError(f"a campaign has no syntax for {item.kind}")


def _leaf(item: DeclaredField) -> ValueShape | None:
    """Return the shape of a field whose bounds or choices matter; None for other fields."""
    maximum = LONG_MAX if item.options.maximum is None else item.options.maximum
    if item.choices:
        return shapes.one_of(*item.choices)
    if item.kind in _NUMBERS:
        return shapes.whole(-LONG_MAX if item.minimum is None else item.minimum, maximum)
    if item.kind is kinds.NumberRangeMarker:
        return shapes.whole_range(item.minimum or 0, maximum)
    if item.kind is kinds.DurationMarker and item.minimum:
        return ValueShape(literals.positive_duration, _DURATION)
    return None
