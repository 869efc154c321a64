"""Defines the shapes that parts of a file can have.

A shape reads a part of a file, and describes it in the JSON Schema. One pass over the nodes of a
file (`harrow.campaigns.language.yaml_positions`) returns the values with their positions, and
reports the mistakes. Parts with mistakes are left out, so that the rest can still be checked.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import field
from functools import cached_property
from inspect import cleandoc
from typing import Any, ClassVar, Final

from harrow.campaigns.language import literals
from harrow.campaigns.language.literals import LiteralError
from harrow.campaigns.language.part import Part, Section
from harrow.campaigns.language.spelling import printable
from harrow.campaigns.language.yaml_positions import ListNode, MapEntry, MapNode, Mark, Mistake, Node, Scalar
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.settings import LONG_MAX


@dataclass(frozen=True, slots=True)
class Reading:
    """One pass over a file. ``unknown_key`` returns the message for an unknown key of a section."""

    unknown_key: Callable[["SectionShape", str], str]
    mistakes: list[Mistake] = field(default_factory=list)

    def refuse(self, mark: Mark, key: str, message: object) -> None:
        """Report a mistake in the value of *key*."""
        prefix = f"{printable(key)}: " if key else ""
        self.mistakes.append(Mistake(mark, f"{prefix}{message}"))

    def problem(self, part: Part, message: str, *, at_key: bool = False) -> None:
        """Report a mistake in a part that has the right shape, or, with *at_key*, in its key."""
        self.mistakes.append(Mistake(part.key_mark if at_key else part.mark, message))


class Definitions:
    """The definitions in a JSON Schema: one for each section, however many fields use it."""

    def __init__(self) -> None:
        self.by_name: dict[str, Any] = {}
        self._names: dict[int, str] = {}

    def reference(self, section: "SectionShape") -> dict[str, Any]:
        name = self._names.get(id(section))
        if name is None:
            name, number = section.title, 1
            while name in self.by_name:
                number += 1
                name = f"{section.title}{number}"
            self._names[id(section)] = name
            # A section may contain itself, so its name is defined first.
            self.by_name[name] = {}
            self.by_name[name] = section.definition(self)
        return {"$ref": f"#/$defs/{name}"}


class Shape(ABC):
    """The shape of a part of a file. ``takes_lists`` tells whether the part may be a list."""

    takes_lists: ClassVar[bool] = True

    @abstractmethod
    def read(self, node: Node, key: str, key_mark: Mark, reading: Reading) -> Part | None:
        """Read the node under *key*; report a mistake and return None if it has another shape."""

    @abstractmethod
    def schema(self, definitions: Definitions) -> dict[str, Any]:
        """Return the JSON Schema of this shape."""

    def resolved(self) -> "Shape":
        """Return the shape itself, or the shape that a `LazyShape` builds."""
        return self


@dataclass(frozen=True, eq=False)
class ValueShape(Shape):
    """A single value: the parser of its text, and its JSON Schema."""

    takes_lists = False

    of_text: Callable[[str], Any]
    json_schema: Mapping[str, Any]

    def read(self, node: Node, key: str, key_mark: Mark, reading: Reading) -> Part | None:
        try:
            return Part(node.mark, key_mark, self.value(node))
        except LiteralError as error:
            reading.refuse(node.mark, key, error)
            return None

    def schema(self, definitions: Definitions) -> dict[str, Any]:
        return dict(self.json_schema)

    def value(self, node: Node) -> Any:
        """Parse a node.

        Raises:
            LiteralError: The node is not a value of this kind.

        """
        if isinstance(node, Scalar):
            if node.is_null():
                raise LiteralError("there is no value")
            return self.of_text(node.text)
        kind = "list" if isinstance(node, ListNode) else "mapping"
        raise LiteralError(f"expected a single value, not a {kind}")


class OneOrListShape(ValueShape):
    """A single value, or a list of values. A list is read as a tuple."""

    takes_lists = True

    def read(self, node: Node, key: str, key_mark: Mark, reading: Reading) -> Part | None:
        if not isinstance(node, ListNode):
            return super().read(node, key, key_mark, reading)
        if not node.items:
            reading.refuse(node.mark, key, "the list is empty")
            return None
        items = [super(OneOrListShape, self).read(item, key, item.mark, reading) for item in node.items]
        parts = dict(enumerate(part for part in items if part is not None))
        if len(parts) < len(items):
            return None
        return Part(node.mark, key_mark, tuple(part.value for part in parts.values()), parts)

    def schema(self, definitions: Definitions) -> dict[str, Any]:
        return {
            "anyOf": [
                dict(self.json_schema),
                {"type": "array", "items": dict(self.json_schema), "minItems": 1},
            ]
        }


@dataclass(frozen=True, eq=False)
class LazyShape(Shape):
    """A shape that is built when it is needed, because it needs a catalogue or contains itself."""

    make: Callable[[], Shape]

    def read(self, node: Node, key: str, key_mark: Mark, reading: Reading) -> Part | None:
        return self.make().read(node, key, key_mark, reading)

    def schema(self, definitions: Definitions) -> dict[str, Any]:
        return self.make().schema(definitions)

    def resolved(self) -> Shape:
        return self.make().resolved()


@dataclass(frozen=True, eq=False)
class ListShape(Shape):
    """A list of items of the same shape. With ``accepts_single`` one item needs no brackets."""

    item: Shape
    accepts_single: bool = False

    def read(self, node: Node, key: str, key_mark: Mark, reading: Reading) -> Part | None:
        if isinstance(node, ListNode):
            items = [self.item.read(item, key, item.mark, reading) for item in node.items]
        elif self.accepts_single:
            one = self.item.read(node, key, key_mark, reading)
            return None if one is None else Part(node.mark, key_mark, [one.value], {0: one})
        else:
            reading.refuse(node.mark, key, "expected a list")
            return None
        parts = dict(enumerate(part for part in items if part is not None))
        rejected = tuple(str(index) for index, part in enumerate(items) if part is None)
        return Part(node.mark, key_mark, [part.value for part in parts.values()], parts, rejected)

    def schema(self, definitions: Definitions) -> dict[str, Any]:
        one = self.item.schema(definitions)
        many = {"type": "array", "items": one}
        return {"anyOf": [one, many]} if self.accepts_single else many


@dataclass(frozen=True, eq=False)
class NumberedShape(ListShape):
    """A list of sections with ids. Instead, a number N means N sections with the ids 0 to N - 1."""

    maximum: int = LONG_MAX

    def read(self, node: Node, key: str, key_mark: Mark, reading: Reading) -> Part | None:
        if not isinstance(node, Scalar):
            return super().read(node, key, key_mark, reading)
        try:
            count = literals.whole_number(1, self.maximum)(node.text)
        except LiteralError as error:
            reading.refuse(node.mark, key, f"expected a number of them, or a list: {error}")
            return None
        ids = (Scalar(str(number), node.mark) for number in range(count))
        items = tuple(MapNode({"id": MapEntry(node.mark, number)}, node.mark) for number in ids)
        return super().read(ListNode(items, node.mark), key, key_mark, reading)

    def schema(self, definitions: Definitions) -> dict[str, Any]:
        return {"anyOf": [number_schema(1, self.maximum), super().schema(definitions)]}


@dataclass(frozen=True, eq=False)
class MapShape(Shape):
    """A mapping from names to values of the same shape."""

    name: ValueShape
    item: Shape

    def read(self, node: Node, key: str, key_mark: Mark, reading: Reading) -> Part | None:
        if not isinstance(node, MapNode):
            reading.refuse(node.mark, key, "expected a mapping (`key: value`)")
            return None
        parts: dict[str, Part] = {}
        values: dict[Any, Any] = {}
        for word, entry in node.entries.items():
            name = self.name.read(Scalar(word, entry.key_mark, plain=False), "", entry.key_mark, reading)
            part = self.item.read(entry.value, word, entry.key_mark, reading)
            if name is not None and part is not None:
                parts[word] = part
                values[name.value] = part.value
        rejected = tuple(word for word in node.entries if word not in parts)
        return Part(node.mark, key_mark, values, parts, rejected)

    def schema(self, definitions: Definitions) -> dict[str, Any]:
        return {"type": "object", "additionalProperties": self.item.schema(definitions)}


@dataclass(frozen=True, slots=True, eq=False)
class Key:
    """A key of a section: the shape of its value, and its documentation."""

    shape: Shape
    doc: str
    required: bool = False


@dataclass(frozen=True, eq=False, kw_only=True)
class SectionShape(Shape):
    """A mapping with declared keys. Other keys are mistakes.

    Messages call a key of the section ``noun``, and `harrow list CATALOGUE` lists all keys. If
    ``short`` names a key, the section may be written as the value of that key. With
    ``accepts_name_alone`` it may be written as the name of a key without a value. With
    ``emptiable`` it may be empty. With ``single`` it has exactly one key.
    """

    title: str
    doc: str
    keys: Mapping[str, Key]
    noun: str = "key"
    catalogue: str | None = None
    short: str | None = None
    accepts_name_alone: bool = False
    emptiable: bool = False
    single: bool = False

    @cached_property
    def _places(self) -> Mapping[str, int]:
        """Each key's number in the order of declaration. Mistakes are reported in this order."""
        return {name: place for place, name in enumerate(self.keys)}

    @cached_property
    def _required(self) -> frozenset[str]:
        return frozenset(name for name, key in self.keys.items() if key.required)

    def read(self, node: Node, key: str, key_mark: Mark, reading: Reading) -> Section | None:
        try:
            entries = self._entries(node, key_mark)
        except LiteralError as error:
            reading.refuse(node.mark, key, error)
            return None
        parts: dict[str, Part] = {}
        is_complete = True
        # A section may declare hundreds of keys, and have few of them.
        wanted = sorted(
            self._required.union(name for name in entries if name in self._places),
            key=self._places.__getitem__,
        )
        for name in wanted:
            declared, entry = self.keys[name], entries.get(name)
            if entry is not None:
                part = declared.shape.read(entry.value, name, entry.key_mark, reading)
                if part is not None:
                    parts[name] = part
                    continue
            elif declared.required:
                reading.refuse(node.mark, key, f"`{name}` is missing")
            is_complete = is_complete and not declared.required
        for name in entries:
            if name not in self.keys:
                # A name without a value is a scalar, which has no key.
                mark = entries[name].key_mark if isinstance(node, MapNode) else node.mark
                reading.refuse(mark, "", reading.unknown_key(self, name))
        rejected = tuple(name for name in entries if name not in parts)
        if not is_complete or (rejected and not isinstance(node, MapNode)):
            return None
        return Section(node.mark, key_mark, parts, rejected)

    def _entries(self, node: Node, key_mark: Mark) -> Mapping[str, MapEntry]:
        """Return the entries of a node, which may be a short form of the section.

        Raises:
            LiteralError: The node is neither a mapping nor a short form.

        """
        if isinstance(node, MapNode):
            return node.entries
        if isinstance(node, Scalar) and node.is_null():
            if not self.emptiable:
                raise LiteralError("there is no value")
            return {}
        if self.short is not None and (
            self.keys[self.short].shape.takes_lists or not isinstance(node, ListNode)
        ):
            return {self.short: MapEntry(key_mark, node)}
        if isinstance(node, ListNode):
            raise LiteralError("expected a mapping (`key: value`), not a list")
        if self.accepts_name_alone:
            return {node.text: MapEntry(key_mark, Scalar("", node.mark))}
        raise LiteralError("expected a mapping (`key: value`), not a single value")

    def schema(self, definitions: Definitions) -> dict[str, Any]:
        return definitions.reference(self)

    def definition(self, definitions: Definitions) -> dict[str, Any]:
        """Return the JSON Schema of the section itself."""
        properties = {name: _described(key, definitions) for name, key in self.keys.items()}
        long: dict[str, Any] = {
            "title": self.title,
            "type": "object",
            "properties": properties,
            "additionalProperties": False,
        }
        if self.doc:
            long["description"] = cleandoc(self.doc)
        if required := [name for name, key in self.keys.items() if key.required]:
            long["required"] = required
        if self.single:
            long |= {"minProperties": 1, "maxProperties": 1}
        if self.short is not None:
            return {"anyOf": [self.keys[self.short].shape.schema(definitions), long]}
        if self.accepts_name_alone:
            return {"anyOf": [{"enum": list(properties)}, long]}
        return {"anyOf": [{"type": "null"}, long]} if self.emptiable else long


def _described(key: Key, definitions: Definitions) -> dict[str, Any]:
    schema = key.shape.schema(definitions)
    return {**schema, "description": key.doc} if key.doc else schema


def schema_of(section: SectionShape) -> dict[str, Any]:
    """Return the JSON Schema of a file whose root is *section*."""
    definitions = Definitions()
    root = section.definition(definitions)
    sorted_schema: dict[str, Any] = _in_order({**root, "$defs": definitions.by_name})
    return sorted_schema


def _in_order(schema: Any, *, is_properties: bool = False) -> Any:
    """Sort the keywords of a schema, but keep the declared order of a section's keys."""
    if isinstance(schema, list):
        return [_in_order(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    words = schema if is_properties else sorted(schema)
    return {
        word: _in_order(schema[word], is_properties=word == "properties" and not is_properties)
        for word in words
    }


def number_schema(minimum: int, maximum: int = LONG_MAX) -> dict[str, Any]:
    """Return the JSON Schema of whole numbers. If *maximum* is Kafka's largest, it has none."""
    schema: dict[str, Any] = {"type": "integer", "minimum": minimum}
    return schema if maximum == LONG_MAX else {**schema, "maximum": maximum}


def whole(minimum: int, maximum: int = LONG_MAX) -> ValueShape:
    return ValueShape(literals.whole_number(minimum, maximum), number_schema(minimum, maximum))


def whole_range(minimum: int, maximum: int = LONG_MAX) -> ValueShape:
    """Return the shape of whole numbers, or ranges of them such as ``3..5``."""
    span = spelling_schema(literals.range_pattern("[0-9]+"), "3..5")
    return ValueShape(
        literals.whole_range(minimum, maximum), {"anyOf": [number_schema(minimum, maximum), span]}
    )


def one_of(*words: str) -> ValueShape:
    return ValueShape(literals.choice(words), {"enum": list(words)})


def spelling_schema(pattern: str, *examples: str) -> dict[str, Any]:
    return {"type": "string", "pattern": f"^{pattern}$", "examples": list(examples)}


TEXT: Final = ValueShape(str, {"type": ["string", "number", "boolean"]})
NAME: Final = ValueShape(str, {"type": "string"})
"""A name, such as a key. JSON allows only strings as keys."""
