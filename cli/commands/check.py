"""`harrow check`: reads a history, judges it, and prints the verdict."""

import gc
import sys
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from typing import Final

import typer

from harrow.campaigns.language.spelling import suggestion
from harrow.campaigns.logs.client_logs import READ, SENT, recognise
from harrow.campaigns.logs.logged_records import history_of, skip_rules
from harrow.campaigns.record.check_report import check_document, size_of
from harrow.campaigns.record.history_file import HistoryError, open_history, read_history
from harrow.checks.finding import HELD, INCONCLUSIVE, PERMITTED, VIOLATED
from harrow.checks.history.anomalies import ANOMALIES
from harrow.checks.history.judge import judge_history
from harrow.checks.stated_settings import STATABLE, StatedSettings, state
from harrow.cli import exit_code
from harrow.cli.ci.check_cases import check_suite
from harrow.cli.console import message_console, say
from harrow.cli.interrupts import Interrupts
from harrow.cli.options import refuse
from harrow.cli.render.check import show_verdict
from harrow.cli.requests.results import CheckRequest
from harrow.cli.session import note, publish, refuse_files

_STDIN: Final = "-"
_HISTORY_FILES: Final = ("history.jsonl", "history.jsonl.gz")
_EXIT_CODES: Final = {
    HELD: exit_code.OK,
    PERMITTED: exit_code.OK,
    VIOLATED: exit_code.BROKEN,
    INCONCLUSIVE: exit_code.INCONCLUSIVE,
}


def session(request: CheckRequest) -> int:
    settings = _parse_settings(request.settings or ())
    allowed = _parse_anomalies("--allow", request.allowed or ())
    demanded = _parse_anomalies("--demand", request.demanded or ())
    if both := sorted(set(allowed) & set(demanded)):
        raise typer.BadParameter(f"{both[0]} cannot be both allowed and demanded", param_hint="--allow")
    files = _files(request)
    name = " and ".join(map(_name, files))
    with Interrupts():
        try:
            with ExitStack() as stack:
                lines, not_shown = _lines(request, files, stack)
                history = read_history(
                    lines, name, line_max=request.line_max_mib << 20, memory_max=request.memory_max_mib << 20
                )
        except HistoryError as error:
            refuse_files(request, error.problems)
            if error.more:
                say(message_console(no_color=request.no_color), f"and {error.more} more malformed lines")
            return exit_code.USAGE
        # The history is needed until the end, so the garbage collector need not scan it.
        gc.freeze()
        verdict = judge_history(
            history, settings, allowed=allowed, demanded=demanded, findings_max=request.findings_max
        )
        if not_shown:
            verdict = skip_rules(verdict, not_shown)
        size = size_of(history)
        publish(
            request,
            document=lambda: check_document(verdict, size, name),
            suites=lambda: [check_suite(verdict, size, name, _arguments(request))],
            noun="history",
            show=lambda console: show_verdict(
                console, verdict, size, name, settings, quiet=request.quiet, verbose=request.verbose
            ),
        )
    return _EXIT_CODES[verdict.status]


def _arguments(request: CheckRequest) -> list[str]:
    options = {"--allow": request.allowed, "--demand": request.demanded, "--set": request.settings}
    options |= {"--sent": request.sent, "--read": request.read}
    pairs = (pair for option, values in options.items() for pair in product([option], values or ()))
    return [*filter(None, [request.history]), *(word for pair in pairs for word in pair)]


def _files(request: CheckRequest) -> list[Path | None]:
    """Return the files to read. None stands for standard input."""
    sent, read = request.sent or [], request.read or []
    if request.history is not None:
        refuse({"--sent": request.sent, "--read": request.read}, "has no meaning with a history")
    if bool(sent) != bool(read):
        missing, other = ("--read", "--sent") if sent else ("--sent", "--read")
        raise typer.BadParameter(f"{other} is only half of a history", param_hint=missing)
    if request.history is None and not sent:
        raise typer.BadParameter("give a history, or --sent and --read", param_hint="HISTORY")
    names = [*sent, *read] if request.history is None else [request.history]
    if names.count(_STDIN) > 1:
        raise typer.BadParameter("only one file can be standard input", param_hint="--read")
    return [_path(name) for name in names]


def _name(path: Path | None) -> str:
    return "<stdin>" if path is None else str(path)


def _lines(
    request: CheckRequest, files: Sequence[Path | None], stack: ExitStack
) -> tuple[Iterable[bytes], frozenset[str]]:
    """Return the lines of the history, and the rules about which it cannot show anything.

    Logs of clients become a history.
    """
    limits = {"line_max": request.line_max_mib << 20, "unpacked_max": request.unpacked_max_mib << 20}
    sources = [
        (_name(file), stack.enter_context(open_history(file, sys.stdin.buffer, **limits))) for file in files
    ]
    count = len(request.sent or ())
    sent, read = sources[:count], sources[count:]
    if request.history is not None:
        kind, lines = recognise(sources[0][1])
        if kind is None:
            return lines, frozenset()
        sent, read = ([(sources[0][0], lines)] if kind == each else [] for each in (SENT, READ))
    say_note = lambda text: note(request, f"note: {text}")  # noqa: E731 - its use gives its type
    return history_of(sent, read, say_note, read_to_end=request.history is None)


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


def _parse_settings(assignments: Iterable[str]) -> StatedSettings:
    settings = StatedSettings()
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        key = key.strip()
        if not equals:
            raise typer.BadParameter(f"{assignment!r} is not of the form KEY=VALUE", param_hint="--set")
        try:
            settings = state(settings, key, text)
        except KeyError:
            hint = suggestion(key, STATABLE) or f"; known: {', '.join(STATABLE)}"
            message = f"no promise depends on {key!r}{hint}"
            raise typer.BadParameter(message, param_hint="--set") from None
        except ValueError as error:
            raise typer.BadParameter(f"{key} is {error}, not {text!r}", param_hint="--set") from None
    return settings


def _parse_anomalies(option: str, names: Iterable[str]) -> list[str]:
    by_lower_case = {name.lower(): name for name in ANOMALIES}
    for name in names:
        if name.strip().lower() not in by_lower_case:
            hint = suggestion(name, tuple(ANOMALIES)) or f"; known: {', '.join(ANOMALIES)}"
            raise typer.BadParameter(f"unknown anomaly {name!r}{hint}", param_hint=option)
    return [by_lower_case[name.strip().lower()] for name in names]
