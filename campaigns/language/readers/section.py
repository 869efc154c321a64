"""A section, read into the dataclass that declares what it says (`harrow.cluster_model.fields`)."""

from collections.abc import Callable
from dataclasses import is_dataclass, replace
from typing import Any, Final, Protocol

from harrow.campaigns.language.part import Part
from harrow.campaigns.language.readers.references import References
from harrow.campaigns.language.spelling import listed
from harrow.cluster_model import fields as kinds
from harrow.cluster_model.fields import EXTENSIONS, DeclaredField, by_kind, fields_of

_NOUNS: Final = {kinds.BrokerIdMarker: "broker "}


class Problems(Protocol):
    """Takes down what is wrong with a file: a `Draft`, or for a file of its own a `Reading`."""

    def problem(self, part: Part, message: str, *, at_key: bool = False) -> None: ...


class SectionReader:
    """Reads sections field by field into the dataclass that declares them, and checks what each refers to.

    Where several fields have to fit together, the caller checks that. Without *references* it reads a section
    that defines names, and refers to none. ``forms`` read the kinds of values that have a reader of their own.
    """

    def __init__(self, problems: Problems, references: References | None = None) -> None:
        self._problems = problems
        self._references = references
        self.forms: dict[type[Any], Callable[[Part], Any]] = {}

    def read(self, declared: type[Any], section: Part, **decided: Any) -> Any:
        """Return what a section says; fields that are *decided* are not read."""
        declared = EXTENSIONS.get(declared, declared)
        values = dict(decided)
        for item in fields_of(declared):
            if item.attribute in decided:
                continue
            part = _part_of(section, item)
            if part is not None:
                values |= item.named(self.value(item, part))
            elif is_dataclass(item.default):
                values[item.attribute] = self.read(item.kind, section / item.key)
            elif item.kind is kinds.ProducerMarker and self._references:
                values[item.attribute] = self._references.only_producer(section)
        return declared(**values)

    def value(self, item: DeclaredField, part: Part) -> Any:
        """Return what a field is that has this part of the file."""
        if item.many:
            # Where a list is there by default, none at all is not what a campaign can mean.
            needs_some = item.required or (isinstance(item.default, tuple) and item.default)
            if needs_some and not part.value and not part.lost:
                self._problems.problem(part, f"{item.key}: the list is empty")
            self._check_unique(item, part)
            inner = replace(item, depth=item.depth - 1)
            values = (self.value(inner, each) for each in part)
            # What cannot be read has been reported.
            return tuple(each for each in values if each is not None)
        if (form := by_kind(self.forms, item.kind)) is not None:
            return form(part)
        if is_dataclass(item.kind):
            return self.read(item.kind, part)
        if self._references is not None:
            self._references.check(item.kind, part.value, part)
        return part.value

    def _check_unique(self, item: DeclaredField, listed: Part) -> None:
        seen: set[Any] = set()
        for part in listed if item.options.unique else ():
            if part.value in seen:
                self._problems.problem(part, f"{_NOUNS.get(item.kind, '')}{part.value} stands here twice")
            seen.add(part.value)


def _part_of(section: Part, item: DeclaredField) -> Part | None:
    """Return where a section says a field; None where it does not."""
    *heads, key = item.key.split(".")
    section = section.at(*heads)
    if item.kind is kinds.LastsMarker and key not in section:
        key = kinds.FOR
    return section.parts.get(key)


def only_entry(problems: Problems, section: Part, noun: str, hint: str = "") -> str | None:
    """Return the only key of a section; report a section that has none, or several."""
    keys = list(section.parts)
    if len(keys) == 1:
        return str(keys[0])
    if not section.lost:
        several = f", not {len(keys)} ({listed(keys)}){hint}" if keys else ""
        problems.problem(section, f"name one {noun}{several}")
    return None
