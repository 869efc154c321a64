"""Renders the report of a sweep: failures by kind, rates by setting, rare states, durations."""

from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import Console, RenderableType

from harrow.campaigns.language.spelling import counted
from harrow.campaigns.sweep.failures import WrittenFailure
from harrow.campaigns.sweep.sweep_report import FailureGroup, SweepReport
from harrow.checks.finding import INCONCLUSIVE, VIOLATED
from harrow.cli.console import show, unbroken
from harrow.cli.render.figures import times
from harrow.cli.render.layout import DIM, FAILED, STYLES, indented, unreached_states
from harrow.cli.render.sweep.matrix import Matrix
from harrow.cli.render.sweep.sentences import (
    FAINT,
    durations,
    failure_terms,
    rare_text,
    reliability,
    runs_text,
    skipped,
    undecided,
)
from harrow.cli.text import Text

_GROUPS_SHOWN: Final = 10
_RARE_SHOWN: Final = 5
_STYLES: Final = {**STYLES, VIOLATED: FAILED, FAINT: DIM}


def show_report(
    console: Console, report: SweepReport, written: Sequence[WrittenFailure], *, quiet: bool, verbose: bool
) -> None:
    """Print a report: with *quiet* only failures, with *verbose* all their kinds and all probes."""
    files = {(each.group.campaign, each.group.signature): each for each in written}
    shown = report.failures if verbose else report.failures[:_GROUPS_SHOWN]
    for group in shown:
        show(console, *_failure(group, files.get((group.campaign, group.signature))), Text())
    if len(report.failures) > len(shown):
        more = counted(len(report.failures) - len(shown), "more kind")
        show(console, Text(f"and {more} of failures; --verbose shows them, --format json too", DIM), Text())
    if not quiet:
        show(console, Matrix(report))
        show(console, *_details(report, verbose=verbose))
    if not quiet or report.failures:
        show(console, *_summary(report))


def _failure(group: FailureGroup, written: WrittenFailure | None) -> Iterator[RenderableType]:
    yield Text.assemble((f"{group.rule}", FAILED), f"  {group.campaign}, {times(group.failures)}")
    if group.promise:
        yield indented(Text.assemble(("promised  ", DIM), group.promise), 2)
    if group.chain:
        yield indented(Text.assemble(("chain     ", DIM), group.chain), 2)
    for label, text in failure_terms(group, written):
        # Users copy these lines, so they are neither wrapped nor cut off.
        yield unbroken(Text.assemble("  ", (f"{label:10}", DIM), text))


def _details(report: SweepReport, *, verbose: bool) -> Iterator[RenderableType]:
    shown_max = None if verbose else _RARE_SHOWN
    yield from (Text(f"skipped: {text}", DIM) for text in skipped(report))
    for text in undecided(report, shown_max):
        yield Text(f"inconclusive: {text}", STYLES[INCONCLUSIVE])
    if report.never_reached:
        yield unreached_states(report.never_reached, verbose=verbose)
    if report.probes:
        yield Text(f"rarest states reached (runs): {rare_text(report, shown_max)}", DIM)
    yield from (Text(text, DIM) for text in durations(report))


def _summary(report: SweepReport) -> Iterator[RenderableType]:
    yield Text(runs_text(report))
    for sentence in reliability(report):
        yield Text(sentence.text, _STYLES.get(sentence.status, ""))
