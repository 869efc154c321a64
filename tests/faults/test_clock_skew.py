"""Clock jumps change only behaviour that depends on the wall clock, and healing corrects it."""

import pytest

from harrow.campaigns.language.loader import load_text
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import run_plan
from harrow.checks.finding import HELD, PERMITTED
from harrow.checks.promise import CLOCK_SKEW
from harrow.cluster_model import events
from harrow.cluster_model.trace import select

CAMPAIGN = """
name: skew
cluster: {brokers: 3, topics: [{name: t, assignment: [[0, 1, 2]]}]}
settings: {acks: all, enable.idempotence: true, min.insync.replicas: 2}
workload:
  duration: 40s
  producers: [{name: p, rate: 10/s}]
  consumers: [{name: c}]
"""


def run(faults: str, kafka: str = "2.4", more: str = "", seed: int = 0) -> RunResult:
    text = f'{CAMPAIGN}kafka: "{kafka}"\n{more}\nfaults: [{{at: 5s, do: {{clock_skew: {faults}}}}}]\n'
    (plan,) = load_text(text, "skew.yaml").plans
    return run_plan(plan, seed)


@pytest.mark.parametrize("kafka", ["2.4", "4.3"])
@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("by", ["5s", "2h"])
def test_no_session_uses_a_clock_that_jumps(kafka: str, direction: str, by: str) -> None:
    """System.nanoTime: BrokerHeartbeatManager, BrokerLifecycleManager; ZooKeeper from 3.5 on."""
    trace = run(f"{{of: [brokers], by: {by}, direction: {direction}, duration: 20s}}", kafka).evidence.trace
    assert not list(select(trace, events.SessionExpired))
    assert len(list(select(trace, events.LeaderElected))) <= 1


@pytest.mark.parametrize("kafka", ["2.4", "4.3"])
@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("of", ["[0]", "[brokers]", "[c]", "[p]", "[brokers, clients]"])
def test_a_safe_configuration_loses_nothing_to_a_clock(kafka: str, direction: str, of: str) -> None:
    result = run(f"{{of: {of}, by: 30s, direction: {direction}, duration: 10s}}", kafka)
    assert result.verdict.status == HELD


def test_clock_jumps_add_up_and_healing_corrects_all_clocks() -> None:
    text = f"""{CAMPAIGN}
kafka: "2.4"
faults:
  - at: 5s
    do: {{clock_skew: {{of: [0], by: 10s}}}}
  - at: 6s
    do: {{clock_skew: {{of: [0], by: 3s, direction: backward, duration: 2s}}}}
  - at: 7s
    do: {{clock_skew: {{of: [p], by: 1s}}}}
"""
    (plan,) = load_text(text, "skew.yaml").plans
    result = run_plan(plan, 0)
    steps = [(e.process, e.skew_us // 1_000_000) for e in select(result.evidence.trace, events.ClockStepped)]
    assert steps == [("broker-0", 10), ("broker-0", 7), ("p", 1), ("broker-0", 10), ("broker-0", 0), ("p", 0)]
    assert result.verdict.status == HELD


def test_a_machine_keeps_its_clock_when_its_broker_restarts() -> None:
    more = "script: [{at: 8s, do: {broker_crash: {broker: 0, restart_after: 1s}}}]"
    result = run("{of: [0], by: 2h}", more=f"{more}", seed=0)
    deleted = list(select(result.evidence.trace, events.LogStartRaised))
    assert not deleted, "by default records stay for a week"
    skews = [e.skew_us for e in select(result.evidence.trace, events.ClockStepped)]
    assert skews == [7_200_000_000, 0]


@pytest.mark.parametrize("kafka", ["0.11", "2.4", "4.3"])
def test_only_the_wrong_clock_permits_early_deletion(kafka: str) -> None:
    text = f"""
name: skew
kafka: "{kafka}"
cluster: {{brokers: 3, topics: [{{name: t, assignment: [[0, 1, 2]]}}]}}
settings: {{acks: all, min.insync.replicas: 2, retention.ms: 3600000, log.retention.check.interval.ms: 1000}}
script:
  - at: 31s
    do: {{send: m0}}
  - when: {{acked: m0, replicas: {{t-0: {{0: {{hw: 1}}}}}}}}
    do: {{clock_skew: {{of: [0], by: 2h}}}}
  - when: {{event: {{log_start: {{broker: 0, offset: 1}}}}}}
"""
    (plan,) = load_text(text, "skew.yaml").plans
    result = run_plan(plan, 0)
    judged = result.verdict.rules["lost-write"]
    assert judged.status == PERMITTED
    assert {finding.permitted_by for finding in judged.findings} == {CLOCK_SKEW}


def test_a_clock_ahead_makes_compaction_remove_tombstones_early() -> None:
    text = """
name: skew
kafka: "4.3"
cluster: {brokers: 3, topics: [{name: t, assignment: [[0, 1, 2]]}]}
settings:
  acks: all
  min.insync.replicas: 2
  cleanup.policy: compact
  segment.bytes: 200
  min.cleanable.dirty.ratio: 0.01
  delete.retention.ms: 3600000
  log.cleaner.backoff.ms: 1000
script:
  - at: 31s
    do: [{send: {value: m0, key: a}}]
  - when: {acked: m0}
    do: [{send: {value: gone, key: a, tombstone: true}}]
  - when: {acked: gone}
    do: [{send: {value: m1, key: b}}]
  - when: {acked: m1}
    do: [{send: {value: m2, key: c}}]
  - when: {acked: m2, event: {log_cleaned: {broker: 0}}}
  - after: 3s
    do: {clock_skew: {of: [brokers], by: 2h}}
  - after: 3s
    do: [{send: {value: m3, key: d}}]
  - when: {acked: m3}
    do: [{send: {value: m4, key: e}}]
  - when: {acked: m4}
  - after: 5s
"""
    (plan,) = load_text(text, "skew.yaml").plans
    judged = run_plan(plan, 0).verdict.rules["lost-write"]
    assert {(finding.value, finding.permitted_by) for finding in judged.findings} == {("gone", CLOCK_SKEW)}
