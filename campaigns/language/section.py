"""What the models of a campaign file are made of: sections, and the single values in them.

The models read the tree of `harrow.campaigns.language.yaml_positions` (see `to_data`): mappings and
lists as such, and scalars as they are written.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final, Self, get_args

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, GetJsonSchemaHandler, model_validator
from pydantic.functional_validators import ModelWrapValidatorHandler
from pydantic_core import core_schema

from harrow.campaigns.language import literals
from harrow.campaigns.language.literals import LiteralError
from harrow.campaigns.language.yaml_positions import ListNode, MapNode, Node, Scalar
from harrow.cluster_model.settings import LONG_MAX


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
        return core_schema.no_info_plain_validator_function(self.validate)

    def __get_pydantic_json_schema__(self, _core: Any, _handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return dict(self.schema)

    def validate(self, value: Any) -> Any:
        if isinstance(value, Scalar):
            if value.is_null():
                raise LiteralError("there is no value")
            text = value.text
        elif isinstance(value, str):
            text = value  # a key
        else:
            kind = "list" if isinstance(value, list) else "mapping"
            raise LiteralError(f"expected a single value, not a {kind}")
        return self.read(text)


class OneOrMany:
    """Marks a list that may be written without brackets when it has one item."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> Any:
        return core_schema.no_info_before_validator_function(_as_list, handler(source))

    def __get_pydantic_json_schema__(self, core: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        many = handler(core)
        return {"anyOf": [many["items"], many]}


def _as_list(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


@dataclass(frozen=True, eq=False)
class OneOrSeveral(Leaf):
    """A single value, or a list of such, which is read as a tuple."""

    def __get_pydantic_json_schema__(self, _core: Any, _handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"anyOf": [dict(self.schema), {"type": "array", "items": dict(self.schema), "minItems": 1}]}

    def validate(self, value: Any) -> Any:
        if not isinstance(value, list):
            return super().validate(value)
        if not value:
            raise LiteralError("the list is empty")
        return tuple(super(OneOrSeveral, self).validate(each) for each in value)


@dataclass(frozen=True, eq=False)
class NumberOrList:
    """Marks a list of sections with ids that may be written as how many there are, from id 0 on."""

    maximum: int

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> Any:
        return core_schema.no_info_before_validator_function(self._numbered, handler(source))

    def __get_pydantic_json_schema__(self, core: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"anyOf": [number_schema(1, self.maximum), handler(core)]}

    def _numbered(self, value: Any) -> Any:
        if not isinstance(value, Scalar):
            return value
        try:
            count = literals.whole_number(1, self.maximum)(value.text)
        except LiteralError as error:
            raise LiteralError(f"how many there are, or a list of them: {error}") from None
        return [{"id": Scalar(str(number), value.mark)} for number in range(count)]


@dataclass(frozen=True, eq=False)
class Generated:
    """Marks a section whose model is made when a file first has such a section."""

    model: Callable[[], type["Section"]]

    def __get_pydantic_core_schema__(self, _source: Any, _handler: GetCoreSchemaHandler) -> Any:
        return core_schema.no_info_plain_validator_function(lambda value: self.model().model_validate(value))

    def __get_pydantic_json_schema__(self, _core: Any, handler: GetJsonSchemaHandler) -> Any:
        model = self.model()
        model.model_rebuild()
        # As a definition it stands once in the schema, however many fields have such a section.
        reference = f"{model.__module__}.{model.__qualname__}:{id(model)}"
        definition: Any = {**model.__pydantic_core_schema__, "ref": reference}
        link = core_schema.definition_reference_schema(reference)
        return handler(core_schema.definitions_schema(link, [definition]))


def generated(model: Callable[[], type["Section"]]) -> Any:
    """Return the annotation of a field that has such a section."""
    return Annotated[Section, Generated(model)]


class Section(BaseModel):
    """A mapping of a campaign file. Keys that it does not know are errors.

    ``noun`` is what messages call a key of it, and ``catalogue`` what `harrow list` calls all
    of them. A section with ``short`` may be written as the value of that key alone, one that is ``named_alone``
    as a key without a value; one that is ``emptiable`` may be left without a value, and one that is ``single``
    has one key.
    """

    model_config = ConfigDict(extra="forbid", defer_build=True, frozen=True)

    noun: ClassVar[str] = "key"
    catalogue: ClassVar[str | None] = None
    short: ClassVar[str | None] = None
    named_alone: ClassVar[bool] = False
    emptiable: ClassVar[bool] = False
    single: ClassVar[bool] = False

    @model_validator(mode="wrap")
    @classmethod
    def _read(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if isinstance(data, Scalar):
            if data.is_null():
                if not cls.emptiable:
                    raise LiteralError("there is no value")
                data = {}
            elif cls.short is not None:
                data = {cls.short: data}
            elif cls.named_alone:
                data = {data.text: Scalar("", data.mark)}
            else:
                raise LiteralError("expected a mapping (`key: value`), not a single value")
        elif isinstance(data, list):
            raise LiteralError("expected a mapping (`key: value`), not a list")
        return handler(data)

    @classmethod
    def __get_pydantic_json_schema__(cls, core: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        long = handler(core)
        resolved = handler.resolve_ref_schema(long)
        properties = resolved.get("properties", {})
        if cls.single:
            resolved |= {"minProperties": 1, "maxProperties": 1}
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


def number_schema(minimum: int, maximum: int = LONG_MAX) -> dict[str, Any]:
    """Return the JSON Schema of whole numbers; Kafka's largest number is no bound."""
    schema: dict[str, Any] = {"type": "integer", "minimum": minimum}
    return schema if maximum == LONG_MAX else {**schema, "maximum": maximum}


def whole(minimum: int, maximum: int = LONG_MAX) -> Leaf:
    return Leaf(literals.whole_number(minimum, maximum), number_schema(minimum, maximum))


def whole_range(minimum: int, maximum: int = LONG_MAX) -> Leaf:
    """Return the leaf for whole numbers, or ranges of them such as ``3..5``."""
    span = spelling_schema(literals.range_pattern("[0-9]+"), "3..5")
    return Leaf(literals.whole_range(minimum, maximum), {"anyOf": [number_schema(minimum, maximum), span]})


def one_of(*words: str) -> Leaf:
    return Leaf(literals.choice(words), {"enum": list(words)})


def spelling_schema(pattern: str, *examples: str) -> dict[str, Any]:
    return {"type": "string", "pattern": f"^{pattern}$", "examples": list(examples)}


TEXT: Final = Leaf(str, {"type": ["string", "number", "boolean"]})
NAME: Final = Leaf(str, {"type": "string"})
"""A key, or another name: JSON knows no keys but strings."""
