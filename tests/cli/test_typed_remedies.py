"""The remedies that a run prints work when they are typed after the same command."""

import json
import re
import shlex
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import typer

from harrow.campaigns.language.plan import Plan
from harrow.campaigns.language.writers.section import UnwritablePlanError
from harrow.campaigns.record.markdown_report import markdown_report
from harrow.campaigns.record.report import run_as_mapping
from harrow.campaigns.run.proof import proven
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import run_plan
from harrow.cli.ci.run_cases import story
from harrow.cli.commands import run as run_command
from harrow.cli.commands.run_selection import select
from tests.cli.conftest import Harrow
from tests.scenarios.library_plans import library_plans

WORDS = ("--no-results", "--format", "json")


def run_of(harrow: Harrow, *words: str) -> dict[str, Any]:
    ended = harrow("run", *words, *WORDS)
    (run,) = json.loads(ended.stdout)["runs"]
    return dict(run)


@pytest.mark.parametrize(
    ("campaign", "variant", "option"),
    [
        ("acks-1-leader-crash", "base", "--set"),
        ("zombie-application", "without-group-metadata", "--set"),
        ("delayed-end-txn", "2.4", "--set"),
        ("swarm", "base", "--then"),
    ],
)
def test_a_typed_remedy_repeats_its_trial(harrow: Harrow, campaign: str, variant: str, option: str) -> None:
    words = (campaign, "--variant", variant, "--seed", "0")
    run = run_of(harrow, *words)
    typed = 0
    for rule, judged in run["rules"].items():
        for finding in judged["findings"][:1]:
            for text, way in zip(finding["prevented_by"], finding["preventions"], strict=True):
                command = shlex.split(text.partition(" (confirmed by a rerun)")[0])
                options = [word for each in way["trial"]["options"] for word in (option, each)]
                assert command == options
                again = run_of(harrow, *words, *command)
                assert again["trace_digest"] == way["trial"]["digest"]
                assert again["verdict"] == way["trial"]["verdict"]
                values = {
                    member["value"] for each in again["rules"][rule]["findings"] for member in each["members"]
                }
                assert finding["value"] is None or finding["value"] not in values
                typed += 1
    assert typed


COLOURS = re.compile(r"\x1b\[[0-9;]*m")
WIDE = ("loss-by-hw-truncation", "--variant", "base")
"""A campaign with remedies whose options take more than 80 columns."""


def commands_of(shown: str) -> list[list[str]]:
    """Return the lines to copy, split as by a shell."""
    lines = (line.strip(" #-`") for line in COLOURS.sub("", shown).splitlines())
    return [shlex.split(f"--{line}") for line in lines if line.startswith(("set ", "then "))]


def options_of(run: Mapping[str, Any]) -> list[list[str]]:
    """Return the options of each remedy of the first finding."""
    (finding, *_) = run["rules"]["lost-write"]["findings"]
    trials = [way["trial"]["options"] for way in finding["preventions"]]
    return [[word for option in options for word in ("--set", option)] for options in trials]


@pytest.fixture(scope="module")
def result() -> RunResult:
    return proven(run_plan(library_plans()["loss-by-hw-truncation[base]"], 0))


@pytest.fixture(scope="module")
def expected(result: RunResult) -> list[list[str]]:
    """Return the options of the remedies against the loss of `WIDE`."""
    remedies = options_of(run_as_mapping(result, ""))
    assert max(len(shlex.join(words)) for words in remedies) > 70
    return remedies


@pytest.mark.parametrize("columns", [40, 80])
def test_a_remedy_on_a_terminal_can_be_pasted_into_a_shell(
    on_terminal: Callable[..., tuple[int, str]], expected: list[list[str]], columns: int
) -> None:
    _, shown = on_terminal("run", *WIDE, "-v", columns=columns)
    assert commands_of(shown)[: len(expected)] == expected
    _, shown = on_terminal("trace", "results/latest", "--around", "1", columns=columns)
    assert commands_of(shown) == expected


def test_a_remedy_in_any_report_can_be_pasted_into_a_shell(
    result: RunResult, expected: list[list[str]]
) -> None:
    (finding, *_) = result.verdict.rules["lost-write"].findings
    assert commands_of("\n".join(story(finding))) == expected
    assert commands_of(markdown_report(result, ""))[: len(expected)] == expected


def test_a_run_lists_the_steps_that_stopped_waiting(harrow: Harrow) -> None:
    words = (
        "run",
        "acks-1-leader-crash",
        "--variant",
        "base",
        "--set",
        "acks=all",
        "--set",
        "limits.step=36s",
    )
    ended = harrow(*words, "--no-results")
    shown = " ".join(ended.stdout.split())
    assert " went on after 36 s without its condition: event truncate (broker: 0" in shown


def test_options_that_a_drawn_campaign_refuses_are_refused(harrow: Harrow) -> None:
    ended = harrow("run", "swarm", "--variant", "base", "--seed", "0", "--then", "acks=5")
    assert ended.returncode == 2
    assert "--then: acks=5: acks: `5` is not one of 0, 1, all" in ended.stderr
    ended = harrow("run", "swarm", "--seeds", "3", "--then", "acks=1")
    assert ended.returncode == 2
    assert "--then" in ended.stderr


def test_then_is_refused_for_a_plan_that_no_file_can_express(monkeypatch: pytest.MonkeyPatch) -> None:
    def unwritable(plan: Plan) -> None:
        raise UnwritablePlanError("a campaign file would change the plan")

    monkeypatch.setattr(run_command, "WrittenPlan", unwritable)
    (selection,) = select(["swarm"], [], ["base"])
    with pytest.raises(typer.BadParameter, match="a campaign file would change the plan") as refused:
        run_command._with_changes(selection, 0, ["acks=1"])
    assert refused.value.param_hint == "--then"
