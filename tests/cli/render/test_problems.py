"""Mistakes in files are printed up to a limit."""

import io

from rich.console import Console

from harrow.campaigns.language.problem import Problem
from harrow.cli.render.problem import show_problems


def test_the_first_mistakes_are_printed_and_the_rest_are_counted() -> None:
    written = io.StringIO()
    problems = [Problem("c.yaml", line, 1, "unknown key") for line in range(1, 40_001)]
    show_problems(Console(file=written), problems)
    lines = written.getvalue().splitlines()
    assert lines[:2] == ["c.yaml:1:1: unknown key", "c.yaml:2:1: unknown key"]
    assert lines[-1] == "and 39900 more"
    assert len(lines) == 101
