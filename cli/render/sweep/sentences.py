"""What the report of a sweep says in words, whatever prints it."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from harrow.campaigns.language.units import rough_duration_text
from harrow.campaigns.sweep.failures import WrittenFailure
from harrow.campaigns.sweep.row import ERROR, FAILED
from harrow.campaigns.sweep.sweep_report import FailureGroup, SweepReport
from harrow.checks.finding import INCONCLUSIVE, VIOLATED
from harrow.cli.render.figures import grouped, times
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND

FAINT: Final = "faint"
"""The status of what matters less, and is not about a verdict."""

_US_PER_MS: Final = 1_000


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence about a sweep. ``status`` decides its colour."""

    text: str
    status: str = ""


def runs_text(report: SweepReport) -> str:
    """Return how many runs there were, by verdict, and how many were not as expected."""
    verdicts = ", ".join(f"{grouped(count)} {verdict}" for verdict, count in report.verdicts().items())
    failed = report.count(FAILED)
    outcome = f"{grouped(failed)} not as expected" if failed else "all as expected"
    noun = f"groups by {', '.join(report.by)}" if report.by else "cells"
    cells = f" in {len(report.cells)} {noun}" if len(report.cells) > 1 else ""
    if skipped := report.state.get("skipped"):
        cells += f" ({len(skipped)} more of the grid skipped)"
    return f"{_count(report.runs, 'run')}{cells}: {verdicts}; {outcome}"


def reliability(report: SweepReport) -> Iterator[Sentence]:
    """Yield whether repeated runs were equal, runs are missing, or harrow failed."""
    state = report.state
    repeated, unequal = int(state.get("repeated", 0)), state.get("unequal") or []
    if unequal:
        yield Sentence(
            f"{len(unequal)} of {grouped(repeated)} repeated runs differ from the first: a bug in harrow, "
            "please report it (repeated.jsonl has the digests)",
            VIOLATED,
        )
    elif repeated:
        yield Sentence(f"{_count(repeated, 'run')} repeated{_repeaters(state, repeated)}: all equal", FAINT)
    if state.get("engine"):
        wall = rough_duration_text(round(float(state.get("elapsed_s", 0)) * US_PER_SECOND))
        workers = _count(int(state.get("workers", 0)), "worker")
        yield Sentence(f"{state.get('engine')}, {workers}, {wall}; queried with {report.answered_by}", FAINT)
    if not state.get("complete"):
        text = f"not complete: {grouped(report.runs)} of {grouped(int(state['runs']))} runs"
        yield Sentence(text, INCONCLUSIVE)
    if ERROR in report.verdicts():
        yield Sentence(
            "verdict `error`: harrow itself failed in these runs; their rows have the traceback", VIOLATED
        )


def _repeaters(state: Mapping[str, Any], repeated: int) -> str:
    """Return which workers repeated the runs. A worker that is alone repeats its own runs."""
    elsewhere = int(state.get("repeated_elsewhere", repeated))
    if elsewhere == repeated:
        return " by another worker"
    return f", {grouped(elsewhere)} of them by another worker" if elsewhere else " by the same worker"


def failure_terms(group: FailureGroup, written: WrittenFailure | None) -> Iterator[tuple[str, str]]:
    """Yield the lines that a user copies to repeat a kind of failure, each with its label."""
    yield "earliest", group.earliest.reproduce
    if (group.shortest.cell, group.shortest.seed) != (group.earliest.cell, group.earliest.seed):
        yield "shortest", group.shortest.reproduce
    if written is not None:
        yield ("shrunk" if written.shrunk else "campaign"), str(written.path)


def skipped(report: SweepReport) -> Iterator[str]:
    """Yield the combinations of settings that were not tried, and why."""
    for entry in report.state.get("skipped", ()):
        settings = " ".join(f"{key}={value}" for key, value in entry["settings"].items())
        yield f"{entry['campaign']} {settings}: {entry['reason']}"


def undecided(report: SweepReport, shown_max: int | None = None) -> Iterator[str]:
    """Yield why runs were inconclusive. The most frequent reasons come first."""
    for campaign, reason, runs in report.reasons[:shown_max]:
        yield f"{campaign}: {reason} ({times(runs)})"
    yield from report.required


def rare_text(report: SweepReport, shown_max: int | None = None) -> str:
    """Return the rarest states that runs reached, and in how many runs."""
    return ", ".join(f"{count.probe} {grouped(count.runs)}" for count in report.probes[:shown_max])


def durations(report: SweepReport) -> Iterator[str]:
    """Yield how long the runs of each campaign took."""
    for duration in report.durations:
        yield (
            f"{duration.campaign}: {duration.median_us / _US_PER_MS:.1f} ms per run (median), 99% within "
            f"{duration.p99_us / _US_PER_MS:.0f} ms, longest {duration.longest_us / _US_PER_MS:.0f} ms; "
            f"{grouped(round(duration.simulated_per_s()))} simulated seconds per second and core"
        )


def _count(number: int, noun: str) -> str:
    return f"{grouped(number)} {noun}{'' if number == 1 else 's'}"
