"""`harrow check`: reads a history, judges it, and prints the verdict."""

import gc
from collections.abc import Iterable
from itertools import product
from typing import Final

import typer

from harrow.campaigns.language.spelling import suggestion
from harrow.campaigns.record.check_report import check_document, size_of
from harrow.campaigns.record.history_file import HistoryError
from harrow.checks.finding import HELD, INCONCLUSIVE, PERMITTED, VIOLATED
from harrow.checks.history.anomalies import ANOMALIES
from harrow.checks.history.judge import judge_history
from harrow.checks.stated_settings import STATABLE, StatedSettings, state
from harrow.cli import exit_code
from harrow.cli.ci.check_cases import check_suite
from harrow.cli.console import message_console, say
from harrow.cli.history_reading import name_of, read_sources, sources_of
from harrow.cli.interrupts import Interrupts
from harrow.cli.render.check import show_verdict
from harrow.cli.requests.results import CheckRequest
from harrow.cli.session import publish, refuse_files, unreadable

_NAMED_MAX: Final = 4
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
    with Interrupts():
        try:
            sources = sources_of(request)
            history, not_shown = read_sources(request, sources)
        except OSError as error:
            raise unreadable(error) from None
        except HistoryError as error:
            refuse_files(request, error.problems)
            if error.more:
                say(message_console(no_color=request.no_color), f"and {error.more} more malformed lines")
            return exit_code.USAGE
        names = [*map(name_of, sources)]
        name = " and ".join(names if len(names) <= _NAMED_MAX else [names[0], f"{len(names) - 1} more"])
        # The history is needed until the end, so the garbage collector need not scan it.
        gc.freeze()
        verdict = judge_history(
            history,
            settings,
            allowed=allowed,
            demanded=demanded,
            not_shown=not_shown,
            findings_max=request.findings_max,
        )
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
    return [*(request.histories or ()), *(word for pair in pairs for word in pair)]


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
