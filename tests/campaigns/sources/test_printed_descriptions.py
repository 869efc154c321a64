"""What Kafka's tools print about topics, brokers and settings becomes a cluster file."""

import pytest

from harrow.campaigns.language.problem import CampaignError
from harrow.campaigns.sources.description import Fate
from tests.campaigns.sources.texts import fates, import_texts, names_with, plan_on

TOPICS = """\
Topic: orders\tTopicId: abc\tPartitionCount: 2\tReplicationFactor: 2\tConfigs: cleanup.policy=compact,delete,segment.bytes=1000000
\tTopic: orders\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1,2\tElr: N/A\tLastKnownElr: N/A
\tTopic: orders\tPartition: 1\tLeader: none\tReplicas: 2,5\tIsr: 2
Topic:__consumer_offsets\tPartitionCount:1\tReplicationFactor:1\tConfigs:
    \tTopic: __consumer_offsets\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1
"""
CONFIGS = """\
Dynamic configs for broker 2 are:
  num.io.threads=16 sensitive=false synonyms={DYNAMIC_BROKER_CONFIG:num.io.threads=16, DEFAULT_CONFIG:num.io.threads=8}
  listener.name.x.ssl.keystore.password=null sensitive=true synonyms={DYNAMIC_BROKER_CONFIG:x=null}
Default configs for brokers in the cluster are:
  min.insync.replicas=2 sensitive=false synonyms={DYNAMIC_DEFAULT_BROKER_CONFIG:min.insync.replicas=2}
All configs for topic orders are:
  retention.ms=60000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=60000}
  segment.jitter.ms=0 sensitive=false synonyms={}
  delete.retention.ms=86400001 sensitive=false synonyms={DEFAULT_CONFIG:log.cleaner.delete.retention.ms=86400001}
  cleanup.policy=compact,delete sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:cleanup.policy=compact,delete}
Quota configs for client-id 'x' are producer_byte_rate=1
"""


def test_topics_have_their_replicas_and_brokers_that_are_only_mentioned() -> None:
    imported = import_texts([("topics.txt", TOPICS)])
    cluster = plan_on(imported).cluster
    assert [broker.id for broker in cluster.brokers] == [1, 2, 5]
    (topic,) = cluster.topics
    assert topic.assignment == ((1, 2), (2, 5))
    assert topic.settings == {"cleanup.policy": "compact,delete", "segment.bytes": 1_000_000}
    assert fates(imported)[4, "topic"] == Fate.UNAFFECTED


def test_a_byte_order_mark_before_printed_text_changes_nothing() -> None:
    plain, marked = (
        import_texts([("topics.txt", f"{mark}{TOPICS}"), ("configs.txt", f"{mark}{CONFIGS}")])
        for mark in ("", "\ufeff")
    )
    assert (marked.text, marked.lines) == (plain.text, plain.lines)


def test_a_file_for_all_brokers_takes_their_numbers_from_the_topics() -> None:
    server = "node.id=7\nprocess.roles=broker\nmin.insync.replicas=2\n"
    imported = import_texts([("server.properties", server), ("topics.txt", TOPICS)])
    assert [broker.id for broker in plan_on(imported).cluster.brokers] == [1, 2, 5]
    assert fates(imported)[1, "node.id"] == Fate.LACKING


def test_settings_made_at_run_time_override_files_for_their_broker_or_for_all() -> None:
    files = [
        (f"{number}.properties", f"node.id={number}\nnum.io.threads=4\nmin.insync.replicas=1\n")
        for number in (1, 2)
    ]
    imported = import_texts([*files, ("configs.txt", CONFIGS)])
    cluster = plan_on(imported).cluster
    assert cluster.settings == {"min.insync.replicas": 2}
    assert [dict(broker.settings) for broker in cluster.brokers] == [
        {"num.io.threads": 4},
        {"num.io.threads": 16},
    ]
    (topic,) = cluster.topics
    assert topic.settings == {
        "retention.ms": 60_000,
        "delete.retention.ms": 86_400_001,
        "cleanup.policy": "compact,delete",
    }
    assert "min.insync.replicas=1" not in imported.text
    assert {"text", "segment.jitter.ms"} < names_with(imported, Fate.UNAFFECTED) | {"text"}


def test_all_settings_of_a_broker_say_what_it_is() -> None:
    static = {"node.id": 3, "process.roles": "broker", "broker.rack": "a", "log.dirs": "/a,/b"}
    lines = "".join(
        f"  {name}={value} sensitive=false synonyms={{STATIC_BROKER_CONFIG:{name}={value}}}\n"
        for name, value in static.items()
    )
    imported = import_texts([("c.txt", f"All configs for broker 3 are:\n{lines}")])
    cluster = plan_on(imported).cluster
    assert [(broker.id, broker.rack) for broker in cluster.brokers] == [(3, "a")]
    assert (cluster.metadata, cluster.disk.log_dirs) == ("kraft", 2)
    assert names_with(imported, Fate.TAKEN) == {"broker", *static}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TOPICS + TOPICS, "t:6:1: topic `orders` a second time"),
        (TOPICS.replace("1,2\tIsr", "1,2000\tIsr"), "t:2:1: broker 2000: ids of the model go up to 1000"),
        (TOPICS.replace("PartitionCount: 2", "PartitionCount: 20000"), "t:1:1: 20000 partitions"),
    ],
)
def test_topics_that_the_model_cannot_have_are_refused_with_their_line(text: str, message: str) -> None:
    with pytest.raises(CampaignError) as refused:
        import_texts([("t", text)])
    assert str(refused.value).startswith(message)
