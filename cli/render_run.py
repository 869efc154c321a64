"""Runs for people: a block for each campaign, a line for each run, the story of each that failed."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from campaigns.probes import PROBES
from campaigns.report import AS_EXPECTED, UNDECIDED, UNEXPECTED, in_short, variant_name
from campaigns.spelling import counted
from campaigns.units import rough_duration_text
from checks.finding import HELD, INCONCLUSIVE, PERMITTED, STATUSES, VIOLATED
from cli.console import is_unicode, show, unbroken
from cli.exit_code import MEANINGS
from cli.layout import DIM, indented
from cli.options import DEFAULT_RESULTS
from cli.render_story import FAILED, short_story, whole_story
from cli.run_selection import Selection
from cli.run_tally import FinishedRun, Tally

_MARKS: Final = {HELD: "✓", PERMITTED: "~", VIOLATED: "✗", INCONCLUSIVE: "?"}
_ASCII_MARKS: Final = {HELD: "+", PERMITTED: "~", VIOLATED: "x", INCONCLUSIVE: "?"}
STYLES: Final = {HELD: "green", PERMITTED: "cyan", VIOLATED: "yellow", INCONCLUSIVE: "magenta"}
"""Colours by status."""

_VERDICT_WIDTH: Final = 14
_OUTCOME_WIDTH: Final = 11
_SEEDS_SHOWN: Final = 12
_FAILURES_SHOWN: Final = 20
_PROBES_SHOWN: Final = 20
_POINTED_TO: Final = 3
"""With more findings than these, none of them is the one to look at."""


def marks(console: Console) -> Mapping[str, str]:
    """Return the sign of each status, as far as a console can show it."""
    return _MARKS if is_unicode(console) else _ASCII_MARKS


class RunTable:
    """The default format.

    With one seed a line is printed as each run finishes. With several, the runs of a
    campaign are grouped by variant and verdict when it is over, unless ``verbose``.
    """

    def __init__(self, console: Console, *, several_seeds: bool, quiet: bool, verbose: bool) -> None:
        self._console = console
        self._several_seeds = several_seeds
        self._quiet = quiet
        self._verbose = verbose
        self._marks = marks(console)
        self._groups: dict[tuple[str, str, str], list[FinishedRun]] = {}
        self._heading: Selection | None = None
        self._variant_width = 0
        self._worth_a_look: list[Path] = []

    def begin(self, selection: Selection) -> None:
        """Remember whose runs follow; the heading is printed with the first line under it."""
        self._heading = selection
        self._groups = {}
        several = len(selection.campaign.plans) > 1
        self._variant_width = max(len(variant_name(plan)) for plan in selection.plans) if several else 0

    def add(self, run: FinishedRun) -> None:
        """Print a run, or keep it for its group."""
        if run.folder is not None and is_worth_a_look(run) and len(self._worth_a_look) <= _POINTED_TO:
            self._worth_a_look.append(run.folder)
        if self._several_seeds and not self._verbose:
            group = (run.variant, run.result.verdict.status, run.outcome)
            self._groups.setdefault(group, []).append(run)
            return
        if self._quiet and run.outcome == AS_EXPECTED:
            return
        what = in_short(run.result)
        seed = f"seed {run.result.seed}" if self._several_seeds else ""
        self._show_line(run, ": ".join(part for part in (seed, what) if part))
        if self._verbose:
            show(self._console, *whole_story(run), Text())
        elif run.outcome != AS_EXPECTED:
            show(self._console, *short_story(run))
        self._console.file.flush()

    def end(self) -> None:
        """Print the groups."""
        for (_, _, outcome), runs in self._groups.items():
            if self._quiet and outcome == AS_EXPECTED:
                continue
            self._show_line(runs[0], seeds_text([run.result.seed for run in runs]))
            if outcome != AS_EXPECTED:
                seed, what = runs[0].result.seed, in_short(runs[0].result)
                show(self._console, indented(Text(f"seed {seed}: {what}" if what else f"seed {seed}")))
                show(self._console, *short_story(runs[0]))
        self._groups = {}
        self._console.file.flush()

    def finish(self, tally: Tally) -> None:
        """Print the summary."""
        if tally.finished and (tally.failed or tally.required.unreached() or not self._quiet):
            if not self._verbose:
                show(self._console, Text())
            show(self._console, *_summary(tally, with_probes=self._verbose or self._several_seeds))
            if not self._quiet and not self._several_seeds:
                show(self._console, *ways_on(self._worth_a_look))
            self._console.file.flush()

    def _show_line(self, run: FinishedRun, detail: str) -> None:
        if self._heading is not None:
            self._show_heading(self._heading)
        verdict = run.result.verdict.status
        failed = run.outcome == UNEXPECTED
        line = Table.grid(padding=(0, 2, 0, 0))
        line.add_column(width=_VERDICT_WIDTH, no_wrap=True)
        line.add_column(width=_OUTCOME_WIDTH, no_wrap=True)
        if self._variant_width:
            line.add_column(width=self._variant_width, no_wrap=True)
        line.add_column(no_wrap=True)
        beside = self._has_room_for(detail)
        line.add_row(
            Text(f"{self._marks[verdict]} {verdict}", FAILED if failed else STYLES[verdict]),
            Text(_outcome_word(run), FAILED if failed else DIM),
            *([Text(run.variant)] if self._variant_width else []),
            Text(detail if beside else ""),
        )
        show(self._console, indented(line, 2))
        if not beside:
            show(self._console, indented(Text(detail)))

    def _has_room_for(self, detail: str) -> bool:
        """Return whether a text fits beside verdict, outcome and variant."""
        used = 2 + sum(width + 2 for width in (_VERDICT_WIDTH, _OUTCOME_WIDTH, self._variant_width) if width)
        return used + len(detail) + 2 <= self._console.width

    def _show_heading(self, selection: Selection) -> None:
        campaign = selection.campaign
        show(self._console, Text(campaign.name, "bold"))
        if self._verbose and campaign.description:
            show(self._console, indented(Text(campaign.description.strip(), DIM), 2))
        self._heading = None


def is_worth_a_look(run: FinishedRun) -> bool:
    """Return whether something was found in a run, be it expected or not."""
    return run.result.verdict.status in (VIOLATED, PERMITTED) or run.outcome == UNEXPECTED


def ways_on(folders: Sequence[Path]) -> Iterator[Text]:
    """Yield the commands that show what was found in some runs, unless those are many."""
    if len(folders) > _POINTED_TO:
        return
    for number, folder in enumerate(folders):
        # Where results/ is looked for anyway, the run is named as `harrow diff` knows it.
        is_default = folder.parent.parent == DEFAULT_RESULTS
        run = "/".join(folder.parts[-2:]) if is_default else str(folder)
        label = "look at it: " if not number else " " * len("look at it: ")
        yield unbroken(Text.assemble((label, DIM), shlex.join(["harrow", "diff", run])))


def _outcome_word(run: FinishedRun) -> str:
    """Return whether a run was expected, unless nobody expected anything and nothing happened."""
    nothing_said = run.result.plan.expect.is_empty() and run.outcome == AS_EXPECTED
    return "" if nothing_said or run.outcome == UNDECIDED else run.outcome


def seeds_text(seeds: Sequence[int]) -> str:
    """Return which seeds these are, in some words."""
    if len(seeds) == 1:
        return f"seed {seeds[0]}"
    shown = ", ".join(map(str, seeds[:_SEEDS_SHOWN]))
    if len(seeds) <= _SEEDS_SHOWN:
        return f"{len(seeds)} seeds: {shown}"
    consecutive = seeds[-1] - seeds[0] + 1 == len(seeds)
    return f"{len(seeds)} seeds: {f'{seeds[0]}..{seeds[-1] + 1}' if consecutive else f'{shown}, ...'}"


def _summary(tally: Tally, *, with_probes: bool) -> Iterator[Text]:
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
        if (count := sum(number for (seen, _), number in tally.verdicts.items() if seen == status))
    ]
    runs, campaigns = counted(tally.finished, "run"), counted(len(tally.campaigns), "campaign")
    yield Text(f"{runs} of {campaigns}: {', '.join(verdicts)}; {_outcomes(tally)}")
    cluster_time = rough_duration_text(tally.simulated_us)
    wall_time = rough_duration_text(round(tally.wall_s * 1_000_000))
    yield Text(f"{cluster_time} of cluster time in {wall_time}", DIM)
    unreached = [probe for probe in PROBES if probe not in tally.probes]
    if with_probes and unreached:
        yield Text(f"rare states never reached: {_folded(unreached)}", DIM)
    code = tally.exit_code()
    if code:
        yield Text(f"exit {code}: {MEANINGS[code]}", DIM)


def _folded(names: Sequence[str]) -> str:
    rest = len(names) - _PROBES_SHOWN
    shown = ", ".join(names[:_PROBES_SHOWN])
    return f"{shown} and {rest} more (all: --format json)" if rest > 0 else shown


def _outcomes(tally: Tally) -> str:
    undecided = sum(number for (_, outcome), number in tally.verdicts.items() if outcome == UNDECIDED)
    parts = []
    if tally.failed:
        parts.append(f"{len(tally.failed)} not as expected")
    if undecided:
        parts.append(f"{undecided} undecided")
    return ", ".join(parts) or ("as expected" if tally.finished == 1 else "all as expected")
