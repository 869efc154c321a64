"""Describes runs in tests: the finding, its story, and the command that repeats the run."""

import textwrap
from collections.abc import Sequence
from typing import Final

from harrow.campaigns.language.spelling import run_name
from harrow.campaigns.record.report import UNDECIDED, in_short
from harrow.campaigns.run.run_result import RunResult
from harrow.cli.commands.run_tally import FinishedRun
from harrow.cli.console import plain_text
from harrow.cli.render.run import seeds_text
from harrow.cli.render.story import detail_of, short_story

_MARGIN: Final = "  "


def in_a_line(result: RunResult) -> str:
    """Return a run's findings and missed expectations in one line."""
    parts = [in_short(result), *(missed.message for missed in result.missed), *result.verdict.reasons]
    return "; ".join(part for part in parts if part) or result.verdict.status


def story(run: FinishedRun) -> str:
    """Return the story of a run below its name."""
    name = f"{run_name(run.result.plan.campaign, run.result.plan.variant)}, seed {run.result.seed}"
    return f"{name}: {_verdict(run)}\n{_indented_story(run)}"


def stories(runs: Sequence[FinishedRun], finished: int) -> str:
    """Return the stories of the unexpected *runs*, out of *finished* ones, by variant and verdict.

    Each group has the story of its first run.
    """
    if len(runs) == 1 and finished == 1:
        return story(runs[0])
    groups: dict[tuple[str, str, str], list[FinishedRun]] = {}
    for run in runs:
        groups.setdefault((run.variant, run.result.verdict.status, run.outcome), []).append(run)
    lines = [f"{runs[0].result.plan.campaign}: {len(runs)} of {finished} runs not as expected"]
    for (variant, _, _), group in groups.items():
        seeds = seeds_text([run.result.seed for run in group])
        first = f"seed {group[0].result.seed}: " if len(group) > 1 else ""
        lines += [f"{variant}, {seeds}: {first}{_verdict(group[0])}", _indented_story(group[0])]
    return "\n".join(lines)


def _verdict(run: FinishedRun) -> str:
    words = [run.result.verdict.status]
    if run.outcome != UNDECIDED:
        words.append(run.outcome)
    return ", ".join([*words, *filter(None, [detail_of(run)])])


def _indented_story(run: FinishedRun) -> str:
    text = plain_text(*short_story(run))
    return textwrap.indent(textwrap.dedent(text).rstrip(), _MARGIN)
