"""A row records a run, even a failed one."""

from dataclasses import replace
from typing import Any

import pytest

from harrow.campaigns.language.library_index import resolve
from harrow.campaigns.language.loader import load_campaign, load_text
from harrow.campaigns.run.runner import run_plan
from harrow.campaigns.run.service import MEASURES
from harrow.campaigns.sweep import row as row_module
from harrow.campaigns.sweep.cell import Cell, cell_of
from harrow.campaigns.sweep.chunk import Task
from harrow.campaigns.sweep.row import (
    ERROR,
    EXPECTATION,
    Row,
    run_row,
    run_task,
    signature_columns,
    this_worker,
)
from harrow.campaigns.sweep.row_table import COLUMNS, FILE_SCHEMA, PARTITION, as_table
from harrow.checks.evidence import Evidence
from harrow.checks.index import Index
from harrow.checks.promise import DEMANDED
from tests.campaigns.sweep.sweep_campaigns import acks, definition


def swarm_cell(**behaviours: Any) -> Cell:
    plan = load_campaign(resolve("swarm")[0]).plans[0]
    return cell_of(replace(plan, behaviours={**plan.behaviours, **behaviours}))


def first_failing(cell: Cell) -> Row:
    return next(row for row in (run_row(cell, seed) for seed in range(200)) if "signature" in row)


def without_time(row: Row) -> Row:
    return {**row, "wall_us": 0}


def test_a_row_agrees_with_its_run() -> None:
    cell = swarm_cell()
    row, result = run_row(cell, 3), run_plan(cell.plan, 3)
    assert (row["campaign"], row["seed"], row["plan_digest"]) == ("swarm", 3, cell.plan.digest())
    assert (row["verdict"], row["trace_digest"], row["events"]) == (
        result.verdict.status,
        result.trace_digest,
        result.events,
    )
    assert dict(row["drawn"]) == dict(result.drawn)
    assert sum(count for _, count in row["faults"]) == len(result.faults)
    assert {item["probe"]: item["count"] for item in row["probes"]} == {
        probe: count for probe, count in result.probes.items() if count
    }
    assert row["wall_us"] > 0
    assert "signature" not in row


def test_the_service_levels_of_a_row_are_those_of_the_run() -> None:
    plan = load_campaign(resolve("standard")[0]).plans[0]
    outages = 0
    for seed in range(4):
        alone = run_plan(plan, seed)
        beside = run_plan(plan, seed, measured=True).measured
        assert alone.levels is None
        assert {name: measure.value(beside) for name, measure in MEASURES.items()} == {
            name: measure.value(alone.service) for name, measure in MEASURES.items()
        }
        assert (beside.total, len(beside.outages)) == (alone.service.total, len(alone.service.outages))
        outages += len(beside.outages)
    assert outages


def test_evidence_is_indexed_once_for_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Judging a run and measuring its service levels use the same index."""
    indexed: list[Evidence] = []
    index = Index.__init__

    def counted(self: Index, evidence: Evidence, *rest: Any) -> None:
        indexed.append(evidence)
        index(self, evidence, *rest)

    monkeypatch.setattr(Index, "__init__", counted)
    assert run_row(swarm_cell(), 3)["sent"]
    assert len(indexed) == 1


def test_the_same_run_gives_the_same_row() -> None:
    cell = swarm_cell()
    assert without_time(run_row(cell, 5)) == without_time(run_row(cell, 5))


def test_the_row_of_a_broken_demand_names_the_demand_and_no_promise_of_kafka() -> None:
    plan = load_campaign(resolve("acks-1-leader-crash")[0], ("demand=[lost-write]",)).plans[0]
    assert run_row(cell_of(plan), 0)["promise"] == DEMANDED


def test_a_failure_has_a_signature() -> None:
    row = first_failing(swarm_cell(unclean_election_only_if_enabled=False))
    assert (row["verdict"], row["outcome"]) == ("violated", "unexpected")
    rule, chain = row["failed_rule"], row["chain"]
    assert rule in {item["rule"] for item in row["rules"]}
    assert " > " in chain
    assert row["signature"].startswith(f"{rule}-")
    assert row["signature"] != signature_columns(rule, "something else", chain)["signature"]


def test_a_missed_expectation_is_a_failure_of_its_own_kind() -> None:
    text = "name: calm\ncluster: {brokers: 1, topics: [{name: t}]}\nscript: [{do: {send: m0}}, {when: {acked: m0}}]\nexpect: {verdict: violated}"
    row = run_row(cell_of(load_text(text, "calm.yaml").plans[0]), 0)
    assert (row["failed_rule"], row["outcome"]) == (EXPECTATION, "unexpected")
    assert row["missed"] == ["the verdict is held, expected violated"]


def test_an_error_of_harrow_is_a_row_with_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **options: Any) -> None:
        raise ZeroDivisionError("not this time")

    monkeypatch.setattr(row_module, "run_plan", broken)
    row = run_row(swarm_cell(), 7)
    assert (row["verdict"], row["outcome"], row["seed"]) == (ERROR, "unexpected", 7)
    assert "trace_digest" not in row
    assert "campaigns/sweep/row.py" in row["error"]
    assert row["error"].endswith("ZeroDivisionError: not this time")
    assert row["failed_rule"] == ERROR


def test_an_error_while_a_row_is_made_is_a_row_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise KeyError("half a pair: \ud800")

    monkeypatch.setattr(row_module, "outcome", broken)
    row = run_row(swarm_cell(), 7)
    assert (row["verdict"], row["seed"]) == (ERROR, 7)
    assert row["error"].endswith(r"KeyError: 'half a pair: \ud800'")
    assert as_table([row]).num_rows == 1


def test_a_run_over_its_step_limit_is_undecided_as_in_harrow_run() -> None:
    cell = cell_of(replace(definition(1).cells[0].plan, events_limit=100))
    row = run_row(cell, 0)
    assert (row["verdict"], row["outcome"]) == ("inconclusive", "undecided")
    assert row["reasons"][0] == "the run was given up after more than 100 events"


def test_rows_keep_the_columns_that_are_documented() -> None:
    cells = dict(enumerate(definition(1, varies=acks("1", "all")).cells))
    rows = list(run_task(cells, Task(cell=1, seeds=range(2))))
    assert all(set(row) <= set(COLUMNS) for row in rows)
    table = as_table(rows)
    assert table.schema == FILE_SCHEMA
    assert list(COLUMNS) == [PARTITION, *table.schema.names]
    first = table.to_pylist()[0]
    assert first["settings"] == [("acks", "all")]
    assert first["cell"] == "base acks=all"


def test_an_empty_table_has_the_schema_too() -> None:
    assert as_table([]).schema == FILE_SCHEMA


def test_a_failed_row_is_equal_after_a_round_trip_through_arrow() -> None:
    row = first_failing(swarm_cell(unclean_election_only_if_enabled=False))
    (copy,) = as_table([row]).to_pylist()
    assert (copy["signature"], copy["failed_rule"]) == (row["signature"], row["failed_rule"])
    assert copy["rules"] == row["rules"]


def test_a_repeated_run_is_left_to_another_worker() -> None:
    cells = dict(enumerate(definition(1).cells))
    task = Task(cell=0, seeds=(1, 2, 3), not_on=(this_worker(), "elsewhere", ""))
    assert [row["seed"] for row in run_task(cells, task)] == [2, 3]
