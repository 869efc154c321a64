"""A section, read into the dataclass that declares what it says (`harrow.cluster_model.fields`)."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import is_dataclass, replace
from typing import Any, Final

from harrow.campaigns.language.part import Section
from harrow.campaigns.language.readers.draft import Draft
from harrow.campaigns.language.readers.references import References
from harrow.campaigns.language.spelling import listed
from harrow.campaigns.language.yaml_positions import Path
from harrow.cluster_model import fields as kinds
from harrow.cluster_model.fields import EXTENSIONS, DeclaredField, by_kind, fields_of

_NOUNS: Final = {kinds.BrokerIdMarker: "broker "}


class SectionReader:
    """Reads sections field by field, and checks what each refers to.

    Where several fields have to fit together, the caller checks that. Without *references* it reads a section
    that defines names, and refers to none. ``forms`` read the kinds of values that have a reader of their own.
    """

    def __init__(self, draft: Draft, references: References | None = None) -> None:
        self._draft = draft
        self._references = references
        self.forms: dict[type[Any], Callable[[Any, Path], Any]] = {}

    def read(self, declared: type[Any], section: Section | None, path: Path, **decided: Any) -> Any:
        """Return what stands at *path*; fields that are *decided* are not read."""
        declared = EXTENSIONS.get(declared, declared)
        values = dict(decided)
        for item in fields_of(declared):
            if item.attribute not in decided:
                for key, value in _given(section, item):
                    values |= item.named(self.value(item, value, (*path, *key)))
                if item.attribute not in values and is_dataclass(item.default):
                    values[item.attribute] = self.read(item.kind, None, path)
                elif item.attribute not in values and item.kind is kinds.ProducerMarker and self._references:
                    values[item.attribute] = self._references.only_producer(path)
        return declared(**values)

    def value(self, item: DeclaredField, value: Any, path: Path) -> Any:
        """Return what a field is that has this value in the file."""
        if item.many:
            # Where a list is there by default, none at all is not what a campaign can mean.
            needs_some = item.required or (isinstance(item.default, tuple) and item.default)
            if needs_some and not value and not self._draft.has_lost(path):
                self._draft.problem(path, f"{item.key}: the list is empty")
            self._check_unique(item, value, path)
            inner = replace(item, depth=item.depth - 1)
            values = (self.value(inner, each, (*path, index)) for index, each in enumerate(value))
            # What cannot be read has been reported.
            return tuple(each for each in values if each is not None)
        if (form := by_kind(self.forms, item.kind)) is not None:
            return form(value, path)
        if is_dataclass(item.kind):
            return self.read(item.kind, value, path)
        if self._references is not None:
            self._references.check(item.kind, value, path)
        return value

    def _check_unique(self, item: DeclaredField, values: Sequence[Any], path: Path) -> None:
        seen: set[Any] = set()
        for index, value in enumerate(values if item.options.unique else ()):
            if value in seen:
                self._draft.problem((*path, index), f"{_NOUNS.get(item.kind, '')}{value} stands here twice")
            seen.add(value)


def _given(section: Section | None, item: DeclaredField) -> Iterator[tuple[Path, Any]]:
    """Yield where a section says a field, and what; nothing where it does not."""
    keys = item.key.split(".")
    for key in keys[:-1]:
        section = None if section is None else section.given().get(key)
    given = {} if section is None else section.given()
    if item.kind is kinds.LastsMarker and keys[-1] not in given:
        keys = [kinds.FOR]
    if keys[-1] in given:
        yield tuple(keys), given[keys[-1]]


def only_entry(
    draft: Draft, section: Section, path: Path, noun: str, hint: str = ""
) -> tuple[str, Any] | None:
    """Return the only key of a section with its value; report a section that has none, or several."""
    given = section.given()
    if len(given) == 1:
        return next(iter(given.items()))
    if not draft.has_lost(path):
        several = f", not {len(given)} ({listed(list(given))}){hint}" if given else ""
        draft.problem(path, f"name one {noun}{several}")
    return None
