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
    assert plan.cluster.settings == {"min.insync.replicas": 2, "default.replication.factor": 3}
    (topic,) = plan.cluster.topics
    assert (topic.name, topic.partitions, topic.replication_factor) == ("orders", 2, 3)
    assert topic.settings == {"retention.ms": 7_200_000, "cleanup.policy": "compact"}
    assert names_with(imported, Fate.LACKING) == {
        "spec.kafka.rack.topologyKey",
        "spec.storage.type",
    }
    assert "log.dirs" in names_with(imported, Fate.UNAFFECTED)


AFFINITY = """\
  template:
    pod:
      affinity:
        nodeAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            nodeSelectorTerms:
              - matchExpressions:
                  - {key: zone, operator: In, values: [ZONES]}
                  - {key: disk, operator: In, values: [fast]}
"""


def pool(name: str, zones: str) -> str:
    """Return a pool with a broker that must run in one of some zones."""
    head = "apiVersion: kafka.strimzi.io/v1\nkind: KafkaNodePool\n"
    spec = "spec:\n  replicas: 1\n  roles: [broker, controller]\n"
    return f"{head}metadata: {{name: {name}}}\n{spec}{AFFINITY.replace('ZONES', zones)}"


@pytest.mark.parametrize("last_zones", ["b", "b, c"])
def test_a_zone_to_which_a_pool_is_bound_is_the_rack_of_its_brokers(last_zones: str) -> None:
    texts = (pool("first", "a"), CLUSTER, pool("last", last_zones))
    imported = import_texts([(f"{index}.yaml", text) for index, text in enumerate(texts)])
    is_known = last_zones == "b"
    racks = [broker.rack for broker in plan_on(imported).cluster.brokers]
    assert racks == (["a", "b"] if is_known else [None, None])
    known, unaffected = "spec.template.pod.affinity zone", "spec.template.pod.affinity disk"
    assert known in names_with(imported, Fate.TAKEN if is_known else Fate.LACKING)
    assert unaffected in names_with(imported, Fate.UNAFFECTED)
    label = "spec.kafka.rack.topologyKey"
    assert label in names_with(imported, Fate.TAKEN if is_known else Fate.LACKING)


def test_a_zone_is_no_rack_if_kafka_knows_no_racks() -> None:
    imported = import_texts(
        [("p", pool("first", "a")), ("c", CLUSTER.replace("rack: {topologyKey: zone}", ""))]
    )
    assert [broker.rack for broker in plan_on(imported).cluster.brokers] == [None]


def test_a_disk_that_a_pod_loses_is_what_the_model_lacks() -> None:
    jbod = "type: jbod, volumes: [{id: 0, type: ephemeral}, {id: 1, type: persistent-claim}]"
    text = CLUSTER.replace("listeners: []", f"replicas: 1\n    storage: {{{jbod}}}")
    imported = import_texts([("k.yaml", text)])
    assert plan_on(imported).cluster.disk.log_dirs == 2
    assert "spec.kafka.storage" in names_with(imported, Fate.TAKEN)
    assert "spec.kafka.storage.type" in names_with(imported, Fate.LACKING)


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
    assert plan_on(imported).cluster.settings["min.insync.replicas"] == 2
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
