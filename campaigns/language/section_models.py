"""The section of a campaign file that says what a dataclass declares (`harrow.cluster_model.fields`)."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import is_dataclass
from keyword import iskeyword
from typing import Annotated, Any, Final, get_args

from pydantic import Field, create_model

from harrow.campaigns.language import literals, section
from harrow.campaigns.language.section import Leaf, NumberOrList, OneOrMany, OneOrSeveral, Section
from harrow.cluster_model import fields as kinds
from harrow.cluster_model.fields import DeclaredField, by_kind, fields_of
from harrow.cluster_model.registry import derived
from harrow.cluster_model.release import RELEASES
from harrow.cluster_model.settings import LONG_MAX
from harrow.cluster_model.topology import BROKER_ID_MAX

Definitions = dict[str, tuple[Any, Any]]

_PARTS_OF_NAMES: Final = re.compile(r"[^A-Za-z0-9]+")

_PREFIX: Final = "key_"
"""Put before an attribute of a model that would hide one of pydantic's."""

_NUMBERS: Final = (kinds.CountMarker, kinds.SkipMarker, int)

_BROKER_ID: Final = section.number_schema(0, BROKER_ID_MAX)
_BROKER: Final = {
    "type": "string",
    "pattern": f"^({literals.BROKER_PATTERN}|{literals.SERVER_PATTERN}|[0-9]+)$",
}
_SERVER: Final = {"type": "string", "pattern": f"^{literals.SERVER_PATTERN}$"}
_DURATION: Final = section.spelling_schema(literals.DURATION_PATTERN, "500ms", "2s")
_DURATIONS: Final = section.spelling_schema(
    literals.range_pattern(literals.DURATION_PATTERN), "2s", "1s..10s"
)
_RATE: Final = section.spelling_schema(literals.RATE_PATTERN, "10/s", "12/m")
_RATES: Final = section.spelling_schema(literals.range_pattern(literals.RATE_PATTERN), "12/m", "1/m..30/m")
_RELEASES: Final = [*RELEASES, literals.LATEST_RELEASE]
_RELEASE: Final = {"anyOf": [{"enum": _RELEASES}, {"type": "number"}], "examples": _RELEASES}


def _bound(read: Callable[[str], int], pattern: str, example: str) -> Leaf:
    schema = section.spelling_schema(f"{literals.BOUND_PATTERN}{pattern}", example)
    return Leaf(literals.bound_of(read), schema)


LEAVES: Final[dict[type[Any], Any]] = {
    kinds.DurationMarker: Leaf(literals.duration, _DURATION),
    kinds.DurationRangeMarker: Leaf(literals.duration_range, _DURATIONS),
    kinds.DurationOrNeverMarker: Leaf(literals.duration_or_never, {"anyOf": [{"const": "never"}, _DURATION]}),
    kinds.RateMarker: Leaf(literals.rate, _RATE),
    kinds.RateRangeMarker: Leaf(literals.rate_range, _RATES),
    kinds.BandwidthMarker: Leaf(
        literals.bandwidth, section.spelling_schema(literals.BANDWIDTH_PATTERN, "64KB/s", "1MB/s")
    ),
    kinds.BrokerMarker: OneOrSeveral(literals.broker_reference, {"anyOf": [_BROKER_ID, _BROKER]}),
    kinds.BrokerIdMarker: Leaf(literals.broker_id, _BROKER_ID),
    kinds.ControllerIdMarker: Leaf(literals.controller_id, {"anyOf": [_BROKER_ID, _SERVER]}),
    kinds.BrokerOrNoneMarker: section.whole(-1, BROKER_ID_MAX),
    kinds.EndpointMarker: Leaf(literals.endpoint, {"type": ["integer", "string"]}),
    kinds.LinkEndMarker: Leaf(literals.link_end, {"type": ["integer", "string"]}),
    kinds.ClientMarker: section.TEXT,
    kinds.PartitionMarker: Leaf(str, {"type": "string", "examples": ["t-0"]}),
    kinds.MessageRuleNameMarker: section.TEXT,
    kinds.MessageRuleMarker: section.TEXT,
    kinds.DurationBoundMarker: _bound(literals.duration, literals.DURATION_PATTERN, "< 500ms"),
    kinds.CountBoundMarker: _bound(literals.whole_number(0), "[0-9]+", "<= 10"),
    kinds.ShareBoundMarker: _bound(literals.share, "[0-9]+([.][0-9]+)?%", "> 99.9%"),
    kinds.ProbabilityMarker: Leaf(literals.probability, {"type": "number", "minimum": 0, "maximum": 1}),
    kinds.ApiMarker: section.one_of(*kinds.APIS),
    kinds.ZnodePathMarker: Leaf(
        literals.znode_path, section.spelling_schema(literals.ZNODE_PATH_PATTERN, "/controller")
    ),
    kinds.ReleaseMarker: Leaf(literals.release, _RELEASE),
    kinds.TopicNameMarker: Leaf(literals.topic_name, section.TEXT.schema),
    kinds.ClientNameMarker: Leaf(literals.client_name, section.NAME.schema),
    bool: Leaf(literals.boolean, {"type": "boolean"}),
    str: section.TEXT,
}
"""How values of a kind are read from a campaign, where neither bounds nor words of a field matter.

Modules that know more kinds add them: leaves, or annotations of lists and mappings.
"""

MODELS: Final[dict[type[Any], Callable[[DeclaredField], type[Section]]]] = {}
"""Sections that are made when they are first needed, for they follow from catalogues."""


def field(key: str, annotation: Any, doc: str, *, required: bool = False) -> Definitions:
    if not required and (_is_section(annotation) or get_args(annotation)[:1] == (Section,)):
        # Without it JSON Schema has no place for a description that is the section's own.
        annotation |= None
    if isinstance(annotation, Leaf):
        annotation = Annotated[Any, annotation]
    default: Any = ... if required else None
    return {_attribute(key): (annotation, Field(default, alias=key, description=doc))}


def _attribute(key: str) -> str:
    name = _PARTS_OF_NAMES.sub("_", key)
    hidden = iskeyword(name) or name.startswith(("_", "model_")) or hasattr(Section, name)
    return _PREFIX + name if hidden or not name.isidentifier() else name


def model(
    name: str, fields: Iterable[Definitions], doc: str, base: type[Section] = Section, **traits: Any
) -> type[Section]:
    """Return a section with these fields; *doc* describes it in the JSON Schema, *traits* are those of `Section`."""
    options: dict[str, Any] = {key: field for part in fields for key, field in part.items()}
    made = create_model(name, __base__=base, __doc__=doc, __module__=__name__, **options)
    for trait, value in traits.items():
        setattr(made, trait, value)
    return made


@derived
def section_of(declared: type[Any], name: str | None = None, *, emptiable: bool = False) -> type[Section]:
    """Return the section that says what *declared* has."""
    title = name or f"{declared.__name__.removesuffix('Spec')}Section"
    return model(title, [definitions_of(declared)], declared.__doc__ or "", emptiable=emptiable)


def definitions_of(declared: type[Any], **more: Sequence[Definitions]) -> Definitions:
    """Return a field for each that *declared* has; keys with dots become sections of their own, which may have *more*."""
    docs: Mapping[str, str] = getattr(declared, "SECTIONS", {})
    found: Definitions = {}
    inner: dict[str, Definitions] = {}
    for item in fields_of(declared):
        head, dot, key = item.key.partition(".")
        definition = definition_of(item, key or head)
        if not dot:
            found |= definition
        elif head in inner:
            inner[head] |= definition
        else:
            inner[head] = definition
            # Its place is that of its first key.
            found |= field(head, Annotated[Any, None], docs[head])
    for head, definitions in inner.items():
        found |= field(
            head,
            model(f"{head.capitalize()}Section", [definitions, *more.get(head, ())], docs[head]),
            docs[head],
        )
    return found


def definition_of(item: DeclaredField, key: str | None = None, *, optional: bool = False) -> Definitions:
    return field(key or item.key, annotation_of(item), item.doc, required=item.required and not optional)


def annotation_of(item: DeclaredField) -> Any:
    inner = _single(item)
    for _ in range(item.depth - 1):
        inner = list[inner]  # type: ignore[valid-type]  # made at run time
    if not item.many:
        return inner
    many: Any = list[inner]  # type: ignore[valid-type]  # made at run time
    if item.options.numbered:
        return Annotated[many, NumberOrList(item.options.maximum or LONG_MAX)]
    return many if is_dataclass(item.kind) or item.depth > 1 else Annotated[many, OneOrMany()]


def _is_section(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, Section)


def _single(item: DeclaredField) -> Any:
    leaf = _leaf(item)
    if leaf is not None:
        return Annotated[Any, leaf] if isinstance(leaf, Leaf) else leaf
    if (made := by_kind(MODELS, item.kind)) is not None:
        return section.generated(lambda: made(item))
    if is_dataclass(item.kind):
        return section.generated(lambda: section_of(item.kind, emptiable=item.options.emptiable))
    raise TypeError(f"a campaign has no syntax for {item.kind}")


def _leaf(item: DeclaredField) -> Any:
    maximum = LONG_MAX if item.options.maximum is None else item.options.maximum
    if item.choices:
        return section.one_of(*item.choices)
    if item.kind in _NUMBERS:
        return section.whole(-LONG_MAX if item.minimum is None else item.minimum, maximum)
    if item.kind is kinds.NumberRangeMarker:
        return section.whole_range(item.minimum or 0, maximum)
    if item.kind is kinds.DurationMarker and item.minimum:
        return Leaf(literals.positive_duration, _DURATION)
    return by_kind(LEAVES, item.kind)
