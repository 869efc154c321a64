"""If a topic does not set them, settings of its leader or of the controller apply."""

from dataclasses import replace

import pytest

from harrow.campaigns.language.loader import load_text
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import run_plan
from harrow.checks.index import Index
from harrow.checks.rules.catalogue import RULES
from harrow.cluster_model import errors
from harrow.cluster_model.events import LeaderElected, RequestRejected
from harrow.cluster_model.trace import select

MIN_ISR = """
settings: {{acks: all, retries: 0}}
cluster:
  brokers:
    - {{id: 0, settings: {{min.insync.replicas: {first}}}}}
    - {{id: 1, settings: {{min.insync.replicas: {leader}}}}}
  topics: [{{name: t, assignment: [[1, 0]], settings: {{{topic}}}}}]
  controller: 1
workload: {{duration: 40s, producers: [{{name: producer-0}}]}}
script:
  - at: 1s
    do: {{broker_crash: {{broker: 0, restart_after: 30s}}}}
  - when: {{isr: {{t-0: [1]}}}}
  - after: 1s
    do: {{send: m0}}
"""

UNCLEAN = """
settings: {{acks: 1}}
cluster:
  brokers:
    - {{id: 0, settings: {{unclean.leader.election.enable: false}}}}
    - {{id: 1, settings: {{unclean.leader.election.enable: false}}}}
    - {{id: 2, settings: {{unclean.leader.election.enable: false}}}}
    - {{id: 3, settings: {{unclean.leader.election.enable: true}}}}
  topics: [{{name: t, assignment: [[1, 2]]}}]
  controller: {controller}
workload: {{duration: 60s, producers: [{{name: producer-0}}]}}
script:
  - at: 1s
    do: {{broker_crash: {{broker: 2, restart_after: 20s}}}}
  - when: {{isr: {{t-0: [1]}}}}
    do: [{{send: m0}}]
  - when: {{acked: m0}}
    do: {{broker_crash: {{broker: 1, restart_after: 40s}}}}
"""


def run(text: str, **values: object) -> RunResult:
    (plan,) = load_text(text.format(**values), "campaign.yaml").plans
    return run_plan(plan, 0)


@pytest.mark.parametrize(
    ("first", "leader", "topic", "refused"),
    [
        (1, 2, "", True),
        (2, 1, "", False),
        (1, 1, "min.insync.replicas: 2", True),
        (2, 2, "min.insync.replicas: 1", False),
    ],
)
def test_the_leaders_min_insync_replicas_apply_unless_the_topic_has_its_own(
    first: int, leader: int, topic: str, refused: bool
) -> None:
    result = run(MIN_ISR, first=first, leader=leader, topic=topic)
    rejected = {event.error for event in select(result.evidence.trace, RequestRejected)}
    assert (errors.NOT_ENOUGH_REPLICAS in rejected) is refused
    rule = result.verdict.rules.get("acked-below-min-isr")
    # A leader that refuses the record acks nothing, so nothing tries the rule.
    assert (rule is None) is refused
    assert rule is None or rule.status == "held"


@pytest.mark.parametrize(("leaders", "others", "findings"), [(1, 2, 0), (2, 1, 1)])
def test_the_judge_applies_the_leaders_own_min_insync_replicas(
    leaders: int, others: int, findings: int
) -> None:
    # Broker 1 leads with its own min.insync.replicas of 1, and acks with only itself in the ISR.
    acked = run(MIN_ISR, first=2, leader=1, topic="").evidence
    settings = acked.partitions["t-0"]
    by_min_isr = {own.min_insync_replicas: own for own in settings.on_broker.values()}
    stated = replace(settings, on_broker={0: by_min_isr[others], 1: by_min_isr[leaders]})
    evidence = replace(acked, partitions={"t-0": stated})
    assert len(RULES["acked-below-min-isr"].judge(Index(evidence)).findings) == findings


@pytest.mark.parametrize(("controller", "unclean"), [(0, False), (3, True)])
def test_the_controllers_own_unclean_leader_election_applies(controller: int, unclean: bool) -> None:
    evidence = run(UNCLEAN, controller=controller).evidence
    assert any(event.unclean for event in select(evidence.trace, LeaderElected)) is unclean
    settings = evidence.partitions["t-0"]
    assert settings.unclean_leader_election
    assert settings.allows_unclean_election(controller) is unclean
    assert not settings.allows_unclean_election(None)
