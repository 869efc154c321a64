"""Prints mistakes in files: the place and the message, and on a terminal the line itself."""

from collections.abc import Iterable
from pathlib import Path

from rich.console import Console

from harrow.campaigns.language.problem import Problem
from harrow.campaigns.language.spelling import in_message
from harrow.cli.console import show, unbroken
from harrow.cli.text import Text

_EXCERPT_MAX = 100
_SHOWN_MAX = 100
"""A file of 1 MiB can have 100 000 mistakes, which are too many for a person to read."""


def show_problems(console: Console, problems: Iterable[Problem]) -> None:
    """Print the first problems, one per line, in the format that editors and CI systems parse."""
    listed = list(problems)
    for problem in listed[:_SHOWN_MAX]:
        place, message = str(problem)[: -len(problem.message)], problem.message
        show(console, unbroken(Text.assemble((in_message(place), "bold"), in_message(message))))
        if console.is_terminal:
            show(console, *_excerpt(problem))
    if len(listed) > _SHOWN_MAX:
        show(console, Text(f"and {len(listed) - _SHOWN_MAX} more"))


def _excerpt(problem: Problem) -> list[Text]:
    """Return the line with the mistake, and a caret below the mistake; nothing without a line."""
    if problem.line == 0:
        return []
    try:
        lines = Path(problem.file).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return []
    if problem.line > len(lines):
        return []
    # Tabs become blanks, so that the caret is in the right column.
    line = "".join(char if char.isprintable() else " " for char in lines[problem.line - 1])
    start = max(0, problem.column - 1 - _EXCERPT_MAX // 2)
    margin = f"{problem.line:>5} | "
    caret = " " * (len(margin) + problem.column - 1 - start) + "^"
    shown = line[start : start + _EXCERPT_MAX]
    return [unbroken(Text.assemble((margin, "dim"), shown)), unbroken(Text(caret, "red"))]
