"""Reads a section into the dataclass that declares its fields (`harrow.cluster_model.fields`)."""

from collections.abc import Callable
from typing import Any, Final, Protocol, TypeVar

from harrow.campaigns.language.part import Part
from harrow.campaigns.language.readers.references import References
from harrow.campaigns.language.spelling import listed
from harrow.cluster_model import fields as kinds
from harrow.cluster_model.fields import EXTENSIONS, DeclaredField, by_kind, fields_of
from harrow.cluster_model.lazy_dataclass import is_dataclass_type, replace

T = TypeVar("T")

_NOUNS: Final = {kinds.BrokerIdMarker: "broker "}


class Problems(Protocol):
    """Collects the mistakes in a file: a `Draft` for campaigns, a `Reading` for other files."""

    def problem(self, part: Part, message: str, *, at_key: bool = False) -> None: ...


class SectionReader:
    """Reads sections field by field into the dataclasses that declare them.

    With *references*, it checks that names in the sections exist. It has none for sections that
    define names. The caller checks that the fields of a section fit together. ``readers`` are
    functions that read values, by the kind of the value.
    """

    def __init__(self, problems: Problems, references: References | None = None) -> None:
        self._problems = problems
        self._references = references
        self.readers: dict[type[Any], Callable[[Part], Any]] = {}

    def read(self, declared: type[T], section: Part, **known_values: Any) -> T:
        """Read a section. *known_values* has the fields that the caller has read itself."""
        extended: type[T] = EXTENSIONS.get(declared, declared)
        values = dict(known_values)
        for item in fields_of(extended):
            if item.attribute in known_values:
                continue
            part = _part_of(section, item)
            if part is not None:
                values |= item.named(self.value(item, part))
            elif is_dataclass_type(type(item.default)):
                values[item.attribute] = self.read(item.kind, section / item.key)
            elif item.kind is kinds.ProducerMarker and self._references:
                values[item.attribute] = self._references.only_producer(section)
        return extended(**values)

    def value(self, item: DeclaredField, part: Part) -> Any:
        """Return the value of a field, from its part of the file."""
        if item.many:
            # An empty list is a mistake if the default is not empty.
            must_have_items = item.required or (isinstance(item.default, tuple) and item.default)
            if must_have_items and not part.value and not part.rejected:
                self._problems.problem(part, f"{item.key}: the list is empty")
            self._check_unique(item, part)
            inner = replace(item, depth=item.depth - 1)
            values = (self.value(inner, element) for element in part)
            # A value is None if it has a mistake, which has been reported.
            return tuple(value for value in values if value is not None)
        if (reader := by_kind(self.readers, item.kind)) is not None:
            return reader(part)
        if is_dataclass_type(item.kind):
            return self.read(item.kind, part)
        if self._references is not None:
            self._references.check(item.kind, part.value, part)
        return part.value

    def _check_unique(self, item: DeclaredField, listed: Part) -> None:
        previous: set[Any] = set()
        for part in listed if item.options.unique else ():
            if part.value in previous:
                self._problems.problem(part, f"{_NOUNS.get(item.kind, '')}{part.value} is listed twice")
            previous.add(part.value)


def _part_of(section: Part, item: DeclaredField) -> Part | None:
    """Return the part of a section that has a field's value; None if there is no such part."""
    key = item.key
    if "." in key:
        *heads, key = key.split(".")
        section = section.at(*heads)
    if item.kind is kinds.LastsMarker and key not in section:
        key = kinds.FOR
    return section.parts.get(key)


def only_entry(problems: Problems, section: Part, noun: str, hint: str = "") -> str | None:
    """Return the only key of a section; report a section with no key or several keys."""
    keys = list(section.parts)
    if len(keys) == 1:
        return str(keys[0])
    if not section.rejected:
        several = f", not {len(keys)} ({listed(keys)}){hint}" if keys else ""
        problems.problem(section, f"name one {noun}{several}")
    return None
