"""What real brokers cannot do or show of a campaign."""

import pytest

from harrow.campaigns.language.loader import load_text
from harrow.campaigns.language.plan import Plan
from harrow.live_cluster.feasible import as_real, obstacles
from harrow.live_cluster.getting.kafka_release import KRAFT, ZOOKEEPER, release_of

R241 = release_of("2.4.1")


def plan(text: str) -> Plan:
    return load_text(f"name: c\n{text}", "c.yaml").plans[0]


def action(text: str) -> str:
    return f"script: [{{do: {{{text}}}}}]\n"


CLUSTER = "cluster: {brokers: 3, topics: [{name: t, replication_factor: 3}]}\n"
PLAIN = """
kafka: "2.4"
settings: {acks: all, min.insync.replicas: 2}
cluster: {brokers: 3, topics: [{name: t, assignment: [[0, 1, 2], [1, 2, 0]]}], disk: {writeback: 30s}}
workload: {duration: 10s, producers: [{rate: 10/s}], consumers: [{}]}
script:
  - at: 1s
    do: [{send: m0}, {broker_crash: {broker: 1, kind: power_loss}}]
  - when: {acked: m0, event: {election: {reason: offline}}, replicas: {t-0: {0: {leo: 1, flushed: 1}}}}
    do: [{broker_restart: {broker: 1}}, {message: {action: hold, api: Fetch}}]
faults: [{every: 3s, do: {broker_pause: {broker: any}}}]
expect: {final: {controller: 0}}
"""


def test_a_plain_campaign_has_none() -> None:
    assert list(obstacles(plan(PLAIN), R241, ZOOKEEPER)) == []


@pytest.mark.parametrize(
    ("text", "obstacle"),
    [
        ("core: {}", "a core of the brokers cannot be healed alone"),
        (
            "behaviours: {controller_epoch_fencing: false}",
            "no setting of a broker makes controller_epoch_fencing false",
        ),
        (
            'kafka: "2.4"\nbehaviours: {follower_truncation: high_watermark}',
            "no setting of a broker makes follower_truncation high_watermark",
        ),
        ("script: [{when: {event: {isr_refused: {}}}}]", "the event isr_refused cannot be seen"),
        ("expect: {final: {event: {isr_refused: {}}}}", "the event isr_refused cannot be seen"),
        (
            action("message: {action: hold, znode: /controller}"),
            "messages about a znode cannot be told from others",
        ),
        (
            action("message: {action: hold, api: ZooKeeper}"),
            "ZooKeeper requests cannot be told from others",
        ),
        (
            action("message: {action: duplicate, api: Produce}"),
            "a client that gets an answer twice breaks its connection",
        ),
        (
            action("message: {action: duplicate, kind: response}"),
            "a client that gets an answer twice breaks its connection",
        ),
        (
            "faults: [{every: 3s, do: {message: {action: duplicate}}}]\nworkload: {duration: 9s}",
            "a client that gets an answer twice breaks its connection",
        ),
        (
            "settings: {log.flush.interval.messages: 5}\n"
            + action("broker_crash: {broker: 0, kind: power_loss}"),
            "how much of t is flushed cannot be seen",
        ),
        (
            "cluster: {brokers: 1, topics: [{name: s, settings: {flush.messages: 1}}, {name: u, settings: {flush.messages: 2}}]}\n"
            + action("broker_crash: {broker: 0, kind: power_loss}"),
            "how much of u is flushed cannot be seen",
        ),
    ],
)
def test_each_obstacle_is_said_once(text: str, obstacle: str) -> None:
    assert list(obstacles(plan(text), R241, ZOOKEEPER)) == [obstacle]


@pytest.mark.parametrize(
    "text",
    [
        action("message: {action: duplicate, kind: request}"),
        action("message: {action: delay, api: OffsetsForLeaderEpoch}"),
        "settings: {log.flush.interval.messages: 1}\n" + action("broker_crash: {broker: 0, kind: power_loss}"),
        # What is flushed matters to a power loss alone.
        "settings: {log.flush.interval.messages: 5}\n" + action("broker_crash: {broker: 0}"),
        "cluster: {brokers: 3, topics: [{name: t, assignment: [[0, 1]]}, {name: u, assignment: [[0, 1, 2]]}]}",
    ],
    ids=["request twice", "known api", "flush each", "no power loss", "topics differ"],
)  # fmt: skip
def test_what_is_near_to_an_obstacle_is_none(text: str) -> None:
    assert list(obstacles(plan(text), R241, ZOOKEEPER)) == []


REPAIRED = 'kafka: "2.0"\nbehaviours: {epoch_entry_on_election: true, isr_expansion_checks_epoch_start: true}'


def test_a_repair_is_no_obstacle() -> None:
    assert list(obstacles(plan(REPAIRED), R241, ZOOKEEPER)) == []


def test_real_brokers_are_without_the_repairs() -> None:
    given = plan(REPAIRED)
    real, without = as_real(given)
    assert without == ("epoch_entry_on_election", "isr_expansion_checks_epoch_start")
    assert (real.behaviours, real.kafka, real.cluster) == ({}, "2.0", given.cluster)
    assert as_real(real) == (real, ())


def test_clients_without_processes_are_an_obstacle() -> None:
    class Spec:
        name = "heartbeat-0"

    given = plan("")
    object.__setattr__(given, "applications", (Spec(),))
    assert list(obstacles(given, R241, ZOOKEEPER)) == ["heartbeat-0 is of a kind that has no processes"]


@pytest.mark.parametrize(
    ("text", "obstacle"),
    [
        (
            action("session_expiry: {broker: 0}"),
            "session_expiry is about ZooKeeper, and there is none",
        ),
        (action("controller_failover: {}"), "controller_failover is about ZooKeeper, and there is none"),
        (
            action("broker_pause: {broker: controller}"),
            "broker_pause strikes a broker, and the controller is none",
        ),
        ("expect: {final: {controller: 0}}", "the controller is no broker"),
    ],
)
def test_what_needs_zookeeper_is_an_obstacle_without_it(text: str, obstacle: str) -> None:
    assert list(obstacles(plan(text), R241, ZOOKEEPER)) == []
    assert list(obstacles(plan(text), R241, KRAFT)) == [obstacle]


def test_leader_epochs_of_replicas_are_seen_since_brokers_compare_them() -> None:
    asked = plan(CLUSTER + "script: [{when: {replicas: {t-0: {0: {leader_epoch: 1}}}}}]")
    assert list(obstacles(asked, R241, ZOOKEEPER)) == []
    assert list(obstacles(asked, release_of("2.0.1"), ZOOKEEPER)) == [
        "which leader epoch a replica knows cannot be seen before 2.1"
    ]
