"""Brokers keep their promises while servers of ZooKeeper are killed, paused and isolated."""

import pytest

from harrow.campaigns.language.loader import load_text
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import run_plan
from harrow.cluster_model.events import EnsembleLeaderElected, EnsembleServerSuspended, SessionExpired
from harrow.cluster_model.trace import select

WORKLOAD = """
kafka: "{release}"
settings: {{acks: all, min.insync.replicas: 2, enable.idempotence: true, replica.lag.time.max.ms: 1000}}
cluster:
  brokers: 3
  zookeeper: {{servers: {servers}}}
  topics: [{{name: t, partitions: 3}}]
workload: {{duration: 60s, producers: [{{rate: 10/s}}], consumers: [{{}}]}}
"""


def run(text: str, seed: int, *, release: str = "2.4", servers: int = 3) -> RunResult:
    (plan,) = load_text(WORKLOAD.format(release=release, servers=servers) + text, "c.yaml").plans
    return run_plan(plan, seed)


ISR_CHANGES_ACROSS_AN_ELECTION = """
faults:
  - {at: 5s, do: {slow_follower: {broker: 1, mode: stuck, duration: 20s}}}
  - {at: 5s, do: {broker_crash: {broker: leader of zookeeper, restart_after: 15s}}}
script:
  - at: 45s
    do: {elect_preferred_leaders: {}}
  - after: 10s
    do: {expect: {isr: {t-0: [0, 1, 2], t-1: [0, 1, 2], t-2: [0, 1, 2]}}}
"""


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("release", ["0.11", "2.4", "2.8"])
def test_the_controller_learns_of_isr_changes_during_an_election_of_zookeeper(
    release: str, seed: int
) -> None:
    result = run(ISR_CHANGES_ACROSS_AN_ELECTION, seed, release=release)
    assert (result.verdict.status, result.expected, result.verdict.reasons) == ("held", True, ())
    assert len(list(select(result.evidence.trace, EnsembleLeaderElected))) > 1


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("servers", [1, 3, 5])
def test_faults_of_zookeeper_servers_lose_no_acked_record(servers: int, seed: int) -> None:
    faults = """
faults:
  - {every: 7s, do: {broker_crash: {broker: leader of zookeeper, restart_after: 1s..20s}}}
  - {every: 11s, do: {broker_pause: {broker: zookeeper-1, duration: 1s..15s}}}
  - {every: 13s, do: {partition: {between: [follower of zookeeper], and: [others], duration: 1s..15s}}}
  - {every: 17s, do: {broker_crash: {broker: any, restart_after: 1s..10s}}}
"""
    result = run(faults, seed, servers=servers)
    assert (result.verdict.status, result.verdict.reasons) == ("held", ())


@pytest.mark.parametrize("seed", range(3))
def test_brokers_keep_their_sessions_through_a_long_outage_of_a_majority(seed: int) -> None:
    result = run(
        "faults: [{at: 5s, do: {broker_crash: {broker: [zookeeper-2, zookeeper-3], restart_after: 40s}}}]",
        seed,
    )
    suspended = list(select(result.evidence.trace, EnsembleServerSuspended))
    assert result.verdict.status == "held"
    assert suspended
    assert not list(select(result.evidence.trace, SessionExpired))


@pytest.mark.parametrize("seed", range(3))
def test_sessions_survive_a_restart_of_a_single_server(seed: int) -> None:
    result = run(
        "faults: [{at: 5s, do: {broker_crash: {broker: zookeeper-1, restart_after: 30s}}}]", seed, servers=1
    )
    assert result.verdict.status == "held"
    assert not list(select(result.evidence.trace, SessionExpired))
