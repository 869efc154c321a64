"""Transactions from end to end: clients, coordinators, logs and rules."""

from functools import cache
from typing import Any

import pytest

from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import run_plan
from harrow.campaigns.search.explicit_plan import explicit_plans
from harrow.checks.finding import HELD, PERMITTED
from harrow.cluster_model.events import TransactionEnding, TransactionOpened, TransactionReported
from harrow.cluster_model.history import FAIL, INFO, OK, TXN, Operation
from harrow.cluster_model.trace import select
from tests.scenarios.transactional_plan import CRASH, NOTHING, RESTART, ZOMBIE, orders


@cache
def run(release: str = "3.9", fault: str = NOTHING, *, uncommitted: bool = False) -> RunResult:
    return run_plan(orders(release, fault, uncommitted=uncommitted), 1)


def statuses(result: RunResult) -> dict[str, str]:
    """Return the statuses of rules with findings, except interleaved writes, which are always
    permitted.
    """
    return {
        name: rule.status
        for name, rule in result.verdict.rules.items()
        if rule.findings and rule.findings[0].permitted_by != "write interleaving"
    }


def transactions(result: RunResult, client: str) -> list[Operation]:
    """Return the completions of a client's transactions in all sessions."""
    names = result.evidence.process_names
    return [
        operation
        for operation in result.evidence.operations
        if operation.is_completion and operation.f == TXN and names[operation.process] == client
    ]


@pytest.mark.parametrize("release", ["0.11", "2.4", "3.9", "4.0"])
@pytest.mark.parametrize("fault", [NOTHING, CRASH, ZOMBIE, RESTART])
def test_with_read_committed_no_promise_is_broken(release: str, fault: str) -> None:
    result = run(release, fault)
    assert statuses(result) == {}
    assert len(result.evidence.read_back) == 3
    ended = [operation.type for operation in transactions(result, "app")]
    assert ended.count(OK) > 10
    assert ended.count(FAIL) > 5


def test_generated_transactions_have_four_records_and_every_third_is_aborted() -> None:
    ended = transactions(run(), "app")
    assert {len(operation.value) for operation in ended[:-1]} == {4}
    kinds = [operation.type for operation in ended]
    assert kinds == [FAIL if place % 3 == 0 else OK for place in range(1, len(kinds) + 1)]
    assert {operation.error for operation in ended if operation.type == FAIL} == {"ABORTED"}


def test_a_read_uncommitted_consumer_may_read_aborted_records() -> None:
    result = run(uncommitted=True)
    assert statuses(result) == {"G1a": PERMITTED}
    aborted = {
        value for end in transactions(result, "app") if end.type == FAIL for _, _, value in end.sends()
    }
    findings = result.verdict.rules["G1a"].findings
    assert {finding.value for finding in findings} <= aborted
    assert len(findings) > 20
    assert {finding.permitted_by for finding in findings} == {"isolation.level=read_uncommitted"}


def test_every_committed_record_has_its_offset() -> None:
    for end in transactions(run(), "app"):
        if end.type == OK:
            assert all(offset is not None for _, offset, _ in end.sends())


def test_a_successor_fences_a_zombie_producer() -> None:
    result = run(fault=ZOMBIE)
    fenced = [end for end in transactions(result, "app") if end.error == "PRODUCER_FENCED"]
    assert len(fenced) == 1
    left_behind = {end.process for end in fenced}
    later = [
        op
        for op in result.evidence.operations
        if op.process in left_behind and op.time_us > fenced[0].time_us
    ]
    assert later == []


def test_a_crash_in_a_transaction_is_indeterminate_only_after_its_end_was_requested() -> None:
    outcomes = []
    for seed in range(1, 7):
        result = run_plan(orders(fault=RESTART), seed)
        # In some seeds the client dies between two transactions.
        for crashed in [end for end in transactions(result, "app") if end.error == "CRASHED"]:
            requested = [event.at_us for event in select(result.evidence.trace, TransactionEnding)]
            reported = [event.at_us for event in select(result.evidence.trace, TransactionReported)]
            is_pending = sum(at < crashed.time_us for at in requested) > sum(
                at < crashed.time_us for at in reported
            )
            assert crashed.type == (INFO if is_pending else FAIL)
            outcomes.append(crashed.type)
    assert outcomes


def calls(result: RunResult) -> list[tuple[Any, ...]]:
    """Return the times at which transactions were begun, requested to end, and reported."""
    kinds = (TransactionOpened, TransactionEnding, TransactionReported)
    return [(type(event), event.at_us) for kind in kinds for event in select(result.evidence.trace, kind)]


@pytest.mark.parametrize("fault", [NOTHING, ZOMBIE])
def test_a_run_is_written_as_a_script_with_its_transactions(fault: str) -> None:
    first = run(fault=fault)
    written = run_plan(next(explicit_plans(first)), 1)
    if fault == NOTHING:
        assert len(calls(written)) == len(calls(first))
    ends = [(end.type, [value for _, _, value in end.sends()]) for end in transactions(first, "app")]
    again = [(end.type, [value for _, _, value in end.sends()]) for end in transactions(written, "app")]
    assert again[:20] == ends[:20]


def test_transactions_are_reproducible() -> None:
    again = run_plan(orders(fault=CRASH), 1)
    assert again.trace_digest == run(fault=CRASH).trace_digest
    assert statuses(again) == {}
    assert again.verdict.status in (HELD, PERMITTED)
