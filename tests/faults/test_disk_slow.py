"""A slow disk: requests that wait for it or for its threads, and the healing."""

from itertools import pairwise

import pytest

from harrow.campaigns.language.loader import load_text
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import run_plan
from harrow.checks.finding import HELD, INCONCLUSIVE
from harrow.cluster_model import events
from harrow.cluster_model.trace import select

CAMPAIGN = """
name: slow
cluster: {brokers: 3, topics: [{name: t, assignment: [[0, 1, 2]]}]}
settings: {acks: all, enable.idempotence: true, min.insync.replicas: 2}
workload:
  duration: 20s
  producers: [{name: p, rate: 10/s}]
  consumers: [{name: c}]
"""


def run(fault: str, kafka: str = "2.4") -> RunResult:
    text = f'{CAMPAIGN}kafka: "{kafka}"\nfaults: [{{at: 5s, do: {{disk_slow: {fault}}}}}]\n'
    (plan,) = load_text(text, "slow.yaml").plans
    return run_plan(plan, 0)


def appended_s(result: RunResult, broker: int) -> list[float]:
    """Return the times of a broker's appends, in seconds."""
    appends = select(result.evidence.trace, events.BatchAppended, events.BatchReplicated)
    return sorted({event.at_us / 1e6 for event in appends if event.broker == broker})


@pytest.mark.parametrize("kafka", ["2.4", "4.3"])
@pytest.mark.parametrize("broker", [0, 1])
def test_appends_of_leaders_and_followers_wait_for_a_slow_disk(broker: int, kafka: str) -> None:
    result = run(f"{{broker: {broker}, delay: 700ms, duration: 6s}}", kafka)
    times = appended_s(result, broker)
    slow = [at for at in times if 5.8 < at < 11]
    assert all(later - earlier > 0.699 for earlier, later in pairwise(slow))
    assert len(slow) >= 5
    assert len([at for at in times if 14 < at < 19]) > 40
    assert result.verdict.status == HELD


@pytest.mark.parametrize("kafka", ["2.4", "4.3"])
def test_healing_ends_a_slow_disk(kafka: str) -> None:
    result = run("{broker: 0, delay: 20s}", kafka)
    healed_s = next(iter(select(result.evidence.trace, events.Healed))).at_us / 1e6
    assert max(appended_s(result, 0)) < healed_s + 25
    assert result.verdict.status == HELD


def test_a_broker_with_a_slow_disk_keeps_its_session() -> None:
    trace = run("{broker: 0, delay: 3s, duration: 15s}").evidence.trace
    assert not list(select(trace, events.SessionExpired))


@pytest.mark.parametrize(
    "fault",
    [
        "disk_slow: {broker: controller, duration: 2s}",
        "disk_full: {broker: controller, duration: 2s}",
        "log_dir_failure: {broker: controller, duration: 2s}",
        "stale_checkpoint: {broker: controller, restart_after: 2s}",
        "torn_write: {broker: controller, restart_after: 2s}",
    ],
)
def test_disk_faults_of_logs_do_not_apply_to_a_separate_controller(fault: str) -> None:
    text = f'{CAMPAIGN}kafka: "4.3"\nfaults: [{{at: 5s, do: {{{fault}}}}}]\n'
    (plan,) = load_text(text, "slow.yaml").plans
    result = run_plan(plan, 0)
    assert result.verdict.status == INCONCLUSIVE
    assert not list(select(result.evidence.trace, events.FaultStruck))
