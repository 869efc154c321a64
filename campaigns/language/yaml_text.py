"""Plain data as YAML that looks written by hand.

Short values stand on one line, others on lines of their own; text has quotes where a person, or another
YAML reader, could take it for something else.
"""

import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, Final

import yaml

WIDTH: Final = 80
"""Where lines should end. Only a single value or name that is longer goes beyond."""

_INDENT: Final = 2
_STRING: Final = "tag:yaml.org,2002:str"
_FIRST: Final = frozenset("_./($")
_FLOW_INDICATOR: Final = re.compile(r"[,?\[\]{}]|:(?![A-Za-z0-9])")
_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
# Words and numbers of YAML 1.1 and 1.2 that the resolver lets pass.
_LIKE_A_VALUE: Final = re.compile(r"[yn]|[0-9.][0-9._]*(e[+-]?[0-9]+)?|0[xob][0-9a-f_]+", re.IGNORECASE)

_resolve: Final[Any] = yaml.resolver.Resolver().resolve


class Word(str):
    """Text that means what it says without quotes: a duration, a rate, a keyword."""

    __slots__ = ()


class Prose(str):
    """Text for the reader, which may be broken into lines."""

    __slots__ = ()


INDENT_OF_WHOLE: Final = "    "
"""Begins a line of a comment that is not broken, such as a command to copy (as code in Markdown)."""


class Rows(dict[Any, Any]):
    """A mapping whose keys stand in lines of their own, however short it is."""


class Items(list[Any]):
    """A list whose items stand in lines of their own, however short it is."""


def yaml_text(root: Rows, comments: Sequence[str] = ()) -> str:
    """Return a document: *comments*, a paragraph each, and the mapping.

    Mappings, lists, text, numbers, booleans and None are known; keys are text or numbers.
    """
    lines = [line for comment in comments for line in _comment_lines(comment)]
    lines += _lines(root, 0)
    return "".join(f"{line}\n" for line in lines)


def _comment_lines(comment: str) -> list[str]:
    lines: list[str] = []
    for paragraph in comment.split("\n"):
        shown = "".join(char if char.isprintable() else _escaped(char) for char in paragraph)
        if shown.startswith(INDENT_OF_WHOLE):
            lines.append(f"# {shown}")
            continue
        # A path, a long name: what has no spaces stays whole.
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
    """Return where an indented line goes on: deeper, so that the next one is seen to begin."""
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
        if _is_short(f"{pad}-", item) or not _has_lines(item) or _is_row(item):
            lines += _entry(f"{pad}-", item, indent)
        else:
            first, *rest = _lines(item, indent + _INDENT)
            lines += [f"{pad}- {first.lstrip(' ')}", *rest]
    return lines


def _entry(head: str, value: Any, indent: int) -> list[str]:
    """Return the lines of a value behind its key, or behind a dash."""
    if _is_short(head, value):
        return [f"{head} {_on_one_line(value)}"]
    if isinstance(value, Prose):
        return _prose_lines(head, value, indent + _INDENT)
    if not _has_lines(value):
        return [f"{head} {_on_one_line(value)}"]
    if _is_row(value):
        return _filled_lines(head, value, indent + 2 * _INDENT)
    return [head, *_lines(value, indent + _INDENT)]


def _is_collection(value: Any) -> bool:
    return isinstance(value, (Mapping, list, tuple))


def _has_lines(value: Any) -> bool:
    return _is_collection(value) and bool(value)


def _is_row(value: Any) -> bool:
    return (
        isinstance(value, (list, tuple))
        and not isinstance(value, Items)
        and not any(map(_is_collection, value))
    )


def _is_short(head: str, value: Any) -> bool:
    return _may_be_one_line(value) and len(head) + 1 + len(_on_one_line(value)) <= WIDTH


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
    """Return a list of single values, as many to a line as there is room for."""
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
    """Return text as a block: folded, or as it stands where it has lines of its own."""
    pad = " " * indent
    folded = textwrap.wrap(text, WIDTH - indent, break_long_words=False, break_on_hyphens=False)
    if text.isprintable() and " ".join(folded) == text and not any(map(_is_command, folded)):
        return [f"{head} >-", *(pad + line for line in folded)]
    lines = text.split("\n")
    # The first line tells how far the block is indented; lines of nothing but spaces, and a
    # break at the end, would not survive.
    is_plain = all(line.isprintable() and (not line or line.strip()) for line in lines)
    is_plain = is_plain and not any(map(_is_command, lines))
    if is_plain and lines[0][:1].strip() and lines[-1]:
        return [f"{head} |-", *(pad + line if line else "" for line in lines)]
    return [f"{head} {_quoted(text)}"]


def _is_command(line: str) -> bool:
    """Return whether GitHub would obey a line, if a log has it."""
    return line.lstrip().startswith("::")


def _scalar(value: Any, *, in_flow: bool = False) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        return str(value)
    return str(value) if isinstance(value, Word) or _is_plain(value, in_flow=in_flow) else _quoted(value)


def _is_plain(text: str, *, in_flow: bool) -> bool:
    """Return whether text can stand without quotes, and is text to every reader."""
    if not text.isprintable() or not text or text[-1] in " :" or text.startswith("..."):
        return False
    if not text[0].isalnum() and text[0] not in _FIRST:
        return False
    if ": " in text or " #" in text or (in_flow and _FLOW_INDICATOR.search(text)):
        return False
    return not _LIKE_A_VALUE.fullmatch(text) and _resolve(yaml.ScalarNode, text, (True, False)) == _STRING


def _quoted(text: str) -> str:
    return '"' + "".join(_ESCAPES.get(char) or _escaped(char) for char in text) + '"'


def _escaped(char: str) -> str:
    """Return a character, or its number where it has no look of its own."""
    if char.isprintable():
        return char
    code = ord(char)
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
