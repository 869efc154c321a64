"""Obstacles of a campaign on a user's cluster, and the permissions that it needs."""

from pathlib import Path
from typing import cast

import pytest

from harrow.campaigns.language.loader import load_text
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.sources.cluster_import import import_cluster
from harrow.campaigns.sources.imported_campaign import imported_campaign
from harrow.live_cluster.releases.kafka_release import KRAFT, ZOOKEEPER, KafkaRelease
from harrow.live_cluster.users.journal import Journal
from harrow.live_cluster.users.surveyed_cluster import surveyed_cluster
from harrow.live_cluster.users.target_file import load_target_file
from harrow.live_cluster.users.user_cluster import map_brokers, settings_of_topic
from harrow.live_cluster.users.users_brokers import UserBrokers
from harrow.live_cluster.users.users_reach import obstacles_on, permissions_for
from harrow.live_cluster.wire.survey import BrokerNode, ReportedSetting, Survey
from tests.live_cluster.users.target_files import TEXT, write_target_file
from tests.scenarios.library_plans import each_plan, library_plans

PLANS = library_plans()
SETTINGS = {"replica.lag.time.max.ms": "10000", "auto.leader.rebalance.enable": "true"}


def plan(text: str) -> Plan:
    return load_text(f'name: c\nkafka: "2.4"\n{text}', "c.yaml").plans[0]


def survey_of(release: str = "2.4.1", metadata: str = ZOOKEEPER, brokers: int = 3) -> Survey:
    return Survey(
        cluster_id="x",
        release=KafkaRelease(release),
        metadata=metadata,
        brokers=tuple(
            BrokerNode(id=broker, host=f"h{broker}", port=9092, rack="abc"[broker % 3])
            for broker in range(1, brokers + 1)
        ),
        controller=1,
        assignments={"orders": ((1, 2, 3), (2, 3, 1)), "harrow-old-t": ((1,),)},
    )


def obstacles(folder: Path, text: str, survey: Survey, file: str = TEXT) -> list[str]:
    settings = {broker.id: SETTINGS for broker in survey.brokers}
    return list(obstacles_on(plan(text), load_target_file(write_target_file(folder, file)), survey, settings))


PLAIN = """
settings: {min.insync.replicas: 2, replica.lag.time.max.ms: 10s}
cluster: {brokers: 3, topics: [{name: t, replication_factor: 3}]}
workload: {duration: 5s, producers: [{rate: 1/s}]}
script: [{when: {replicas: {t-0: {0: {leo: 1, hw: 1, role: leader, leader_epoch: 0}}}}, do: {partition: {between: 0, and: 1}}}]
faults: [{every: 1s, do: {broker_crash: {broker: leader of t-0}}}, {every: 2s, do: {rolling_restart: {}}}]
"""


def test_a_plain_campaign_has_no_obstacles_and_names_its_permissions(tmp_path: Path) -> None:
    assert obstacles(tmp_path, PLAIN, survey_of()) == []
    assert permissions_for(plan(PLAIN)) == {"topics", "kill", "stop", "cut"}
    assert permissions_for(plan("")) == {"topics"}


@pytest.mark.parametrize(
    ("text", "obstacle"),
    [
        (
            "script: [{when: {replicas: {t-0: {0: {flushed: 1}}}}}]",
            "harrow cannot observe flushed of a replica",
        ),
        ("script: [{when: {event: {append: {}}}}]", "harrow cannot observe the event append"),
        (
            "script: [{do: {network_ack_loss: {}}}]",
            "network_ack_loss: messages go through harrow only on clusters that it started",
        ),
        (
            "script: [{do: {broker_crash: {broker: 0, kind: power_loss}}}]",
            "broker_crash: no command cuts the power, and harrow cannot see the disks",
        ),
        (
            "script: [{do: {broker_isolation: {broker: 0, from: zookeeper}}}]",
            "broker_isolation: no command cuts a link with zookeeper",
        ),
        (
            "script: [{do: {session_expiry: {broker: 0}}}]",
            "session_expiry: harrow has no access to ZooKeeper",
        ),
        ("cluster: {brokers: 4}", "the campaign has 4 brokers, and may use 3 of the cluster's"),
        ("cluster: {brokers: 3, controller: 1}", "harrow cannot choose the controller"),
    ],
)
def test_each_obstacle_is_reported(tmp_path: Path, text: str, obstacle: str) -> None:
    assert obstacles(tmp_path, text, survey_of()) == [obstacle]


def test_broker_settings_are_compared_and_topic_settings_are_set(tmp_path: Path) -> None:
    text = "settings: {replica.lag.time.max.ms: 5s, min.insync.replicas: 2}"
    assert obstacles(tmp_path, text, survey_of()) == [
        "replica.lag.time.max.ms is 10000, the campaign has 5000"
    ]
    assert settings_of_topic(plan(text), plan(text).cluster.topics[0]) == {
        "min.insync.replicas": 2,
        "unclean.leader.election.enable": False,
        "flush.messages": 2**63 - 1,
    }


def test_a_fault_without_its_commands_is_an_obstacle(tmp_path: Path) -> None:
    text = "script: [{do: {broker_pause: {broker: any}}}]"
    assert obstacles(tmp_path, text, survey_of(), 'bootstrap: "a:1"') == [
        "broker_pause: there is no command pause",
        "broker_pause: there is no command resume",
    ]


def test_an_unsupported_security_setting_is_an_obstacle(tmp_path: Path) -> None:
    text = "workload: {{duration: 1s, producers: [{{rate: 1/s, name: p{}}}], consumers: [{{name: c}}]}}"
    secured = f"{TEXT}security: {{security.protocol: SSL, enable.ssl.certificate.verification: 'false'}}\n"
    assert obstacles(tmp_path, text.format(""), survey_of(), secured) == []
    assert obstacles(tmp_path, text.format(", library: kafka-python"), survey_of(), secured) == [
        "p uses kafka-python, which has no setting enable.ssl.certificate.verification"
    ]


@pytest.mark.parametrize(
    ("release", "model_release", "modelled"), [("2.4.1", "2.4", {}), ("2.8.2", "2.4", {"maximal_isr": True})]
)
def test_the_modelled_plan_has_the_behaviours_of_the_clusters_release(
    tmp_path: Path, release: str, model_release: str, modelled: dict[str, bool]
) -> None:
    brokers = UserBrokers(
        file=load_target_file(write_target_file(tmp_path)),
        survey=survey_of(release),
        release=survey_of(release).release,
        metadata=survey_of(release).metadata,
        settings={},
        permitted=frozenset(),
        journal=cast("Journal", None),
        say=print,
    )
    modelled_plan = brokers.modelled_plan(plan("behaviours: {isr_expansion_checks_epoch_start: true}"))
    assert modelled_plan.kafka == model_release
    assert modelled.items() <= modelled_plan.behaviours.items()


def test_a_release_without_leader_epochs_is_too_old(tmp_path: Path) -> None:
    assert obstacles(tmp_path, PLAIN, survey_of("2.0.1")) == [
        "brokers of 2.0.1 do not report leader epochs: harrow needs 2.1 or newer"
    ]


def test_brokers_are_mapped_by_equal_ids_or_in_order() -> None:
    three = plan("cluster: {brokers: 3}")
    assert map_brokers(three, [0, 1, 2, 7]) == {0: 0, 1: 1, 2: 2}
    assert map_brokers(three, [9, 4, 7, 5]) == {0: 4, 1: 5, 2: 7}
    assert map_brokers(three, [1, 2]) is None


@pytest.mark.parametrize("metadata", [ZOOKEEPER, KRAFT])
def test_a_campaign_made_from_a_cluster_has_its_brokers_topics_and_settings(metadata: str) -> None:
    own = {"min.insync.replicas": "2", "zookeeper.session.timeout.ms": "9000", "x": "y"}
    settings = {
        broker: {
            name: ReportedSetting(value=value, is_default=name not in own)
            for name, value in {"auto.leader.rebalance.enable": "true", **own}.items()
        }
        for broker in (1, 2, 3)
    }
    topics = {"orders": {"unclean.leader.election.enable": "true", "retention.ms": "5"}}
    description = surveyed_cluster("target.yaml", survey_of("3.9.1", metadata), settings, topics)
    text = imported_campaign("ours", import_cluster([("target.yaml", description)]), ["target.yaml"])
    loaded = load_text(text, "ours.yaml").plans[0]
    assert [(broker.id, broker.rack) for broker in loaded.cluster.brokers] == [
        (1, "b"),
        (2, "c"),
        (3, "a"),
    ]
    (topic,) = loaded.cluster.topics
    assert (topic.name, topic.assignment) == ("orders", ((1, 2, 3), (2, 3, 1)))
    assert topic.settings == {"unclean.leader.election.enable": True, "retention.ms": 5}
    of_zookeeper = {"zookeeper.session.timeout.ms": 9000} if metadata == ZOOKEEPER else {}
    assert loaded.cluster.settings == {"min.insync.replicas": 2, **of_zookeeper}


@pytest.mark.parametrize("metadata", [ZOOKEEPER, KRAFT])
@each_plan()
def test_every_campaign_of_the_library_can_be_checked_for_obstacles(
    tmp_path: Path, name: str, metadata: str
) -> None:
    """Some campaigns strike processes without commands, such as ZooKeeper servers."""
    library_plan = PLANS[name]
    survey = survey_of(f"{library_plan.kafka}.1", metadata, brokers=max(3, len(library_plan.cluster.brokers)))
    settings = {broker.id: SETTINGS for broker in survey.brokers}
    file = load_target_file(write_target_file(tmp_path, TEXT))
    assert all(obstacles_on(library_plan, file, survey, settings))
    assert "topics" in permissions_for(library_plan)


def test_a_fault_on_a_zookeeper_server_is_an_obstacle(tmp_path: Path) -> None:
    text = "script: [{do: {broker_crash: {broker: zookeeper-1}}}]"
    assert obstacles(tmp_path, text, survey_of()) == [
        "broker_crash strikes a ZooKeeper server, and harrow does not control its process",
        "broker_crash: there are no commands for servers of the control plane",
    ]
