"""The settings of topics on a broker, which administrators change while it runs."""

from harrow.cluster_model.settings import broker_config
from harrow.cluster_model.topic_settings import Settings, TopicConfigs


def weakest(*history: Settings) -> tuple[int, bool, int, int]:
    configs = TopicConfigs({}, broker_config("4.3", {"min.insync.replicas": 1}))
    for settings in history:
        configs.set("t", settings)
        configs.get("t")
    config = configs.weakest("t")
    return (
        config.min_insync_replicas,
        config.unclean_leader_election,
        config.flush_messages,
        config.retention_us,
    )


def test_a_topic_promises_no_more_than_its_weakest_settings_did() -> None:
    strict: Settings = {
        "min.insync.replicas": 2,
        "unclean.leader.election.enable": False,
        "flush.messages": 1,
        "retention.ms": -1,
    }
    weak: Settings = {
        "min.insync.replicas": 1,
        "unclean.leader.election.enable": True,
        "flush.messages": 9,
        "retention.ms": 5,
    }
    assert weakest(strict, weak) == weakest(weak, strict) == weakest(strict, weak, strict) == weakest(weak)


def test_a_topic_never_had_the_settings_of_the_broker_that_it_overrides_from_its_creation() -> None:
    assert weakest({"min.insync.replicas": 3})[0] == 3
    assert weakest({}, {"min.insync.replicas": 3})[0] == 1
