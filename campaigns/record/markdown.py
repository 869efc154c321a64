"""Writes Markdown that shows any text literally: tables, code, text."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from harrow.campaigns.language.spelling import printable

_SPECIAL: Final = re.compile(r"([\\`*_~]|\](?=[(\[:]))")
_HTML: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
"""The module `html` would also load all names of entities, in every run that writes results."""
_INSIDE_WORD: Final = re.compile(r"(?<=\w)\\_(?=\w)")


def document(parts: Iterable[str]) -> str:
    """Join the parts that are not empty, and escape what could disturb a terminal or a log."""
    whole = "\n\n".join(part for part in parts if part)
    return "".join(f"{printable(line)}\n" for line in whole.split("\n"))


def console(command: str) -> str:
    """Return a code block with a command."""
    return f"```console\n$ {printable(command)}\n```"


def text(words: str) -> str:
    """Escape words on one line, so that Markdown shows them literally."""
    escaped = _SPECIAL.sub(r"\\\1", printable(" ".join(words.split())).translate(_HTML))
    shown = _INSIDE_WORD.sub("_", escaped)
    # At the start of a line in a log, GitHub would take this for a command.
    return f"\\{shown}" if shown.startswith("::") else shown


def code(words: str) -> str:
    """Return words as code on one line, between more backticks than the words have in a row."""
    line = printable(" ".join(words.split())) or " "
    fence = "`" * (1 + max(map(len, re.findall("`+", line)), default=0))
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{pad}{line}{pad}{fence}"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of Markdown cells. Vertical bars in cells are escaped."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(map(_cell, line)) + " |" for line in lines)


def folded(heading: str, markdown: str) -> str:
    """Return Markdown that a reader opens by its heading."""
    return f"<details><summary>{heading}</summary>\n\n{markdown}\n\n</details>"


def _cell(markdown: str) -> str:
    return " ".join(markdown.split()).replace("|", r"\|")
