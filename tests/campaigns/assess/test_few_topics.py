"""The cost of an assessment does not grow with the number of topics."""

from pathlib import Path

from harrow.campaigns.assess.fault_model import fault_models
from harrow.campaigns.assess.few_topics import PARTITIONS_MAX, few_topics, only_topic
from harrow.campaigns.language.loader import plan_without_work

BROKERS = "brokers: [{id: 1, rack: a}, {id: 2, rack: a}, {id: 3, rack: b}, {id: 4, rack: b}]\n"


def cluster_option(folder: Path, text: str) -> str:
    (folder / "cluster.yaml").write_text(BROKERS + text, encoding="utf-8")
    return f"--cluster={folder / 'cluster.yaml'}"


def test_all_topics_are_tried_if_they_are_few(tmp_path: Path) -> None:
    assert few_topics([cluster_option(tmp_path, "topics: [{name: t, partitions: 24}]\n")]) is None
    assert few_topics([cluster_option(tmp_path, "")]) is None


def test_a_topic_of_harrow_itself_is_known_as_such(tmp_path: Path) -> None:
    only = only_topic([cluster_option(tmp_path, "")])
    assert only is not None
    assert only.replication_factor == 3
    assert only_topic([cluster_option(tmp_path, "topics: [{name: orders}]\n")]) is None
    assert only_topic([cluster_option(tmp_path, ""), "cluster.topics=[{name: orders}]"]) is None


def test_one_topic_of_each_kind_is_tried(tmp_path: Path) -> None:
    topics = [f"{{name: same-{number}, partitions: 5, replication_factor: 2}}" for number in range(100)]
    topics += [
        "{name: safe, partitions: 50, replication_factor: 3, settings: {min.insync.replicas: 2, cleanup.policy: 'compact,delete'}}",
        "{name: one-rack, assignment: [[1, 2], [3, 4], [2, 1]]}",
        "{name: two-racks, assignment: [[1, 3], [2, 4]]}",
    ]
    option = cluster_option(tmp_path, f"topics: [{', '.join(topics)}]\n")
    few = few_topics([option])
    assert few is not None
    plan = plan_without_work([option, few.option])
    assert [topic.name for topic in plan.cluster.topics] == ["same-0", "safe", "one-rack", "two-racks"]
    assert sum(topic.partitions for topic in plan.cluster.topics) == few.partitions <= PARTITIONS_MAX
    assert plan.cluster.topics[1].settings == {"min.insync.replicas": 2, "cleanup.policy": "compact,delete"}
    assert plan.cluster.topics[2].assignment == ((1, 2), (3, 4), (2, 1))
    assert str(few) == (
        "16 of 555 partitions are tried, in 4 of 103 topics: each kind of replicas and settings"
    )
    model = fault_models((), [option, few.option])[0]
    assert model.plan is not None
    assert model.plan.cluster.topics == plan.cluster.topics
