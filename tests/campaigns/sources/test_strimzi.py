"""Resources of Strimzi become a cluster file."""

import pytest

from harrow.campaigns.language.problem import CampaignError
from harrow.campaigns.sources.description import Fate
from tests.campaigns.sources.texts import fates, import_texts, names_with, plan_on

POOLS = """\
apiVersion: kafka.strimzi.io/v1
kind: KafkaNodePool
metadata: {name: quorum}
spec:
  replicas: 3
  roles: [controller]
  storage: {type: ephemeral}
---
apiVersion: kafka.strimzi.io/v1
kind: KafkaNodePool
metadata:
  name: brokers
  annotations: {strimzi.io/next-node-ids: "[10-11, 20]"}
spec:
  replicas: 3
  roles: [broker]
  storage:
    type: jbod
    volumes:
      - {id: 0, type: persistent-claim, size: 1Gi}
      - {id: 1, type: persistent-claim, size: 1Gi}
"""
CLUSTER = """\
apiVersion: kafka.strimzi.io/v1
kind: Kafka
metadata: {name: shop}
spec:
  kafka:
    version: 3.9.1
    metadataVersion: 3.9-IV0
    rack: {topologyKey: zone}
    listeners: []
    config:
      min.insync.replicas: 2
      log.dirs: /ignored
      default.replication.factor: 3
  entityOperator: {topicOperator: {}}
"""
TOPIC = """\
apiVersion: kafka.strimzi.io/v1
kind: KafkaTopic
metadata: {name: orders}
spec:
  partitions: 2
  config: {retention.ms: 7200000, cleanup.policy: compact}
---
apiVersion: v1
kind: ConfigMap
"""


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0)])
def test_a_cluster_its_pools_and_its_topics_may_be_in_several_files(order: tuple[int, ...]) -> None:
    texts = (POOLS, CLUSTER, TOPIC)
    imported = import_texts([(f"{index}.yaml", texts[index]) for index in order])
    plan = plan_on(imported)
    assert (plan.kafka, plan.cluster.metadata) == ("3.9", "kraft")
    assert (plan.cluster.voters, plan.cluster.combined) == (3, False)
    assert [broker.id for broker in plan.cluster.brokers] == [10, 11, 20]
    assert plan.cluster.disk.log_dirs == 2
    assert plan.cluster.settings == {"min.insync.replicas": 2}
    (topic,) = plan.cluster.topics
    assert (topic.name, topic.partitions, topic.replication_factor) == ("orders", 2, 3)
    assert topic.settings == {"retention.ms": 7_200_000, "cleanup.policy": "compact"}
    assert names_with(imported, Fate.LACKING) == {"default.replication.factor", "spec.kafka.rack"}
    assert "log.dirs" in names_with(imported, Fate.UNAFFECTED)


def test_a_cluster_without_pools_has_its_replicas_and_zookeeper() -> None:
    text = """\
apiVersion: kafka.strimzi.io/v1beta2
kind: Kafka
spec:
  kafka: {replicas: 2, version: 3.6.0, storage: {type: ephemeral}}
  zookeeper: {replicas: 3, storage: {type: ephemeral}}
"""
    cluster = plan_on(import_texts([("k.yaml", text)])).cluster
    assert (len(cluster.brokers), cluster.metadata, cluster.zookeeper_servers) == (2, "zookeeper", 3)


def test_two_clusters_are_refused_with_the_places_of_both() -> None:
    other = CLUSTER.replace("shop", "bank")
    message = "a second cluster, `bank`; the first is `shop`"
    for files, places in (
        ([("a.yaml", CLUSTER), ("b.yaml", other)], ("b.yaml:3:1", "a.yaml:3")),
        ([("a.yaml", f"{CLUSTER}---\n{other}")], ("a.yaml:18:1", "a.yaml:3")),
    ):
        with pytest.raises(CampaignError) as refused:
            import_texts(files)
        assert str(refused.value) == f"{places[0]}: {message} ({places[1]}): import one at a time"


def test_a_list_as_kubectl_prints_it_is_read_item_by_item() -> None:
    item = "\n".join(f"  {line}" for line in CLUSTER.splitlines())
    imported = import_texts([("k.yaml", f"kind: List\nitems:\n- {item.lstrip()}\n")])
    assert plan_on(imported).cluster.settings == {"min.insync.replicas": 2}
    assert (13, "min.insync.replicas") in fates(imported)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("spec: {replicas: many}", "k.yaml:3:18: expected a whole number, not `many`"),
        ("spec: {replicas: 1000}", "k.yaml:3:18: 1000 is too large: at most 200"),
        (
            "spec: !!python/object:os.system {}",
            "k.yaml:3:7: the tag `!!python/object:os.system`: harrow reads no",
        ),
        ("spec: [", "k.yaml:4:1: not valid YAML"),
        (f"spec: {'[' * 70}{']' * 70}", "nested more than 64 levels deep"),
        (
            "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
            + "".join(
                f"{char}: &{char} [{', '.join([f'*{below}'] * 10)}]\n"
                for below, char in zip("abcdef", "bcdefg", strict=True)
            ),
            "more than 100000 keys and values",
        ),
    ],
)
def test_a_resource_that_cannot_be_read_is_one_mistake_with_its_place(text: str, message: str) -> None:
    with pytest.raises(CampaignError) as refused:
        import_texts([("k.yaml", f"apiVersion: kafka.strimzi.io/v1\nkind: KafkaNodePool\n{text}\n")])
    (problem,) = refused.value.problems
    assert message in str(problem)
