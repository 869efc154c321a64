"""The output of a sweep on a terminal, while it runs and afterwards."""

import re
import time
from collections.abc import Sequence
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from harrow.campaigns.probes.probes import PROBES
from harrow.campaigns.storage.location import location
from harrow.campaigns.sweep.confidence import wilson
from harrow.campaigns.sweep.failures import WrittenFailure
from harrow.campaigns.sweep.sweep import Progress
from harrow.campaigns.sweep.sweep_report import (
    CellCount,
    CellService,
    Duration,
    Example,
    FailureGroup,
    FailureRate,
    Quantiles,
    SweepReport,
)
from harrow.campaigns.sweep.sweep_tally import FailureTally, SweepTally
from harrow.cli.render.figures import grouped, percent
from harrow.cli.render.sweep.report import show_report
from harrow.cli.sweep_progress import SweepProgress, progress_line

STATE = {
    "complete": True,
    "runs": 50_000,
    "engine": "process",
    "workers": 2,
    "elapsed_s": 754.2,
    "repeated": 810,
    "repeated_elsewhere": 810,
    "unequal": [],
}


def rate(
    cell: str, hits: int, status: str | None, *, rule: str = "lost-write", campaign: str = "c"
) -> FailureRate:
    low, high = wilson(hits, 20_000)
    return FailureRate(
        rule=rule, campaign=campaign, cell=cell, status=status, hits=hits, runs=20_000, low=low, high=high
    )


def failure(name: str = "lost-write-1234abcd", times: int = 3) -> FailureGroup:
    return FailureGroup(
        campaign="c",
        signature=name,
        rule="lost-write",
        promise="acks=all",
        chain="acked > crashed > elected > truncated",
        failures=times,
        earliest=Example(cell="base acks=1", seed=7, reproduce="harrow run c.yaml --seed 7 --set acks=1"),
        shortest=Example(
            cell="base acks=1", seed=9, events=40, reproduce="harrow run c.yaml --seed 9 --set acks=1"
        ),
    )


def report(
    *rates: FailureRate,
    failures: tuple[FailureGroup, ...] = (),
    runs: int = 20_000,
    matrix_cells: Sequence[str] = ("base acks=1", "base acks=all"),
    service: tuple[CellService, ...] = (),
    **state: Any,
) -> SweepReport:
    cells = tuple(
        CellCount(
            campaign="c",
            cell=name,
            runs=runs,
            verdicts={"held": runs},
            outcomes={"unexpected": 3} if failures else {"as-expected": runs},
        )
        for name in matrix_cells
    )
    duration = Duration(
        campaign="c",
        runs=40_000,
        events=1,
        simulated_ms=1,
        wall_us=1,
        median_us=10_000,
        p99_us=20_000,
        longest_us=30_000,
    )
    return SweepReport(
        state={**STATE, **state},
        answered_by="DuckDB",
        cells=cells,
        failures=failures,
        rates=rates,
        probes=(),
        never_reached=tuple(PROBES),
        required=(),
        durations=(duration,),
        service=service,
        reasons=(),
    )


def screen_lines(sweep: SweepReport, *, width: int = 80, written: Any = (), **how: bool) -> list[str]:
    console = Console(file=StringIO(), width=width, force_terminal=True, color_system=None, highlight=False)
    show_report(console, sweep, written, quiet=how.get("quiet", False), verbose=how.get("verbose", False))
    text = console.file.getvalue()  # type: ignore[attr-defined]  # a StringIO
    return [line.rstrip() for line in text.splitlines()]


def cell(variant: str, campaign: str = "c", **settings: str) -> dict[str, Any]:
    """Return a cell as in `sweep.json`."""
    name = " ".join([variant, *(f"{key}={value}" for key, value in settings.items())])
    return {"campaign": campaign, "cell": name, "variant": variant, "settings": settings}


def service(name: str, outage_us: int, campaign: str = "c") -> CellService:
    times = Quantiles(median_us=outage_us / 2, p99_us=outage_us - 1, max_us=outage_us)
    return CellService(
        campaign=campaign,
        cell=name,
        runs=10,
        sent=1_000,
        acked=998,
        failed=1,
        unknown=1,
        outages=3,
        outage=times,
        ack_p99=times,
    )


def table(lines: list[str], title: str) -> list[str]:
    start = lines.index(title) + 1
    return lines[start : lines.index("", start)]


def test_the_matrix_has_a_row_for_each_cell_and_a_column_for_each_varied_setting() -> None:
    cells = [cell("base", acks=acks, size="3") for acks in ("1", "all")]
    lines = screen_lines(
        report(
            rate("base acks=1 size=3", 620, "permitted"),
            rate("base acks=all size=3", 0, None),
            cells=cells,
            matrix_cells=[each["cell"] for each in cells],
        )
    )
    assert table(lines, "Rates, among the decided runs:") == [
        "        lost-write, permitted",
        "  acks  rate  95% interval           runs",
        "  1     3.1%  [2.9, 3.3]    620 of 20 000",
        "  all     0%  [0, 0.019]      0 of 20 000",
    ]


LONG = "broker.session.timeout.ms"


@pytest.mark.parametrize("width", [30, 40, 60, 80, 200])
def test_no_column_of_the_matrix_is_cut_at_any_width(width: int) -> None:
    values = ("18s", "3s", "900ms", "2m")
    cells = [cell("base", **{LONG: value, "acks": "all"}) for value in values]
    names = [each["cell"] for each in cells]
    sweep = report(
        *(rate(name, 1, "violated") for name in names),
        *(rate(name, 2, "permitted", rule="duplicate") for name in names),
        cells=cells,
        matrix_cells=names,
        service=tuple(service(name, 12_345_678) for name in names),
    )
    lines = screen_lines(sweep, width=width)
    end = next(place for place, line in enumerate(lines) if line.startswith("rare states"))
    matrix = [line for line in lines[:end] if line]
    text = "\n".join(matrix)
    assert not any("…" in line or "..." in line for line in matrix)
    assert LONG in "".join(text.split())
    keys = [line.removeprefix("A ").split()[0] for line in matrix if line != "A"]
    keys = [key for key in keys if key in values]
    assert keys == ["900ms", "3s", "18s", "2m"] * (len(keys) // 4), "sorted by how long they are"
    assert len(keys) >= 4
    words = " ".join(text.split())
    assert words.count("99.8%") == 4
    assert (words.count("6.17 s"), words.count("12.3 s")) == (8, 12)
    assert words.count("1 of 20 000") == words.count("2 of 20 000") == 4


def test_sizes_releases_and_words_are_sorted_naturally() -> None:
    for key, values, order in (
        ("kafka", ("4.0", "0.10.2", "2.4", "2.10"), ("0.10.2", "2.4", "2.10", "4.0")),
        ("acks", ("all", "1", "0"), ("0", "1", "all")),
        ("size", ("1MiB", "10kB", "2KiB"), ("2KiB", "10kB", "1MiB")),
        ("ratio", ("0.5", "0.25", "-1"), ("-1", "0.25", "0.5")),
        ("word", ("uniform", "range"), ("uniform", "range")),
    ):
        cells = [cell("base", **{key: value}) for value in values]
        names = [each["cell"] for each in cells]
        sweep = report(cells=cells, matrix_cells=names, service=tuple(service(name, 5) for name in names))
        matrix = table(screen_lines(sweep), "Service to clients, run by run:")
        assert [line.split()[0] for line in matrix if line.split()[0] in values] == list(order)


def test_violations_come_before_permitted_anomalies() -> None:
    lines = screen_lines(
        report(
            rate("base", 5, "permitted", rule="duplicate"), rate("base", 1, "violated", rule="lost-write")
        ),
        width=150,
    )
    (titles,) = [line for line in lines if "lost-write, violated" in line]
    assert titles.index("lost-write, violated") < titles.index("duplicate, permitted")


def test_campaigns_and_variants_are_distinguished() -> None:
    text = "\n".join(
        screen_lines(
            report(
                rate("base", 1, "violated"),
                rate("old", 2, "violated"),
                rate("base", 3, "violated", campaign="d"),
                matrix_cells=[],
            )
        )
    )
    assert re.search(r"(?m)^  campaign  variant  +rate ", text)
    assert re.search(r"(?m)^  c         base .* 1 of 20 000$\n  c         old .* 2 of 20 000$", text)
    assert re.search(r"(?m)^  d         base .* 3 of 20 000$", text)


def test_names_of_cells_in_a_folder_cannot_disturb_a_terminal() -> None:
    cells = [cell("base", **{"a\x1b[31m": "1\n2"}), cell("b", **{"a\x1b[31m": "3"})]
    names = [each["cell"] for each in cells]
    lines = screen_lines(
        report(cells=cells, matrix_cells=names, service=tuple(service(name, 5) for name in names))
    )
    matrix = table(lines, "Service to clients, run by run:")
    assert any("1\\n2" in line for line in matrix)
    assert not any("\x1b" in line for line in lines)


def test_a_failure_shows_commands_that_can_be_copied() -> None:
    file = WrittenFailure(group=failure(), path=location("s/failures/x/campaign.yaml"), shrunk=False)
    lines = screen_lines(report(failures=(failure(),)), width=30, written=[file])
    assert "  earliest  harrow run c.yaml --seed 7 --set acks=1" in lines
    assert "  shortest  harrow run c.yaml --seed 9 --set acks=1" in lines
    assert "  campaign  s/failures/x/campaign.yaml" in lines


def test_only_the_first_of_many_kinds_of_failures_are_shown() -> None:
    sweep = report(failures=tuple(failure(f"lost-write-{n}") for n in range(12)))
    assert any(
        line.startswith("and 2 more kinds of failures; --verbose shows them") for line in screen_lines(sweep)
    )
    assert sum(line.startswith("lost-write  c") for line in screen_lines(sweep, verbose=True)) == 12


def test_the_option_quiet_shows_only_failures() -> None:
    assert screen_lines(report(rate("base", 1, "permitted")), quiet=True) == []
    lines = screen_lines(report(rate("base", 1, "violated"), failures=(failure(),)), quiet=True)
    assert lines[0] == "lost-write  c, 3 times"
    assert "Rates, among the decided runs:" not in lines


@pytest.mark.parametrize(
    ("state", "line"),
    [
        ({}, "810 runs repeated by another worker: all equal"),
        ({"repeated": 1, "repeated_elsewhere": 1}, "1 run repeated by another worker: all equal"),
        ({"repeated_elsewhere": 0}, "810 runs repeated by the same worker: all equal"),
        ({"repeated_elsewhere": 700}, "810 runs repeated, 700 of them by another worker: all equal"),
        ({"unequal": [[0, 3]]}, "1 of 810 repeated runs differ from the first: a bug in harrow, please"),
        ({"complete": False}, "not complete: 40 000 of 50 000 runs"),
        ({"workers": 1}, "process, 1 worker, 12 min 34 s; queried with DuckDB"),
    ],
)
def test_the_summary_shows_runs_verdicts_and_speed(state: dict[str, Any], line: str) -> None:
    screen = screen_lines(report(**state))
    assert any(each.startswith(line) for each in screen), screen


def test_a_sweep_without_rows_has_a_report() -> None:
    assert any(
        line.startswith("0 runs") for line in screen_lines(SweepReport(state={**STATE, "complete": False}))
    )


@pytest.mark.parametrize(
    ("rate", "text"),
    [
        (0.0, "0%"),
        (1.0, "100%"),
        (0.99999, ">99.9%"),
        (0.999, "99.9%"),
        (0.031, "3.1%"),
        (0.0034, "0.34%"),
        (0.00019, "0.019%"),
        (0.0000002, "2.0e-05%"),
    ],
)
def test_a_rate_is_shown_in_percent(rate: float, text: str) -> None:
    assert percent(rate) == text


def test_thousands_are_separated() -> None:
    assert [grouped(number) for number in (0, 999, 20_000, 10**8)] == ["0", "999", "20 000", "100 000 000"]


def progress(**fields: Any) -> Progress:
    state = Progress(planned=20_000, workers=2, done=1_200, already=300)
    state.begun_s -= 10
    for name, value in fields.items():
        setattr(state, name, value)
    return state


def tally(**failed: int) -> SweepTally:
    failures = {
        ("loss", name): FailureTally(count=count, seed=0, cell="base") for name, count in failed.items()
    }
    return SweepTally(failures=failures)


def test_progress_is_shown_in_one_line() -> None:
    line = progress_line(progress(tally=tally(a=2, b=1), left_s=90.0))
    assert re.fullmatch(
        r"1500 of 20000 runs, 1\d\d runs/s, 3 failed, \d+ rare states not reached, about 1 min 30 s left",
        line,
    )
    assert "left" not in progress_line(progress())


def test_progress_off_a_terminal_is_an_occasional_line(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    file = StringIO()
    bar = SweepProgress(Console(file=file, width=200, color_system=None), enabled=True)
    sweep = progress(begun_s=-10.0)
    for moment_s in (1.0, 9.9, 10.1, 15.0, 20.2):
        now_s = moment_s
        bar.show(sweep)
    bar.end()
    lines = file.getvalue().splitlines()
    assert len(lines) == 2
    assert all(line.startswith("harrow: 1500 of 20000 runs, ") for line in lines)
    assert "\x1b" not in file.getvalue()


def test_disabled_progress_prints_nothing() -> None:
    file = StringIO()
    bar = SweepProgress(Console(file=file, force_terminal=True), enabled=False)
    bar.show(progress())
    bar.end()
    assert file.getvalue() == ""


def test_progress_on_a_terminal_is_a_bar_with_failures_and_missing_probes() -> None:
    file = StringIO()
    console = Console(file=file, force_terminal=True, color_system=None, width=80, height=24)
    bar = SweepProgress(console, enabled=True)
    sweep = progress(left_s=90.0, tally=tally(**{f"lost-write-{n}": n + 1 for n in range(7)}))
    bar.show(sweep)
    bar._live.refresh()  # type: ignore[union-attr]  # it has begun
    bar.end()
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", file.getvalue()).replace("\r", "\n")
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    assert any(re.search(r"1500 of 20000 runs  1\d\d runs/s, about 1 min 30 s left$", line) for line in lines)
    assert "28 failed:" in lines
    assert "       7  lost-write-6" in lines
    assert "  and 2 other kinds" in lines
    assert any(line.startswith("not reached yet: ") and line.endswith("…") for line in lines)
    assert max(map(len, lines)) <= 80
    assert file.getvalue().endswith("\x1b[2K") or "\x1b[?25h" in file.getvalue()
