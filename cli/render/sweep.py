"""Renders the report of a sweep: failures by kind, rates by setting, rare states, durations."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from rich.console import Console, RenderableType

from harrow.campaigns.language.spelling import counted
from harrow.campaigns.language.units import rough_duration_text
from harrow.campaigns.record.report import BASE
from harrow.campaigns.sweep.failures import WrittenFailure
from harrow.campaigns.sweep.row import ERROR
from harrow.campaigns.sweep.row import FAILED as FAILED_OUTCOME
from harrow.campaigns.sweep.sweep_report import FailureGroup, SweepReport
from harrow.checks.finding import INCONCLUSIVE
from harrow.cli.console import show, unbroken
from harrow.cli.render.figures import grouped
from harrow.cli.render.layout import DIM, FAILED, STYLES, indented, unreached_states
from harrow.cli.render.sweep_matrix import Matrix
from harrow.cli.text import Text
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND

_US_PER_MS: Final = 1_000
_GROUPS_SHOWN: Final = 10
_RARE_SHOWN: Final = 5


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
    times = "once" if group.failures == 1 else f"{grouped(group.failures)} times"
    yield Text.assemble((f"{group.rule}", FAILED), f"  {group.campaign}, {times}")
    if group.promise:
        yield indented(Text.assemble(("promised  ", DIM), group.promise), 2)
    if group.chain:
        yield indented(Text.assemble(("chain     ", DIM), group.chain), 2)
    lines = {"earliest": group.earliest.reproduce}
    if (group.shortest.cell, group.shortest.seed) != (group.earliest.cell, group.earliest.seed):
        lines["shortest"] = group.shortest.reproduce
    if written is not None:
        lines["shrunk" if written.shrunk else "campaign"] = str(written.path)
    for label, text in lines.items():
        # Users copy these lines, so they are neither wrapped nor cut off.
        yield unbroken(Text.assemble("  ", (f"{label:10}", DIM), text))


def cell_labels(cells: Sequence[str]) -> list[str]:
    """Return the names of cells, without `base` if no cell is a variant."""
    prefix = f"{BASE} "
    is_grid_alone = all(cell.startswith(prefix) for cell in cells)
    return [cell.removeprefix(prefix) if is_grid_alone else cell for cell in cells]


def _count(number: int, noun: str) -> str:
    return f"{grouped(number)} {noun}{'' if number == 1 else 's'}"


def _repeaters(state: Mapping[str, Any], repeated: int) -> str:
    """Return which workers repeated the runs. A worker that is alone repeats its own runs."""
    elsewhere = int(state.get("repeated_elsewhere", repeated))
    if elsewhere == repeated:
        return " by another worker"
    return f", {grouped(elsewhere)} of them by another worker" if elsewhere else " by the same worker"


def _details(report: SweepReport, *, verbose: bool) -> Iterator[RenderableType]:
    for skipped in report.state.get("skipped", ()):
        settings = " ".join(f"{key}={value}" for key, value in skipped["settings"].items())
        yield Text(f"skipped: {skipped['campaign']} {settings}: {skipped['reason']}", DIM)
    for campaign, reason, runs in report.reasons[: None if verbose else _RARE_SHOWN]:
        yield Text(f"inconclusive: {campaign}: {reason} ({grouped(runs)} times)", STYLES[INCONCLUSIVE])
    for missed in report.required:
        yield Text(f"inconclusive: {missed}", STYLES[INCONCLUSIVE])
    if report.never_reached:
        yield unreached_states(report.never_reached, verbose=verbose)
    if report.probes:
        rare = report.probes if verbose else report.probes[:_RARE_SHOWN]
        listed = ", ".join(f"{reached.probe} {grouped(reached.runs)}" for reached in rare)
        yield Text(f"rarest states reached (runs): {listed}", DIM)
    for duration in report.durations:
        yield Text(
            f"{duration.campaign}: {duration.median_us / _US_PER_MS:.1f} ms per run (median), 99% within "
            f"{duration.p99_us / _US_PER_MS:.0f} ms, longest {duration.longest_us / _US_PER_MS:.0f} ms; "
            f"{grouped(round(duration.simulated_per_s()))} simulated seconds per second and core",
            DIM,
        )


def _summary(report: SweepReport) -> Iterator[RenderableType]:
    state = report.state
    verdicts = ", ".join(f"{grouped(count)} {verdict}" for verdict, count in report.verdicts().items())
    failed = report.count(FAILED_OUTCOME)
    outcome = f"{grouped(failed)} not as expected" if failed else "all as expected"
    cells = f" in {len(report.cells)} cells" if len(report.cells) > 1 else ""
    if skipped := report.state.get("skipped"):
        cells += f" ({len(skipped)} more of the grid skipped)"
    yield Text(f"{_count(report.runs, 'run')}{cells}: {verdicts}; {outcome}")
    repeated, unequal = int(state.get("repeated", 0)), state.get("unequal") or []
    if unequal:
        yield Text(
            f"{len(unequal)} of {grouped(repeated)} repeated runs differ from the first: a bug in harrow, "
            "please report it (repeated.jsonl has the digests)",
            FAILED,
        )
    elif repeated:
        yield Text(f"{_count(repeated, 'run')} repeated{_repeaters(state, repeated)}: all equal", DIM)
    if state.get("engine"):
        wall = rough_duration_text(round(float(state.get("elapsed_s", 0)) * US_PER_SECOND))
        yield Text(
            f"{state.get('engine')}, {_count(int(state.get('workers', 0)), 'worker')}, {wall}; queried with {report.answered_by}",
            DIM,
        )
    if not state.get("complete"):
        text = f"not complete: {grouped(report.runs)} of {grouped(int(state['runs']))} runs"
        yield Text(text, STYLES[INCONCLUSIVE])
    if ERROR in report.verdicts():
        yield Text(
            "verdict `error`: harrow itself failed in these runs; their rows have the traceback", FAILED
        )
