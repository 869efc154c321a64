"""Renders runs for people: a block for each campaign, a line for each run, a story of failures."""

import shlex
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from rich.cells import set_cell_size
from rich.console import Console

from harrow.campaigns.language.spelling import counted
from harrow.campaigns.language.units import rough_duration_text
from harrow.campaigns.record.report import (
    AS_EXPECTED,
    NOT_RUN,
    OTHERWISE,
    UNDECIDED,
    UNEXPECTED,
    anomalies,
    longest_outage_us,
    of_clients_or_invariants,
    reason,
    variant_name,
)
from harrow.campaigns.storage.location import LocalLocation, Location
from harrow.campaigns.version import name_ending
from harrow.checks.finding import HELD, INCONCLUSIVE, PERMITTED, STATUSES, VIOLATED
from harrow.cli.commands.run_selection import Selection
from harrow.cli.commands.run_tally import FinishedRun, RunPrinter, Tally
from harrow.cli.console import show, unbroken
from harrow.cli.options import DEFAULT_RESULTS
from harrow.cli.render.layout import DIM, FAILED, STYLES, indented, marks, unreached_states
from harrow.cli.render.service import service_lines
from harrow.cli.render.story import detail_of, short_story, whole_story
from harrow.cli.text import Text

_VERDICT_WIDTH: Final = 14
_OUTCOME_WIDTH: Final = 11
_SEEDS_SHOWN: Final = 12
_FAILURES_SHOWN: Final = 20
_DIFF_COMMANDS_MAX: Final = 3
"""If more runs than this have findings, no `harrow diff` commands are printed."""
_MAXRSS_UNIT_BYTES: Final = 1 if sys.platform == "darwin" else 1024


class RunTable(RunPrinter):
    """The default format.

    With one seed, it prints a line as each run finishes. With several seeds, it prints the runs of
    a campaign when all have finished, grouped by variant and verdict, unless ``verbose`` is set.
    ``verbose`` and ``with_service`` print the service levels of each run.
    """

    def __init__(
        self,
        console: Console,
        *,
        several_seeds: bool,
        quiet: bool,
        verbose: bool,
        with_service: bool = False,
    ) -> None:
        self._console = console
        self._several_seeds = several_seeds
        self._quiet = quiet
        self._verbose = verbose
        self._with_service = with_service
        self._marks = marks(console)
        self._groups: dict[tuple[str, str, str], list[FinishedRun]] = {}
        self._heading: Selection | None = None
        self._variant_width = 0
        self._folders_with_findings: list[Location] = []

    def begin(self, selection: Selection) -> None:
        """Remember the campaign; its heading is printed with the first line below it."""
        self._heading = selection
        several = len(selection.campaign.plans) > 1
        self._variant_width = max(len(variant_name(plan)) for plan in selection.plans) if several else 0

    def add(self, run: FinishedRun) -> None:
        """Print a run, or add it to its group."""
        if (
            run.folder is not None
            and _has_finding(run)
            and len(self._folders_with_findings) <= _DIFF_COMMANDS_MAX
        ):
            self._folders_with_findings.append(run.folder)
        if self._several_seeds and not self._verbose:
            group = (run.variant, run.result.verdict.status, run.outcome)
            self._groups.setdefault(group, []).append(run)
            return
        if self._quiet and run.outcome == AS_EXPECTED:
            return
        detail = detail_of(run)
        seed = f"seed {run.result.seed}" if self._several_seeds else ""
        self._show_line(run, ": ".join(part for part in (seed, detail) if part))
        if self._verbose:
            show(self._console, *whole_story(run), Text())
        else:
            if self._with_service:
                show(self._console, *map(indented, service_lines(run.result.service)))
            if run.outcome != AS_EXPECTED:
                show(self._console, *short_story(run))
        self._console.file.flush()

    def end(self) -> None:
        for (_, _, outcome), runs in self._groups.items():
            if self._quiet and outcome == AS_EXPECTED:
                continue
            self._show_line(runs[0], seeds_text([run.result.seed for run in runs]))
            if permitted := _permitted_text(runs):
                show(self._console, indented(permitted, style=DIM))
            if reason_text := _typical_reason(runs):
                show(self._console, indented(reason_text, style=DIM))
            if outcome != AS_EXPECTED:
                seed, detail = runs[0].result.seed, detail_of(runs[0])
                show(self._console, indented(f"seed {seed}: {detail}" if detail else f"seed {seed}"))
                show(self._console, *short_story(runs[0]))
        self._groups = {}
        self._console.file.flush()

    def finish(self, tally: Tally) -> None:
        if tally.finished and (tally.failed or tally.required.unreached() or not self._quiet):
            if not self._verbose:
                show(self._console, Text())
            show(
                self._console,
                *_summary(tally, verbose=self._verbose, with_probes=self._verbose or self._several_seeds),
            )
            if not self._quiet and not self._several_seeds:
                show(self._console, *_diff_commands(self._folders_with_findings))
            self._console.file.flush()

    def _show_line(self, run: FinishedRun, detail: str) -> None:
        if self._heading is not None:
            self._show_heading(self._heading)
        verdict = run.result.verdict.status
        failed = run.outcome == UNEXPECTED
        cells = [
            (f"{self._marks[verdict]} {verdict}", _VERDICT_WIDTH, FAILED if failed else STYLES[verdict]),
            (_outcome_word(run), _OUTCOME_WIDTH, FAILED if failed else DIM),
            (run.variant, self._variant_width, ""),
        ]
        line = Text("  ")
        for text, width, style in cells:
            if width:
                line.append(set_cell_size(text, width), style).append("  ")
        if line.cell_len + len(detail) + 2 <= self._console.width:
            show(self._console, line.append(detail))
        else:
            show(self._console, line, indented(detail))

    def _show_heading(self, selection: Selection) -> None:
        campaign = selection.campaign
        show(self._console, Text(campaign.name, "bold"))
        if self._verbose and campaign.description:
            show(self._console, indented(campaign.description.strip(), 2, DIM))
        self._heading = None


def _typical_reason(runs: Sequence[FinishedRun]) -> str:
    """Return the reason of one of these runs; if they held, of the run with the longest outage."""
    first = runs[0]
    if first.outcome != AS_EXPECTED or first.result.verdict.status in (VIOLATED, PERMITTED):
        return ""
    held = first.result.verdict.status == HELD
    run = max(runs, key=lambda run: longest_outage_us(run.result)) if held else first
    reason_text = reason(run.result)
    return f"seed {run.result.seed}: {reason_text}" if reason_text else ""


def _permitted_text(runs: Sequence[FinishedRun]) -> str:
    """Return the permitted anomalies, each with its setting and number of runs."""
    counts = Counter(
        (anomaly.rule, anomaly.permitted_by)
        for run in runs
        for anomaly in of_clients_or_invariants(
            [anomaly for anomaly in anomalies(run.result) if anomaly.permitted_by is not None]
        )
    )
    parts = [f"{rule} in {counted(count, 'run')} by {setting}" for (rule, setting), count in counts.items()]
    return f"permitted: {', '.join(parts)}" if parts else ""


def _has_finding(run: FinishedRun) -> bool:
    return run.result.verdict.status in (VIOLATED, PERMITTED) or run.outcome == UNEXPECTED


def _diff_commands(folders: Sequence[Location]) -> Iterator[Text]:
    """Yield the commands that show the findings of runs, unless there are many runs."""
    if len(folders) > _DIFF_COMMANDS_MAX:
        return
    for number, folder in enumerate(folders):
        run = str(folder)
        if isinstance(folder, LocalLocation) and folder.path.parent.parent == DEFAULT_RESULTS:
            # `harrow diff` looks in results/ by default, so the id is enough there.
            run = "/".join(folder.path.parts[-2:]).removesuffix(name_ending())
        label = "look at it: " if not number else " " * len("look at it: ")
        yield unbroken(Text.assemble((label, DIM), shlex.join(["harrow", "diff", run])))


def _outcome_word(run: FinishedRun) -> str:
    """Return the outcome to print. It is empty if nothing was expected and nothing failed."""
    is_plain = run.result.plan.expect.is_empty() and run.outcome == AS_EXPECTED
    return "" if is_plain or run.outcome in (UNDECIDED, NOT_RUN) else run.outcome


def seeds_text(seeds: Sequence[int]) -> str:
    if len(seeds) == 1:
        return f"seed {seeds[0]}"
    shown = ", ".join(map(str, seeds[:_SEEDS_SHOWN]))
    if len(seeds) <= _SEEDS_SHOWN:
        return f"{len(seeds)} seeds: {shown}"
    consecutive = seeds[-1] - seeds[0] + 1 == len(seeds)
    return f"{len(seeds)} seeds: {f'{seeds[0]}..{seeds[-1] + 1}' if consecutive else f'{shown}, ...'}"


def _summary(tally: Tally, *, verbose: bool, with_probes: bool) -> Iterator[Text]:
    if tally.failed and tally.finished > 1:
        yield Text("Not as expected:", FAILED)
        for command in tally.failed[:_FAILURES_SHOWN]:
            yield unbroken(Text(f"  {command}"))
        if len(tally.failed) > _FAILURES_SHOWN:
            yield Text(f"  and {len(tally.failed) - _FAILURES_SHOWN} more", DIM)
        yield Text()
    for missed in tally.required.unreached():
        yield Text(f"Inconclusive: {missed.reason()}", STYLES[INCONCLUSIVE])
    verdicts = [
        f"{count} {status}"
        for status in STATUSES
        if (count := sum(number for (verdict, _), number in tally.verdicts.items() if verdict == status))
    ]
    runs, campaigns = counted(tally.finished, "run"), counted(len(tally.campaigns), "campaign")
    yield Text(f"{runs} of {campaigns}: {', '.join(verdicts)}; {_outcomes(tally)}")
    cluster_time = rough_duration_text(tally.simulated_us)
    wall_time = rough_duration_text(round(tally.wall_s * 1_000_000))
    yield Text(f"{cluster_time} of cluster time in {wall_time}", DIM)
    if verbose and (peak := _peak_memory_mib()) is not None:
        yield Text(f"at most {peak} MiB of memory", DIM)
    unreached = tally.probes_never_reached()
    if with_probes and unreached:
        yield unreached_states(unreached, verbose=verbose)
    code = tally.exit_code()
    if code:
        yield Text(f"exit {code}: {tally.exit_meaning()}", DIM)


def _peak_memory_mib() -> int | None:
    """Return the peak memory of this process or of its largest worker; None on Windows."""
    try:
        import resource
    except ImportError:
        return None
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return max(usage.ru_maxrss for usage in usages) * _MAXRSS_UNIT_BYTES // (1024 * 1024)


def _outcomes(tally: Tally) -> str:
    otherwise, undecided, skipped = (
        sum(number for (_, outcome), number in tally.verdicts.items() if outcome == wanted)
        for wanted in (OTHERWISE, UNDECIDED, NOT_RUN)
    )
    parts = []
    if tally.failed:
        parts.append(f"{len(tally.failed)} not as expected")
    if otherwise:
        parts.append(f"{otherwise} with another outcome than written for another release")
    if undecided:
        parts.append(f"{undecided} undecided")
    if left := tally.planned - tally.finished:
        parts.append(f"{left} not run")
    if skipped:
        parts.append(f"{skipped} skipped")
    return ", ".join(parts) or ("as expected" if tally.finished == 1 else "all as expected")
