"""A core that suffices is healed, and must then serve clients. Flaws of the model are noticed."""

from collections.abc import Iterator
from dataclasses import replace
from textwrap import dedent
from typing import Any

import pytest

from harrow.campaigns.language.library_index import resolve
from harrow.campaigns.language.loader import load_campaign, load_text
from harrow.campaigns.language.plan import Expectation, Plan
from harrow.campaigns.record.phrases import because
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import run_plan
from harrow.campaigns.search.shrink import Shrinker
from harrow.checks.evidence import HealedCore
from harrow.checks.finding import Finding
from harrow.cluster_model.broker.partition import Partition
from harrow.cluster_model.events import BrokerStarted
from harrow.cluster_model.protocol import LOG_END
from harrow.cluster_model.release.profiles import MUTANTS
from harrow.cluster_model.trace import select
from harrow.cluster_model.zookeeper.controller.kafka_controller import KafkaController
from tests.plain_model import patches_the_model
from tests.scenarios.mutant_campaigns import SCRIPTED

LEADER_DIES = """
    settings: {acks: all}
    cluster: {brokers: 3, controller: 2, topics: [{name: t, assignment: [[0, 1]]}]}
    script:
      - at: 1s
        do: {send: m0}
      - when: {acked: m0}
        do: {broker_crash: {broker: 0, restart_after: 1s}}
    core: {order: [1]}
    expect: {verdict: held, rules: {unavailable: held}}
    """

FOLLOWER_IS_STUCK = """
    settings: {acks: 1}
    cluster: {brokers: 3, controller: 2, topics: [{name: t, assignment: [[0, 1]]}]}
    script:
      - at: 1s
        do: {slow_follower: {broker: 1}}
      - at: 2s
        do: [{send: m0}, {send: m1}]
    workload: {duration: 3s, producers: [{name: producer-0}]}
    core: {order: [0]}
    expect: {verdict: held, rules: {unavailable: held}}
    """


def plan_of(text: str) -> Plan:
    (plan,) = load_text(dedent(text), "campaign.yaml").plans
    return plan


def core_of(result: RunResult) -> HealedCore:
    assert result.evidence.core is not None
    return result.evidence.core


def finding_of(text: str) -> Finding:
    """Return the only finding of the rule `unavailable`."""
    result = run_plan(plan_of(text), 0)
    (finding,) = result.verdict.rules["unavailable"].findings
    assert finding.permitted_by is None
    return finding


def lacks(finding: Finding) -> Any:
    return dict(finding.details)["lacks"]


@pytest.mark.parametrize(("text", "core"), [(LEADER_DIES, (1,)), (FOLLOWER_IS_STUCK, (0,))])
def test_a_core_serves_while_other_brokers_keep_their_faults(text: str, core: tuple[int, ...]) -> None:
    result = run_plan(plan_of(text), 0)
    assert result.expected, result.missed
    healed_core = core_of(result)
    assert healed_core.brokers == core
    assert healed_core.looked_us - healed_core.healed_us > 5_000_000, "the core recovered without a wait"
    assert healed_core.partitions["t-0"].leader == core[0]


ELIGIBLE_REPLICAS_ARE_DOWN = """
    kafka: 4.3
    settings: {acks: all, min.insync.replicas: 2}
    cluster: {brokers: 3, topics: [{name: t, assignment: [[0, 1]]}]}
    script:
      - at: 1s
        do: {send: m0}
      - when: {acked: m0}
        do: FIRST
      - at: 15s
        do: {broker_crash: {broker: 0}}
    workload: {duration: 30s}
    core: {order: [1]}
    expect: {verdict: held, rules: {unavailable: held}}
    """


@pytest.mark.parametrize(
    ("first", "core"),
    [("{broker_stop: {broker: 1}}", (1,)), ("{broker_crash: {broker: 1}}", (0, 1))],
)
def test_with_an_empty_isr_a_core_needs_all_eligible_replicas_that_stopped_uncleanly(
    first: str, core: tuple[int, ...]
) -> None:
    """KIP-966: a replica that stops uncleanly stays eligible until it registers again."""
    result = run_plan(plan_of(ELIGIBLE_REPLICAS_ARE_DOWN.replace("FIRST", first)), 0)
    assert result.expected, result.missed
    healed_core = core_of(result)
    assert sorted(healed_core.brokers) == list(core)
    assert healed_core.partitions["t-0"].leader in core


def test_planned_ends_of_faults_do_not_happen_outside_the_core() -> None:
    result = run_plan(plan_of(LEADER_DIES), 0)
    core = core_of(result)
    started = [event.at_us for event in select(result.evidence.trace, BrokerStarted) if event.broker == 0]
    assert not [at_us for at_us in started if core.healed_us <= at_us < core.looked_us]
    assert [at_us for at_us in started if at_us >= core.looked_us]


@patches_the_model
def test_a_controller_without_elections_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(_self: KafkaController, _brokers: list[int]) -> Iterator[None]:
        return iter(())

    monkeypatch.setattr(KafkaController, "_on_broker_failure", nothing)
    finding = finding_of(LEADER_DIES)
    assert lacks(finding) == "no-leader"
    assert [link.event for link in finding.chain] == ["elected", "stopped", "core-healed", "conclusion"]
    assert because(finding).endswith("the leader of t-0 was still broker 0, which was down")


@patches_the_model
def test_an_isr_that_never_shrinks_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Partition, "maybe_shrink_isr", lambda _self: None)
    finding = finding_of(FOLLOWER_IS_STUCK)
    assert lacks(finding) == "hw-behind"
    assert finding.value == "m0"
    assert "2 records of t-0, 2 of them acked, could not be read" in because(finding)
    assert "broker 1 alive with a fault still in force" in because(finding)


@patches_the_model
def test_a_leader_that_serves_no_consumers_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def readable_end(self: Partition, isolation: int) -> int:
        return self.log.log_end_offset if isolation == LOG_END else 0

    monkeypatch.setattr(Partition, "readable_end", readable_end)
    finding = finding_of(LEADER_DIES)
    assert lacks(finding) == "not-readable"
    assert finding.value == "m0"


def test_a_leader_that_does_not_know_its_leadership_is_noticed() -> None:
    mutant = MUTANTS["bounce-unnoticed"]
    assert "unavailable" in mutant.noticed_by
    plan = plan_of(SCRIPTED["bounce-unnoticed"])
    with_core = replace(plan, script=plan.script[:-1], core=plan_of("{core: {order: [0]}}").core)
    sound = run_plan(with_core, 0)
    assert sound.verdict.rules["unavailable"].status == "held"
    broken = run_plan(replace(with_core, behaviours={mutant.switch: mutant.value}), 0)
    (finding,) = broken.verdict.rules["unavailable"].findings
    assert lacks(finding) == "leader-unaware"
    assert "broker 0 still did not know that it leads t-0" in because(finding)


def test_a_leader_that_only_its_producer_cannot_reach_is_healed() -> None:
    """Broker 0 keeps its session and its leadership, but its producer cannot reach it."""
    plan = plan_of("""
        settings: {acks: all}
        cluster: {brokers: 3, controller: 2, topics: [{name: t, assignment: [[0, 1]]}]}
        script:
          - at: 1s
            do: {send: m0}
          - when: {acked: m0}
            do: {partition: {between: [0], and: [producer-0]}}
        core: {order: [1, 2, 0]}
        """)
    result = run_plan(plan, 0)
    assert core_of(result).brokers == (0,)
    assert result.verdict.status == "held"


def test_with_unclean_elections_any_replica_suffices() -> None:
    text = LEADER_DIES.replace("acks: all", "acks: all, unclean.leader.election.enable: true")
    separate_failures = text.replace(
        "do: {broker_crash",
        "do: [{broker_crash: {broker: 1}}, {wait: {}}]\n      - after: 20s\n        do: {broker_crash",
    )
    plan = plan_of(separate_failures)
    result = run_plan(plan, 0)
    core = core_of(result)
    assert core.brokers == (1,)
    assert core.partitions["t-0"].leader == 1
    assert result.verdict.rules["unavailable"].status == "held"
    clean = run_plan(plan_of(separate_failures.replace("enable: true", "enable: false")), 0)
    assert core_of(clean).brokers == (0,)


def test_a_run_that_ends_before_the_healing_is_inconclusive() -> None:
    result = run_plan(replace(plan_of(LEADER_DIES), events_limit=200), 0)
    assert result.verdict.rules["unavailable"].status == "inconclusive"


def test_a_run_without_a_core_is_not_judged_for_availability() -> None:
    result = run_plan(replace(plan_of(LEADER_DIES), core=None, expect=Expectation()), 0)
    assert "unavailable" not in result.verdict.rules
    assert result.evidence.core is None


def test_a_consumer_that_stays_with_a_former_leader_causes_no_finding() -> None:
    """Broker 2, the core, sends the first consumer to broker 0, an unaware former leader.

    Broker 0 can no longer remove broker 1 from the ISR, so it commits nothing, but refuses no
    fetch.
    """
    plan = plan_of("""
        settings: {acks: 1}
        cluster: {brokers: 3, controller: 2, topics: [{name: t, assignment: [[0, 2, 1]]}]}
        script:
          - at: 1s
            do: {send: m0}
          - when: {replicas: {t-0: {0: {hw: 1}, 2: {leo: 1, hw: 1}}}}
            do: [{slow_follower: {broker: 1}}, {send: m1}]
          - when: {replicas: {t-0: {0: {leo: 2, hw: 1}, 2: {leo: 2}}}}
            do:
              - broker_pause: {broker: 0}
              - message: {action: drop, api: LeaderAndIsr, from: 2, count: 99, id: leader-and-isr}
              - message: {action: drop, api: UpdateMetadata, from: 2, count: 99, id: metadata}
          - when: {leader: {t-0: 2}}
            do: {broker_resume: {broker: 0}}
          - when: {registered: {0: true}, no_event: {follower: {broker: 0}}}
          - after: 1s
        core: {}
        """)
    result = run_plan(plan, 0)
    core = core_of(result)
    assert core.brokers == (2,)
    assert result.verdict.rules["unavailable"].status == "held"
    readers = [name for name in result.evidence.process_names.values() if name == "core-reader"]
    assert len(readers) > 1, "the first consumer was enough"


@patches_the_model
def test_a_failure_of_a_core_is_shrunk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Partition, "maybe_shrink_isr", lambda _self: None)
    shrunk = Shrinker(plan_of(FOLLOWER_IS_STUCK), 0).run()
    assert shrunk.size() == (1, 1)
    assert len(shrunk.plan.cluster.brokers) == 2
    assert shrunk.plan.core is not None
    assert lacks(shrunk.finding) == "hw-behind"


@pytest.mark.parametrize(
    ("also", "core", "impaired"),
    [
        # Broker 0 keeps its session and its leadership, so the core must contain it.
        ("broker_pause: {broker: 3}", (0,), (1,)),
        # Broker 0 loses its session, and broker 1 takes over.
        ("broker_isolation: {broker: 0, from: zookeeper}", (1,), ()),
        ("broker_pause: {broker: 0}", (1,), ()),
        ("broker_crash: {broker: 0}", (1,), ()),
    ],
)
def test_a_disturbed_leader_that_keeps_its_leadership_belongs_to_the_core(
    also: str, core: tuple[int, ...], impaired: tuple[int, ...]
) -> None:
    text = f"""
        settings: {{acks: all, replica.lag.time.max.ms: 2s}}
        cluster: {{brokers: 4, controller: 2, topics: [{{name: t, assignment: [[0, 1]]}}]}}
        script:
          - at: 1s
            do: {{send: m0}}
          - when: {{acked: m0}}
            do: [partition: {{between: [0], and: [1]}}, {also}]
        core: {{order: [1]}}
        """
    result = run_plan(plan_of(text), 0)
    assert (core_of(result).brokers, core_of(result).impaired) == (core, impaired)
    assert result.verdict.rules["unavailable"].status == "held"


@pytest.mark.parametrize("action", ["drop", "hold", "delay"])
def test_a_fault_that_names_only_brokers_of_the_core_ends_at_the_healing(action: str) -> None:
    """The controller works, so it stays outside the core.

    After the healing its LeaderAndIsr requests reach broker 1, which it elects.
    """
    plan = plan_of(f"""
        settings: {{acks: all, controller.socket.timeout.ms: 1500}}
        cluster: {{brokers: 3, controller: 2, topics: [{{name: t, assignment: [[0, 1]]}}]}}
        script:
          - at: 1s
            do: {{send: m0}}
          - when: {{acked: m0}}
            do:
              - message: {{action: {action}, api: LeaderAndIsr, kind: request, to: 1, count: 999, delay: 5s}}
              - broker_crash: {{broker: 0}}
        core: {{order: [1]}}
        """)
    result = run_plan(plan, 0)
    healed_core = core_of(result)
    assert (healed_core.brokers, healed_core.impaired, healed_core.controller) == ((1,), (), 2)
    assert result.verdict.rules["unavailable"].status == "held"


@pytest.mark.parametrize(
    ("cluster", "server"),
    [
        ("kafka: 2.4\ncluster: {zookeeper: {servers: 3}, TOPICS}", "zookeeper-1"),
        ("kafka: 4.3\ncluster: {TOPICS}", "controller-3000"),
    ],
)
def test_a_leader_that_only_one_of_several_servers_cannot_reach_keeps_its_session(
    cluster: str, server: str
) -> None:
    text = cluster.replace("TOPICS", "topics: [{name: t, assignment: [[0, 1]]}]")
    plan = plan_of(f"""{text}
settings: {{acks: all}}
script:
  - at: 1s
    do: {{send: m0}}
  - when: {{acked: m0}}
    do:
      - message: {{action: drop, api: Fetch, kind: response, from: 0, count: 999}}
      - partition: {{between: [0], and: [{server}]}}
core: {{order: [1, 2, 0]}}
""")
    result = run_plan(plan, 0)
    assert core_of(result).brokers == (0,)
    assert result.verdict.rules["unavailable"].status == "held"


@pytest.mark.parametrize("kafka", ["4.0", "4.3"])
def test_a_controller_that_reaches_a_majority_of_voters_stays_active_and_is_healed(kafka: str) -> None:
    """The controller is a broker. It cannot reach the only replica's broker, which is fenced."""
    plan = plan_of(f"""
        kafka: {kafka}
        cluster: {{kraft: {{combined: true}}, topics: [{{name: t, assignment: [[2]]}}]}}
        script:
          - at: 1s
            do: {{send: m0}}
          - when: {{acked: m0}}
            do: {{partition: {{between: [controller], and: [2]}}}}
          - when: {{leader: {{t-0: -1}}}}
        core: {{order: [2, 1, 0]}}
        """)
    result = next(r for r in (run_plan(plan, seed) for seed in range(20)) if core_of(r).controller == 0)
    assert core_of(result).brokers == (2, 0)
    assert result.verdict.rules["unavailable"].status == "held"


@pytest.mark.parametrize("seed", [1008, 2155, 2215])
def test_a_controller_that_some_voters_cannot_reach_is_no_fault_of_the_core(seed: int) -> None:
    overrides = ("kafka=4.3", "cluster.kraft.combined=true")
    (plan,) = load_campaign(resolve("swarm-kraft")[0], overrides).plans
    assert run_plan(plan, seed).verdict.rules["unavailable"].status == "held"
