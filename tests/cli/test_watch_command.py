"""`harrow run --watch` and `harrow sweep --watch` with and without a terminal."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Harrow
from tests.played_runs import TITLE

Terminal = Callable[..., tuple[int, str]]

ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
COLOUR = re.compile(r"\x1b\[[0-9;]*3[0-9][0-9;]*m")
SHOW_CURSOR = "\x1b[?25h"
HIDE_CURSOR = "\x1b[?25l"
LOSS = ("run", "loss-by-hw-truncation", "--variant", "base", "--watch")


def shown_at_last(text: str) -> list[str]:
    return [line.rstrip() for line in ESCAPE.sub("", text).replace("\r", "\n").splitlines()]


def test_the_view_stays_above_the_report(on_terminal: Terminal, folder: Path) -> None:
    code, shown = on_terminal(*LOSS, "--speed", "max")
    assert code == 0
    lines = shown_at_last(shown)
    assert lines.index("  ✗ lost m1 despite acks=all") < lines.index("loss-by-hw-truncation")
    assert lines.index("  1 leader e1     LEO 1 HW 1                 █-") > 0
    assert "  ✗ violated      as expected  base  lost m1 despite acks=all" in lines
    assert max(map(len, lines)) <= 80
    assert COLOUR.search(shown)
    assert shown.rindex(SHOW_CURSOR) > shown.rindex(HIDE_CURSOR)
    assert (folder / "results" / "latest" / "run.json").exists()


def test_a_run_is_played_from_start_to_end(on_terminal: Terminal) -> None:
    code, shown = on_terminal(*LOSS, "--speed", "200", "--no-results")
    assert code == 0
    matches = re.findall(rf"{TITLE} +([0-9.]+)s of 40\.273s, 200x", ESCAPE.sub("", shown))
    times = [float(at_s) for at_s in matches]
    assert times == sorted(times)
    assert times[0] < times[-1] == 40.273
    assert len(times) > 2


def test_with_several_runs_each_view_has_a_name_and_disappears(on_terminal: Terminal) -> None:
    code, shown = on_terminal(
        "run", "calm.yaml", "permitted.yaml", "--watch", "--speed", "1000", "--no-results"
    )
    assert code == 0
    for name in ("calm, seed 0", "permitted, seed 0", "permitted[acks-all], seed 0"):
        assert name in shown
    ending = shown_at_last(shown)[-8:]
    assert "3 runs of 2 campaigns: 2 held, 1 permitted; all as expected" in ending
    assert not any("what happened" in line for line in ending)


def test_a_small_terminal_does_not_scroll(on_terminal: Terminal) -> None:
    _, shown = on_terminal(*LOSS, "--speed", "max", "--no-results", columns=60, lines=12)
    view = ESCAPE.sub("", shown).split(TITLE)[1].splitlines()
    assert len(view) < 12
    assert max(len(line.rstrip()) for line in view) <= 60


def test_no_color_turns_colours_off(on_terminal: Terminal) -> None:
    assert not COLOUR.search(on_terminal(*LOSS, "--speed", "max", NO_COLOR="1")[1])


@pytest.mark.parametrize("arguments", [("calm.yaml",), ("calm.yaml", "permitted.yaml")], ids=len)
def test_ctrl_c_ends_the_playback_and_keeps_finished_runs(
    on_terminal: Terminal, folder: Path, arguments: tuple[str, ...]
) -> None:
    code, shown = on_terminal(
        "run", *arguments, "--watch", "--speed", "0.01", "--results", "kept", interrupt_at="calm, seed 0"
    )
    assert code == 130
    assert shown.rindex(SHOW_CURSOR) > shown.rindex(HIDE_CURSOR)
    planned = 1 if len(arguments) == 1 else 3
    lines = shown_at_last(shown)
    assert f"harrow: interrupted: 1 of {planned} runs finished, and their results are written" in lines
    assert "  ✓ held" in [line[:8] for line in lines]
    assert (folder / "kept" / "latest" / "run.json").exists()


def test_json_output_does_not_contain_the_view(on_terminal: Terminal, folder: Path) -> None:
    code, shown = on_terminal(
        "run", "calm.yaml", "--watch", "--speed", "max", "--format", "json", "-o", "out.json", "--no-results"
    )
    assert code == 0
    assert "calm, seed 0" in shown
    assert json.loads((folder / "out.json").read_text(encoding="utf-8"))["verdict"] == "held"


@pytest.mark.parametrize("variables", [{}, {"FORCE_COLOR": "1"}, {"TTY_COMPATIBLE": "1"}], ids=str)
def test_watch_without_a_terminal_is_refused(harrow: Harrow, variables: dict[str, str]) -> None:
    ended = harrow("run", "calm.yaml", "--watch", **variables)
    assert ended.returncode == 2
    assert "standard error is not a terminal" in ended.stderr
    assert ended.stdout == ""


def test_watch_on_a_dumb_terminal_is_refused(on_terminal: Terminal) -> None:
    code, shown = on_terminal("run", "calm.yaml", "--watch", TERM="dumb")
    assert code == 2
    assert "not a terminal to draw on" in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--speed", "3"), "has no meaning without --watch"),
        (("--watch", "--speed", "0"), "a number above 0"),
        (("--watch", "--engine", "hypothesis"), "has no meaning with Hypothesis"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_contradictory_options_are_refused(harrow: Harrow, arguments: tuple[str, ...], message: str) -> None:
    ended = harrow("run", "calm.yaml", *arguments)
    assert ended.returncode == 2
    assert message in ended.stderr


def test_a_run_without_watch_does_not_load_the_view(harrow: Harrow) -> None:
    ended = harrow("run", "calm.yaml", "--no-results", PYTHONPROFILEIMPORTTIME="1")
    loaded = {line.rpartition("|")[2].strip() for line in ended.stderr.splitlines()}
    assert not loaded & {"harrow.campaigns.story.playback", "harrow.cli.watch.watch_run", "rich.live"}


SWEEP = ("sweep", "permitted.yaml", "--engine", "process", "--out", "swept", "--watch")


def test_a_watched_sweep_shows_cells_failures_and_rare_states(on_terminal: Terminal, folder: Path) -> None:
    code, shown = on_terminal(*SWEEP, "--seeds", "0..40", "--vary", "retries=1,2")
    assert code == 0
    lines = shown_at_last(shown)
    assert any(re.fullmatch(r"40 runs each +done +failed.*", line) for line in lines)
    assert any(line.startswith("acks-all retries=2 ") for line in lines)
    assert any(line.startswith("rare states ") for line in lines)
    assert "160 runs in 4 cells" in "\n".join(lines)
    assert max(map(len, (line for line in lines if "harrow" not in line))) <= 80
    assert shown.rindex(SHOW_CURSOR) > shown.rindex(HIDE_CURSOR)
    assert (folder / "swept" / "sweep.json").exists()


def test_ctrl_c_ends_a_watched_sweep(on_terminal: Terminal, folder: Path) -> None:
    code, shown = on_terminal(*SWEEP, "--seeds", "0..3000", interrupt_at=" reached, ")
    assert code == 130
    assert shown.rindex(SHOW_CURSOR) > shown.rindex(HIDE_CURSOR)
    state = json.loads((folder / "swept" / "sweep.json").read_text(encoding="utf-8"))
    assert state["interrupted"]
    message = "finished runs are written; to continue: harrow sweep"
    assert (message if state["rows"] else "interrupted before a run finished") in shown
    assert state["rows"] < state["runs"] == 6000


def test_a_sweep_cannot_be_watched_without_a_terminal(harrow: Harrow, folder: Path) -> None:
    ended = harrow(*SWEEP, "--seeds", "0..4")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "standard error is not a terminal" in ended.stderr
    assert not (folder / "swept").exists()


def test_a_report_cannot_be_watched(harrow: Harrow) -> None:
    ended = harrow("sweep", "--report", "swept", "--watch")
    assert ended.returncode == 2
    assert "has no meaning with --report" in ended.stderr
