"""docker-compose files become a cluster file: a broker for each service with Kafka."""

from pathlib import Path

import pytest

from harrow.campaigns.language.problem import CampaignError
from harrow.campaigns.sources.description import Fate
from tests.campaigns.sources.texts import import_texts, names_with, plan_on


@pytest.mark.parametrize(
    ("image", "variables", "release"),
    [
        ("apache/kafka:3.9.1", ("KAFKA_MIN_INSYNC_REPLICAS", "KAFKA_BROKER_RACK", "KAFKA_A__B___C"), "3.9"),
        (
            "confluentinc/cp-kafka:7.9.0",
            ("KAFKA_MIN_INSYNC_REPLICAS", "KAFKA_BROKER_RACK", "KAFKA_A__B___C"),
            "3.9",
        ),
        (
            "host:5000/bitnami/kafka:3.9",
            ("KAFKA_CFG_MIN_INSYNC_REPLICAS", "KAFKA_CFG_BROKER_RACK", "KAFKA_X"),
            "3.9",
        ),
        (
            "wurstmeister/kafka:2.13-2.8.1",
            ("KAFKA_MIN_INSYNC_REPLICAS", "KAFKA_BROKER_RACK", "KAFKA_X"),
            "2.8",
        ),
    ],
)
def test_each_image_has_its_rule_for_the_names_of_settings(
    image: str, variables: tuple[str, str, str], release: str
) -> None:
    minimum, rack, other = variables
    text = f"""\
services:
  one:
    image: {image}
    environment:
      {minimum}: 2
      {rack}: a
      {other}: 1
  two:
    image: {image}
    environment: ["{minimum}=2", {rack}=b]
  page: {{image: nginx}}
"""
    imported = import_texts([("c.yml", text)])
    plan = plan_on(imported)
    assert plan.kafka == release
    assert [(broker.id, broker.rack) for broker in plan.cluster.brokers] == [(0, "a"), (1, "b")]
    assert plan.cluster.settings == {"min.insync.replicas": 2}
    unknown = {"host:5000/bitnami/kafka:3.9": set(), "wurstmeister/kafka:2.13-2.8.1": {"x"}}.get(
        image, {"a_b-c"}
    )
    assert names_with(imported, Fate.UNKNOWN) == unknown
    assert "services.page" in names_with(imported, Fate.UNAFFECTED)


def test_merge_keys_and_files_of_variables_give_services_what_they_share(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("TAG=3.9.0\n", encoding="utf-8")
    (tmp_path / "common.env").write_text("# all\nexport KAFKA_NUM_IO_THREADS='4'\n", encoding="utf-8")
    text = """\
x-common: &common
  KAFKA_PROCESS_ROLES: broker,controller
  KAFKA_MIN_INSYNC_REPLICAS: ${MINIMUM:-2}
  KAFKA_LOG_RETENTION_MS: ${RETENTION}
services:
  kafka-1:
    image: apache/kafka:${TAG}
    env_file: [common.env, {path: missing.env, required: false}]
    environment: {<<: *common, KAFKA_NODE_ID: 4}
  kafka-2:
    image: apache/kafka:${TAG}
    env_file: common.env
    environment: {<<: [*common], KAFKA_NODE_ID: 5, KAFKA_LOG_DIRS: "/a,/b"}
"""
    imported = import_texts([(str(tmp_path / "c.yml"), text)])
    cluster = plan_on(imported).cluster
    assert [broker.id for broker in cluster.brokers] == [4, 5]
    assert (cluster.metadata, cluster.voters, cluster.combined) == ("kraft", 2, True)
    assert cluster.settings == {"min.insync.replicas": 2, "num.io.threads": 4}
    lacking = {line.entry.name: line.note for line in imported.lines if line.fate == Fate.LACKING}
    assert lacking["log.retention.ms"] == "$RETENTION is not in .env"
    assert "as the first" in lacking["log.dirs"]
    with pytest.raises(CampaignError, match=r"lost\.env: cannot be read: No such file"):
        import_texts([(str(tmp_path / "c.yml"), text.replace("env_file: common.env", "env_file: lost.env"))])


def test_a_service_with_replicas_stands_for_as_many_brokers() -> None:
    text = "services:\n  k:\n    image: local/kafka\n    environment: {KAFKA_ZOOKEEPER_CONNECT: 'a:1,b:1'}\n    deploy: {replicas: 4}\n"
    cluster = plan_on(import_texts([("c.yml", text)])).cluster
    assert (len(cluster.brokers), cluster.metadata, cluster.zookeeper_servers) == (4, "zookeeper", 2)


def test_a_file_without_kafka_is_refused() -> None:
    with pytest.raises(CampaignError, match="no service in it has an image of Kafka"):
        import_texts([("c.yml", "services: {page: {image: nginx}}\n")])


def test_the_image_of_wurstmeister_creates_topics() -> None:
    text = """\
services:
  kafka:
    build: .
    environment: {KAFKA_ZOOKEEPER_CONNECT: "z:1", KAFKA_CREATE_TOPICS: "a:2:1, b:1:1:compact"}
"""
    imported = import_texts([("c.yml", text)])
    topics = plan_on(imported).cluster.topics
    assert [(topic.name, topic.partitions, dict(topic.settings)) for topic in topics] == [
        ("a", 2, {}),
        ("b", 1, {"cleanup.policy": "compact"}),
    ]
    assert "KAFKA_CREATE_TOPICS" in names_with(imported, Fate.TAKEN)


def test_older_images_of_bitnami_take_the_ensemble_without_their_prefix() -> None:
    text = (
        "services:\n  k:\n    image: bitnami/kafka:latest\n    environment: [KAFKA_ZOOKEEPER_CONNECT=z:1]\n"
    )
    cluster = plan_on(import_texts([("c.yml", text)])).cluster
    assert (len(cluster.brokers), cluster.metadata) == (1, "zookeeper")
