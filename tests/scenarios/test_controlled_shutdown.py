"""Controlled shutdowns: which leaderships move, to which broker, and what happens if none can."""

from typing import Final

import pytest

from harrow.campaigns.language.loader import load_text
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import run_plan
from harrow.cluster_model import events
from harrow.cluster_model.release.profiles import RELEASES
from harrow.cluster_model.topology import ZOOKEEPER
from harrow.cluster_model.trace import select

MOVED: Final = """
name: moved
kafka: "{release}"
settings: {{acks: all}}
cluster: {{brokers: 3, controller: 2, topics: [{{name: t, assignment: [[0, 1], [1, 0]]}}, {{name: u, assignment: [[0]]}}]}}
workload: {{producers: [{{name: producer-0}}]}}
script:
  - do: [{{send: {{value: m0, partition: t-0}}}}, {{send: {{value: m1, partition: t-1}}}}]
  - when:
      acked: [m0, m1]
      replicas:
        t-0: {{0: {{role: leader, leo: 1, hw: 1}}, 1: {{role: follower, leo: 1, hw: 1}}}}
        t-1: {{0: {{role: follower, leo: 1, hw: 1}}, 1: {{role: leader, leo: 1, hw: 1}}}}
    do: {{broker_stop: {{broker: 0}}}}
  - note: broker 1 takes over the leadership of broker 0 before it stops
    when: {{event: {{election: {{partition: t-0, leader: 1, isr: [1], reason: controlled shutdown}}}}}}
    do: {{expect: {{brokers: {{0: up}}, registered: {{0: true}}}}}}
  - note: it leaves the ISRs of others, and stays leader of a partition without other replicas
    when: {{event: [{{isr_reduced: {{partition: t-1, isr: [1]}}}}, {{controlled_shutdown_answered: {{broker: 0, error: NONE}}}}]}}
    do: {{expect: {{leader: {{t-0: 1, t-1: 1, u-0: 0}}, leader_epoch: {{t-0: 1, t-1: 1, u-0: 0}}}}}}
  - when: {{event: {{broker_stopped: {{broker: 0, cause: shutdown}}}}}}
    do: {{expect: {{registered: {{0: false}}, brokers: {{0: down}}}}}}
  - when: {{replicas: {{t-0: {{1: {{role: leader, leo: 1, hw: 1}}}}}}, leader: {{u-0: -1}}}}
    do: [{{send: {{value: m2, partition: t-0}}}}]
  - when: {{acked: m2}}
    do: {{broker_restart: {{broker: 0}}}}
  - when: {{isr: {{t-0: [1, 0], t-1: [1, 0], u-0: [0]}}}}
    do: {{expect: {{leader: {{t-0: 1, t-1: 1, u-0: 0}}}}}}
expect:
  verdict: held
  final:
    replicas:
      t-0: {{0: {{role: follower, leo: 2, hw: 2, log: [m0, m2]}}, 1: {{role: leader, leo: 2, hw: 2, log: [m0, m2]}}}}
      t-1: {{0: {{role: follower, leo: 1, hw: 1, log: [m1]}}, 1: {{role: leader, leo: 1, hw: 1, log: [m1]}}}}
"""

CONTROLLER_STOPS: Final = """
name: of-the-controller
kafka: "{release}"
settings: {{acks: all, retries: 9, request.timeout.ms: 60s}}
cluster: {{brokers: 3, controller: 0, topics: [{{name: t, assignment: [[0, 1]]}}]}}
workload: {{producers: [{{name: producer-0}}]}}
script:
  - do: {{send: m0}}
  - when: {{acked: m0}}
    do: {{broker_stop: {{broker: 0}}}}
  - note: it sends the request to itself, and elects a last time
    when: {{event: [{{controlled_shutdown: {{controller: 0, broker: 0}}}}, {{election: {{controller: 0, leader: 1, isr: [1]}}}}]}}
  - note: it resigns, but its session keeps it in /controller
    when: {{event: {{controller_resigned: {{broker: 0}}}}}}
    do: {{expect: {{controller: 0}}}}
  - when: {{event: [{{session_closed: {{broker: 0}}}}, {{controller_changed: {{controller: -1}}}}]}}
  - when: {{event: [{{broker_stopped: {{broker: 0, cause: shutdown}}}}, {{controller_elected: {{controller_epoch: 2}}}}]}}
    do: {{send: m1}}
  - when: {{acked: m1}}
    do: {{broker_restart: {{broker: 0}}}}
expect:
  verdict: held
  final: {{replicas: {{t-0: {{0: {{role: follower, log: [m0, m1]}}, 1: {{role: leader, log: [m0, m1]}}}}}}}}
"""

CONTROLLER_DIES: Final = """
name: controller-dies
kafka: "{release}"
settings: {{acks: all}}
cluster: {{brokers: 3, controller: 2, topics: [{{name: t, assignment: [[0, 1]]}}]}}
workload: {{producers: [{{name: producer-0}}]}}
script:
  - do: [{{send: m0}}, {{message: {{action: hold, api: ControlledShutdown, kind: request, from: 0, to: 2, id: question}}}}]
  - when: {{acked: m0}}
    do: {{broker_stop: {{broker: 0}}}}
  - when: {{event: {{message_rule: {{rule: question}}}}}}
    do: {{broker_crash: {{broker: 2}}}}
  - note: the first attempt is lost with the controller, the second goes to the dead one
    when:
      event:
        - {{controlled_shutdown_answered: {{attempt: 1, controller: 2, error: NETWORK_EXCEPTION}}}}
        - {{controlled_shutdown_answered: {{attempt: 2, controller: 2, error: NETWORK_EXCEPTION}}}}
    do: {{expect: {{leader: {{t-0: 0}}, brokers: {{0: up}}}}}}
  - note: the third one reaches its successor
    when: {{event: [{{controller_elected: {{controller_epoch: 2}}}}, {{controlled_shutdown_answered: {{attempt: 3, error: NONE}}}}]}}
    do: {{expect: {{leader: {{t-0: 1}}, isr: {{t-0: [1]}}}}}}
  - when: {{event: {{broker_stopped: {{broker: 0, cause: shutdown}}}}}}
expect:
  verdict: held
  final: {{replicas: {{t-0: {{1: {{role: leader, log: [m0]}}}}}}}}
"""

EXHAUSTED: Final = """
name: exhausted
kafka: "{release}"
settings:
  acks: all
  controller.socket.timeout.ms: 1s
  controlled.shutdown.max.retries: 2
  controlled.shutdown.retry.backoff.ms: 3s
cluster: {{brokers: 3, controller: 2, topics: [{{name: t, assignment: [[0, 1]]}}]}}
workload: {{producers: [{{name: producer-0}}]}}
script:
  - do: [{{send: m0}}, {{message: {{action: drop, api: ControlledShutdown, kind: request, count: 2, id: question}}}}]
  - when: {{acked: m0}}
    do: {{broker_stop: {{broker: 0}}}}
  - when: {{event: {{controlled_shutdown_answered: {{attempt: 2, error: NETWORK_EXCEPTION}}}}}}
    do: [{{expect: {{brokers: {{0: up}}, leader: {{t-0: 0}}, no_event: {{controlled_shutdown: {{broker: 0}}}}}}}}, {{send: m1}}]
  - note: it serves until it stops
    when: {{acked: m1}}
    do: {{expect: {{brokers: {{0: up}}, leader: {{t-0: 0}}}}}}
  - when: {{event: [{{controlled_shutdown_given_up: {{broker: 0, attempts: 2}}}}, {{broker_stopped: {{broker: 0, cause: shutdown}}}}]}}
    do: {{expect: {{registered: {{0: false}}, replicas: {{t-0: {{1: {{role: follower}}}}}}}}}}
  - note: its session is closed, so the election does not wait for its timeout
    when: {{event: {{election: {{leader: 1, isr: [1], reason: broker failure}}}}}}
expect:
  verdict: held
  final: {{replicas: {{t-0: {{0: {{log: [m0, m1]}}, 1: {{log: [m0, m1]}}}}}}}}
"""

NO_SUCCESSOR: Final = """
name: alone
kafka: "{release}"
settings: {{acks: all, unclean.leader.election.enable: false, replica.lag.time.max.ms: 2s}}
cluster: {{brokers: 3, controller: 2, topics: [{{name: t, assignment: [[0, 1]]}}]}}
workload: {{producers: [{{name: producer-0}}]}}
script:
  - do: [{{partition: {{between: [0], and: [1]}}}}, {{send: m0}}]
  - when: {{acked: m0, isr: {{t-0: [0]}}}}
    do: {{broker_stop: {{broker: 0}}}}
  - when: {{event: {{controlled_shutdown_answered: {{broker: 0, attempt: 1, error: NONE, remaining: t-0}}}}}}
    do: [{{send: m1}}]
  - note: no other replica is in sync, so it leads until it stops
    when: {{acked: m1}}
    do: {{expect: {{leader: {{t-0: 0}}, leader_epoch: {{t-0: 0}}, isr: {{t-0: [0]}}, replicas: {{t-0: {{0: {{role: leader, leo: 2, hw: 2}}, 1: {{leo: 0}}}}}}}}}}
  - when: {{event: [{{controlled_shutdown_given_up: {{attempts: 3}}}}, {{broker_stopped: {{broker: 0, cause: shutdown}}}}]}}
  - note: then there is no leader, and it stays the only member of the ISR
    when: {{leader: {{t-0: -1}}}}
    do: [{{expect: {{isr: {{t-0: [0]}}, replicas: {{t-0: {{1: {{role: follower, leo: 0}}}}}}}}}}, {{broker_restart: {{broker: 0}}}}]
  - when: {{leader: {{t-0: 0}}, replicas: {{t-0: {{0: {{role: leader, leo: 2, hw: 2}}}}}}}}
expect:
  verdict: held
  final: {{replicas: {{t-0: {{0: {{role: leader, log: [m0, m1]}}, 1: {{role: follower, log: [m0, m1]}}}}}}}}
"""

DISABLED: Final = """
name: not-asked
kafka: "{release}"
settings: {{acks: all, controlled.shutdown.enable: false}}
cluster: {{brokers: 3, controller: 2, topics: [{{name: t, assignment: [[0, 1]]}}]}}
workload: {{producers: [{{name: producer-0}}]}}
script:
  - do: {{send: m0}}
  - when: {{acked: m0}}
    do: {{broker_stop: {{broker: 0}}}}
  - when: {{event: {{election: {{leader: 1, isr: [1], reason: broker failure}}}}}}
    do: {{expect: {{no_event: [{{controlled_shutdown: {{broker: 0}}}}, {{controlled_shutdown_given_up: {{broker: 0}}}}], brokers: {{0: down}}}}}}
expect: {{verdict: held, final: {{replicas: {{t-0: {{0: {{log: [m0]}}, 1: {{log: [m0]}}}}}}}}}}
"""

SCENARIOS: Final = {
    text.split()[1]: text
    for text in (MOVED, CONTROLLER_STOPS, CONTROLLER_DIES, EXHAUSTED, NO_SUCCESSOR, DISABLED)
}


def run(text: str, release: str = "2.4", seed: int = 0) -> RunResult:
    # Every release runs with ZooKeeper and with the same session timeout.
    options = [f"cluster.metadata={ZOOKEEPER}", "zookeeper.session.timeout.ms=6000"]
    (plan,) = load_text(text.format(release=release), "campaign.yaml", options).plans
    return run_plan(plan, seed)


@pytest.mark.parametrize(
    "release", [name for name, release in RELEASES.items() if ZOOKEEPER in release.modes]
)
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_controlled_shutdown_has_its_expected_course_in_every_release(name: str, release: str) -> None:
    for seed in (0, 1):
        result = run(SCENARIOS[name], release, seed)
        assert result.expected, [missed.message for missed in result.missed]


@pytest.mark.parametrize(("how", "lost"), [("broker_stop", ()), ("broker_crash", ("m0",))])
def test_a_controlled_shutdown_flushes_logs(how: str, lost: tuple[str, ...]) -> None:
    text = """
settings: {{acks: all}}
cluster: {{brokers: 1, topics: [{{name: t, replication_factor: 1}}]}}
workload: {{producers: [{{name: producer-0}}]}}
script:
  - do: {{send: m0}}
  - when: {{acked: m0}}
    do: {{HOW: {{broker: 0, restart_after: 1s}}}}
  - when: {{event: [{{broker_stopped: {{}}}}, {{broker_started: {{}}}}], leader: {{t-0: 0}}, replicas: {{t-0: {{0: {{leo: 1}}}}}}}}
    do: {{broker_crash: {{broker: 0, kind: power_loss}}}}
"""
    result = run(text.replace("HOW", how))
    assert tuple(finding.value for finding in result.verdict.rules["lost-write"].findings) == lost


UNCLEANLY: Final = """
name: uncleanly
kafka: "{release}"
settings: {{acks: all, unclean.leader.election.enable: true, replica.lag.time.max.ms: 2s}}
cluster: {{brokers: 4, controller: 2, topics: [{{name: t, assignment: [[0, 1]]}}]}}
workload: {{producers: [{{name: producer-0}}]}}
script:
  - do: [{{partition: {{between: [0], and: [1]}}}}, {{send: m0}}]
  - when: {{acked: m0, isr: {{t-0: [0]}}}}
    do: {{broker_stop: {{broker: 0}}}}
  - when: {{event: {{controlled_shutdown_answered: {{broker: 0, attempt: 1, remaining: t-0}}}}}}
    do: {{broker_bounce: {{broker: 3}}}}
  - when: {{event: {{broker_registered: {{broker: 3}}}}}}
  - after: 1s
    do: {{expect: {{brokers: {{0: up}}, leader: {{t-0: {leader}}}}}}}
expect: {{verdict: {verdict}}}
"""


@pytest.mark.parametrize(
    ("release", "leader", "verdict"),
    [("0.10.2", 0, "held"), ("0.11", 0, "held"), ("2.0", 1, "permitted"), ("2.4", 1, "permitted")],
)
def test_from_2_0_on_a_leader_in_shutdown_counts_as_dead_when_another_broker_stops(
    release: str, leader: int, verdict: str
) -> None:
    text = UNCLEANLY.replace("{leader}", str(leader)).replace("{verdict}", verdict)
    result = run(text, release)
    assert result.expected, [missed.message for missed in result.missed]


TOO_QUICK: Final = """
name: too-quick
kafka: "{release}"
settings: {{acks: all}}
cluster: {{brokers: 3, controller: 2, topics: [{{name: t, assignment: [[0, 1]]}}]}}
workload: {{duration: 40s, producers: [{{name: producer-0}}]}}
script:
  - do: {{send: m0}}
  - when: {{acked: m0}}
    do: {{broker_bounce: {{broker: 1}}}}
  - note: the controller is paused while the broker restarts
    when: {{event: {{controlled_shutdown_answered: {{broker: 1, error: NONE}}}}}}
    do: {{broker_pause: {{broker: 2, duration: 3s}}}}
  - when: {{event: [{{broker_stopped: {{broker: 1}}}}, {{broker_registered: {{broker: 1}}}}, {{broker_resumed: {{broker: 2}}}}]}}
  - after: 15s
    do: {{expect: {{isr: {{t-0: {isr}}}}}}}
"""


@pytest.mark.parametrize(
    ("release", "isr", "verdict"),
    [("2.0", "[0]", "inconclusive"), ("2.4", "[0, 1]", "held")],
)
def test_before_kip_380_a_broker_that_restarts_unnoticed_stays_out_of_isrs(
    release: str, isr: str, verdict: str
) -> None:
    """KAFKA-1120: the controller still takes the broker for stopping, and sends it nothing."""
    result = run(TOO_QUICK.replace("{isr}", isr), release)
    assert not [missed.message for missed in result.missed if "ISR" in missed.message]
    assert result.verdict.status == verdict


def test_stopping_a_broker_that_is_still_starting_kills_it() -> None:
    """Kafka cannot shut down during startup, and halts (``KafkaServerStartable.shutdown``)."""
    result = run("""
settings: {{acks: all}}
cluster: {{brokers: 2, topics: [{{name: t, replication_factor: 2}}]}}
workload: {{producers: [{{name: producer-0}}]}}
script:
  - do: [{{broker_crash: {{broker: 1}}}}, {{broker_restart: {{broker: 1}}}}, {{broker_stop: {{broker: 1, restart_after: 10s}}}}]
""")
    stops = [event.cause for event in select(result.evidence.trace, events.BrokerStopped)]
    assert stops == ["process", "process"]
    assert not list(select(result.evidence.trace, events.ControlledShutdownAnswered))


def test_a_paused_broker_stops_when_it_resumes() -> None:
    result = run("""
settings: {{acks: all}}
cluster: {{brokers: 2, topics: [{{name: t, replication_factor: 2}}]}}
workload: {{producers: [{{name: producer-0}}]}}
script:
  - do: {{send: m0}}
  - when: {{acked: m0}}
    do: [{{broker_pause: {{broker: 1, duration: 2s}}}}, {{broker_stop: {{broker: 1, restart_after: 1s}}}}]
  - after: 1900ms
    do: {{expect: {{brokers: {{1: paused}}, registered: {{1: true}}}}}}
  - when: {{event: [{{broker_resumed: {{broker: 1}}}}, {{broker_stopped: {{broker: 1, cause: shutdown}}}}, {{broker_started: {{broker: 1}}}}]}}
expect: {{verdict: held}}
""")
    assert result.expected, [missed.message for missed in result.missed]


def test_a_broker_without_zookeeper_waits_for_it_and_finally_stops() -> None:
    """Releases before KAFKA-9189 hang in their request to ZooKeeper for the controller."""
    result = run("""
settings: {{acks: all, zookeeper.session.timeout.ms: 6s}}
cluster: {{brokers: 3, controller: 2, topics: [{{name: t, assignment: [[0, 1]]}}]}}
workload: {{duration: 60s, producers: [{{name: producer-0}}]}}
script:
  - do: [{{send: m0}}, {{broker_isolation: {{broker: 0, from: zookeeper, duration: 30s}}}}]
  - when: {{acked: m0}}
    do: {{broker_stop: {{broker: 0}}}}
  - note: its session expires, it loses its leadership, and it still waits
    when: {{event: {{session_expired: {{broker: 0}}}}, leader: {{t-0: 1}}}}
  - after: 15s
    do: {{expect: {{brokers: {{0: up}}, no_event: {{controlled_shutdown: {{broker: 0}}}}}}}}
  - when: {{event: [{{controlled_shutdown_given_up: {{broker: 0}}}}, {{broker_stopped: {{broker: 0, cause: shutdown}}}}]}}
expect: {{verdict: held}}
""")
    assert result.expected, [missed.message for missed in result.missed]


def test_sockets_close_before_the_session() -> None:
    """Clients notice at once that a broker has stopped, even if closing its session takes long."""
    result = run(
        """
kafka: "{release}"
settings: {{acks: all, retries: 0}}
cluster: {{brokers: 2, controller: 1, topics: [{{name: t, assignment: [[0]]}}]}}
workload: {{duration: 20s, producers: [{{name: producer-0}}]}}
script:
  - do: {{send: m0}}
  - when: {{acked: m0}}
    do: {{broker_stop: {{broker: 0}}}}
  - when: {{event: {{controlled_shutdown_answered: {{broker: 0, error: NONE}}}}}}
    do: [{{broker_isolation: {{broker: 0, from: zookeeper, duration: 10s}}}}, {{send: m1}}]
  - note: only connected clients know it so far
    when: {{failed: m1}}
    do: {{expect: {{brokers: {{0: up}}, registered: {{0: true}}}}}}
  - when: {{event: {{broker_stopped: {{broker: 0, cause: shutdown}}}}}}
""",
        "2.0",
    )
    assert result.expected, [missed.message for missed in result.missed]
