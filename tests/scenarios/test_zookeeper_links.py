"""Brokers that lose their links to ZooKeeper for a while."""

import pytest

from harrow.campaigns.language.loader import load_text
from harrow.campaigns.run.runner import run_plan
from harrow.cluster_model.events import MessageRuleApplied
from harrow.cluster_model.trace import select

# The leader cannot write its ISR. Requests for the partition wait for that, one behind the other.
REQUESTS_PILE_UP = """
kafka: "2.4"
settings: {acks: 0, replica.lag.time.max.ms: 1000, zookeeper.session.timeout.ms: 30000}
cluster:
  brokers: 3
  controller: 2
  topics: [{name: t, assignment: [[0, 1]]}]
workload:
  duration: 20s
  producers: [{rate: 200/s}]
faults:
  - {at: 1s, do: {partition: {between: [0], and: [zookeeper], duration: 8s}}}
  - {at: 1s, do: {slow_follower: {broker: 1, mode: stuck, duration: 10s}}}
"""

# The controller's connection breaks, but not its session, and a broker dies meanwhile.
WATCH_FIRES_UNHEARD = """
kafka: "2.4"
settings: {acks: all, enable.idempotence: true}
cluster:
  brokers:
    - {id: 0, settings: {zookeeper.session.timeout.ms: 18000}}
    - {id: 1, settings: {zookeeper.session.timeout.ms: 2000}}
    - {id: 2, settings: {zookeeper.session.timeout.ms: 2000}}
  controller: 0
  topics: [{name: t, assignment: [[1, 2]]}]
workload:
  duration: 40s
  producers: [{rate: 10/s}]
faults:
  - {at: 1s, do: {partition: {between: [0], and: [zookeeper], duration: 14s}}}
  - {at: 2s, do: {broker_crash: {broker: 1}}}
"""


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("text", [REQUESTS_PILE_UP, WATCH_FIRES_UNHEARD])
def test_the_cluster_recovers_from_broken_links_to_zookeeper(text: str, seed: int) -> None:
    (plan,) = load_text(text, "campaign.yaml").plans
    verdict = run_plan(plan, seed).verdict
    assert (verdict.status, verdict.reasons) == ("held", ())


def test_a_message_fault_selects_requests_by_znode() -> None:
    """The fault delays only the leader's ISR writes, not its pings or other requests."""
    text = """
kafka: "2.4"
settings: {acks: all, replica.lag.time.max.ms: 1000}
cluster:
  brokers: 3
  controller: 2
  topics: [{name: t, assignment: [[0, 1, 2]]}, {name: other, assignment: [[1]]}]
workload: {duration: 10s, producers: [{rate: 20/s}]}
faults:
  - {at: 1s, do: {slow_follower: {broker: 1, mode: stuck}}}
  - {at: 1s, do: {message: {action: delay, delay: 1s, znode: ZNODE, kind: KIND, count: 100}}}
"""
    affected = {}
    for znode in (
        "/brokers/topics/t",
        "/brokers/topics/t/partitions/0/state",
        "/brokers/topics/other",
        "/bro",
    ):
        for kind in ("request", "response"):
            (plan,) = load_text(text.replace("ZNODE", znode).replace("KIND", kind), "campaign.yaml").plans
            applied = select(run_plan(plan, 1).evidence.trace, MessageRuleApplied)
            delayed = [event for event in applied if event.rule == "message"]
            affected[znode, kind] = {(event.api, event.sender, event.receiver) for event in delayed}
    requests, responses = {("ZooKeeper", "broker-0", "zookeeper")}, {("ZooKeeper", "zookeeper", "broker-0")}
    topic, state, other, no_parent = dict.fromkeys(znode for znode, _ in affected)
    assert affected[topic, "request"] == affected[state, "request"] == requests
    assert affected[topic, "response"] == affected[state, "response"] == responses
    assert not any(affected[znode, kind] for znode in (other, no_parent) for kind in ("request", "response"))


LOST_ANSWER = """
name: lost-answer
cluster:
  brokers: 2
  controller: 0
  topics: [{name: t, replication_factor: 2}]
settings: {zookeeper.session.timeout.ms: 6s}
script:
  - at: 0s
    do: {message: {action: reset, kind: response, znode: ZNODE, to: BROKER, skip: SKIP}}
  - at: 1s
    do: {broker_crash: {broker: 0, restart_after: 12s}}
  - at: 12s
    do: {expect: {controller: 1, leader: {t-0: 1}}}
  - at: 30s
    do: {expect: {controller: 1, registered: {0: true, 1: true}, isr: {t-0: [0, 1]}}}
"""


@pytest.mark.parametrize(
    ("znode", "broker", "skip"),
    [
        # The first response to broker 0 about its node answers its registration. The controller
        # reads its epoch before it writes it, so the rule skips one response.
        ("/brokers/ids/0", 0, 0),
        ("/controller_epoch", 1, 1),
    ],
)
def test_a_broker_recognises_its_own_znode_after_a_lost_answer(znode: str, broker: int, skip: int) -> None:
    """After a lost answer the repeated request fails, because the znode exists.

    The checks of Kafka are ``CheckedEphemeral`` and ``checkControllerAndEpoch``.
    """
    text = LOST_ANSWER.replace("ZNODE", znode).replace("BROKER", str(broker)).replace("SKIP", str(skip))
    (plan,) = load_text(text, "lost.yaml").plans
    result = run_plan(plan, 0)
    assert result.missed == ()
    assert [event for event in result.evidence.trace if event[1] == MessageRuleApplied.name]
