"""The shapes of the fields that dataclasses declare (`harrow.cluster_model.fields`)."""

from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from functools import partial
from typing import Any, Final

from harrow.campaigns.language import literals, shapes
from harrow.campaigns.language.shapes import (
    Key,
    Later,
    Leaf,
    Listed,
    Numbered,
    OneOrSeveral,
    SectionShape,
    Shape,
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


def _bound(read: Callable[[str], int], pattern: str, example: str) -> Leaf:
    schema = shapes.spelling_schema(f"{literals.BOUND_PATTERN}{pattern}", example)
    return Leaf(literals.bound_of(read), schema)


SHAPES: Final[dict[type[Any], Shape]] = {
    kinds.DurationMarker: Leaf(literals.duration, _DURATION),
    kinds.DurationRangeMarker: Leaf(literals.duration_range, _DURATIONS),
    kinds.DurationOrNeverMarker: Leaf(literals.duration_or_never, {"anyOf": [{"const": "never"}, _DURATION]}),
    kinds.RateMarker: Leaf(literals.rate, _RATE),
    kinds.RateRangeMarker: Leaf(literals.rate_range, _RATES),
    kinds.BandwidthMarker: Leaf(
        literals.bandwidth, shapes.spelling_schema(literals.BANDWIDTH_PATTERN, "64KB/s", "1MB/s")
    ),
    kinds.BrokerMarker: OneOrSeveral(literals.broker_reference, {"anyOf": [_BROKER_ID, _BROKER]}),
    kinds.BrokerIdMarker: Leaf(literals.broker_id, _BROKER_ID),
    kinds.ControllerIdMarker: Leaf(literals.controller_id, {"anyOf": [_BROKER_ID, _SERVER]}),
    kinds.BrokerOrNoneMarker: shapes.whole(-1, BROKER_ID_MAX),
    kinds.EndpointMarker: Leaf(literals.endpoint, {"type": ["integer", "string"]}),
    kinds.LinkEndMarker: Leaf(literals.link_end, {"type": ["integer", "string"]}),
    kinds.ClientMarker: shapes.TEXT,
    kinds.PartitionMarker: Leaf(str, {"type": "string", "examples": ["t-0"]}),
    kinds.MessageRuleNameMarker: shapes.TEXT,
    kinds.MessageRuleMarker: shapes.TEXT,
    kinds.DurationBoundMarker: _bound(literals.duration, literals.DURATION_PATTERN, "< 500ms"),
    kinds.CountBoundMarker: _bound(literals.whole_number(0), "[0-9]+", "<= 10"),
    kinds.ShareBoundMarker: _bound(literals.share, "[0-9]+([.][0-9]+)?%", "> 99.9%"),
    kinds.ProbabilityMarker: Leaf(literals.probability, {"type": "number", "minimum": 0, "maximum": 1}),
    kinds.ApiMarker: shapes.one_of(*APIS),
    kinds.ZnodePathMarker: Leaf(
        literals.znode_path, shapes.spelling_schema(literals.ZNODE_PATH_PATTERN, "/controller")
    ),
    kinds.ReleaseMarker: Leaf(literals.release, _RELEASE),
    kinds.TopicNameMarker: Leaf(literals.topic_name, shapes.TEXT.says),
    kinds.ClientNameMarker: Leaf(literals.client_name, shapes.NAME.says),
    bool: Leaf(literals.boolean, {"type": "boolean"}),
    str: shapes.TEXT,
}
"""The shapes of kinds of values that do not depend on the bounds or choices of a field.

Other modules add the kinds that they define.
"""

NAMES: Final[dict[type[Any], Callable[[], Leaf]]] = {}
"""Shapes that list the names in a catalogue, built late because the catalogue may grow."""

SECTIONS: Final[dict[type[Any], Callable[[DeclaredField], SectionShape]]] = {}
"""Sections that are derived from catalogues, and are built when they are first needed."""


@derived
def section_of(declared: type[Any], *, emptiable: bool = False) -> SectionShape:
    """Return the section with a key for each field of *declared*."""
    return SectionShape(
        title=f"{declared.__name__.removesuffix('Spec')}Section",
        doc=declared.__doc__ or "",
        keys=keys_of(declared),
        emptiable=emptiable,
    )


def keys_of(declared: type[Any], **more: Keys) -> Keys:
    """Return a key for each field of *declared*.

    A key with a dot becomes a section with an inner key; *more* are further inner keys, by section.
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
    for head, further in more.items():
        inner[head] |= further
    return keys


def key_of(item: DeclaredField, *, optional: bool = False) -> Key:
    return Key(shape_of(item), item.doc, required=item.required and not optional)


def shape_of(item: DeclaredField) -> Shape:
    """Return the shape of a field's values."""
    shape = _single(item)
    for _ in range(item.depth - 1):
        shape = Listed(shape)
    if not item.many:
        return shape
    if item.options.numbered:
        return Numbered(shape, maximum=item.options.maximum or LONG_MAX)
    return Listed(shape, one_will_do=not is_dataclass(item.kind) and item.depth == 1)


def _single(item: DeclaredField) -> Shape:
    shape = _leaf(item) or by_kind(SHAPES, item.kind)
    if shape is not None:
        return shape
    if (names := by_kind(NAMES, item.kind)) is not None:
        return names()
    if (section := by_kind(SECTIONS, item.kind)) is not None:
        return Later(partial(section, item))
    if is_dataclass(item.kind):
        return Later(partial(section_of, item.kind, emptiable=item.options.emptiable))
    raise TypeError(f"a campaign has no syntax for {item.kind}")


def _leaf(item: DeclaredField) -> Leaf | None:
    """Return the shape of a field whose bounds or choices matter; None for other fields."""
    maximum = LONG_MAX if item.options.maximum is None else item.options.maximum
    if item.choices:
        return shapes.one_of(*item.choices)
    if item.kind in _NUMBERS:
        return shapes.whole(-LONG_MAX if item.minimum is None else item.minimum, maximum)
    if item.kind is kinds.NumberRangeMarker:
        return shapes.whole_range(item.minimum or 0, maximum)
    if item.kind is kinds.DurationMarker and item.minimum:
        return Leaf(literals.positive_duration, _DURATION)
    return None
