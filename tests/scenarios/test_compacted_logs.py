"""Compaction that removes one of two copies of a record causes no findings."""

from typing import Final

from harrow.campaigns.language.library_index import resolve
from harrow.campaigns.language.loader import load_campaign, load_text
from harrow.campaigns.run.runner import run_plan
from harrow.checks.finding import HELD, INCONCLUSIVE, PERMITTED

SENT_TWICE: Final = """
name: compacted-duplicate
kafka: "2.4"
settings:
  acks: all
  min.insync.replicas: 1
  enable.idempotence: false
  cleanup.policy: compact
  segment.bytes: 14
  min.cleanable.dirty.ratio: 0.1
  log.cleaner.backoff.ms: 1000
cluster: {brokers: 2, controller: 1, topics: [{name: t, assignment: [[0]]}]}
workload: {consumers: [{name: c}]}
script:
  - {at: 1s, do: [{send: {value: m0, key: a}}, {send: {value: m1, key: a}}, {send: {value: m2, key: b}}]}
  - {when: {event: {log_cleaned: {broker: 0}}, acked: [m0, m1, m2]}, after: 3s, do: {disk_loss: {broker: 0}}}
  - {after: 10s, do: {broker_restart: {broker: 0}}}
  - {after: 10s, do: [{network_ack_loss: {count: 1}}, {send: {value: x0, key: a}}]}
  - {when: {consumed: x0, acked: x0}, do: [{send: {value: x2, key: b}}]}
  - {when: {acked: [x2]}, after: 5s, do: {wait: {}}}
"""
"""The only log is lost, so x0 gets the offset of m0.

The answer is lost, and the producer sends x0 again. Then compaction removes the first x0 because of
the second.
"""


def test_a_record_that_compaction_replaces_by_its_duplicate_is_not_lost() -> None:
    result = run_plan(load_text(SENT_TWICE, "compacted.yaml").plans[0], 0)
    assert result.verdict.status == PERMITTED
    reused = result.verdict.rules["inconsistent-offsets"]
    assert [(finding.offset, finding.permitted_by) for finding in reused.findings] == [
        (0, "disk failure"),
        (1, "disk failure"),
        (2, "disk failure"),
    ]


def test_a_library_campaign_notices_an_empty_batch_after_compaction() -> None:
    """KAFKA-20452: with the behaviour of 4.3, the campaign waits in vain.

    The log of broker 2 never reaches the size that the campaign waits for.
    """
    for options, status in (
        ((), HELD),
        (("behaviours.cleaner_retains_empty_batch_only_at_hw=false", "limits.script=60s"), INCONCLUSIVE),
    ):
        plans = load_campaign(resolve("cleaned-again")[0], options).plans
        verdict = run_plan(next(plan for plan in plans if plan.variant is None), 0).verdict
        assert verdict.status == status
        assert all("log_cleaned" in reason for reason in verdict.reasons)
