"""`harrow diff` shows the state of coordinators at any moment of a run."""

import json
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from harrow.campaigns.language.plan_file import campaign_text
from harrow.campaigns.record.recorded_run import RecordedRun, read_run
from harrow.campaigns.record.report import run_as_mapping
from harrow.campaigns.record.results_folder import write_run
from harrow.campaigns.story.run_diff import DiffMoment, diff_document, diff_run, parse_at
from harrow.cli.render.diff import show_run_diff
from tests.scenarios.library_plans import library_plans, library_run


def recorded(folder: Path, name: str) -> RecordedRun:
    result, text = library_run(name), campaign_text(library_plans()[name])
    return read_run(write_run(folder, result, run_as_mapping(result, ""), text))


def diff_lines(run: RecordedRun, at: str) -> list[str]:
    console = Console(file=StringIO(), width=160, force_terminal=False, color_system=None)
    show_run_diff(console, diff_run(run, parse_at(at)), "run", only_different=False)
    assert isinstance(console.file, StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_a_diff_shows_transactions_of_coordinators_and_logs(tmp_path: Path) -> None:
    run = recorded(tmp_path, "atomic-multi-partition[base]")
    open_ = diff_lines(run, "3s")
    (ongoing,) = [line for line in open_ if "Ongoing in orders-0, payments-0" in line]
    assert ongoing.startswith("  shop  Ongoing")
    assert [line.split()[:3] for line in open_ if line.endswith("producer id 0, epoch 0")] == [
        ["0..1", "committed", "producer"],
        ["2..", "open", "producer"],
    ] * 2
    assert not [line for line in open_ if line.startswith("__transaction_state-0  leader")]
    ended = diff_lines(run, "end")
    assert [line.split()[:2] for line in ended if line.strip().startswith("2..")] == [["2..3", "aborted"]] * 2
    assert any("CompleteAbort since" in line for line in ended)


def test_a_diff_shows_groups_with_assignments_and_commits(tmp_path: Path) -> None:
    run = recorded(tmp_path, "rebalance[base]")
    document = diff_document(diff_run(run, DiffMoment()))
    (group,) = document["groups"].values()
    assert (group["state"], group["generation"], len(group["members"])) == ("Stable", 2, 3)
    assert group["reading"] == {"first": ["t-0", "t-1"], "second": ["t-2"], "third": ["t-3"]}
    assert {member.partition("-")[0]: names for member, names in group["assignments"].items()} == group[
        "reading"
    ]
    assert sorted(group["committed"]) == ["t-0", "t-1", "t-2", "t-3"]
    assert json.loads(json.dumps(document)) == document
    at_11_s = diff_lines(run, "11s")
    place = at_11_s.index("group g  PreparingRebalance in generation 1, coordinated by broker 0")
    assert "  first            reads t-0, t-1" in at_11_s[place:]
    assert not any(line.strip().startswith("third") for line in at_11_s[place:])


@pytest.mark.parametrize("at", ["0s", "end"])
def test_a_diff_without_transactions_and_groups_does_not_mention_them(tmp_path: Path, at: str) -> None:
    lines = diff_lines(recorded(tmp_path, "hw-two-rounds[base]"), at)
    assert not [line for line in lines if "transaction" in line and "open" not in line]
    assert not [line for line in lines if line.startswith("group")]
