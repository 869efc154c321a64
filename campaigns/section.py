"""What the models of a campaign file are made of: sections, and the single values in them.

The models read the tree of `campaigns.yaml_positions` (see `to_data`): mappings and
lists as such, and scalars as they are written.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final, Self, get_args

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, GetJsonSchemaHandler, model_validator
from pydantic.functional_validators import ModelWrapValidatorHandler
from pydantic_core import PydanticCustomError, core_schema

from campaigns import literals
from campaigns.literals import LiteralError
from campaigns.spelling import quoted
from campaigns.yaml_positions import ListNode, MapNode, Node, Scalar
from cluster_model.release import RELEASES
from cluster_model.settings import LONG_MAX

WRONG: Final = "campaign"


def wrong(message: str) -> PydanticCustomError:
    """Return an error that says *message*."""
    return PydanticCustomError(WRONG, "{text}", {"text": message})


def to_data(node: Node) -> Any:
    """Return a tree as the models read it."""
    if isinstance(node, MapNode):
        return {key: to_data(entry.value) for key, entry in node.entries.items()}
    if isinstance(node, ListNode):
        return [to_data(item) for item in node.items]
    return node


@dataclass(frozen=True, eq=False)
class Leaf:
    """A single value: how its text is read, and what JSON Schema says of it."""

    read: Callable[[str], Any]
    schema: Mapping[str, Any]

    def __get_pydantic_core_schema__(self, _source: Any, _handler: GetCoreSchemaHandler) -> Any:
        """Return the validator."""
        return core_schema.no_info_plain_validator_function(self._validate)

    def __get_pydantic_json_schema__(self, _core: Any, _handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Return what an editor should expect."""
        return dict(self.schema)

    def _validate(self, value: Any) -> Any:
        if isinstance(value, Scalar):
            if value.is_null():
                raise wrong("there is no value")
            text = value.text
        elif isinstance(value, str):
            text = value  # a key
        else:
            kind = "list" if isinstance(value, list) else "mapping"
            raise wrong(f"a single value is wanted here, not a {kind}")
        try:
            return self.read(text)
        except LiteralError as error:
            raise wrong(str(error)) from None


class OneOrMany:
    """Marks a list that may be written without brackets when it has one item."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> Any:
        """Return the list's validator, after a single item was put into a list."""
        return core_schema.no_info_before_validator_function(_as_list, handler(source))

    def __get_pydantic_json_schema__(self, core: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Return either form."""
        many = handler(core)
        return {"anyOf": [many["items"], many]}


def _as_list(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


@dataclass(frozen=True, eq=False)
class Generated:
    """Marks a section whose model is made when it is first needed."""

    model: Callable[[], type["Section"]]

    def __get_pydantic_core_schema__(self, _source: Any, handler: GetCoreSchemaHandler) -> Any:
        """Return the generated model's validator."""
        return handler.generate_schema(self.model())


class Section(BaseModel):
    """A mapping of a campaign file. Keys that it does not know are errors.

    ``noun`` is what messages call a key of it, and ``catalogue`` what `harrow list` calls all
    of them. A section with ``short`` may be written
    as the value of that key alone, one that is ``named_alone`` as a key without a value;
    one that is ``emptiable`` may be left without a value.
    """

    model_config = ConfigDict(extra="forbid", defer_build=True, frozen=True)

    noun: ClassVar[str] = "key"
    catalogue: ClassVar[str | None] = None
    short: ClassVar[str | None] = None
    named_alone: ClassVar[bool] = False
    emptiable: ClassVar[bool] = False

    @model_validator(mode="wrap")
    @classmethod
    def _read(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if isinstance(data, Scalar):
            if data.is_null():
                if not cls.emptiable:
                    raise wrong("there is no value")
                data = {}
            elif cls.short is not None:
                data = {cls.short: data}
            elif cls.named_alone:
                data = {data.text: Scalar("", data.mark)}
            else:
                raise wrong("a mapping (`key: value`) is wanted here, not a single value")
        elif isinstance(data, list):
            raise wrong("a mapping (`key: value`) is wanted here, not a list")
        return handler(data)

    @classmethod
    def __get_pydantic_json_schema__(cls, core: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Return the mapping's schema, with the short forms."""
        long = handler(core)
        properties = handler.resolve_ref_schema(long).get("properties", {})
        if cls.short is not None:
            inner = properties[cls.short]
            return {"anyOf": [{key: value for key, value in inner.items() if key != "description"}, long]}
        if cls.named_alone:
            return {"anyOf": [{"enum": list(properties)}, long]}
        if cls.emptiable:
            return {"anyOf": [{"type": "null"}, long]}
        return long

    @classmethod
    def keys(cls) -> dict[str, str]:
        """Return the section's keys, and the attribute of each."""
        return {field.alias or name: name for name, field in cls.model_fields.items()}

    @classmethod
    def has_key(cls, key: str) -> bool:
        """Return whether the section knows a key."""
        return key in cls.keys()  # noqa: SIM118  # a class method that returns a mapping, not a dict's

    @classmethod
    def section_of(cls, key: str) -> type["Section"] | None:
        """Return the section below a key, also where it is in a list or in mappings."""
        attribute = cls.keys().get(key)
        if attribute is None:
            return None
        field = cls.model_fields[attribute]
        return _section_in((*field.metadata, field.annotation))

    def given(self) -> dict[str, Any]:
        """Return what the file says, by key."""
        written = self.model_fields_set
        return {key: getattr(self, name) for key, name in self.keys().items() if name in written}


def _section_in(parts: tuple[Any, ...]) -> type[Section] | None:
    for part in parts:
        if isinstance(part, Generated):
            return part.model()
        inner = _section_in((*getattr(part, "__metadata__", ()), *get_args(part)))
        if inner is not None:
            return inner
    return next((part for part in parts if isinstance(part, type) and issubclass(part, Section)), None)


def nearest_section(root: type[Section], location: tuple[str | int, ...]) -> type[Section] | None:
    """Return the section that a validation error's location ends in."""
    section: type[Section] | None = root
    for part in location:
        # Indexes, and keys that are names (of partitions, of brokers), stay within the section.
        if section is not None and isinstance(part, str) and section.has_key(part):
            section = section.section_of(part)
    return section


def release(text: str) -> str:
    """Return a release's name."""
    if text in RELEASES:
        return text
    close = next((name for name in RELEASES if text.startswith(f"{name}.")), None)
    hint = f"; write {close}" if close else ""
    raise LiteralError(f"release {quoted(text)} is not modelled; there are {', '.join(RELEASES)}{hint}")


def number_schema(minimum: int, maximum: int | None = None) -> dict[str, Any]:
    """Return the JSON Schema of whole numbers."""
    schema: dict[str, Any] = {"type": "integer", "minimum": minimum}
    return schema if maximum is None else {**schema, "maximum": maximum}


_ANY_TEXT: Final = {"type": ["string", "number", "boolean"]}
_DURATION_SCHEMA: Final = {
    "type": "string",
    "pattern": f"^{literals.DURATION_PATTERN}$",
    "examples": ["500ms", "2s"],
}
_RANGE_SCHEMA: Final = {
    "type": "string",
    "pattern": f"^{literals.DURATION_PATTERN}( *\\.\\. *{literals.DURATION_PATTERN})?$",
    "examples": ["2s", "1s..10s"],
}
_BROKER_ID_SCHEMA: Final = number_schema(0, literals.BROKER_ID_MAX)


def whole(minimum: int, maximum: int = LONG_MAX) -> Leaf:
    """Return the leaf for whole numbers from *minimum* to *maximum*."""
    limit = None if maximum == LONG_MAX else maximum
    return Leaf(literals.whole_number(minimum, maximum), number_schema(minimum, limit))


def whole_range(minimum: int, maximum: int = LONG_MAX) -> Leaf:
    """Return the leaf for whole numbers, or ranges of them such as ``3..5``."""
    pattern = {"type": "string", "pattern": r"^[0-9]+( *\.\. *[0-9]+)?$", "examples": ["3..5"]}
    limit = None if maximum == LONG_MAX else maximum
    schema = {"anyOf": [number_schema(minimum, limit), pattern]}
    return Leaf(literals.whole_range(minimum, maximum), schema)


def one_of(*words: str) -> Leaf:
    """Return the leaf for one of a few words."""
    return Leaf(literals.choice(words), {"enum": list(words)})


Text = Annotated[str, Leaf(str, _ANY_TEXT)]
Flag = Annotated[bool, Leaf(literals.boolean, {"type": "boolean"})]
Count = Annotated[int, whole(1)]
Natural = Annotated[int, whole(0)]
OrUnknown = Annotated[int, whole(-1)]
BrokerId = Annotated[int, Leaf(literals.broker_id, _BROKER_ID_SCHEMA)]
BrokerOrNone = Annotated[int, whole(-1, literals.BROKER_ID_MAX)]
BrokerReference = Annotated[
    int | str,
    Leaf(
        literals.broker_reference,
        {
            "anyOf": [
                _BROKER_ID_SCHEMA,
                {"type": "string", "pattern": f"^({literals.BROKER_PATTERN}|[0-9]+)$"},
            ]
        },
    ),
]
Endpoint = Annotated[int | str, Leaf(literals.endpoint, {"type": ["integer", "string"]})]
Duration = Annotated[int, Leaf(literals.duration, _DURATION_SCHEMA)]
PositiveDuration = Annotated[int, Leaf(literals.positive_duration, _DURATION_SCHEMA)]
DurationRange = Annotated[tuple[int, int], Leaf(literals.duration_range, _RANGE_SCHEMA)]
DurationOrNever = Annotated[
    int | None, Leaf(literals.duration_or_never, {"anyOf": [{"const": "never"}, _DURATION_SCHEMA]})
]
Rate = Annotated[
    int,
    Leaf(
        literals.rate,
        {"type": "string", "pattern": f"^{literals.RATE_PATTERN}$", "examples": ["10/s", "12/m"]},
    ),
]
RateRange = Annotated[
    tuple[int, int],
    Leaf(
        literals.rate_range,
        {
            "type": "string",
            "pattern": f"^{literals.RATE_PATTERN}( *\\.\\. *{literals.RATE_PATTERN})?$",
            "examples": ["12/m", "1/m..30/m"],
        },
    ),
]
CountRange = Annotated[tuple[int, int], whole_range(1)]
NaturalRange = Annotated[tuple[int, int], whole_range(0)]
Probability = Annotated[float, Leaf(literals.probability, {"type": "number", "minimum": 0, "maximum": 1})]
ReleaseName = Annotated[
    str, Leaf(release, {"anyOf": [{"enum": list(RELEASES)}, {"type": "number"}], "examples": list(RELEASES)})
]
CampaignName = Annotated[str, Leaf(literals.campaign_name, _ANY_TEXT)]
TopicName = Annotated[str, Leaf(literals.topic_name, _ANY_TEXT)]
ClientName = Annotated[str, Leaf(literals.client_name, {"type": "string"})]
PartitionName = Annotated[str, Leaf(str, {"type": "string", "examples": ["t-0"]})]
Values = Annotated[list[Text], OneOrMany()]
