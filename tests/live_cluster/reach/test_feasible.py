"""Obstacles are the parts of a campaign that real brokers cannot do or show."""

from dataclasses import replace
from typing import Final

import pytest

from harrow.campaigns.language.library_index import resolve
from harrow.campaigns.language.loader import load_campaign, load_text
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.swarm import draw_for_seed
from harrow.cluster_model.release.profiles import SWITCHES
from harrow.cluster_model.topology import KAFKA_PYTHON
from harrow.live_cluster.clients.client_settings import LIBRARIES
from harrow.live_cluster.local.started_effects import started_reach
from harrow.live_cluster.reach import feasible
from harrow.live_cluster.reach.feasible import as_run_on_brokers, obstacles_within, voters_of
from harrow.live_cluster.releases.kafka_release import (
    KRAFT,
    ZOOKEEPER,
    KafkaRelease,
    pinned_releases,
    release_of,
)

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


def test_a_plain_campaign_has_no_obstacles() -> None:
    assert list(obstacles_within(plan(PLAIN), started_reach(R241, ZOOKEEPER))) == []


@pytest.mark.parametrize(
    ("text", "obstacle"),
    [
        (
            "behaviours: {controller_epoch_fencing: false}",
            "no setting of a broker makes controller_epoch_fencing false",
        ),
        (
            'kafka: "2.4"\nbehaviours: {follower_truncation: high_watermark}',
            "no setting of a broker makes follower_truncation high_watermark",
        ),
        ("script: [{when: {event: {isr_refused: {}}}}]", "harrow cannot observe the event isr_refused"),
        ("expect: {final: {event: {isr_refused: {}}}}", "harrow cannot observe the event isr_refused"),
        (
            action("message: {action: hold, znode: /controller}"),
            "harrow cannot tell messages about a znode from others",
        ),
        (
            action("message: {action: hold, api: ZooKeeper}"),
            "harrow cannot tell ZooKeeper requests from others",
        ),
        (
            action("message: {action: duplicate, api: Produce}"),
            "a client that gets a response twice breaks its connection",
        ),
        (
            action("message: {action: duplicate, kind: response}"),
            "a client that gets a response twice breaks its connection",
        ),
        (
            "faults: [{every: 3s, do: {message: {action: duplicate}}}]\nworkload: {duration: 9s}",
            "a client that gets a response twice breaks its connection",
        ),
        (
            action("send: {value: m0, key: k, tombstone: true}"),
            "harrow cannot distinguish tombstones on real brokers, so it sends none",
        ),
        (
            "workload: {duration: 5s, producers: [{name: p, rate: 1/s, keys: 3, tombstone_every: 2}]}",
            "harrow cannot distinguish tombstones on real brokers, so it sends none",
        ),
        (
            "workload: {duration: 5s, producers: [{name: p, rate: 1/s, keys: 3, record_bytes: 1000}]}",
            "record_bytes does not apply to records with keys on real brokers",
        ),
        (
            "cluster: {brokers: 1, topics: [{name: t, settings: {cleanup.policy: compact}}]}",
            "harrow cannot observe what compaction removes",
        ),
        (
            action("stale_checkpoint: {broker: 0, age: 5s}"),
            "stale_checkpoint: harrow does not keep older checkpoint files",
        ),
        (
            "workload: {duration: 5s, consumers: [{name: c, library: kafka-python, settings: {group.id: g}}]}",
            "c is a member of a group, and needs confluent-kafka on real brokers",
        ),
        (
            "workload: {duration: 5s, consumers: [{name: c, settings: {group.id: g, partition.assignment.strategy: sticky}}]}",
            "c uses confluent-kafka, which has no assignor sticky",
        ),
        (
            "settings: {log.flush.interval.messages: 5}\n"
            + action("broker_crash: {broker: 0, kind: power_loss}"),
            "harrow cannot observe how much of t is flushed",
        ),
        (
            "cluster: {brokers: 1, topics: [{name: s, settings: {flush.messages: 1}}, {name: u, settings: {flush.messages: 2}}]}\n"
            + action("broker_crash: {broker: 0, kind: power_loss}"),
            "harrow cannot observe how much of u is flushed",
        ),
    ],
)
def test_each_obstacle_is_reported_once(text: str, obstacle: str) -> None:
    assert list(obstacles_within(plan(text), started_reach(R241, ZOOKEEPER))) == [obstacle]


REQUESTS = {
    "DeleteRecords": "delete_records: {partition: t-0}",
    "CreatePartitions": "add_partitions: {topic: t, partitions: 2}",
    "AlterPartitionReassignments": "reassign_partition: {partition: t-0, replicas: [0, 1]}",
}
OLD = {"0.10.2.2": REQUESTS.keys(), "0.11.0.3": ["CreatePartitions", "AlterPartitionReassignments"]}
OLD |= {"1.1.1": ["AlterPartitionReassignments"], "2.0.1": ["AlterPartitionReassignments"], "2.4.1": []}


@pytest.mark.parametrize("api", REQUESTS)
@pytest.mark.parametrize("release", OLD)
def test_a_request_that_brokers_of_the_release_lack_is_an_obstacle(release: str, api: str) -> None:
    text = CLUSTER + action(REQUESTS[api])
    obstacles = list(obstacles_within(plan(text), started_reach(release_of(release), ZOOKEEPER)))
    assert bool(obstacles) == (api in OLD[release])
    assert all(reason.startswith(f"brokers of {release} have no {api}, ") for reason in obstacles)


@pytest.mark.parametrize(("api", "text"), REQUESTS.items())
def test_requests_of_administrators_are_sent_only_to_brokers_that_harrow_started(api: str, text: str) -> None:
    reach = replace(started_reach(R241, ZOOKEEPER), requests=frozenset())
    obstacles = list(obstacles_within(plan(CLUSTER + action(text)), reach))
    assert obstacles == [f"harrow does not send {api} to these brokers"]


@pytest.mark.parametrize(
    "text",
    [
        action("message: {action: duplicate, kind: request}"),
        action("message: {action: delay, api: OffsetsForLeaderEpoch}"),
        "settings: {log.flush.interval.messages: 1}\n" + action("broker_crash: {broker: 0, kind: power_loss}"),
        # Flushed records matter only to a power loss.
        "settings: {log.flush.interval.messages: 5}\n" + action("broker_crash: {broker: 0}"),
        "cluster: {brokers: 3, topics: [{name: t, assignment: [[0, 1]]}, {name: u, assignment: [[0, 1, 2]]}]}",
        "workload: {duration: 5s, producers: [{name: p, rate: 1/s, keys: 3}]}",
        action("send: {value: m0, key: k}"),
        "cluster: {brokers: 1, disk: {log_dirs: 2}}",
        action("stale_checkpoint: {broker: 0, file: leader-epoch-checkpoint}"),
    ],
    ids=[
        *("request twice", "known api", "flush each", "no power loss", "topics differ"),
        *("keys", "key", "log directories", "missing checkpoint"),
    ],
)  # fmt: skip
def test_similar_plans_without_obstacles_are_accepted(text: str) -> None:
    assert list(obstacles_within(plan(text), started_reach(R241, ZOOKEEPER))) == []


REPAIRED = 'kafka: "2.0"\nbehaviours: {epoch_entry_on_election: true, isr_expansion_checks_epoch_start: true}'


@pytest.mark.parametrize("release", ["0.11.0.3", "2.0.1", "2.4.1"])
def test_existing_and_later_behaviours_are_not_obstacles(release: str) -> None:
    assert list(obstacles_within(plan(REPAIRED), started_reach(release_of(release), ZOOKEEPER))) == []


def test_a_behaviour_of_the_release_cannot_be_switched_off() -> None:
    text = "behaviours: {maximal_isr: false, truncation_drops_empty_last_epoch: false}"
    assert list(obstacles_within(plan(text), started_reach(R241, ZOOKEEPER))) == []
    assert list(obstacles_within(plan(text), started_reach(release_of("2.8.2"), ZOOKEEPER))) == [
        "no setting of a broker makes maximal_isr false",
        "no setting of a broker makes truncation_drops_empty_last_epoch false",
    ]


def test_repairs_of_later_releases_are_left_out_on_real_brokers() -> None:
    original = plan("behaviours: {maximal_isr: true, truncation_drops_empty_last_epoch: true}")
    real, without = as_run_on_brokers(original, R241)
    assert [unset.switch for unset in without] == ["maximal_isr", "truncation_drops_empty_last_epoch"]
    assert [str(unset) for unset in without] == [
        "maximal_isr cannot be set on real brokers of this release",
        "truncation_drops_empty_last_epoch cannot be set on real brokers of this release",
    ]
    assert (real.behaviours, real.kafka, real.cluster) == ({}, "2.4", original.cluster)
    assert as_run_on_brokers(real, R241) == (real, ())


APPLIED = """
cluster: {brokers: 3, topics: [{name: t, replication_factor: 3}, {name: u, replication_factor: 3}]}
workload: {producers: [{name: p}], applications: [{name: app, from: t, to: u%s}]}
script: [{do: {%s}}]
"""


@pytest.mark.parametrize(
    "fault",
    [
        "application_crash: {client: app, step: send_offsets, restart_after: 1s}",
        "application_pause: {client: app, step: commit, replaced: true}",
        "slow_poll: {client: app}",
        "rebalance_storm: {}",
        "client_zombie: {client: app}",
        # The client is drawn among those that can have a second process.
        "client_zombie: {client: any}",
    ],
)
def test_every_fault_of_applications_can_be_done_on_brokers(fault: str) -> None:
    assert list(obstacles_within(plan(APPLIED % ("", fault)), started_reach(R241, ZOOKEEPER))) == []


def test_a_zombie_of_another_client_than_an_application_is_an_obstacle() -> None:
    reason = "client_zombie: on real brokers only an application can have two processes, not a producer or another consumer"
    for text in (
        APPLIED % ("", "client_zombie: {client: p}"),
        CLUSTER + "workload: {producers: [{name: p}]}\n" + action("client_zombie: {client: any}"),
    ):
        assert list(obstacles_within(plan(text), started_reach(R241, ZOOKEEPER))) == [reason]


@pytest.mark.parametrize(
    ("settings", "obstacle"),
    [
        (
            "consumer: {partition.assignment.strategy: sticky}",
            "app uses confluent-kafka, which has no assignor sticky",
        ),
        ("producer: {max.block.ms: 5000}", "app uses confluent-kafka, which has no setting max.block.ms"),
        (
            "consumer: {default.api.timeout.ms: 5000}",
            "app uses confluent-kafka, which has no setting default.api.timeout.ms",
        ),
    ],
)
def test_unsupported_application_settings_are_obstacles(settings: str, obstacle: str) -> None:
    text = APPLIED % (f", {settings}", "send: m")
    assert list(obstacles_within(plan(text), started_reach(R241, ZOOKEEPER))) == [obstacle]


def test_conditions_on_applications_are_supported() -> None:
    text = (
        APPLIED % ("", "send: m")
        + "expect: {final: {event: [{application_step: {}}, {application_ended: {}}]}}"
    )
    assert list(obstacles_within(plan(text), started_reach(R241, ZOOKEEPER))) == []


def test_transactional_applications_run_without_transactions_v2() -> None:
    original = plan("kafka: '4.3'\n" + APPLIED % ("", "send: m"))
    assert as_run_on_brokers(original, release_of("4.3.1"))[0].behaviours == {"transactions_v2": False}
    without = plan("kafka: '4.3'\n" + APPLIED % (", delivery: at_least_once", "send: m"))
    assert as_run_on_brokers(without, release_of("4.3.1"))[0].behaviours == {}


def test_transactional_producers_run_without_transactions_v2() -> None:
    text = "kafka: '4.3'\nworkload: {duration: 5s, producers: [{name: p, rate: 1/s%s}]}"
    with_transactions = plan(text % ", settings: {transactional.id: app}")
    real, without = as_run_on_brokers(with_transactions, release_of("4.3.1"))
    assert (real.behaviours, without) == ({"transactions_v2": False}, ())
    assert as_run_on_brokers(plan(text % ""), release_of("4.3.1"))[0].behaviours == {}


def test_behaviours_newer_than_the_plans_release_follow_the_brokers() -> None:
    original = plan("behaviours: {maximal_isr: true}")
    real, without = as_run_on_brokers(original, release_of("2.8.2"))
    assert without == ()
    assert real.behaviours == {
        "fetch_at_lso_returns_aborted_transactions": False,
        "empty_log_requires_sequence_zero": False,
        "empty_transactions_tracked": False,
        "truncation_drops_empty_last_epoch": True,
        "fetch_limited_to_quota": True,
        "fetch_sessions_keep_epoch": True,
        "heartbeats_accepted_while_syncing": True,
        "hw_advance_completes_follower_fetches": "never",
        "coordinator_exception_answered": True,
        "isr_altered_by_controller": True,
        "end_txn_with_later_epoch_refused": True,
        "maximal_isr": True,
        "producer_bumps_epoch": True,
        "only_leader_selects_read_replica": False,
        "requests_wait_for_isr_write": False,
        "producer_fenced_error": True,
        "stable_offset_fetch": True,
        "static_rejoin_rebalances": "with_other_protocol",
        "pending_syncs_expire": True,
        "transactional_commits_fenced": True,
        "truncation_on_fetch": True,
        "unknown_producer_sequence_accepted": True,
        "unknown_producer_sequence_is_zero": False,
    }


NO_RELEASE_DOES: Final = (
    "behaviours: {abandoned_batch_keeps_sequence: true, recovery_restores_earlier_epochs: true}"
)


@pytest.mark.parametrize("release", pinned_releases(), ids=lambda release: release.name)
def test_a_campaign_with_a_repair_of_no_release_runs_on_brokers_without_it(release: KafkaRelease) -> None:
    original = plan(f'kafka: "{release.model_release}"\n{NO_RELEASE_DOES}')
    assert list(obstacles_within(original, started_reach(release, release.modes[0]))) == []
    real, without = as_run_on_brokers(original, release)
    # The behaviours are stated, so that findings can propose the repair.
    assert {name: real.behaviours[name] for name in original.behaviours} == dict.fromkeys(
        original.behaviours, False
    )
    assert [unset.exists_later for unset in without] == [False, False]
    assert str(without[0]) == (
        "abandoned_batch_keeps_sequence cannot be set on real brokers of any release. A finding may be due to this, because "
        f"the campaign assumes: {SWITCHES['abandoned_batch_keeps_sequence'].meaning}"
    )


@pytest.mark.parametrize(
    "name", ["standard", "standard-eos", "swarm", "swarm-kraft", "swarm-eos", "swarm-disks"]
)
def test_no_switch_of_a_swarm_in_the_library_is_an_obstacle(name: str) -> None:
    (path,) = resolve(name)
    for original in load_campaign(path).plans:
        seed_plan = draw_for_seed(original, 0).plan
        for release in pinned_releases():
            if release.model_release == seed_plan.kafka:
                reach = started_reach(release, seed_plan.metadata)
                assert [
                    text for text in obstacles_within(seed_plan, reach) if "no setting of a broker" in text
                ] == []


def test_a_removed_behaviour_is_an_obstacle() -> None:
    text = "behaviours: {preferred_leader_reelected: true}"
    assert list(obstacles_within(plan(text), started_reach(R241, ZOOKEEPER))) == [
        "no setting of a broker makes preferred_leader_reelected true"
    ]


def test_clients_without_processes_are_an_obstacle() -> None:
    class Spec:
        name = "heartbeat-0"

    original = plan("")
    object.__setattr__(original, "applications", (Spec(),))
    assert list(obstacles_within(original, started_reach(R241, ZOOKEEPER))) == [
        "heartbeat-0 is a kind of client that exists only on the model"
    ]


@pytest.mark.parametrize(
    ("text", "obstacle"),
    [
        (
            action("session_expiry: {broker: 0}"),
            "session_expiry ends a broker's session with ZooKeeper, which KRaft does not have",
        ),
        (
            action("disk_loss: {broker: controller}"),
            "disk_loss strikes a broker's disk, and the controller is not a broker",
        ),
        ("expect: {final: {controller: 0}}", "the controller is not a broker"),
    ],
)
def test_known_flawskeeper_faults_are_obstacles_without_zookeeper(text: str, obstacle: str) -> None:
    assert list(obstacles_within(plan(text), started_reach(R241, ZOOKEEPER))) == []
    assert list(obstacles_within(plan(text), started_reach(R241, KRAFT))) == [obstacle]


@pytest.mark.parametrize("how", ["crash", "session_expiry", "delete_znode"])
def test_a_separate_controller_can_be_struck_only_if_harrow_started_it(how: str) -> None:
    failover = plan(action(f"controller_failover: {{how: {how}}}"))
    started = started_reach(R241, KRAFT)
    assert list(obstacles_within(failover, started)) == []
    assert list(obstacles_within(failover, replace(started, has_controllers=False))) == [
        "controller_failover strikes a broker, and the controller is not a broker"
    ]


@pytest.mark.parametrize(
    ("text", "voters"),
    [
        ("cluster: {kraft: {voters: 5}}", 1),
        (action("broker_crash: {broker: 0}"), 1),
        (action("controller_failover: {}"), 3),
        (action("broker_pause: {broker: controller}"), 3),
        (action("partition: {between: controller, and: 0}"), 3),
        (action("controller_failover: {how: delete_znode}") + "\ncluster: {kraft: {voters: 5}}", 5),
        ("swarm: {}", 3),
    ],
)
def test_one_controller_suffices_without_controller_faults(text: str, voters: int) -> None:
    assert voters_of(plan(text)) == voters


@pytest.mark.parametrize("release", ["0.10.2.2", "2.0.1", "2.4.1"])
def test_a_condition_on_the_leader_epoch_of_a_replica_is_supported_on_every_release(release: str) -> None:
    condition = plan(CLUSTER + "script: [{when: {replicas: {t-0: {0: {leader_epoch: 1}}}}}]")
    assert list(obstacles_within(condition, started_reach(release_of(release), ZOOKEEPER))) == []


def test_an_unsupported_client_setting_is_an_obstacle(monkeypatch: pytest.MonkeyPatch) -> None:
    without_linger = replace(
        LIBRARIES[KAFKA_PYTHON], own_name=lambda _, name: None if name == "linger.ms" else name
    )
    monkeypatch.setattr(feasible, "LIBRARIES", {**LIBRARIES, KAFKA_PYTHON: without_linger})
    original = (
        CLUSTER
        + "workload: {duration: 1s, producers: [{name: p, rate: 1/s, library: kafka-python, settings: {linger.ms: 3}},"
        " {name: q, rate: 1/s, settings: {linger.ms: 3}}, {name: r, rate: 1/s, library: kafka-python}]}\n"
    )
    assert list(obstacles_within(plan(original), started_reach(R241, ZOOKEEPER))) == [
        "p uses kafka-python, which has no setting linger.ms"
    ]


ENSEMBLE = "cluster: {zookeeper: {servers: 3}}\n"


@pytest.mark.parametrize(
    ("text", "obstacles"),
    [
        (ENSEMBLE, ["the campaign has 3 ZooKeeper servers, and harrow starts one"]),
        (
            action("broker_crash: {broker: zookeeper-1}"),
            ["broker_crash strikes a ZooKeeper server, and harrow does not control its process"],
        ),
        (
            action("broker_pause: {broker: leader of zookeeper}"),
            ["broker_pause strikes a ZooKeeper server, and harrow does not control its process"],
        ),
        (
            action("partition: {between: [zookeeper-1], and: [0]}"),
            ["partition strikes a ZooKeeper server, and harrow does not control its process"],
        ),
        (action("partition: {between: [zookeeper], and: [0]}"), []),
    ],
)
def test_a_single_zookeeper_server_cannot_be_struck(text: str, obstacles: list[str]) -> None:
    assert list(obstacles_within(plan(text), started_reach(R241, ZOOKEEPER))) == obstacles
