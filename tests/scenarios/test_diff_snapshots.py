"""Snapshots of `harrow diff` for the library's losses, divergences and duplicates.

``HARROW_WRITE_SNAPSHOTS=1 pytest tests/scenarios/test_diff_snapshots.py`` rewrites the files. Read
them before you commit them.
"""

import os
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

from harrow.campaigns.language.plan_file import campaign_text
from harrow.campaigns.record.recorded_run import RecordedRun, read_run
from harrow.campaigns.record.report import run_as_mapping
from harrow.campaigns.record.results_folder import write_run
from harrow.campaigns.run.runner import run_plan
from harrow.campaigns.story.run_diff import DiffMoment, diff_run
from harrow.campaigns.story.runs_diff import diff_runs
from harrow.cli.render.diff import show_run_diff
from harrow.cli.render.runs_diff import show_runs_diff
from tests.played_runs import combined_quorum
from tests.scenarios.library_plans import each_plan, fixed_names, library_plans, library_run

SNAPSHOTS = Path(__file__).parent / "diffs"
PIPED = 100_000
WIDTHS = (80, 120, 200, PIPED)
RUNS = (
    "loss-by-hw-truncation[base]",
    "divergence-by-hw[base]",
    "divergence-by-hw[unclean-election]",
    "acks-all-degrades[base]",
    "epochs-do-not-save-a-double-failure[base]",
    "partial-isr-then-crash[base]",
    "swarm[base]",
    "controller-disk-loss[base]",
)
COMBINED = "quorum-lost[combined]"
"""Not a plan of the library: its controllers are brokers."""

Recorded = Callable[[str], RecordedRun]


@pytest.fixture
def recorded(tmp_path: Path) -> Recorded:
    """Return a function that runs a plan of the library, and reads it back from its folder."""

    def run(name: str) -> RecordedRun:
        if name == COMBINED:
            plan = combined_quorum(library_plans()["quorum-lost[base]"])
            result = run_plan(plan, 0)
        else:
            plan = library_plans()[name]
            result = library_run(name, 5 if plan.swarm else 0)
        text = campaign_text(plan)
        return read_run(write_run(tmp_path, result, run_as_mapping(result, ""), text))

    return run


def console_of(width: int) -> Console:
    return Console(
        file=StringIO(),
        width=width,
        force_terminal=False,
        color_system=None,
        highlight=False,
        markup=False,
        emoji=False,
    )


def text_on(console: Console) -> str:
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def check(name: str, width: int, text: str) -> None:
    """Compare a text with its file. Only the command for the user to copy may exceed the width."""
    size = "piped" if width == PIPED else str(width)
    path = SNAPSHOTS / f"{name.replace('[', '.').replace(']', '')}.{size}.txt"
    if os.environ.get("HARROW_WRITE_SNAPSHOTS") == "1":
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")
    assert "\x1b" not in text
    assert "…" not in text
    assert all(cell_len(line) <= width or "Where it was decided" in line for line in text.splitlines())


@pytest.mark.parametrize("width", WIDTHS)
@each_plan(RUNS)
def test_the_diff_of_a_run_matches_its_snapshot(name: str, width: int, recorded: Recorded) -> None:
    console = console_of(width)
    show_run_diff(console, diff_run(recorded(name), DiffMoment()), "results/latest", only_different=False)
    check(name, width, text_on(console))


@pytest.mark.parametrize("width", WIDTHS)
def test_the_diff_before_the_loss_matches_its_snapshot(width: int, recorded: Recorded) -> None:
    run = recorded("loss-by-hw-truncation[base]")
    moment = diff_run(run, DiffMoment()).partitions[0].moments()[0]
    console = console_of(width)
    show_run_diff(
        console, diff_run(run, DiffMoment(number=moment.number)), "results/latest", only_different=False
    )
    check("loss-by-hw-truncation-before", width, text_on(console))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(
    ("name", "down"),
    [
        ("quorum-lost[base]", "controller-3001 down; controller-3002 down"),
        (COMBINED, "broker 1 down"),
    ],
)
def test_a_diff_distinguishes_controllers_and_brokers(
    name: str, down: str, width: int, recorded: Recorded
) -> None:
    """Of three controllers one or two are down. With combined roles a controller is a broker."""
    console = console_of(width)
    diff = diff_run(recorded(name), DiffMoment(at_us=8_500_000))
    show_run_diff(console, diff, "results/latest", only_different=False)
    text = text_on(console)
    assert f"  with {down}\n" in text
    assert "broker 30" not in text
    assert "(KRaft)" in text
    assert "ZooKeeper" not in text
    check(f"{name}.before", width, text)


@pytest.mark.parametrize("width", WIDTHS)
def test_the_diff_of_two_releases_matches_its_snapshot(width: int, recorded: Recorded) -> None:
    runs = (recorded("loss-by-hw-truncation[base]"), recorded("loss-by-hw-truncation[0.11]"))
    console = console_of(width)
    show_runs_diff(console, diff_runs(*runs, DiffMoment()), only_different=False)
    check("loss-by-hw-truncation-releases", width, text_on(console))


@each_plan((*fixed_names(), COMBINED))
def test_a_diff_notes_every_lost_and_doubled_record(name: str, recorded: Recorded) -> None:
    run = recorded(name)
    lost = {
        str(finding.value)
        for finding in (run.rules["lost-write"].findings if "lost-write" in run.rules else ())
    }
    run_diff = diff_run(run, DiffMoment())
    noted_as_lost = {
        value
        for diff in run_diff.partitions
        for note in diff.notes
        if note.kind == "lost"
        for value in note.values
    }
    assert noted_as_lost == lost
    doubled = {str(finding.value) for finding in run.rules["duplicate"].findings}
    noted_as_doubled = {
        value
        for diff in run_diff.partitions
        for note in diff.notes
        if note.kind == "doubled"
        for value in note.values
    }
    assert noted_as_doubled == doubled
