"""The settings of topics on a broker, which administrators change while it runs."""

from harrow.cluster_model.settings import broker_config
from harrow.cluster_model.topic_settings import ALL_BROKERS, TopicConfigs, brokers_resource


def test_a_configuration_is_in_force_until_the_moment_at_which_it_is_replaced() -> None:
    configs = TopicConfigs({}, broker_config("4.3", {"min.insync.replicas": 1}))
    configs.set("t", {"min.insync.replicas": 2}, 10)
    configs.set("t", {"min.insync.replicas": 3}, 20)
    assert [configs.at("t", at_us).min_insync_replicas for at_us in (0, 10, 11, 20, 21)] == [1, 1, 2, 2, 3]
    assert configs.get("t").min_insync_replicas == 3
    assert configs.changed_us("t") == (10, 20)


def test_settings_that_stay_the_same_are_no_change() -> None:
    configs = TopicConfigs({"t": {"min.insync.replicas": 2}}, broker_config("4.3", {}))
    configs.set("t", {"min.insync.replicas": 2}, 10)
    assert configs.changed_us("t") == ()


def test_a_topic_follows_its_own_settings_then_those_of_its_broker_then_those_of_all_brokers() -> None:
    configs = TopicConfigs({"t": {"min.insync.replicas": 2}, "u": {}}, broker_config("4.3", {}), broker=1)
    configs.set(ALL_BROKERS, {"min.insync.replicas": 3, "log.retention.ms": 5}, 10)
    assert [configs.get(topic).min_insync_replicas for topic in "tuv"] == [2, 3, 3]
    configs.set(brokers_resource("1"), {"min.insync.replicas": 4}, 20)
    configs.set(brokers_resource("2"), {"min.insync.replicas": 5}, 30)
    assert [configs.get(topic).min_insync_replicas for topic in "tuv"] == [2, 4, 4]
    assert configs.get("u").retention_us == 5_000
    assert [configs.at("u", at_us).min_insync_replicas for at_us in (10, 20, 30)] == [1, 3, 4]
    # Nothing has read this topic before.
    assert [configs.at("w", at_us).min_insync_replicas for at_us in (10, 11, 20, 21)] == [1, 3, 3, 4]
    assert [configs.changed_us(topic) for topic in "tuw"] == [(10,), (10, 20), (10, 20)]
    configs.set(brokers_resource("1"), {}, 40)
    assert configs.get("u").min_insync_replicas == 3
