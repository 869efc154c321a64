"""Prints suites in the formats of CI systems."""

from collections.abc import Sequence
from pathlib import Path
from typing import IO, Final

from rich.console import Console

from campaigns.problem import Problem
from cli import exit_code
from cli.ci_suite import Suite, in_total, problem_suites
from cli.console import data_console, destination, say

JUNIT: Final = "junit"
GITHUB: Final = "github"
CI_FORMATS: Final = frozenset({JUNIT, GITHUB})
"""The formats, by the words of ``--format``."""


def write_suites(
    stream: IO[str],
    output_format: str,
    suites: Sequence[Suite],
    *,
    noun: str,
    messages: Console,
    total: str | None = None,
) -> None:
    """Write suites to *stream*, in one of `CI_FORMATS`; *noun* says what a suite is.

    *total* sums all of it up, where that is more than to count the suites.

    With `GITHUB` the table goes to the step's summary, where harrow runs in a step. That it cannot be
    written is told in *messages* and changes no result.
    """
    if output_format == JUNIT:
        from cli.junit import junit_xml

        stream.write(junit_xml(suites))
    else:
        from cli.github import STEP_SUMMARY, annotations, append_step_summary, step_summary

        total = in_total(suites, noun) if total is None else total
        stream.writelines(f"{line}\n" for line in annotations(suites))
        stream.write(f"{total}\n")
        try:
            append_step_summary(step_summary(suites, noun, total))
        except OSError as error:
            say(messages, f"cannot write to ${STEP_SUMMARY}: {error.strerror or error}: {error.filename}")
    stream.flush()


def write_problems(
    problems: Sequence[Problem], output_format: str, output: Path | None, messages: Console
) -> int:
    """Write what is wrong with files, if a CI system is to read it, and return the exit code."""
    if output_format in CI_FORMATS:
        try:
            with destination(output) as stream:
                file = data_console(file=stream).file
                write_suites(file, output_format, problem_suites(problems), noun="file", messages=messages)
        except BrokenPipeError:
            raise
        except OSError as error:
            say(messages, f"cannot write: {error.strerror or error}: {error.filename}", style="red")
    return exit_code.USAGE
