"""The live view of a sweep, and its counts."""

from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from rich.cells import cell_len

from harrow.campaigns.probes.probes import PROBES
from harrow.campaigns.sweep.cell import cell_of
from harrow.campaigns.sweep.definition import Definition, SweepSource
from harrow.campaigns.sweep.row import FAILED, Row
from harrow.campaigns.sweep.sweep import Progress, Sweep
from harrow.campaigns.sweep.sweep_folder import RepeatedRun, SweepFolder
from harrow.campaigns.sweep.sweep_tally import FailureTally, SweepTally
from harrow.cli.watch.canvas import Canvas
from harrow.cli.watch.sweep_screen import sweep_frame
from tests.campaigns.record.run_results import plan
from tests.campaigns.sweep.sweep_campaigns import definition
from tests.campaigns.sweep.test_sweeps import InProcessEngine
from tests.played_runs import rendered


def rows(*runs: tuple[str, int, str, str | None], probes: tuple[str, ...] = ()) -> list[Row]:
    """Return rows of (cell, seed, verdict, signature of the failure)."""
    return [
        {
            "campaign": "loss",
            "cell": cell,
            "seed": seed,
            "verdict": verdict,
            "outcome": "as-expected" if signature is None else FAILED,
            "signature": signature,
            "probes": [{"probe": probe, "count": 3} for probe in probes],
        }
        for cell, seed, verdict, signature in runs
    ]


def grid(cells: int = 2) -> Definition:
    sweep_cells = tuple(cell_of(plan(description=str(n)), (("acks", str(n)),)) for n in range(cells))
    source = SweepSource(campaign="loss", argument="loss.yaml", text="")
    return Definition(sources=(source,), cells=sweep_cells, seeds=range(100))


def progress(sweep: Definition, *tables: list[Row]) -> Progress:
    state = Progress(planned=sweep.runs(), workers=2)
    for table in tables:
        state.tally.add(table)
        state.done += len(table)
    state.probes.update(state.tally.probes)
    return state


def lines_of(state: Progress, sweep: Definition, width: int = 80, height: int = 24) -> list[str]:
    return rendered(sweep_frame(state, sweep, Canvas(width=width, height=height)), width=width).splitlines()


def test_the_earliest_failure_is_that_of_the_smallest_seed_whenever_it_comes() -> None:
    tally = SweepTally()
    tally.add(rows(("base acks=1", 7, "violated", "lost-write-1"), ("base acks=1", 9, "held", None)))
    tally.add(
        rows(("base acks=1", 3, "violated", "lost-write-1"), ("base acks=0", 3, "violated", "lost-write-1"))
    )
    tally.add(
        rows(("base acks=0", 8, "violated", "lost-write-1"), ("base acks=0", 1, "violated", "duplicate-2"))
    )
    assert tally.failures == {
        ("loss", "lost-write-1"): FailureTally(4, 3, "base acks=0"),
        ("loss", "duplicate-2"): FailureTally(1, 1, "base acks=0"),
    }
    assert tally.failed == {("loss", "base acks=1"): 2, ("loss", "base acks=0"): 3}
    assert tally.runs == {("loss", "base acks=1"): 3, ("loss", "base acks=0"): 3}


def test_a_rare_state_counts_once_for_each_run_that_reached_it() -> None:
    tally = SweepTally()
    tally.add(rows(("base", 0, "held", None), ("base", 1, "held", None), probes=("session-expired",)))
    tally.add(rows(("base", 2, "held", None)))
    assert tally.probes == Counter({"session-expired": 2})


def test_the_tally_agrees_with_the_rows_on_disk(tmp_path: Path) -> None:
    sweep = definition(12)
    folder = SweepFolder(tmp_path, sweep)
    folder.begin()
    tally = Sweep(sweep, folder, InProcessEngine(sweep)).run().tally
    written = [
        row for part in tmp_path.glob("runs/*/*.parquet") for row in pq.ParquetFile(part).read().to_pylist()
    ]
    assert tally.runs.total() == len(written) == sweep.runs()
    assert sum(tally.failed.values()) == sum(row["outcome"] == FAILED for row in written)
    assert tally.verdicts.total() == len(written)
    assert tally.probes == Counter(item["probe"] for row in written for item in row["probes"])


def test_the_screen_shows_the_grid_failures_and_rare_states() -> None:
    sweep = grid()
    state = progress(
        sweep,
        rows(
            *((f"base acks={n % 2}", n, "held", None) for n in range(20)),
            ("base acks=1", 21, "violated", "lost-write-1234abcd"),
            ("base acks=1", 20, "violated", "lost-write-1234abcd"),
            probes=("session-expired",),
        ),
    )
    state.left_s = 90.0
    shown = lines_of(state, sweep)
    assert shown[0].endswith("22 of 200 runs")
    assert shown[2].endswith(", about 1 min 30 s left")
    begin = shown.index("100 runs each     done    failed         held  violated")
    assert shown[begin + 1 : begin + 5] == [
        "acks=0              10         0           10         0",
        "acks=1              12         2 16.7%     10         2",
        "failures               runs  earliest",
        "lost-write-1234abcd       2  seed 20  acks=1",
    ]
    assert f"rare states 1 reached, {len(PROBES) - 1} not yet" in shown
    assert "  rarest:  session-expired 22" in shown
    assert any(line.startswith("  not yet: ") for line in shown)
    assert " more" in shown[-1]


def test_the_screen_can_be_drawn_before_any_result() -> None:
    shown = lines_of(progress(grid()), grid())
    assert shown[0].endswith(" 0 of 200 runs")
    assert "failures none so far" in shown


def test_the_screen_shows_unequal_repeats() -> None:
    state = progress(grid())
    state.repeated = 8
    assert "8 runs repeated, all equal" in lines_of(state, grid())
    state.unequal = [RepeatedRun(cell=0, seed=1, first="a", again="b", other_worker=True)]
    state.lost.update(["gone"])
    message = "8 runs repeated, 1 of them differ; lost runs and repeated them, 1 time"
    assert message[:79] in "\n".join(lines_of(state, grid()))


@pytest.mark.parametrize("cells", [1, 2, 40])
@pytest.mark.parametrize("kinds", [0, 1, 60])
def test_the_screen_fits_any_terminal(cells: int, kinds: int) -> None:
    sweep = grid(cells)
    runs = [(f"base acks={n % cells}", n, "violated", f"lost-write-{n:08x}") for n in range(kinds)]
    state = progress(sweep, rows(*runs, ("base acks=0", 99, "held", None), probes=tuple(PROBES)[:30]))
    for width in (20, 40, 80, 120, 250):
        for height in (2, 8, 16, 24, 40, 100):
            shown = lines_of(state, sweep, width, height)
            assert len(shown) < height
            assert all(cell_len(line) <= width for line in shown)


def test_rows_that_do_not_fit_are_counted() -> None:
    sweep = grid(40)
    runs = [("base acks=33", n, "violated", f"lost-write-{n % 30:08x}") for n in range(90)]
    shown = lines_of(progress(sweep, rows(*runs)), sweep)
    (cells,) = (line for line in shown if "cells more" in line)
    (kinds,) = (line for line in shown if "other kinds" in line)
    listed = sum(line.startswith("acks=") for line in shown)
    assert cells == f"and {40 - listed} cells more, with no more failures than these"
    assert any(line.startswith("acks=33 ") for line in shown)
    assert kinds == f"and {30 - sum(line.startswith('lost-write-') for line in shown)} other kinds"
