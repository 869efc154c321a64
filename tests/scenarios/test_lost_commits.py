"""How the rules judge transactions that a coordinator committed and its successor aborts."""

from functools import cache

import pytest

from harrow.campaigns.language.loader import load_text
from harrow.campaigns.record.phrases import because
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import run_plan
from harrow.checks.finding import HELD, PERMITTED, VIOLATED

RECORDS = """
kafka: "3.9"
{behaviours}
settings: {{acks: all, auto.leader.rebalance.enable: false, transaction.state.log.num.partitions: 1}}
cluster:
  brokers: 5
  topics:
    - {{name: t, assignment: [[3, 4]]}}
    - {{name: u, assignment: [[4, 3]]}}
    - {{name: __transaction_state, assignment: [[0, 1, 2]], settings: {{cleanup.policy: compact, {state_topic_settings}}}}}
workload:
  producers: [{{name: app, settings: {{transactional.id: app, transaction.timeout.ms: 120s}}}}]
  consumers: [{{name: committed, settings: {{isolation.level: read_committed}}}}, {{name: dirty}}]
script:
  - at: 1s
    do: [begin_transaction, {{send: {{value: first, partition: t-0}}}}, commit_transaction]
  - when: {{acked: first, event: {{transaction_state: {{state: CompleteCommit}}}}}}
    do: [begin_transaction, {{send: {{value: a, partition: t-0}}}}, {{send: {{value: b, partition: u-0}}}}]
  - when: {{event: [{{acknowledged: {{values: a}}}}, {{acknowledged: {{values: b}}}}]}}
{before}
  - do:
      - message: {{action: hold, api: WriteTxnMarkers, kind: request, from: 0, to: 3, id: marker-of-t}}
      - message: {{action: hold, api: WriteTxnMarkers, kind: request, from: 0, to: 4, id: marker-of-u}}
  - do: commit_transaction
  - when:
      acked: [a, b]
      event: [{{message_rule: {{rule: marker-of-t}}}}, {{message_rule: {{rule: marker-of-u}}}}]
  - do: {{broker_crash: {{broker: 0}}}}
{after}
  - when: {{event: {{transaction_state: {{state: CompleteAbort}}}}}}
"""

FORGETS_COMMIT = "behaviours: {new_coordinator_completes_commit: false}"

OFFSETS = """
kafka: "3.9"
behaviours: {{new_coordinator_completes_commit: false}}
settings:
  acks: all
  min.insync.replicas: 2
  auto.leader.rebalance.enable: false
  auto.offset.reset: earliest
  transaction.state.log.num.partitions: 1
  offsets.topic.num.partitions: 1
cluster:
  brokers: 3
  topics:
    - {{name: orders, assignment: [[1, 2, 0]]}}
    - {{name: invoices, assignment: [[2, 1, 0]]}}
    - {{name: __transaction_state, assignment: [[0, 1, 2]], settings: {{cleanup.policy: compact, min.insync.replicas: 2}}}}
    - {{name: __consumer_offsets, assignment: [[1, 2, 0]], settings: {{cleanup.policy: compact}}}}
workload:
  producers: [{{name: shop}}]
  consumers:
    - {{name: committed, partitions: [invoices-0], settings: {{isolation.level: read_committed}}}}
    - {{name: dirty, partitions: [invoices-0]}}
  applications: [{{name: billing, from: orders, to: invoices, consumer: {{isolation.level: read_committed}}}}]
script:
  - at: 6s
    do: {{send: {{value: first, partition: orders-0}}}}
  - when: {{event: {{offsets_committed: {{group: billing}}}}}}
  - do:
      - message: {{action: hold, api: WriteTxnMarkers, kind: request, from: 0, to: 2, id: marker-of-invoices}}
      {hold_offsets}
      - send: {{value: second, partition: orders-0}}
  - when: {{event: [{{message_rule: {{rule: marker-of-invoices}}}}, {{transaction_reported: {{client: billing, committed: true}}}}, {wait_offsets}]}}
  - do: {{broker_crash: {{broker: 0}}}}
  - when: {{event: {{transaction_state: {{state: CompleteAbort}}}}}}
{then}
"""
HELD_OFFSETS = {
    "hold_offsets": "- message: {action: hold, api: WriteTxnMarkers, kind: request, from: 0, to: 1, id: marker-of-offsets}",
    "wait_offsets": "{message_rule: {rule: marker-of-offsets}}",
}
COMMITTED_OFFSETS = {"hold_offsets": "", "wait_offsets": "{offsets_committed: {group: billing}}"}
THIRD_RECORD = """
  - do: {send: {value: third, partition: orders-0}}
  - when: {event: {offsets_committed: {group: billing}}}
"""
RESTARTED = """
  - do: {client_crash: {client: billing, restart_after: 1s}}
  - when: {event: {offsets_committed: {group: billing}}}
"""
NOT_RESTARTED = """
  - do: {client_crash: {client: billing}}
"""


def run(text: str) -> RunResult:
    (plan,) = load_text(text, "lost-commit.yaml").plans
    return run_plan(plan, 0)


@cache
def records(behaviours: str, state_topic_settings: str, before: str = "", after: str = "") -> RunResult:
    return run(
        RECORDS.format(
            behaviours=behaviours, state_topic_settings=state_topic_settings, before=before, after=after
        )
    )


@cache
def offsets(*, held: bool, then: str = "") -> RunResult:
    return run(OFFSETS.format(**(HELD_OFFSETS if held else COMMITTED_OFFSETS), then=then))


def violated(result: RunResult) -> list[str]:
    return [name for name, rule in result.verdict.rules.items() if rule.status == VIOLATED]


def test_an_acked_transaction_that_is_aborted_as_a_whole_is_lost_even_if_read_uncommitted() -> None:
    result = records(FORGETS_COMMIT, "min.insync.replicas: 2")
    assert violated(result) == ["lost-write"]
    findings = result.verdict.rules["lost-write"].findings
    assert [finding.value for finding in findings] == ["a", "b"]
    sentences = because(findings[0])
    assert "wrote PrepareCommit for app" in sentences
    assert "as aborted" in sentences
    assert sentences.endswith(
        "a in t-0 was aborted, although the application was told that the transaction had committed"
    )


def test_an_unclean_election_permits_aborting_a_decided_commit() -> None:
    result = records(
        "",
        "min.insync.replicas: 1, unclean.leader.election.enable: true",
        before="  - do: [{broker_crash: {broker: 1}}, {broker_crash: {broker: 2}}]\n  - after: 40s",
        after="  - after: 2s\n    do: {broker_restart: {broker: 1}}",
    )
    assert result.verdict.status == PERMITTED
    assert {finding.permitted_by for rule in result.verdict.rules.values() for finding in rule.findings} == {
        "unclean.leader.election.enable=true"
    }


def test_offsets_are_part_of_their_transaction() -> None:
    result = offsets(held=False)
    assert violated(result) == ["torn-transaction", "lost-effect"]
    (torn,) = result.verdict.rules["torn-transaction"].findings
    assert "offset 2 of orders-0 for group billing in __consumer_offsets-0 is committed" in because(torn)
    (lost,) = result.verdict.rules["lost-effect"].findings
    assert lost.value == "second"


def test_an_aborted_result_and_its_aborted_offset_commit_do_not_count() -> None:
    for then in (RESTARTED, NOT_RESTARTED):
        result = offsets(held=True, then=then)
        assert result.verdict.rules["doubled-effect"].status == HELD
        assert result.verdict.rules["lost-effect"].status == HELD
        assert "lost-write" in violated(result)


@pytest.mark.parametrize("rule", ["poll-skip", "int-poll-skip"])
def test_a_skip_of_aborted_records_is_explained_by_their_marker(rule: str) -> None:
    (finding,) = offsets(held=False, then=THIRD_RECORD).verdict.rules[rule].findings
    stored = [link.operands["value"] for link in finding.chain if link.kind.name == "appended"]
    assert stored == ["billing:1(second)"]
    assert "as aborted" in because(finding)
