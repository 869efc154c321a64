"""Builds the shapes of sections whose keys are the names in a catalogue.

These are the sections for settings, behaviours, faults, actions, trace events and facts. Each is
built from its catalogue when it is first needed. So a new fault, setting, switch or trace event
gets its syntax without a change in this module.
"""

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

from harrow.campaigns.language import declared_shapes, literals, shapes
from harrow.campaigns.language.declared_shapes import Keys, keys_of, section_of, shape_of
from harrow.campaigns.language.literals import LiteralError
from harrow.campaigns.language.shapes import (
    NAME,
    Key,
    LazyShape,
    ListShape,
    MapShape,
    SectionShape,
    Shape,
    ValueShape,
)
from harrow.campaigns.language.yaml_positions import ListNode, Node, Scalar
from harrow.cluster_model import fields as kinds
from harrow.cluster_model.events import EVENTS, FieldKind, event_fields
from harrow.cluster_model.fields import DeclaredField, by_kind, fields_of
from harrow.cluster_model.lazy_dataclass import replace
from harrow.cluster_model.registry import derived
from harrow.cluster_model.release.profiles import SWITCHES
from harrow.cluster_model.settings import (
    LONG_MAX,
    SCOPES,
    SETTINGS,
    Setting,
    qualified_names,
    scopes_of,
    setting_names,
)
from harrow.faults.action import Action
from harrow.faults.catalogue import ACTIONS, FAULTS
from harrow.faults.condition import FACTS
from harrow.faults.facts import Fact

# Settings


@derived
def settings_section(scopes: tuple[str, ...] = SCOPES) -> SectionShape:
    title = "Settings" if scopes == SCOPES else f"{scopes[0].capitalize()}Settings"
    keys = {setting.name: Key(_setting_shape(setting), setting.doc) for setting in _settings_of(scopes)}
    return SectionShape(
        title=title, doc="Settings under Kafka's names.", keys=keys, noun="setting", catalogue="settings"
    )


@derived
def shared_settings_section() -> SectionShape:
    """Return the section for the settings of all processes, where clients can be told apart."""
    settings = settings_section()
    qualified = {
        qualified: Key(
            _setting_shape(SETTINGS[scope, name]), f"{name} of {scope}s only: {SETTINGS[scope, name].doc}"
        )
        for qualified, (scope, name) in qualified_names().items()
    }
    return replace(settings, keys={**settings.keys, **qualified})


@derived
def open_settings_section() -> SectionShape:
    """Return the section for the settings of a swarm, with a list of values for each setting."""
    settings = settings_section()
    keys = {
        name: Key(ListShape(key.shape, accepts_single=True), key.doc) for name, key in settings.keys.items()
    }
    doc = "Settings under Kafka's names, with the values to draw from."
    return replace(settings, title="OpenSettings", doc=doc, keys=keys)


def _settings_of(scopes: tuple[str, ...]) -> Iterator[Setting]:
    for name in setting_names(scopes):
        yield next(SETTINGS[scope, name] for scope in scopes if scope in scopes_of(name))


def _setting_shape(setting: Setting) -> Shape:
    return LazyShape(partial(_setting_leaf, setting))


def _setting_leaf(setting: Setting) -> ValueShape:
    number = shapes.number_schema(setting.minimum, setting.maximum)
    time = {"type": "string", "pattern": f"^{literals.DURATION_PATTERN}$"}
    schema: dict[str, Any] = {
        "bool": {"type": "boolean"},
        "int": number,
        "ms": {"anyOf": [number, time]},
        "seconds": {"anyOf": [number, time]},
        "choice": _choice_schema(setting),
        "ratio": {"type": "number", "minimum": 0, "maximum": 1},
        "text": {"type": "string", "pattern": f"^{literals.SETTING_TEXT_PATTERN}$"},
        "replicas": {"type": "string", "pattern": f"^{literals.REPLICAS_PATTERN}$"},
    }[setting.kind]
    return ValueShape(partial(literals.setting_value, setting), schema)


def _choice_schema(setting: Setting) -> dict[str, Any]:
    words = (*setting.choices, *(alias for alias, _ in setting.aliases))
    listed: dict[str, Any] = {"enum": [*words, *(int(word) for word in words if word.lstrip("-").isdigit())]}
    if not any("," in choice for choice in setting.choices):
        return listed
    # Lists may also have spaces, and mix names and classes.
    word = "|".join(re.escape(word) for word in words if "," not in word)
    return {"anyOf": [listed, {"type": "string", "pattern": f"^({word})( *, *({word}))+$"}]}


# Behaviours


@derived
def behaviours_section() -> SectionShape:
    return SectionShape(
        title="Behaviours",
        doc="Single switches of a release (see `harrow list releases`).",
        keys={
            name: Key(LazyShape(partial(_switch_leaf, switch.choices)), f"{switch.doc} ({switch.source})")
            for name, switch in SWITCHES.items()
        },
        noun="behaviour",
        catalogue="behaviours",
    )


def _switch_leaf(choices: tuple[Any, ...]) -> ValueShape:
    if all(isinstance(option, bool) for option in choices):
        return ValueShape(literals.boolean, {"type": "boolean"})
    by_word = {str(option): option for option in choices}
    read_word = literals.choice(by_word)
    return ValueShape(lambda text: by_word[read_word(text)], {"enum": list(choices)})


# Faults and actions


@derived
def fault_section(name: str) -> SectionShape:
    fault = FAULTS[name]
    keys = keys_of(fault)
    lasts = next((item for item in fields_of(fault) if item.kind is kinds.LastsMarker), None)
    if lasts is not None:
        keys[kinds.FOR] = Key(shape_of(lasts), f"The same as `{lasts.key}`.")
    return SectionShape(
        title=fault.__name__,
        doc=fault.__doc__ or "",
        keys=keys,
        emptiable=_is_emptiable(fault),
    )


def _is_emptiable(declared: type[Any]) -> bool:
    return not any(item.required for item in fields_of(declared))


def _faults() -> Keys:
    return {
        name: Key(LazyShape(partial(fault_section, name)), summary(fault)) for name, fault in FAULTS.items()
    }


def summary(declared: type[Any]) -> str:
    """Return the first line of the docstring of a fault, an action or a fact."""
    return (declared.__doc__ or "").partition("\n")[0]


@derived
def one_fault_section() -> SectionShape:
    return SectionShape(
        title="Fault",
        doc="One fault, by its name (see `harrow list faults`).",
        keys=_faults(),
        noun="fault",
        catalogue="faults",
        accepts_name_alone=True,
        single=True,
    )


@derived
def action_section() -> SectionShape:
    actions = {name: Key(_action_shape(action), summary(action)) for name, action in ACTIONS.items()}
    return SectionShape(
        title="Action",
        doc="One action: a record to send, a condition to assert, a fault ...",
        keys={**actions, **_faults()},
        noun="action or fault",
        accepts_name_alone=True,
        single=True,
    )


def _action_shape(action: type[Action]) -> Shape:
    items = fields_of(action)
    if not items:
        return LazyShape(_nothing_section)
    if action.sole_field is not None:
        return shape_of(items[0])
    return replace(section_of(action, emptiable=_is_emptiable(action)), short=action.shorthand_field)


@derived
def _nothing_section() -> SectionShape:
    return SectionShape(title="NothingSection", doc="An action without fields.", keys={}, emptiable=True)


# Trace events

_NUMBERS: Final = frozenset(
    (FieldKind.BROKER, FieldKind.BROKERS, FieldKind.OFFSET, FieldKind.EPOCH, FieldKind.NUMBER)
)
_UNTYPED: Final = frozenset({FieldKind.FLAG, FieldKind.PAIRS, FieldKind.RECORDS, FieldKind.OBJECT})
"""The kinds of event fields whose values may be numbers, true, false or text."""

_EVENT_VALUE: Final = {"type": ["string", "number", "boolean", "array", "null"]}


class EventValue(ValueShape):
    """The value of a field of a trace event: a single value, or a list that is read as a tuple."""

    def value(self, node: Node) -> Any:
        if isinstance(node, ListNode):
            return tuple(self.value(item) for item in node.items)
        if not isinstance(node, Scalar):
            raise LiteralError("expected a value or a list, not a mapping")
        if node.is_null():
            return None
        return self.of_text(node.text) if node.plain else node.text


def _any_scalar(text: str) -> int | bool | str:
    try:
        return _read_number(text)
    except LiteralError:
        return text == "true" if text in ("true", "false") else text


_read_number: Final = literals.whole_number(-LONG_MAX)


@derived
def events_section() -> SectionShape:
    return SectionShape(
        title="Events",
        doc="Trace events by name, as in trace.jsonl.",
        keys={event: Key(LazyShape(partial(_event_section, event)), "") for event in EVENTS},
        noun="event",
        accepts_name_alone=True,
    )


@derived
def _event_section(event: str) -> SectionShape:
    return SectionShape(
        title="".join(part.capitalize() for part in event.split("_")) + "Event",
        doc=f"Fields of `{event}`.",
        keys={
            name: Key(EventValue(_event_reader(kind), _EVENT_VALUE), "")
            for name, kind in event_fields(event).items()
        },
        noun="field",
        emptiable=True,
    )


def _event_reader(kind: FieldKind) -> Callable[[str], Any]:
    if kind in _UNTYPED:
        return _any_scalar
    return _read_number if kind in _NUMBERS else str


# Conditions

_BROKER_KEY: Final = ValueShape(literals.broker_id, NAME.json_schema)
_KEYS: Final[dict[type[Any], ValueShape]] = {kinds.BrokerIdMarker: _BROKER_KEY, object: NAME}
_OFFSET_OR_UNKNOWN: Final = shapes.whole(-1)


@derived
def condition_section() -> SectionShape:
    """Return the section of a condition, with a key for each kind of fact."""
    return SectionShape(
        title="ConditionSection",
        doc="A condition: all of its facts have to hold.",
        keys={name: Key(_fact_shape(fact), summary(fact)) for name, fact in FACTS.items()},
    )


def unkeyed_fields(fact: type[Fact]) -> list[DeclaredField]:
    return [item for item in fields_of(fact) if item.attribute not in fact.keyed_by]


def is_value(items: list[DeclaredField]) -> bool:
    """Return whether a campaign writes only the value of the single field, not a section."""
    return len(items) == 1 and items[0].required


def _fact_shape(fact: type[Fact]) -> Shape:
    items = unkeyed_fields(fact)
    shape = shape_of(items[0]) if is_value(items) else _fact_section(fact, items)
    declared = {item.attribute: item for item in fields_of(fact)}
    for attribute in reversed(fact.keyed_by):
        shape = MapShape(by_kind(_KEYS, declared[attribute].kind) or NAME, shape)
    is_list = fact.repeats or not (fact.keyed_by or fact.is_single)
    return ListShape(shape, accepts_single=True) if is_list else shape


def _fact_section(fact: type[Fact], items: list[DeclaredField]) -> SectionShape:
    return SectionShape(
        title=f"{fact.__name__.removesuffix('Is')}Section",
        doc=fact.__doc__ or "",
        keys={item.key: declared_shapes.key_of(item) for item in items},
    )


declared_shapes.SHAPES.update(
    {
        kinds.OffsetsByBrokerMarker: MapShape(_BROKER_KEY, _OFFSET_OR_UNKNOWN),
        kinds.EpochStartsMarker: ListShape(ListShape(_OFFSET_OR_UNKNOWN)),
    }
)
declared_shapes.SECTIONS.update(
    {
        kinds.FaultMarker: lambda _: one_fault_section(),
        kinds.ConditionMarker: lambda _: condition_section(),
        kinds.EventMarker: lambda _: events_section(),
    }
)
