"""Each kind of failure has a file, and its remedies are tried once, not for each run."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harrow.campaigns.language.library_index import resolve
from harrow.campaigns.language.loader import load_campaign
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run import trial
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import run_plan
from harrow.campaigns.storage.location import location
from harrow.campaigns.sweep import failures, row
from harrow.campaigns.sweep.definition import define
from harrow.campaigns.sweep.failures import known_failures, write_failures
from harrow.campaigns.sweep.sweep_report import Example, FailureGroup


def group(cell: str) -> FailureGroup:
    example = Example(cell=cell, seed=0, reproduce="harrow run loss-by-hw-truncation")
    return FailureGroup(
        campaign="loss-by-hw-truncation",
        signature="lost-write-1",
        rule="lost-write",
        promise="acks=all",
        chain="",
        failures=20,
        earliest=example,
        shortest=example,
    )


def test_a_failure_file_lists_the_remedies_that_held(tmp_path: Path) -> None:
    campaign = load_campaign(resolve("loss-by-hw-truncation")[0])
    sweep = define([(campaign, "loss-by-hw-truncation")], range(1))
    (written,) = write_failures(location(tmp_path), sweep, [group(sweep.cells[0].name)])
    text = written.path.read_text()
    begin = text.index("Prevented by any of these (confirmed by a rerun):")
    lines = text[begin:].splitlines()
    assert lines[1].startswith("#     --set behaviours.follower_truncation=leader_epoch --set limits.step=")
    assert lines[2].startswith("#       KIP-101, from 0.11 on: ")
    assert [plan.digest() for plan in load_campaign(str(written.path)).plans][:1] == [
        campaign.plans[0].digest()
    ]


def test_the_rows_of_a_sweep_cost_one_run_each(monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = load_campaign(resolve("loss-by-hw-truncation")[0])
    sweep = define([(campaign, "loss-by-hw-truncation")], range(1))
    runs: list[int] = []

    def counted(plan: Plan, seed: int, **options: Any) -> RunResult:
        runs.append(seed)
        return run_plan(plan, seed, **options)

    for module in (row, trial):
        monkeypatch.setattr(module, "run_plan", counted)
    assert row.run_row(sweep.cells[0], 0)["verdict"] == "violated"
    assert runs == [0]


def test_existing_failure_files_are_listed_without_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = load_campaign(resolve("loss-by-hw-truncation")[0])
    sweep = define([(campaign, "loss-by-hw-truncation")], range(1))
    failed = group(sweep.cells[0].name)
    assert not list(known_failures(location(tmp_path), [failed]))
    written = list(write_failures(location(tmp_path), sweep, [failed]))

    def refuse_runs(plan: Plan, seed: int) -> RunResult:
        raise AssertionError((plan, seed))

    for module in (failures, trial):
        monkeypatch.setattr(module, "run_plan", refuse_runs)
    assert list(known_failures(location(tmp_path), [failed])) == written


OUTAGE = """
name: down
cluster: {brokers: 1, topics: [{name: t}]}
workload: {duration: 10s, producers: [{rate: 20/s}]}
faults: [{at: 2s, do: {broker_stop: {broker: 0, restart_after: 5s}}}]
expect: EXPECTED
"""


@pytest.mark.parametrize(
    ("expected", "shrunk"), [("{service: {outage: < 2s}}", True), ("{verdict: violated}", False)]
)
def test_of_missed_expectations_only_bounds_are_shrunk(tmp_path: Path, expected: str, shrunk: bool) -> None:
    path = tmp_path / "down.yaml"
    path.write_text(OUTAGE.replace("EXPECTED", expected), encoding="utf-8")
    sweep = define([(load_campaign(path), "down.yaml")], range(1))
    missed = replace(group(sweep.cells[0].name), campaign="down", rule=row.EXPECTATION)
    (written,) = write_failures(location(tmp_path), sweep, [missed], shrink_s=60)
    assert written.shrunk == shrunk
    (plan,) = load_campaign(str(written.path)).plans
    assert not run_plan(plan, 0).expected
