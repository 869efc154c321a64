"""One `harrow check`: read a history, judge it, print the verdict."""

import gc
import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import typer

from campaigns.check_report import check_document, size_of
from campaigns.history_file import HistoryError, open_history, read_history
from campaigns.spelling import suggestion
from checks.finding import HELD, INCONCLUSIVE, PERMITTED, VIOLATED, Verdict
from checks.history.anomalies import ANOMALIES
from checks.history.judge import judge_history
from checks.stated_settings import STATABLE, StatedSettings, state
from cli import exit_code
from cli.check_cases import check_suite
from cli.ci_output import CI_FORMATS, write_problems, write_suites
from cli.console import data_console, destination, message_console, say, say_written
from cli.options import ReportFormat
from cli.render_check import show_verdict
from cli.render_problem import show_problems

_STDIN: Final = "-"
_HISTORY_FILES: Final = ("history.jsonl", "history.jsonl.gz")
_EXIT_CODES: Final = {
    HELD: exit_code.OK,
    PERMITTED: exit_code.OK,
    VIOLATED: exit_code.BROKEN,
    INCONCLUSIVE: exit_code.INCONCLUSIVE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRequest:
    """What to judge, and by what: names of anomalies, settings as ``key=value``."""

    history: str
    allowed: tuple[str, ...] = ()
    demanded: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()

    def arguments(self) -> list[str]:
        """Return it as one types it."""
        options = [("--allow", self.allowed), ("--demand", self.demanded), ("--set", self.settings)]
        return [
            self.history,
            *(word for option, values in options for value in values for word in (option, value)),
        ]


def check_session(
    request: CheckRequest,
    *,
    output_format: ReportFormat,
    output: Path | None,
    quiet: bool,
    verbose: bool,
    no_color: bool,
) -> int:
    """Judge what was asked for, print the verdict, and return the exit code."""
    settings = _stated(request.settings)
    allowed, demanded = _anomalies("--allow", request.allowed), _anomalies("--demand", request.demanded)
    if both := sorted(set(allowed) & set(demanded)):
        raise typer.BadParameter(f"{both[0]} cannot be allowed and demanded", param_hint="--allow")
    messages = message_console(no_color=no_color)
    path = _path(request.history)
    name = "<stdin>" if path is None else str(path)
    try:
        with open_history(path, sys.stdin.buffer) as lines:
            history = read_history(lines, name)
        # Nearly all of what was read is kept to the end; nothing of it is garbage to look for.
        gc.freeze()
        verdict = judge_history(history, settings, allowed=allowed, demanded=demanded)
        with destination(output) as stream:
            console = data_console(no_color=no_color, file=stream)
            if output_format is ReportFormat.JSON:
                document = check_document(verdict, size_of(history), name)
                console.file.write(json.dumps(document, ensure_ascii=False, indent=2) + "\n")
            elif output_format in CI_FORMATS:
                suites = [check_suite(verdict, size_of(history), name, request.arguments())]
                write_suites(console.file, output_format, suites, noun="history", messages=messages)
            else:
                show_verdict(console, verdict, size_of(history), name, settings, quiet=quiet, verbose=verbose)
    except HistoryError as error:
        show_problems(messages, error.problems)
        if error.more:
            say(messages, f"and {error.more} more malformed lines")
        return write_problems(error.problems, output_format, output, messages)
    except BrokenPipeError:
        raise
    except OSError as error:
        say(messages, f"cannot go on: {error.strerror or error}: {error.filename or name}", style="red")
        return exit_code.USAGE
    except KeyboardInterrupt:
        say(messages, "interrupted: a history is judged as a whole or not at all")
        return exit_code.INTERRUPTED
    say_written(messages, output, quiet=quiet)
    return code_of(verdict)


def code_of(verdict: Verdict) -> int:
    """Return the exit code that a verdict stands for."""
    return _EXIT_CODES[verdict.status]


def _path(argument: str) -> Path | None:
    if argument == _STDIN:
        return None
    path = Path(argument)
    if path.is_dir():
        for file in _HISTORY_FILES:
            if (path / file).is_file():
                return path / file
        raise typer.BadParameter(f"{argument} has no {_HISTORY_FILES[0]}", param_hint="HISTORY")
    return path


def _stated(assignments: Iterable[str]) -> StatedSettings:
    settings = StatedSettings()
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        key = key.strip()
        if not equals:
            raise typer.BadParameter(f"{assignment!r} is not of the form KEY=VALUE", param_hint="--set")
        try:
            settings = state(settings, key, text)
        except KeyError:
            known = ", ".join(STATABLE)
            hint = suggestion(key, STATABLE) or f"; known: {known}"
            raise typer.BadParameter(
                f"no promise about a history depends on {key!r}{hint}", param_hint="--set"
            ) from None
        except ValueError as error:
            raise typer.BadParameter(f"{key} is {error}, not {text!r}", param_hint="--set") from None
    return settings


def _anomalies(option: str, names: Iterable[str]) -> tuple[str, ...]:
    found = []
    by_folded_name = {name.lower(): name for name in ANOMALIES}
    for name in names:
        known = by_folded_name.get(name.strip().lower())
        if known is None:
            hint = suggestion(name, tuple(ANOMALIES)) or f"; known: {', '.join(ANOMALIES)}"
            raise typer.BadParameter(f"unknown anomaly {name!r}{hint}", param_hint=option)
        found.append(known)
    return tuple(found)
