"""DescribeConfigs names the values of a setting, their sources, and whether it can change."""

from harrow.campaigns.language.loader import load_text
from harrow.cluster_model.cluster import Cluster
from harrow.cluster_model.release.profiles import RELEASES
from harrow.cluster_model.sim.choices import Choices
from harrow.live_cluster.serve.answers.described_settings import (
    DEFAULT,
    OF_ALL_BROKERS,
    OF_BROKER,
    OF_TOPIC,
    STATIC,
    DescribedSetting,
    DescribedSettings,
)
from harrow.live_cluster.wire.codec import Address


def cluster_of(release: str = "4.0", settings: str = "") -> Cluster:
    text = f"name: c\nkafka: '{release}'\ncluster: {{brokers: 1}}\nsettings: {{{settings}}}\n"
    (plan,) = load_text(text, "c.yaml").plans
    return Cluster(plan.cluster, release, RELEASES[release].behaviours, Choices.from_seed(0))


def of_broker(cluster: Cluster) -> dict[str, DescribedSetting]:
    described = DescribedSettings(cluster, 0, Address("127.0.0.1", 9092))
    return {setting.name: setting for setting in described.of_broker()}


def of_topic(cluster: Cluster, **own: int) -> dict[str, DescribedSetting]:
    described = DescribedSettings(cluster, 0, Address("127.0.0.1", 9092))
    settings = {name.replace("_", "."): value for name, value in own.items()}
    return {setting.name: setting for setting in described.of_topic(settings)}


def test_a_topic_inherits_the_value_of_its_broker_under_the_name_of_the_broker() -> None:
    cluster = cluster_of(settings="log.flush.interval.messages: 5")
    name, default = "log.flush.interval.messages", "9223372036854775807"
    assert of_topic(cluster)["flush.messages"].synonyms == ((name, "5", STATIC), (name, default, DEFAULT))
    assert of_topic(cluster, flush_messages=7)["flush.messages"].synonyms == (
        ("flush.messages", "7", OF_TOPIC),
        (name, "5", STATIC),
        (name, default, DEFAULT),
    )


def test_a_setting_that_kafka_leaves_null_has_no_value_but_its_topics_have_one() -> None:
    cluster = cluster_of()
    assert of_broker(cluster)["log.retention.ms"][2:] == (None, False, ())
    assert of_topic(cluster)["retention.ms"][2:] == ("604800000", False, ())
    changed = of_broker(cluster_of(settings="log.retention.ms: 5"))["log.retention.ms"]
    assert changed.synonyms == (("log.retention.ms", "5", STATIC), ("log.retention.hours", "168", DEFAULT))


def test_a_setting_of_brokers_is_read_only_unless_an_administrator_can_change_it() -> None:
    described = of_broker(cluster_of())
    assert not described["min.insync.replicas"].is_read_only
    assert not described["num.io.threads"].is_read_only
    assert described["num.partitions"].is_read_only
    assert all(setting.is_read_only for setting in of_broker(cluster_of("0.11")).values())


def test_a_controller_with_eligible_leader_replicas_sets_min_insync_replicas_for_all_brokers() -> None:
    name = "min.insync.replicas"
    cluster = cluster_of("4.3", f"{name}: 2")
    assert of_broker(cluster)[name].synonyms == (
        (name, "2", OF_ALL_BROKERS),
        (name, "2", STATIC),
        (name, "1", DEFAULT),
    )
    described = DescribedSettings(cluster, 0, Address("127.0.0.1", 9092))
    assert [setting.name for setting in described.of_all_brokers()] == [name]


def test_a_throttle_of_replication_is_a_setting_that_an_administrator_has_changed() -> None:
    name = "leader.replication.throttled.rate"
    cluster = cluster_of()
    assert name not in of_broker(cluster)
    cluster.throttle_replication(1_000)
    assert of_broker(cluster)[name].synonyms == ((name, "1000", OF_BROKER),)
    cluster.throttle_replication(None)
    assert name not in of_broker(cluster)
