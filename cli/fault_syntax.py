"""What a campaign may say about each fault, read from the fault itself."""

from collections.abc import Iterator
from dataclasses import MISSING, Field, fields
from itertools import count
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from campaigns.units import duration_text, value_text
from cli.catalogue import Entry, Part, split_doc
from faults.catalogue import FAULTS
from faults.fields import DurationMarker


def fault_entries() -> Iterator[Entry]:
    """Yield an entry for each fault, with its fields and the shortest way to write it."""
    for name, fault in FAULTS.items():
        hints = get_type_hints(fault, include_extras=True)
        summary, about = split_doc(fault.__doc__ or "")
        known: tuple[Field[Any], ...] = fields(fault)  # type: ignore[arg-type]  # every fault is a dataclass
        needed = [item for item in known if _is_required(item)]
        # The two ends of a link are two brokers.
        ids = count()
        shortest = ", ".join(f"{_key(item)}: {_example(hints[item.name], ids)}" for item in needed)
        yield Entry(
            kind="fault",
            name=name,
            summary=summary,
            about=about,
            parts=(
                Part(heading="fields", items=tuple((_key(item), _told(item, hints)) for item in known)),
                Part(heading="in a campaign", items=(("do", f"{{{name}: {{{shortest}}}}}"),)),
            ),
        )


def _key(item: Field[Any]) -> str:
    return item.name.rstrip("_")


def _is_required(item: Field[Any]) -> bool:
    return item.default is MISSING and item.default_factory is MISSING


def _told(item: Field[Any], hints: dict[str, Any]) -> str:
    hint = hints[item.name]
    parts = [str(item.metadata.get("doc", "")), f"{_syntax(hint)}."]
    if _is_required(item):
        parts.append("Required.")
    elif item.default is not None and item.default is not MISSING:
        is_time = get_origin(hint) is Annotated and get_args(hint)[1] is DurationMarker
        shown = duration_text(item.default).replace(" ", "") if is_time else value_text(item.default)
        parts.append(f"Default: {shown}.")
    return " ".join(parts)


def _syntax(hint: Any) -> str:
    """Return how a value of this type is written, in words."""
    hint = _without_none(hint)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        # A marker's docstring says how a campaign writes it, and after `;` what the model makes of it.
        return str(arguments[1].__doc__).partition(";")[0].rstrip(".").replace("``", "")
    if origin is Literal:
        return "One of " + ", ".join(map(str, arguments))
    if origin is tuple:
        inner = _syntax(arguments[0])
        return f"One or a list, each: {inner[0].lower()}{inner[1:]}"
    return {bool: "true or false", int: "A whole number"}.get(hint, "Text")


def _example(hint: Any, ids: Iterator[int]) -> str:
    hint = _without_none(hint)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return str(arguments[0])
    if origin is tuple:
        return f"[{_example(arguments[0], ids)}]"
    return str(next(ids)) if origin is Annotated else "..."


def _without_none(hint: Any) -> Any:
    arguments = get_args(hint)
    if get_origin(hint) in (Union, UnionType) and NoneType in arguments:
        return next(part for part in arguments if part is not NoneType)
    return hint
