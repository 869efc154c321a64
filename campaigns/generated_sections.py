"""Sections that follow from catalogues: settings, behaviours, faults, actions, events.

A new fault, setting, switch or trace event brings its syntax with it: the models here
are made from `faults.catalogue`, `cluster_model.settings`, `cluster_model.release` and
`cluster_model.trace` when they are first needed.
"""

import re
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import ConfigDict, Field, GetCoreSchemaHandler, GetJsonSchemaHandler, create_model
from pydantic_core import core_schema

from campaigns import literals, section
from campaigns.literals import LiteralError
from campaigns.section import Leaf, OneOrMany, Section, one_of, whole, wrong
from campaigns.yaml_positions import Scalar
from cluster_model import trace
from cluster_model.release import switch_docs
from cluster_model.settings import LONG_MAX, SCOPES, SETTINGS, Setting, scopes_of, setting_names
from faults import fields as markers
from faults.catalogue import FAULTS
from faults.fault import Fault

_PARTS_OF_NAMES: Final = re.compile(r"[^A-Za-z0-9]+")

# Attributes of models get a prefix, so that no key of a campaign can hide one of pydantic's.
_PREFIX: Final = "key_"


def field(key: str, annotation: Any, doc: str, *, required: bool = False) -> dict[str, tuple[Any, Any]]:
    """Return the definition of a field, for `model`."""
    default: Any = ... if required else None
    attribute = _PREFIX + _PARTS_OF_NAMES.sub("_", key)
    return {attribute: (annotation, Field(default, alias=key, description=doc))}


def model(name: str, doc: str, definitions: dict[str, tuple[Any, Any]], base: type[Section]) -> type[Section]:
    """Return a section with these fields; *doc* becomes its description in the JSON Schema."""
    options: dict[str, Any] = definitions
    return create_model(name, __base__=base, __doc__=doc, __module__=__name__, **options)


# Settings


class SettingsSection(Section):
    """Settings under Kafka's names."""

    noun = "setting"
    catalogue = "settings"


@cache
def settings_section(scopes: tuple[str, ...] = SCOPES) -> type[Section]:
    """Return the model of a mapping of settings that these scopes know."""
    definitions: dict[str, tuple[Any, Any]] = {}
    for name in setting_names(scopes):
        scope = next(scope for scope in scopes if scope in scopes_of(name))
        setting = SETTINGS[scope, name]
        definitions |= field(name, Annotated[Any, _setting_leaf(setting)], setting.doc)
    title = "Settings" if scopes == SCOPES else f"{scopes[0].capitalize()}Settings"
    return model(title, "Settings under Kafka's names.", definitions, SettingsSection)


@cache
def open_settings_section() -> type[Section]:
    """Return the model of settings that are left open: a list of values for each."""
    definitions: dict[str, tuple[Any, Any]] = {}
    for name in setting_names(SCOPES):
        scope = next(scope for scope in SCOPES if scope in scopes_of(name))
        setting = SETTINGS[scope, name]
        values = Annotated[list[Annotated[Any, _setting_leaf(setting)]], OneOrMany()]
        definitions |= field(name, values, setting.doc)
    return model(
        "OpenSettings",
        "Settings under Kafka's names, with the values to draw from.",
        definitions,
        SettingsSection,
    )


def _setting_leaf(setting: Setting) -> Leaf:
    number = section.number_schema(setting.minimum, None if setting.maximum == LONG_MAX else setting.maximum)
    time = {"type": "string", "pattern": f"^{literals.DURATION_PATTERN}$"}
    schema: dict[str, Any] = {
        "bool": {"type": "boolean"},
        "int": number,
        "ms": {"anyOf": [number, time]},
        "seconds": {"anyOf": [number, time]},
        "choice": {"enum": _choices_in_yaml(setting)},
    }[setting.kind]
    return Leaf(lambda text: literals.setting_value(setting, text), schema)


def _choices_in_yaml(setting: Setting) -> list[str | int]:
    words = (*setting.choices, "-1") if setting.name == "acks" else setting.choices
    return [*words, *(int(word) for word in words if word.lstrip("-").isdigit())]


# Behaviours


class BehavioursSection(Section):
    """Single switches of a release (see `harrow list releases`)."""

    noun = "behaviour"
    catalogue = "behaviours"


@cache
def behaviours_section() -> type[Section]:
    """Return the model of the switches."""
    definitions: dict[str, tuple[Any, Any]] = {}
    for name, switch in switch_docs().items():
        leaf = _switch_leaf(switch["choices"])
        definitions |= field(name, Annotated[Any, leaf], f"{switch['doc']} ({switch['source']})")
    return model("Behaviours", BehavioursSection.__doc__ or "", definitions, BehavioursSection)


def _switch_leaf(choices: tuple[Any, ...]) -> Leaf:
    if all(isinstance(option, bool) for option in choices):
        return Leaf(literals.boolean, {"type": "boolean"})
    by_word = {str(option): option for option in choices}
    read_word = literals.choice(by_word)
    return Leaf(lambda text: by_word[read_word(text)], {"enum": list(choices)})


# Faults


@dataclass(frozen=True, slots=True)
class FaultField:
    """A field of a fault: its key in a campaign, and what it is a reference to, if anything."""

    attribute: str
    key: str
    annotation: Any
    required: bool
    doc: str
    marker: type | None


_LEAF_OF_MARKER: Final[dict[type, Any]] = {
    markers.DurationMarker: section.Duration,
    markers.DurationRangeMarker: section.DurationRange,
    markers.BrokerMarker: section.BrokerReference,
    markers.EndpointMarker: section.Endpoint,
    markers.ClientMarker: section.Text,
    markers.PartitionMarker: section.PartitionName,
    markers.ProbabilityMarker: section.Probability,
    markers.CountMarker: section.Count,
    markers.SkipMarker: section.Natural,
    markers.ApiMarker: Annotated[str, one_of(*markers.APIS)],
}

_LEAF_OF_TYPE: Final[dict[Any, Any]] = {
    bool: section.Flag,
    str: section.Text,
    int: Annotated[int, whole(-LONG_MAX)],
}


@cache
def fault_fields(fault: type[Fault]) -> tuple[FaultField, ...]:
    """Return what a campaign can say about a fault.

    Raises:
        TypeError: a field has a type that has no syntax.

    """
    hints = get_type_hints(fault, include_extras=True)
    syntax: list[FaultField] = []
    for item in fields(fault):  # type: ignore[arg-type]  # every fault is a dataclass
        annotation, marker = _syntax(hints[item.name], f"{fault.__name__}.{item.name}")
        required = item.default is MISSING and item.default_factory is MISSING
        doc = str(item.metadata.get("doc", ""))
        syntax.append(FaultField(item.name, item.name.rstrip("_"), annotation, required, doc, marker))
    return tuple(syntax)


def _syntax(hint: Any, where: str) -> tuple[Any, type | None]:
    """Return a field's annotation in the model, and its marker."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType) and NoneType in arguments:
        parts = tuple(part for part in arguments if part is not NoneType)
        return _syntax(Union[parts], where)  # noqa: UP007 - known only here, so `|` cannot be written out
    if origin is Annotated:
        marker = arguments[1]
        if marker in _LEAF_OF_MARKER:
            return _LEAF_OF_MARKER[marker], marker
    elif origin is tuple and arguments[1:] == (...,):
        inner, marker = _syntax(arguments[0], where)
        return Annotated[list[inner], OneOrMany()], marker  # type: ignore[valid-type]  # made at run time
    elif origin is Literal:
        return Annotated[str, one_of(*arguments)], None
    elif hint in _LEAF_OF_TYPE:
        return _LEAF_OF_TYPE[hint], None
    raise TypeError(f"{where}: a campaign has no syntax for {hint}")


class FaultSection(Section):
    """What a campaign says about a fault."""


class EmptiableFaultSection(FaultSection):
    """What a campaign says about a fault that needs nothing said."""

    emptiable = True


@cache
def fault_section(name: str) -> type[Section]:
    """Return the model of one fault."""
    fault = FAULTS[name]
    definitions: dict[str, tuple[Any, Any]] = {}
    needed = False
    for item in fault_fields(fault):
        definitions |= field(item.key, item.annotation, item.doc, required=item.required)
        needed = needed or item.required
    base = FaultSection if needed else EmptiableFaultSection
    return model(fault.__name__, fault.__doc__ or "", definitions, base)


class OneFaultSection(Section):
    """One fault, by its name (see `harrow list faults`)."""

    noun = "fault"
    catalogue = "faults"
    named_alone = True
    model_config = ConfigDict(json_schema_extra={"minProperties": 1, "maxProperties": 1})


def fault_definitions() -> dict[str, tuple[Any, Any]]:
    """Return a field for each fault."""
    definitions: dict[str, tuple[Any, Any]] = {}
    for name, fault in FAULTS.items():
        definitions |= field(name, fault_section(name), (fault.__doc__ or "").partition("\n")[0])
    return definitions


@cache
def one_fault_section() -> type[Section]:
    """Return the model of one fault of any kind."""
    return model("Fault", OneFaultSection.__doc__ or "", fault_definitions(), OneFaultSection)


OneFault = Annotated[Section, section.Generated(one_fault_section)]
"""A fault of any kind."""


# Trace events

_TEXT_FIELDS: Final = frozenset(
    {
        *("partition", "client", "cause", "reason", "change", "error", "values", "fault", "phase"),
        *("api", "kind", "sender", "receiver", "rule", "action", "ephemerals"),
    }
)
_NUMBER_FIELDS: Final = frozenset(
    {
        *("broker", "controller", "leader", "isr", "hw", "leo", "acks", "producer_id", "base_sequence"),
        *("attempt", "strike"),
        *("broker_epoch", "controller_epoch", "leader_epoch", "answer_epoch"),
        *("start_offset", "end_offset", "base_offset", "from_offset", "to_offset", "offset"),
    }
)


@dataclass(frozen=True, eq=False)
class EventValue:
    """The value of a trace event's field: a single value or a list, which becomes a tuple."""

    read: Callable[[str], Any]

    def __get_pydantic_core_schema__(self, _source: Any, _handler: GetCoreSchemaHandler) -> Any:
        """Return the validator."""
        return core_schema.no_info_plain_validator_function(self._validate)

    def __get_pydantic_json_schema__(self, _core: Any, _handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Return that anything but a mapping will do."""
        return {"type": ["string", "number", "boolean", "array", "null"]}

    def _validate(self, value: Any) -> Any:
        if isinstance(value, list):
            return tuple(self._validate(item) for item in value)
        if not isinstance(value, Scalar):
            raise wrong("a value or a list is wanted here, not a mapping")
        if value.is_null():
            return None
        try:
            return self.read(value.text) if value.plain else value.text
        except LiteralError as error:
            raise wrong(str(error)) from None


def _any_scalar(text: str) -> int | bool | str:
    try:
        return _read_number(text)
    except LiteralError:
        return text == "true" if text in ("true", "false") else text


_read_number: Final = literals.whole_number(-LONG_MAX)


class EventFieldsSection(Section):
    """Fields of a trace event; only those that are given have to match."""

    noun = "field"
    emptiable = True


class EventsSection(Section):
    """Trace events by name, as in trace.jsonl."""

    noun = "event"
    named_alone = True


@cache
def events_section() -> type[Section]:
    """Return the model of trace events."""
    definitions: dict[str, tuple[Any, Any]] = {}
    for event, names in trace.FIELDS.items():
        inner: dict[str, tuple[Any, Any]] = {}
        for name in names:
            inner |= field(name, Annotated[Any, EventValue(_event_reader(name))], "")
        title = "".join(part.capitalize() for part in event.split("_")) + "Event"
        definitions |= field(event, model(title, f"Fields of `{event}`.", inner, EventFieldsSection), "")
    return model("Events", EventsSection.__doc__ or "", definitions, EventsSection)


def _event_reader(name: str) -> Callable[[str], Any]:
    if name in _TEXT_FIELDS:
        return str
    return _read_number if name in _NUMBER_FIELDS else _any_scalar
