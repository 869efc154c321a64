"""Sections that follow from catalogues: settings, behaviours, faults, actions, events, conditions.

A new fault, setting, switch or trace event brings its syntax with it: these models are made from the
catalogues when they are first needed.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Annotated, Any, Final

from harrow.campaigns.language import literals, section, section_models
from harrow.campaigns.language.literals import LiteralError
from harrow.campaigns.language.section import NAME, Leaf, OneOrMany, Section
from harrow.campaigns.language.yaml_positions import Scalar
from harrow.cluster_model import fields as kinds
from harrow.cluster_model.events import EVENTS, FieldKind, event_fields
from harrow.cluster_model.fields import DeclaredField, by_kind, fields_of
from harrow.cluster_model.registry import derived
from harrow.cluster_model.release import switch_docs
from harrow.cluster_model.settings import LONG_MAX, SCOPES, SETTINGS, Setting, scopes_of, setting_names
from harrow.faults.action import Action
from harrow.faults.actions import ACTIONS
from harrow.faults.catalogue import FAULTS
from harrow.faults.condition import FACTS
from harrow.faults.conditions.fact import Fact

# Settings


@derived
def settings_section(scopes: tuple[str, ...] = SCOPES) -> type[Section]:
    fields = (
        section_models.field(setting.name, _setting_leaf(setting), setting.doc)
        for setting in _settings_of(scopes)
    )
    title = "Settings" if scopes == SCOPES else f"{scopes[0].capitalize()}Settings"
    return section_models.model(
        title, fields, "Settings under Kafka's names.", noun="setting", catalogue="settings"
    )


@derived
def open_settings_section() -> type[Section]:
    """Return the model of settings that are left open: a list of values for each."""
    fields = (
        section_models.field(
            setting.name, Annotated[list[Annotated[Any, _setting_leaf(setting)]], OneOrMany()], setting.doc
        )
        for setting in _settings_of(SCOPES)
    )
    doc = "Settings under Kafka's names, with the values to draw from."
    return section_models.model("OpenSettings", fields, doc, noun="setting", catalogue="settings")


def _settings_of(scopes: tuple[str, ...]) -> Iterator[Setting]:
    for name in setting_names(scopes):
        yield next(SETTINGS[scope, name] for scope in scopes if scope in scopes_of(name))


def _setting_leaf(setting: Setting) -> Leaf:
    number = section.number_schema(setting.minimum, setting.maximum)
    time = {"type": "string", "pattern": f"^{literals.DURATION_PATTERN}$"}
    schema: dict[str, Any] = {
        "bool": {"type": "boolean"},
        "int": number,
        "ms": {"anyOf": [number, time]},
        "seconds": {"anyOf": [number, time]},
        "choice": {"enum": _choices_in_yaml(setting)},
        "ratio": {"type": "number", "minimum": 0, "maximum": 1},
        "text": {"type": "string", "pattern": f"^{literals.SETTING_TEXT_PATTERN}$"},
        "replicas": {"type": "string", "pattern": f"^{literals.REPLICAS_PATTERN}$"},
    }[setting.kind]
    return Leaf(lambda text: literals.setting_value(setting, text), schema)


def _choices_in_yaml(setting: Setting) -> list[str | int]:
    words = (*setting.choices, "-1") if setting.name == "acks" else setting.choices
    return [*words, *(int(word) for word in words if word.lstrip("-").isdigit())]


# Behaviours


@derived
def behaviours_section() -> type[Section]:
    fields = (
        section_models.field(name, _switch_leaf(switch["choices"]), f"{switch['doc']} ({switch['source']})")
        for name, switch in switch_docs().items()
    )
    doc = "Single switches of a release (see `harrow list releases`)."
    return section_models.model("Behaviours", fields, doc, noun="behaviour", catalogue="behaviours")


def _switch_leaf(choices: tuple[Any, ...]) -> Leaf:
    if all(isinstance(option, bool) for option in choices):
        return Leaf(literals.boolean, {"type": "boolean"})
    by_word = {str(option): option for option in choices}
    read_word = literals.choice(by_word)
    return Leaf(lambda text: by_word[read_word(text)], {"enum": list(choices)})


# Faults and actions


@derived
def fault_section(name: str) -> type[Section]:
    fault = FAULTS[name]
    emptiable = _is_emptiable(fault)
    lasts = next((item for item in fields_of(fault) if item.kind is kinds.LastsMarker), None)
    if lasts is None:
        return section_models.section_of(fault, fault.__name__, emptiable=emptiable)
    also = section_models.field(kinds.FOR, section_models.annotation_of(lasts), f"The same as `{lasts.key}`.")
    definitions = [section_models.definitions_of(fault), also]
    return section_models.model(fault.__name__, definitions, fault.__doc__ or "", emptiable=emptiable)


def _is_emptiable(declared: type[Any]) -> bool:
    return not any(item.required for item in fields_of(declared))


def _faults() -> Iterator[section_models.Definitions]:
    return (
        section_models.field(name, section.generated(partial(fault_section, name)), summary(fault))
        for name, fault in FAULTS.items()
    )


def summary(declared: type[Any]) -> str:
    """Return the first line of what documents it."""
    return (declared.__doc__ or "").partition("\n")[0]


@derived
def one_fault_section() -> type[Section]:
    doc = "One fault, by its name (see `harrow list faults`)."
    return section_models.model(
        "Fault", _faults(), doc, noun="fault", catalogue="faults", named_alone=True, single=True
    )


@derived
def action_section() -> type[Section]:
    actions = (
        section_models.field(name, _action_annotation(action), summary(action))
        for name, action in ACTIONS.items()
    )
    doc = "One action: a record to send, something to assert, a fault ..."
    fields = (*actions, *_faults())
    return section_models.model("Action", fields, doc, noun="action or fault", named_alone=True, single=True)


def _action_annotation(action: type[Action]) -> Any:
    items = fields_of(action)
    if not items:
        return _nothing_section()
    if action.whole is not None:
        return section_models.annotation_of(items[0])
    declared = section_models.section_of(action, emptiable=_is_emptiable(action))
    declared.short = action.short
    return declared


@derived
def _nothing_section() -> type[Section]:
    return section_models.model("NothingSection", (), "Nothing more to say.", emptiable=True)


section_models.MODELS[kinds.FaultMarker] = lambda _: one_fault_section()


# Trace events

_NUMBERS: Final = frozenset(
    (FieldKind.BROKER, FieldKind.BROKERS, FieldKind.OFFSET, FieldKind.EPOCH, FieldKind.NUMBER)
)
_MIXED: Final = frozenset({FieldKind.FLAG, FieldKind.PAIRS, FieldKind.RECORDS, FieldKind.OBJECT})
"""Kinds of fields in which a number is a number, true and false are flags, and all else is text."""


_EVENT_VALUE: Final = {"type": ["string", "number", "boolean", "array", "null"]}


class EventValue(Leaf):
    """The value of a trace event's field: a single value or a list, which becomes a tuple."""

    def validate(self, value: Any) -> Any:
        if isinstance(value, list):
            return tuple(self.validate(item) for item in value)
        if not isinstance(value, Scalar):
            raise LiteralError("expected a value or a list, not a mapping")
        if value.is_null():
            return None
        return self.read(value.text) if value.plain else value.text


def _any_scalar(text: str) -> int | bool | str:
    try:
        return _read_number(text)
    except LiteralError:
        return text == "true" if text in ("true", "false") else text


_read_number: Final = literals.whole_number(-LONG_MAX)


@derived
def events_section() -> type[Section]:
    fields = (
        section_models.field(event, section.generated(partial(_event_section, event)), "") for event in EVENTS
    )
    return section_models.model(
        "Events", fields, "Trace events by name, as in trace.jsonl.", noun="event", named_alone=True
    )


@derived
def _event_section(event: str) -> type[Section]:
    fields = (
        section_models.field(name, Annotated[Any, EventValue(_event_reader(kind), _EVENT_VALUE)], "")
        for name, kind in event_fields(event).items()
    )
    title = "".join(part.capitalize() for part in event.split("_")) + "Event"
    return section_models.model(title, fields, f"Fields of `{event}`.", noun="field", emptiable=True)


def _event_reader(kind: FieldKind) -> Callable[[str], Any]:
    if kind in _MIXED:
        return _any_scalar
    return _read_number if kind in _NUMBERS else str


# Conditions

NameKey = Annotated[str, NAME]
BrokerKey = Annotated[int, Leaf(literals.broker_id, NAME.schema)]
_KEYS: Final[dict[type[Any], Any]] = {kinds.BrokerIdMarker: BrokerKey, object: NameKey}
_OR_UNKNOWN = Annotated[int, section.whole(-1)]


@derived
def condition_section() -> type[Section]:
    """Return the model of a condition: a key for each of the facts that it can be made of."""
    fields = (
        section_models.field(name, _fact_annotation(fact), summary(fact)) for name, fact in FACTS.items()
    )
    return section_models.model("ConditionSection", fields, "A condition: all of what is given has to hold.")


def unkeyed_fields(fact: type[Fact]) -> list[DeclaredField]:
    """Return the fields of a fact to which the others lead."""
    return [item for item in fields_of(fact) if item.attribute not in fact.keyed_by]


def is_value(items: list[DeclaredField]) -> bool:
    """Return whether a campaign writes no section, but the value of the only field."""
    return len(items) == 1 and items[0].required


def _fact_annotation(fact: type[Fact]) -> Any:
    items = unkeyed_fields(fact)
    found: Any = section_models.annotation_of(items[0]) if is_value(items) else _row(fact, items)
    keys = {item.attribute: item for item in fields_of(fact)}
    for attribute in reversed(fact.keyed_by):
        found = dict[by_kind(_KEYS, keys[attribute].kind), found]  # type: ignore[misc]  # made at run time
    is_list = fact.repeats or not (fact.keyed_by or fact.once)
    return Annotated[list[found], OneOrMany()] if is_list else found


def _row(fact: type[Fact], items: list[DeclaredField]) -> type[Section]:
    title = f"{fact.__name__.removesuffix('Is')}Section"
    return section_models.model(title, map(section_models.definition_of, items), fact.__doc__ or "")


section_models.MODELS[kinds.ConditionMarker] = lambda _: condition_section()
section_models.MODELS[kinds.EventMarker] = lambda _: events_section()
section_models.LEAVES[kinds.OffsetsByBrokerMarker] = dict[BrokerKey, _OR_UNKNOWN]
section_models.LEAVES[kinds.EpochStartsMarker] = list[list[_OR_UNKNOWN]]
