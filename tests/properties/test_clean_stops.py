"""Brokers that are stopped at random, among brokers that fail: with a sound configuration nothing is lost by it."""

from typing import Final

import pytest

from harrow.campaigns.language.loader import load_text
from harrow.campaigns.run.runner import run_plan
from harrow.checks.finding import HELD
from harrow.cluster_model.events import SHUT_DOWN, BrokerStopped
from harrow.cluster_model.trace import select

CAMPAIGN: Final = """
name: clean-stops
kafka: "{release}"
survivable: true
settings:
  acks: all
  enable.idempotence: true
  min.insync.replicas: 2
  unclean.leader.election.enable: false
  controlled.shutdown.retry.backoff.ms: 500ms
cluster: {{brokers: 3, topics: [{{name: t, partitions: 3, replication_factor: 3}}]}}
workload: {{duration: 40s, producers: [{{rate: 10/s}}], consumers: [{{}}]}}
faults:
  - rate: 12/m
    any_of:
      - broker_stop: {{broker: any, restart_after: 0s..10s}}
      - broker_bounce: {{broker: any}}
      - rolling_restart: {{wait_for_isr: false}}
      - rolling_restart: {{order: controller_last, down_for: 0s..3s, pause: 0s..3s}}
{others}
"""

FAILURES: Final = """
      - broker_crash: {broker: any, kind: power_loss, restart_after: 1s..10s}
      - broker_pause: {broker: any, duration: 1s..15s}
      - session_expiry: {broker: any}
      - controller_failover: {how: delete_znode}
      - broker_isolation: {broker: any, duration: 1s..20s}
      - broker_isolation: {broker: any, from: zookeeper, duration: 1s..20s}
      - message: {action: drop, api: ControlledShutdown, kind: response, count: 2}
"""


@pytest.mark.parametrize(("release", "others"), [("0.11", ""), ("2.0", ""), ("2.4", ""), ("2.4", FAILURES)])
@pytest.mark.soak(size=4, test=1, soak=200)
def test_nothing_is_lost_by_stopping_brokers(numbers: range, release: str, others: str) -> None:
    stops = 0
    (plan,) = load_text(CAMPAIGN.format(release=release, others=others), "clean-stops.yaml").plans
    for seed in numbers:
        result = run_plan(plan, seed)
        findings = [finding for rule in result.verdict.rules.values() for finding in rule.findings]
        assert (result.verdict.status, findings) == (HELD, []), f"seed {seed}: {result.verdict.reasons}"
        stops += sum(event.cause == SHUT_DOWN for event in select(result.evidence.trace, BrokerStopped))
    assert stops >= len(numbers), "hardly a broker was stopped"
