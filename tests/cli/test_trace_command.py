"""`harrow trace` as a process."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harrow.cluster_model.packed_log import digest
from tests.cli.conftest import ROOT, Harrow
from tests.written_runs import written_run


@pytest.fixture
def lost(folder: Path) -> Path:
    """Return the folder of a run that lost m1; ``results/latest`` points to it."""
    return written_run(folder / "results", "loss-by-hw-truncation")


def test_a_run_is_found_by_folder_id_and_campaign(harrow: Harrow, lost: Path) -> None:
    stories = {
        harrow("trace", argument).stdout
        for argument in ("results/latest", lost.name, f"{lost.parent.name}/{lost.name}", str(lost))
    }
    (story,) = stories
    assert story.startswith("loss-by-hw-truncation, seed 0: Kafka 0.10.2, violated\n  1  lost-write m1")
    assert "TRUNCATED from 2 to 1 (high watermark), removing m1" in story


def test_a_piped_story_is_plain_and_complete(harrow: Harrow, lost: Path) -> None:
    story = harrow("trace", "results/latest").stdout
    assert "\x1b" not in story
    assert any(len(line) > 130 for line in story.splitlines())
    assert [line for line in story.splitlines() if line.endswith(" ")] == []
    # Only routine events are missing, and they are counted.
    assert "2 checkpoints, 2 flushes, 1 fetch\n" in story


def test_a_terminal_gets_lanes_and_colours_unless_they_are_turned_off(
    on_terminal: Callable[..., tuple[int, str]], lost: Path
) -> None:
    code, wide = on_terminal("trace", "results/latest", columns=200)
    assert code == 0
    assert "\x1b[" in wide
    assert any("faults" in line and "broker 0" in line and "producer-0" in line for line in wide.splitlines())
    code, plain = on_terminal("trace", "results/latest", columns=80, NO_COLOR="1")
    assert code == 0
    assert "\x1b[3" not in plain
    assert all(len(re.sub(r"\x1b\[[0-9;]*m", "", line)) <= 80 for line in plain.splitlines())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nowhere",), ["there is no such folder, and no run in results has this id", "harrow run"]),
        (("results/latest", "--record", "m7"), ["no record `m7` in this run", "its records are m0, m1"]),
        (
            ("results/latest", "--around", "lost-wrte"),
            ["no finding `lost-wrte`", "did you mean `lost-write`"],
        ),
        (
            ("results/latest", "--around", "9"),
            ["no finding `9`", "it has 2 findings: 1 (lost-write), 2 (isr"],
        ),
        (("results/latest", "--from", "soon"), ["--from", "`soon`"]),
        (("results/latest", "--from", "9s", "--to", "1s"), ["--to 1s is before --from 9s"]),
        (("results/latest", "--record", "m1", "--around", "1"), ["give one of them"]),
    ],
)
def test_mistakes_are_reported_in_one_line_with_a_suggestion(
    harrow: Harrow, lost: Path, arguments: tuple[str, ...], words: list[str]
) -> None:
    ended = harrow("trace", *arguments)
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert len(ended.stderr.splitlines()) == 1
    assert [word for word in words if word not in ended.stderr] == []


def test_a_page_goes_to_a_pipe_but_not_to_a_terminal(
    harrow: Harrow, on_terminal: Callable[..., tuple[int, str]], lost: Path, folder: Path
) -> None:
    arguments = ("trace", "results/latest", "--format", "html")
    ended = harrow(*arguments)
    assert (ended.returncode, ended.stderr) == (0, "")
    harrow(*arguments, "-o", "run.html")
    assert ended.stdout == (folder / "run.html").read_text(encoding="utf-8")
    code, shown = on_terminal(*arguments)
    assert code == 2
    assert "-o page.html" in shown
    assert "<html" not in shown


def test_a_run_without_findings_is_reported(harrow: Harrow, folder: Path) -> None:
    written_run(folder / "results", "loss-by-hw-truncation", "0.11")
    ended = harrow("trace", "results/latest", "--around", "lost-write")
    assert ended.returncode == 2
    assert "this run has no findings; its verdict is held" in ended.stderr


def test_a_damaged_run_is_reported_with_its_line(harrow: Harrow, lost: Path) -> None:
    history = lost / "history.jsonl"
    history.write_text("{}\n" + history.read_text(encoding="utf-8"), encoding="utf-8")
    ended = harrow("trace", str(lost))
    assert ended.returncode == 2
    assert "history.jsonl:1" in ended.stderr
    shutil.rmtree(lost)
    assert harrow("trace", str(lost)).returncode == 2


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def test_an_event_of_another_version_is_reported_with_its_line(harrow: Harrow, lost: Path) -> None:
    trace, run = lost / "trace.jsonl", lost / "run.json"
    text = trace.read_text(encoding="utf-8") + '{"at_us":99000000,"event":"group_rebalanced","broker":1}\n'
    trace.write_text(text, encoding="utf-8")
    values = [tuple(_tuples(value) for value in json.loads(line).values()) for line in text.splitlines()]
    whole = {**json.loads(run.read_text(encoding="utf-8")), "trace_digest": digest(values)}
    run.write_text(json.dumps(whole), encoding="utf-8")
    for command in ("trace", "diff"):
        ended = harrow(command, str(lost))
        assert ended.returncode == 2
        assert f"trace.jsonl:{len(text.splitlines())}" in ended.stderr
        assert "`group_rebalanced`, which this version does not have" in ended.stderr


def test_json_has_events_findings_and_folded_counts(harrow: Harrow, lost: Path) -> None:
    document = json.loads(harrow("trace", "results/latest", "--around", "1", "--format", "json").stdout)
    assert document["schema"] == "harrow.trace/1"
    assert document["run"]["campaign"] == "loss-by-hw-truncation"
    assert document["lanes"][:3] == ["faults", "broker 0", "broker 1"]
    (finding, *_) = document["findings"]
    events = {event["position"]: event for event in document["events"] if "position" in event}
    chain = [link for link in finding["chain"] if link["position"] is not None]
    assert len(chain) == 10
    for number, link in enumerate(chain, 1):
        assert events[link["position"]]["link"] == number
        assert events[link["position"]]["at_ms"] == link["at_ms"]
    assert any(row.get("folded", {}).get("flush", 0) > 1 for row in document["events"])


def test_trace_all_shows_every_line_of_the_trace(harrow: Harrow, lost: Path) -> None:
    document = json.loads(harrow("trace", "results/latest", "--all", "--format", "json").stdout)
    lines = [event["line"] for event in document["events"] if event["line"] is not None]
    count = len((lost / "trace.jsonl").read_text(encoding="utf-8").splitlines())
    assert lines == list(range(1, count + 1))
    assert {event["lane"] for event in document["events"] if event["line"] is None} == {
        "producer-0",
        "reader",
    }


@pytest.mark.parametrize("output_format", ["table", "mermaid"])
def test_a_story_counts_created_topics_in_one_line_and_shows_each_with_all(
    harrow: Harrow, output_format: str
) -> None:
    harrow("run", "standard")
    story = harrow("trace", "results/latest", "--format", output_format).stdout
    assert story.count("1 topic with 3 partitions was created") == 1
    assert "(topic creation)" not in story
    every_event = harrow("trace", "results/latest", "--format", output_format, "--all").stdout
    assert "was created" not in every_event
    assert every_event.count("(topic creation)") == 3
    document = harrow("trace", "results/latest", "--format", "json").stdout
    assert document.count("(topic creation)") == 3


def test_two_times_limit_the_story(harrow: Harrow, lost: Path) -> None:
    document = json.loads(
        harrow("trace", "results/latest", "--from", "25s", "--to", "26s", "--all", "--format", "json").stdout
    )
    times = [event["at_ms"] for event in document["events"]]
    assert times
    assert all(25_000 <= time <= 26_000 for time in times)
    early = harrow("trace", "results/latest", "--from", "-5s", "--to", "-4s").stdout
    assert "became CONTROLLER" in early
    assert "no events between these times" in harrow("trace", "results/latest", "--from", "23h").stdout


def test_a_story_needs_only_the_folder_of_its_run(harrow: Harrow, lost: Path) -> None:
    """The folder of a run can be moved."""
    assert harrow("trace", ".", "--record", "m1").returncode == 2
    moved = lost.parent.parent / "elsewhere"
    shutil.copytree(lost, moved)
    assert "in no log" in harrow("trace", str(moved), "--record", "m1").stdout


def test_a_long_mermaid_diagram_suggests_options_that_shorten_it(harrow: Harrow, folder: Path) -> None:
    written_run(folder / "results", "standard")
    ended = harrow("trace", "results/latest", "--format", "mermaid", "--all", "--to", "10s")
    assert ended.stdout.startswith("sequenceDiagram\n")
    assert "--record or --around" in ended.stderr


def test_the_docs_show_the_real_output_of_trace(harrow: Harrow, lost: Path) -> None:
    text = (ROOT / "docs" / "how-to" / "trace.md").read_text(encoding="utf-8")
    for command in ("--around lost-write", "--record m1"):
        shown = text.partition(f"$ harrow trace results/latest {command}\n")[2].partition("```")[0]
        output = harrow("trace", "results/latest", *command.split(), COLUMNS="120").stdout
        assert shown
        for part in shown.split("...\n"):
            assert part in output
