"""What a sweep found, for people: failures by kind, how often per setting, rare states, durations."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from campaigns.report import BASE
from campaigns.spelling import counted
from campaigns.sweep.failures import WrittenFailure
from campaigns.sweep.row import ERROR
from campaigns.sweep.row import FAILED as FAILED_OUTCOME
from campaigns.sweep.sweep_report import FailureGroup, Rate, SweepReport
from campaigns.units import rough_duration_text
from checks.finding import HELD, INCONCLUSIVE, VIOLATED
from cli.console import show, unbroken
from cli.layout import DIM, indented
from cli.render_run import STYLES
from cli.render_story import FAILED
from cluster_model.virtual_time import US_PER_SECOND

_US_PER_MS: Final = 1_000
_GROUPS_SHOWN: Final = 10
_PROBES_SHOWN: Final = 12
_RARE_SHOWN: Final = 5
_CHAIN_LABEL: Final = "chain     "


def show_report(
    console: Console,
    report: SweepReport,
    written: Sequence[WrittenFailure],
    *,
    quiet: bool,
    verbose: bool,
) -> None:
    """Print a report; *quiet* only what failed, *verbose* all kinds of failures and all probes."""
    files = {(each.group.campaign, each.group.signature): each for each in written}
    shown = report.failures if verbose else report.failures[:_GROUPS_SHOWN]
    for group in shown:
        show(console, *_failure(group, files.get((group.campaign, group.signature))), Text())
    if len(report.failures) > len(shown):
        more = counted(len(report.failures) - len(shown), "more kind")
        show(
            console,
            Text(f"and {more} of failures; --verbose shows them, --format json too", DIM),
            Text(),
        )
    if not quiet:
        show(console, *_matrix(report))
        show(console, *_rest(report, verbose=verbose))
    if not quiet or report.failures:
        show(console, *_summary(report))


def _failure(group: FailureGroup, written: WrittenFailure | None) -> Iterator[RenderableType]:
    times = "once" if group.failures == 1 else f"{grouped(group.failures)} times"
    yield Text.assemble((f"{group.rule}", FAILED), f"  {group.campaign}, {times}")
    if group.promise:
        yield indented(Text.assemble(("promised  ", DIM), group.promise), 2)
    if group.chain:
        yield indented(Text.assemble((_CHAIN_LABEL, DIM), group.chain), 2)
    yield _line(("earliest  ", DIM), group.earliest.reproduce)
    if (group.shortest.cell, group.shortest.seed) != (group.earliest.cell, group.earliest.seed):
        yield _line(("shortest  ", DIM), group.shortest.reproduce)
    if written is not None:
        label = "shrunk    " if written.shrunk else "campaign  "
        yield _line((label, DIM), str(written.path))


def _line(label: tuple[str, str], text: str) -> Text:
    """Return a line to be copied: never broken, nor cut off at the edge as padded text would be."""
    return unbroken(Text.assemble("  ", label, text))


def _matrix(report: SweepReport) -> Iterator[RenderableType]:
    if not report.rates:
        return
    several = len({rate.campaign for rate in report.rates}) > 1
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=True, header_style="bold")
    table.add_column("anomaly, and with which settings", overflow="fold")
    table.add_column("rate", justify="right", no_wrap=True)
    table.add_column("95% interval", no_wrap=True)
    table.add_column("runs with it", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    # What was broken first; then what was permitted.
    groups = [
        (rule, campaign, tuple(rates))
        for (rule, campaign), rates in groupby(report.rates, key=lambda rate: (rate.rule, rate.campaign))
    ]
    groups.sort(key=lambda group: all(rate.status != VIOLATED for rate in group[2]))
    for rule, campaign, rates in groups:
        table.add_row(f"{rule}  {campaign}" if several else rule)
        for rate, settings in zip(rates, _settings(rates), strict=True):
            table.add_row(
                indented(Text(settings), 2),
                percent(rate.hits / rate.runs) if rate.runs else "",
                interval(rate),
                f"{grouped(rate.hits)} of {grouped(rate.runs)}",
                Text(
                    rate.status or "",
                    FAILED if rate.status == VIOLATED else STYLES.get(rate.status or HELD, ""),
                ),
            )
    yield Text("How often, of the runs that could tell:", "bold")
    yield indented(table, 2)
    yield Text()


def _settings(rates: Sequence[Rate]) -> list[str]:
    """Return what sets cells of a campaign apart; where none is a variant, `base` goes without saying."""
    prefix = f"{BASE} "
    grid_alone = all(rate.cell.startswith(prefix) for rate in rates)
    return [rate.cell.removeprefix(prefix) if grid_alone else rate.cell for rate in rates]


def interval(rate: Rate) -> str:
    """Return a rate's 95% interval in percent."""
    return f"[{percent(rate.low)[:-1]}, {percent(rate.high)[:-1]}]"


def percent(rate: float) -> str:
    """Return a rate in percent, small ones with more digits."""
    hundred = rate * 100
    if hundred in {0, 100}:
        return f"{hundred:.0f}%"
    if hundred >= 99.95:
        return ">99.9%"  # almost all is not all
    if hundred >= 1:
        return f"{hundred:.1f}%"
    return f"{hundred:.2g}%" if hundred >= 0.0001 else f"{hundred:.1e}%"


def grouped(number: int) -> str:
    """Return a number with its thousands apart."""
    return f"{number:,}".replace(",", " ")


def _count(number: int, noun: str) -> str:
    return f"{grouped(number)} {noun}{'' if number == 1 else 's'}"


def _by_whom(state: Mapping[str, Any], repeated: int) -> str:
    """Return who repeated runs: with one worker it is the same one again."""
    elsewhere = int(state.get("repeated_elsewhere", repeated))
    if elsewhere == repeated:
        return " by another worker"
    return f", {grouped(elsewhere)} of them by another worker" if elsewhere else " by the same worker"


def _rest(report: SweepReport, *, verbose: bool) -> Iterator[RenderableType]:
    for campaign, reason, runs in report.reasons[: None if verbose else _RARE_SHOWN]:
        yield Text(f"inconclusive: {campaign}: {reason} ({grouped(runs)} times)", STYLES[INCONCLUSIVE])
    for missed in report.required:
        yield Text(f"inconclusive: {missed}", STYLES[INCONCLUSIVE])
    if report.never_reached:
        shown = report.never_reached if verbose else report.never_reached[:_PROBES_SHOWN]
        rest = len(report.never_reached) - len(shown)
        more = f" and {rest} more (all: --verbose)" if rest else ""
        yield Text(f"rare states never reached: {', '.join(shown)}{more}", DIM)
    if report.probes:
        rare = report.probes if verbose else report.probes[:_RARE_SHOWN]
        listed = ", ".join(f"{reached.probe} {grouped(reached.runs)}" for reached in rare)
        yield Text(f"rarest that were reached (runs): {listed}", DIM)
    for duration in report.durations:
        yield Text(
            f"{duration.campaign}: {duration.median_us / _US_PER_MS:.1f} ms a run (median), 99% within "
            f"{duration.p99_us / _US_PER_MS:.0f} ms, longest {duration.longest_us / _US_PER_MS:.0f} ms; "
            f"{grouped(round(duration.simulated_per_s()))} simulated seconds a second and core",
            DIM,
        )


def _summary(report: SweepReport) -> Iterator[RenderableType]:
    state = report.state
    verdicts = ", ".join(f"{grouped(count)} {verdict}" for verdict, count in report.verdicts().items())
    failed = report.count(FAILED_OUTCOME)
    how = f"{grouped(failed)} not as expected" if failed else "none unexpected"
    cells = len(report.cells)
    settings = f" in {cells} cells" if cells > 1 else ""
    yield Text(f"{_count(report.runs, 'run')}{settings}: {verdicts}; {how}")
    repeated, unequal = int(state.get("repeated", 0)), state.get("unequal") or []
    if unequal:
        yield Text(
            f"{len(unequal)} of {grouped(repeated)} repeated runs came out differently: a flaw of harrow, "
            "please report it (repeated.jsonl has the digests)",
            FAILED,
        )
    elif repeated:
        yield Text(f"{_count(repeated, 'run')} repeated{_by_whom(state, repeated)}: all equal", DIM)
    if state.get("elapsed_s"):
        wall = rough_duration_text(round(float(state["elapsed_s"]) * US_PER_SECOND))
        yield Text(
            f"{state.get('engine')}, {_count(int(state['workers']), 'worker')}, {wall}; answers by {report.answered_by}",
            DIM,
        )
    if not state.get("complete"):
        yield Text(
            f"not complete: {grouped(report.runs)} of {grouped(int(state['runs']))} runs",
            STYLES[INCONCLUSIVE],
        )
    if ERROR in report.verdicts():
        yield Text(
            "verdict `error`: harrow itself failed in these runs; their rows have the traceback", FAILED
        )
