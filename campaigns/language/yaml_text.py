"""Writes plain data as YAML that looks handwritten.

Short values are on the line of their key. Text is quoted if a person or another YAML reader could
mistake it for a value of another kind.
"""

import re
import textwrap
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import yaml

WIDTH: Final = 80
"""The width of lines. A line is longer only if a single value or name in it is too long."""

_INDENT: Final = 2
_STRING: Final = "tag:yaml.org,2002:str"
_PLAIN_START: Final = frozenset("_./($")
_FLOW_INDICATOR: Final = re.compile(r"[,?\[\]{}]|:(?![A-Za-z0-9])")
_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
# Words and numbers of YAML 1.1 and 1.2 that PyYAML's resolver mistakes for text.
_LOOKS_LIKE_VALUE: Final = re.compile(r"[yn]|[0-9.][0-9._]*(e[+-]?[0-9]+)?|0[xob][0-9a-f_]+", re.IGNORECASE)

_resolve: Final[Any] = yaml.resolver.Resolver().resolve


class Word(str):
    """Text that never needs quotes: a duration, a rate, a keyword."""

    __slots__ = ()


class Prose(str):
    """Text for readers, whose lines may be wrapped."""

    __slots__ = ()


VERBATIM_INDENT: Final = "    "
"""The indent of comment lines that are never wrapped, such as commands to copy."""


class Rows(dict[Any, Any]):
    """A mapping with each key on its own line, however short it is."""


class Items(list[Any]):
    """A list with each item on its own line, however short it is."""


def yaml_text(root: Rows, comments: Sequence[str] = ()) -> str:
    """Return a document: the *comments* as paragraphs, and the mapping *root*.

    Values can be mappings, lists, text, numbers, booleans and None. Keys can be text or numbers.
    """
    lines = [line for comment in comments for line in _comment_lines(comment)]
    lines += _lines(root, 0)
    return "".join(f"{line}\n" for line in lines)


def _comment_lines(comment: str) -> list[str]:
    lines: list[str] = []
    for paragraph in comment.split("\n"):
        shown = "".join(char if char.isprintable() else _escaped(char) for char in paragraph)
        if shown.startswith(VERBATIM_INDENT):
            lines.append(f"# {shown}")
            continue
        # Paths and long names must not be broken.
        broken = textwrap.wrap(
            shown,
            WIDTH - 2,
            subsequent_indent=_indent_below(shown),
            break_long_words=False,
            break_on_hyphens=False,
        )
        lines += [f"# {line}" for line in broken] or ["#"]
    return lines


def _indent_below(line: str) -> str:
    """Return the indent of the lines that continue a line, deeper than an indent of the line."""
    indent = len(line) - len(line.lstrip(" "))
    return " " * (indent + 2) if indent else ""


def _lines(value: Any, indent: int) -> list[str]:
    pad = " " * indent
    lines: list[str] = []
    if isinstance(value, Mapping):
        for key, item in value.items():
            lines += _entry(f"{pad}{_scalar(key, in_flow=True)}:", item, indent)
        return lines
    for item in value:
        if not _is_filled_collection(item) or _is_list_of_scalars(item):
            lines += _entry(f"{pad}-", item, indent)
        elif (line := _short_line(f"{pad}-", item)) is not None:
            lines.append(line)
        else:
            first, *rest = _lines(item, indent + _INDENT)
            lines += [f"{pad}- {first.lstrip(' ')}", *rest]
    return lines


def _entry(head: str, value: Any, indent: int) -> list[str]:
    """Return the lines of a value that follows *head*, its key or a dash."""
    line = _short_line(head, value)
    if line is not None:
        return [line]
    if isinstance(value, Prose):
        return _prose_lines(head, value, indent + _INDENT)
    if not _is_filled_collection(value):
        return [f"{head} {_on_one_line(value)}"]
    if _is_list_of_scalars(value):
        return _filled_lines(head, value, indent + 2 * _INDENT)
    return [head, *_lines(value, indent + _INDENT)]


def _is_collection(value: Any) -> bool:
    return isinstance(value, (Mapping, list, tuple))


def _is_filled_collection(value: Any) -> bool:
    return _is_collection(value) and bool(value)


def _is_list_of_scalars(value: Any) -> bool:
    return (
        isinstance(value, (list, tuple))
        and not isinstance(value, Items)
        and not any(map(_is_collection, value))
    )


def _short_line(head: str, value: Any) -> str | None:
    """Return *head* and a value as one line, or None if they need several."""
    if not _may_be_one_line(value):
        return None
    line = f"{head} {_on_one_line(value)}"
    return line if len(line) <= WIDTH else None


def _may_be_one_line(value: Any) -> bool:
    if isinstance(value, (Rows, Items)):
        return not value
    if isinstance(value, Mapping):
        return all(map(_may_be_one_line, value.values()))
    return not isinstance(value, (list, tuple)) or all(map(_may_be_one_line, value))


def _on_one_line(value: Any) -> str:
    return _flow(value) if _is_collection(value) else _scalar(value)


def _flow(value: Any) -> str:
    if isinstance(value, Mapping):
        entries = (f"{_scalar(key, in_flow=True)}: {_flow(item)}" for key, item in value.items())
        return "{" + ", ".join(entries) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_flow, value)) + "]"
    return _scalar(value, in_flow=True)


def _filled_lines(head: str, values: Sequence[Any], indent: int) -> list[str]:
    """Return a list of single values, with as many on each line as fit."""
    lines = [f"{head} ["]
    for number, value in enumerate(values):
        text = _scalar(value, in_flow=True) + ("]" if number == len(values) - 1 else ",")
        space = "" if lines[-1].endswith("[") else " "
        if len(lines[-1]) + len(space) + len(text) <= WIDTH:
            lines[-1] += space + text
        else:
            lines.append(" " * indent + text)
    return lines


def _prose_lines(head: str, text: str, indent: int) -> list[str]:
    """Return text as a block: a folded block or, if the text has line breaks, a literal one."""
    pad = " " * indent
    folded = textwrap.wrap(text, WIDTH - indent, break_long_words=False, break_on_hyphens=False)
    if text.isprintable() and " ".join(folded) == text and not any(map(_is_command, folded)):
        return [f"{head} >-", *(pad + line for line in folded)]
    lines = text.split("\n")
    # The first line determines the indent of the block. A block would lose lines that consist of
    # spaces, and a line break at the end.
    is_plain = all(line.isprintable() and (not line or line.strip()) for line in lines)
    is_plain = is_plain and not any(map(_is_command, lines))
    if is_plain and lines[0][:1].strip() and lines[-1]:
        return [f"{head} |-", *(pad + line if line else "" for line in lines)]
    return [f"{head} {_quoted(text)}"]


def _is_command(line: str) -> bool:
    """Return whether GitHub would execute a line as a command if it appeared in a log."""
    return line.lstrip().startswith("::")


def _scalar(value: Any, *, in_flow: bool = False) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        return str(value)
    return str(value) if isinstance(value, Word) or _is_plain(value, in_flow=in_flow) else _quoted(value)


@lru_cache(maxsize=1024)  # Most text is a key or a keyword, and PyYAML's resolver is slow.
def _is_plain(text: str, *, in_flow: bool) -> bool:
    """Return whether text needs no quotes, because every YAML reader takes it for text."""
    if not text.isprintable() or not text or text[-1] in " :" or text.startswith("..."):
        return False
    if not text[0].isalnum() and text[0] not in _PLAIN_START:
        return False
    if ": " in text or " #" in text or (in_flow and _FLOW_INDICATOR.search(text)):
        return False
    return not _LOOKS_LIKE_VALUE.fullmatch(text) and _resolve(yaml.ScalarNode, text, (True, False)) == _STRING


def _quoted(text: str) -> str:
    return '"' + "".join(_ESCAPES.get(char) or _escaped(char) for char in text) + '"'


def _escaped(char: str) -> str:
    """Return a character, or its escape sequence if it is not printable."""
    if char.isprintable():
        return char
    code = ord(char)
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
