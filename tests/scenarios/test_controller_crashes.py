"""A controller's decision takes effect even if it dies or pauses before ZooKeeper answers."""

from harrow.campaigns.language.loader import load_text
from harrow.campaigns.run.runner import run_plan
from harrow.checks.finding import HELD, PERMITTED

UNANSWERED = """
name: unheard-election
description: >
  The only member of the ISR dies, and the controller elects uncleanly. It dies before ZooKeeper answers its
  write. Its successor finds the new leader there.
kafka: "2.4"
settings: {acks: all, unclean.leader.election.enable: true, replica.lag.time.max.ms: 2s}
cluster:
  brokers: 4
  controller: 2
  topics: [{name: t, assignment: [[0, 1]]}]
workload: {producers: [{name: producer-0}]}
script:
  - do:
      - partition: {between: [0], and: [1]}
      - send: m0
  - when: {isr: {t-0: [0]}, acked: m0}
    do: {broker_crash: {broker: 0}}
  - when: {leader: {t-0: 1}}
    do:
      - expect:
          event: {election: {controller: 2, partition: t-0, leader: 1, isr: [1], unclean: true}}
          replicas: {t-0: {1: {role: follower}}}
      - broker_crash: {broker: 2}
  - when: {replicas: {t-0: {1: {role: leader}}}}
    do: {broker_restart: {broker: 0}}
expect: {verdict: permitted, lost: [m0]}
"""


def test_an_unanswered_election_takes_effect_when_zookeeper_has_it() -> None:
    (plan,) = load_text(UNANSWERED, "unheard-election.yaml").plans
    result = run_plan(plan, 0)
    assert result.expected, [missed.message for missed in result.missed]
    (finding,) = result.verdict.rules["lost-write"].findings
    assert result.verdict.status == PERMITTED
    assert finding.permitted_by == "unclean.leader.election.enable=true"
    assert "elected-uncleanly" in [link.event for link in finding.chain]


ANSWERED_LATE = """
name: heard-late
description: >
  A controller removes a dead broker from the ISR, and is paused before ZooKeeper answers. Its successor
  continues from there, and the leader removes another broker. Then the first one resumes, and gets the late answer.
kafka: "2.4"
settings: {acks: all, replica.lag.time.max.ms: 2s}
cluster:
  brokers: 4
  controller: 2
  topics: [{name: t, assignment: [[0, 1, 3]]}]
workload: {producers: [{name: producer-0}]}
script:
  - do: {send: m0}
  - when: {acked: m0}
    do: {broker_crash: {broker: 3}}
  - when: {isr: {t-0: [0, 1]}}
    do: {broker_pause: {broker: 2}}
  - when: {replicas: {t-0: {0: {role: leader, leader_epoch: 1}}}}
    do:
      - partition: {between: [0], and: [1]}
      - send: m1
  - when: {acked: m1}
    do:
      - expect: {isr: {t-0: [0]}}
      - broker_resume: {broker: 2}
"""


def test_a_late_answer_to_a_controller_does_not_change_the_current_isr() -> None:
    (plan,) = load_text(ANSWERED_LATE, "heard-late.yaml").plans
    result = run_plan(plan, 0)
    assert result.expected, [missed.message for missed in result.missed]
    assert "isr-holds-committed" in result.verdict.rules
    assert result.verdict.status == HELD
