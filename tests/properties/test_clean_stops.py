"""Random clean shutdowns among failures: a sound configuration loses nothing."""

from typing import Final

import pytest

from harrow.campaigns.language.loader import load_text
from harrow.campaigns.run.proof import proven
from harrow.campaigns.run.runner import run_plan
from harrow.checks.finding import HELD, VIOLATED
from harrow.cluster_model.events import SHUT_DOWN, BrokerStopped
from harrow.cluster_model.trace import select

CAMPAIGN: Final = """
name: clean-stops
kafka: "{release}"
survivable: true
behaviours: {{{behaviours}}}
settings:
  acks: all
  enable.idempotence: true
  min.insync.replicas: 2
  unclean.leader.election.enable: false
  controlled.shutdown.retry.backoff.ms: 500ms
  log.flush.interval.messages: 1  # Without this, a power loss would permit lost records.
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


SWITCHES: Final = {
    "0.11": "epoch_entry_on_election: true, follower_truncation: answered_epoch, control_requests_carry_broker_epoch: true",
    "2.0": "control_requests_carry_broker_epoch: true",
    "2.4": "fetch_sessions_keep_epoch: true",
}
"""Behaviours of later releases. Without these repairs some of these runs lose records.

- Before KAFKA-7415 a new leader records its epoch only with its first append, and before KIP-279
  a leader's answer does not name an epoch. So a follower truncates to its own high watermark while
  it is in the ISR (in 4 of 260 of these runs).
- Before KIP-380 the controller does not notice a broker that restarts before the controller looks,
  and sends it nothing. Until its next restart the broker neither leads nor follows (KAFKA-1120).
- Before KAFKA-9338 a follower may miss two elections, after which its former leader leads again. It
  then continues to fetch, and keeps the records that it copied in the leader's first term.
"""


@pytest.mark.parametrize(("release", "others"), [("0.11", ""), ("2.0", ""), ("2.4", ""), ("2.4", FAILURES)])
@pytest.mark.soak(size=4, rounds_in_test=1, rounds_in_soak=200)
def test_stopping_brokers_cleanly_loses_nothing(numbers: range, release: str, others: str) -> None:
    stops = 0
    text = CAMPAIGN.format(release=release, others=others, behaviours=SWITCHES.get(release, ""))
    (plan,) = load_text(text, "clean-stops.yaml").plans
    for seed in numbers:
        result = run_plan(plan, seed)
        findings = [finding for rule in result.verdict.rules.values() for finding in rule.findings]
        assert (result.verdict.status, findings) == (HELD, []), f"seed {seed}: {result.verdict.reasons}"
        stops += sum(event.cause == SHUT_DOWN for event in select(result.evidence.trace, BrokerStopped))
    assert stops >= len(numbers), "too few brokers were stopped"


def test_a_loss_of_2_4_names_the_missing_repair() -> None:
    (plan,) = load_text(CAMPAIGN.format(release="2.4", others=FAILURES, behaviours=""), "x.yaml").plans
    failing = next(
        result for seed in range(200) if (result := run_plan(plan, seed)).verdict.status == VIOLATED
    )
    findings = [finding for rule in proven(failing).verdict.rules.values() for finding in rule.findings]
    ways = [[way.name for way in finding.prevented_by if way.held] for finding in findings]
    assert findings
    assert all("KAFKA-9338" in names for names in ways)
