"""Campaigns of the library have their expected outcomes on real brokers, as in the model."""

from dataclasses import replace
from pathlib import Path

import pytest

from harrow.campaigns.language.loader import load_campaign, load_text
from harrow.checks.finding import HELD, PERMITTED
from harrow.cluster_model.events import KILLED, BrokerStopped, ControllerElected, ControllerResigned
from harrow.cluster_model.topology import FIRST_CONTROLLER_ID, KAFKA_PYTHON
from harrow.live_cluster.local.started_brokers import StartedBrokers
from harrow.live_cluster.releases.kafka_release import KRAFT
from harrow.live_cluster.target.conformity import AGREED, compare_runs, run_on_model

LIBRARY = Path(__file__).parents[2] / "campaigns" / "library"
EVERYWHERE = (("ack-lost", None), ("ack-lost", "idempotent"), ("acks-1-leader-crash", None))
"""Campaigns and variants that are tried on every release, even if they name another one."""


FAILOVERS = """
name: failovers
kafka: "{release}"
settings: {{acks: all, min.insync.replicas: 2, retries: 1000}}
cluster: {{brokers: 3, kraft: {{voters: 1}}, topics: [{{name: t, partitions: 2, replication_factor: 3}}]}}
script:
  - at: 1s
    do: [{{send: m0}}, {{controller_failover: {{how: crash, restart_after: 2s}}}}]
  - when: {{event: {{controller_elected: {{controller_epoch: 2}}}}}}
    do: {{controller_failover: {{how: delete_znode}}}}
  - when: {{event: {{controller_elected: {{controller_epoch: 4}}}}}}
    do: {{controller_failover: {{how: session_expiry}}}}
  - when: {{event: {{controller_elected: {{controller_epoch: 6}}}}}}
    do: [{{send: m1}}, {{broker_pause: {{broker: controller, duration: 2s}}}}]
  - when: {{acked: [m0, m1]}}
"""


QUORUM = """
name: quorum
kafka: "{release}"
settings: {{acks: all, min.insync.replicas: 2, retries: 1000}}
cluster: {{brokers: 3, kraft: {{voters: 3}}, topics: [{{name: t, partitions: 1, replication_factor: 3}}]}}
script:
  - at: 1s
    do: {{send: m0}}
  - when: {{acked: m0}}
    do: [{{controller_failover: {{how: crash}}}}, {{broker_crash: {{broker: leader of t-0}}}}]
  - after: 1s
    do: {{send: m1}}
  - when: {{acked: m1}}
core: {{}}
"""


HELD_FOLLOWER = """
name: held-follower
kafka: "{release}"
settings: {{acks: all, min.insync.replicas: 1, auto.leader.rebalance.enable: false, replica.lag.time.max.ms: 60s, retries: 1000}}
cluster: {{brokers: 3, topics: [{{name: t, assignment: [[0, 1]]}}]}}
script:
  - {{at: 1s, do: {{broker_stop: {{broker: 0}}}}}}
  - when: {{leader: {{t-0: 1}}, event: {{broker_stopped: {{broker: 0}}}}}}
    do: [{{broker_restart: {{broker: 0}}}}, {{send: m0}}]
  - when: {{acked: m0, isr: {{t-0: [0, 1]}}}}
    do: [{{message: {{action: hold, api: Fetch, kind: response, from: 1, to: 0, id: to-0}}}}, {{send: m1}}]
  - when: {{event: {{message_rule: {{rule: to-0}}}}}}
    do: [{{message: {{action: hold, api: Fetch, kind: request, from: 1, to: 0, id: of-1}}}}, {{elect_preferred_leaders: {{}}}}]
  - when: {{replicas: {{t-0: {{0: {{role: leader}}}}}}}}
    do: [{{release: {{id: of-1}}}}, {{release: {{id: to-0}}}}]
  - when: {{acked: m1}}
"""


@pytest.mark.parametrize(("name", "variant"), EVERYWHERE)
def test_a_campaign_has_the_same_outcome_on_brokers_and_in_the_model(
    name: str, variant: str | None, brokers: StartedBrokers, tmp_path: Path
) -> None:
    release = brokers.release.model_release
    if variant == "idempotent" and release == "0.10.2":
        pytest.skip("idempotence came with 0.11")
    campaign = load_campaign(LIBRARY / f"{name}.yaml", [f"kafka={release}", "settings.retries=100"])
    (plan,) = (plan for plan in campaign.plans if plan.variant == variant)
    result = brokers.run(plan, 0, tmp_path)
    assert result.verdict.reasons == ()
    comparison = compare_runs(plan, [result], (run_on_model(plan, seed) for seed in range(20)))
    assert (comparison.status, comparison.reasons) == (AGREED, ())


def test_a_leader_is_recognised_while_its_only_follower_gets_no_answers(
    brokers: StartedBrokers, tmp_path: Path
) -> None:
    text = HELD_FOLLOWER.format(release=brokers.release.model_release)
    result = brokers.run(load_text(text, "c.yaml").plans[0], 0, tmp_path)
    assert (result.verdict.status, result.verdict.reasons, result.missed) == (HELD, (), ())


@pytest.mark.parametrize("name", ["swarm", "swarm-kraft", "swarm-disks", "swarm-eos"])
def test_a_seed_of_a_swarm_runs_on_brokers_and_breaks_no_promise(
    name: str, brokers: StartedBrokers, tmp_path: Path
) -> None:
    release, mode = brokers.release, brokers.metadata
    is_for_kraft = name in {"swarm-kraft", "swarm-eos"}
    if release.model_release not in {"2.4", "3.9", "4.4"} or is_for_kraft != (mode == KRAFT):
        pytest.skip("each swarm is tried on the newest release that it is about, and on 2.4 and 3.9")
    overrides = [f"kafka={release.model_release}", f"cluster.metadata={mode}"]
    (plan, *_) = load_campaign(LIBRARY / f"{name}.yaml", overrides).plans
    result = brokers.run(plan, 0, tmp_path)
    assert result.verdict.status in {HELD, PERMITTED}, result.verdict.reasons


def test_a_campaign_chooses_the_library_of_its_clients(brokers: StartedBrokers, tmp_path: Path) -> None:
    release = brokers.release.model_release
    options = [f"kafka={release}", "settings.retries=100"]
    (plan, *_) = load_campaign(LIBRARY / "ack-lost.yaml", options).plans
    chosen = replace(
        plan,
        producers=tuple(replace(producer, library=KAFKA_PYTHON) for producer in plan.producers),
        consumers=tuple(replace(consumer, library=KAFKA_PYTHON) for consumer in plan.consumers),
    )
    result = brokers.run(chosen, 0, tmp_path)
    assert result.verdict.reasons == ()
    comparison = compare_runs(chosen, [result], (run_on_model(plan, seed) for seed in range(20)))
    assert (comparison.status, comparison.reasons) == (AGREED, ())


def test_a_committed_record_is_lost_before_leader_epochs_and_kept_since(
    brokers: StartedBrokers, tmp_path: Path
) -> None:
    plans = {plan.kafka: plan for plan in load_campaign(LIBRARY / "loss-by-hw-truncation.yaml").plans}
    plan = plans.get(brokers.release.model_release)
    if plan is None:
        pytest.skip("it is about 0.10.2 and 0.11")
    result = brokers.run(plan, 0, tmp_path)
    lost = [str(finding.value) for finding in result.verdict.rules["lost-write"].findings]
    assert (result.verdict.reasons, result.expected) == ((), True)
    assert lost == (["m1"] if plan.kafka == "0.10.2" else [])


def test_another_voter_leads_after_the_active_controller_is_killed_or_deposed(
    brokers: StartedBrokers, tmp_path: Path
) -> None:
    if brokers.metadata != KRAFT:
        pytest.skip("there is no quorum")
    campaign = load_text(QUORUM.format(release=brokers.release.model_release), "quorum.yaml")
    result = brokers.run(campaign.plans[0], 0, tmp_path)
    assert (result.verdict.status, result.verdict.reasons) == (HELD, ())
    events = [event[1:] for event in result.evidence.trace]
    first, *later = [event[1] for event in events if event[0] == ControllerElected.name]
    assert (BrokerStopped.name, first, KILLED) in events
    assert later
    assert later[0] != first
    # The core is healed first. It lacks the killed broker, because another one can replace that.
    killed = {event[1] for event in events if event[0] == BrokerStopped.name} - {first}
    core = result.evidence.core
    assert core is not None
    assert core.brokers
    assert killed.isdisjoint(core.brokers)


def test_the_controller_of_a_quorum_fails_over_and_no_record_is_lost(
    brokers: StartedBrokers, tmp_path: Path
) -> None:
    if brokers.metadata != KRAFT:
        pytest.skip("with ZooKeeper it is a broker")
    campaign = load_text(FAILOVERS.format(release=brokers.release.model_release), "failovers.yaml")
    result = brokers.run(campaign.plans[0], 0, tmp_path)
    assert (result.verdict.status, result.verdict.reasons) == (HELD, ())
    assert [fault.fault for fault in result.faults] == ["controller_failover"] * 3 + ["broker_pause"]
    events = [event[1:] for event in result.evidence.trace]
    assert (BrokerStopped.name, FIRST_CONTROLLER_ID, KILLED) in events
    epochs = [event[2] for event in events if event[0] == ControllerElected.name]
    resigned = [event[2] for event in events if event[0] == ControllerResigned.name]
    # A killed controller has a successor in the next epoch. A deposed one has it one epoch later,
    # because the next epoch has a candidate without votes.
    assert (epochs, resigned) == ([1, 2, 4, 6], [2, 4])
