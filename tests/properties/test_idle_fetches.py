"""A run is the same whether the simulator skips cycles of idle fetches or runs each step of them.

`tests/scenarios/test_whole_runs.py` checks this for the campaigns of the library.
"""

from typing import Any, Final

import pytest

from harrow.campaigns.language.loader import load_text
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import Run
from harrow.campaigns.run.swarm import draw_for_seed
from harrow.campaigns.run.targets.model_target import ModelTarget
from harrow.checks.rules.catalogue import watched_in
from harrow.cluster_model.sim.choices import Choices
from tests.campaigns.run.eventful_plan import eventful_plan
from tests.library_swarm import library_swarm
from tests.scenarios.dense_plan import dense_plan
from tests.scenarios.library_plans import library_plans

LIBRARY: Final = library_plans()


def run(campaign: Plan, seed: int, *, stepped: bool, watched: bool = False) -> RunResult:
    plan = draw_for_seed(campaign, seed).plan
    choices = Choices.from_seed(seed)
    target = ModelTarget(plan, choices, watched_in(plan.invariants, plan.kafka, plan.demand))
    if stepped:
        target.cluster.network.step_idle_fetches()
    if watched:
        target.watch_fetches()
    return Run(plan, seed, choices, target).result()


def results(result: RunResult) -> dict[str, Any]:
    """Return all results of a run except the number of simulator steps."""
    return {
        "trace": result.evidence.trace,
        "history": [operation.as_mapping() for operation in result.evidence.operations],
        "logs": repr(result.evidence.replicas),  # batches are equal only to themselves
        "verdict": result.verdict,
        "missed": result.missed,
        "unfinished": result.evidence.unfinished,
        "simulated": result.simulated_us,
    }


def compare(plan: Plan, seed: int) -> tuple[int, int]:
    """Check that skipping idle fetches does not change a run, and return both step counts."""
    idle, stepped = run(plan, seed, stepped=False), run(plan, seed, stepped=True)
    assert_same(idle, stepped)
    return idle.events, stepped.events


def assert_same(idle: RunResult, stepped: RunResult) -> None:
    expected = results(stepped)
    for name, value in results(idle).items():
        assert value == expected[name], name


@pytest.mark.soak(size=10, rounds_in_test=1, rounds_in_soak=200)
def test_idle_fetches_do_not_change_runs_of_the_swarm(numbers: range) -> None:
    for seed in numbers:
        compare(library_swarm(), seed)


@pytest.mark.parametrize("name", ["standard[base]", "ack-lost[base]", "slow-follower[base]"])
def test_recording_each_fetch_does_not_change_the_run(name: str) -> None:
    """So a campaign may replace a condition on a fetch event by the time at which it was met."""
    plain, watched = run(LIBRARY[name], 1, stepped=False), run(LIBRARY[name], 1, stepped=False, watched=True)

    def others(result: RunResult) -> list[Any]:
        return [event for event in result.evidence.trace if event[1] not in {"fetch_waits", "fetch_expired"}]

    assert others(plain) == others(watched)
    assert len(plain.evidence.trace) < len(watched.evidence.trace)
    assert results(plain)["history"] == results(watched)["history"]


@pytest.mark.soak(size=3, rounds_in_test=1, rounds_in_soak=270)
def test_idle_fetches_do_not_change_runs_of_standard(numbers: range) -> None:
    for seed in numbers:
        compare(LIBRARY["standard[base]"], seed)


@pytest.mark.soak(size=1, rounds_in_test=1, rounds_in_soak=200)
@pytest.mark.parametrize("release", ["0.10.2", "0.11", "2.0", "2.4", "3.6", "4.3"])
def test_idle_fetches_do_not_change_runs_of_any_release(release: str, numbers: range) -> None:
    """Up to 1.0 a session belongs to a connection; from 3.6 on metadata is fetched too."""
    for seed in numbers:
        compare(eventful_plan(release, idempotence=release not in ("0.10.2", "0.11", "2.0")), seed)


@pytest.mark.soak(size=1, rounds_in_test=1, rounds_in_soak=300)
@pytest.mark.parametrize("power_loss", [False, True])
def test_idle_fetches_do_not_change_runs_with_dense_faults(numbers: range, *, power_loss: bool) -> None:
    for seed in numbers:
        compare(dense_plan(power_loss=power_loss), seed)


QUIET: Final = """
name: quiet
kafka: "{release}"
cluster:
  brokers:
    - {{id: 0, settings: {{request.timeout.ms: 3s}}}}
    - {{id: 1, settings: {{request.timeout.ms: 3s}}}}
    - {{id: 2, settings: {{request.timeout.ms: 3s}}}}
  network: {{latency: {latency}}}
  topics: [{{name: t, partitions: 3, replication_factor: 3}}]
settings: {{acks: all, request.timeout.ms: 3s, metadata.max.age.ms: 7s}}
workload:
  duration: 60s
  producers: [{{name: producer-0, rate: 0.2/s}}]
  consumers: [{{name: consumer-0}}]
faults:
  - {{every: 7s, do: {{slow_follower: {{broker: any, duration: 2s..5s}}}}}}
  - {{every: 11s, do: {{partition: {{between: 0, and: [1, 2], duration: 1s..9s}}}}}}
  - {{every: 13s, do: {{broker_pause: {{broker: any, duration: 1s..6s}}}}}}
  - {{every: 17s, do: {{broker_stop: {{broker: any, restart_after: 3s}}}}}}
  - {{every: 19s, do: {{message: {{action: duplicate, api: Fetch, count: 2}}}}}}
  - {{every: 12s, do: {{link_slow: {{between: any, latency: 20ms, jitter: 50ms, duration: 1s..4s}}}}}}
  - {{every: 16s, do: {{broker_slow: {{broker: any, delay: 70ms, duration: 1s..4s}}}}}}
  - {{every: 29s, do: {{link_reset: {{between: any}}}}}}
  - {{every: 23s, do: {{message: {{action: delay, api: Fetch, delay: 700ms, count: 3}}}}}}
"""


@pytest.mark.soak(size=2, rounds_in_test=1, rounds_in_soak=250)
@pytest.mark.parametrize("release", ["0.11", "2.4", "3.9", "4.3"])
@pytest.mark.parametrize("latency", ["200us..1ms", "1ms..1ms", "20ms..80ms"])
def test_idle_fetches_save_steps_in_quiet_runs(release: str, latency: str, numbers: range) -> None:
    (plan,) = load_text(QUIET.format(release=release, latency=latency), "quiet.yaml").plans
    for seed in numbers:
        steps, stepped_steps = compare(plan, seed)
        assert steps < stepped_steps
