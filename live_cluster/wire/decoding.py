"""Decodes messages, and refuses nulls that the protocol forbids, which kafka-python accepts."""

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, Final, NamedTuple

_WITH_LENGTH: Final = frozenset({"string", "bytes", "records"})
"""Types that can be null on the wire. kafka-python sets other fields to None only as its own
default."""


class MalformedMessageError(ValueError):
    """A message breaks the protocol."""


class _StructFields(NamedTuple):
    """The fields of a struct that must not be null, and those that contain structs."""

    never_null: tuple[str, ...]
    structs: tuple[tuple[str, "_StructFields"], ...]
    arrays: tuple[tuple[str, "_StructFields"], ...]


def decoded(kind: Any, frame: bytes) -> Any:
    """Return the message in a frame; *kind* is the message's class of one version.

    Raise `MalformedMessageError` if it cannot be decoded, or has a null that the protocol forbids
    (``nullableVersions``).
    """
    try:
        message = kind.decode(frame, header=True)
    except Exception as error:  # A decoder may raise anything.
        raise MalformedMessageError(f"{type(error).__name__}: {error}") from error
    for name in _nulls(message, _fields_of(kind)):
        raise MalformedMessageError(f"{name} is null")
    return message


def _nulls(struct: Any, fields: _StructFields) -> Iterator[str]:
    """Yield the names of fields that are null and must not be."""
    yield from (name for name in fields.never_null if getattr(struct, name) is None)
    for name, inner in fields.structs:
        if (nested := getattr(struct, name)) is not None:
            yield from _nulls(nested, inner)
    for name, inner in fields.arrays:
        for element in getattr(struct, name) or ():
            yield from _nulls(element, inner)


@cache
def _fields_of(kind: Any) -> _StructFields:
    return _fields(kind._struct.fields, kind._class_version)  # noqa: SLF001 - kafka-python has no public name


def _fields(fields: Any, version: int) -> _StructFields:
    present = {name: field for name, field in fields.items() if field.for_version_q(version)}
    never_null = tuple(
        name
        for name, field in present.items()
        if (field.is_array() or field.is_struct() or field.type_str in _WITH_LENGTH)
        and not (field.nullable_for_version_q(version) or field.tagged_field_q(version))
    )
    structs = [(name, field) for name, field in present.items() if field.is_struct()]
    arrays = [(name, field) for name, field in present.items() if field.is_struct_array()]
    return _StructFields(never_null, _nested(structs, version), _nested(arrays, version))


def _nested(fields: Iterable[tuple[str, Any]], version: int) -> tuple[tuple[str, _StructFields], ...]:
    return tuple((name, _fields(field.fields, version)) for name, field in fields)
