"""Brokers create topics that clients name in requests for metadata."""

from collections.abc import Mapping
from typing import Any

import pytest

from harrow.cluster_model import errors
from harrow.cluster_model.cluster import Cluster
from harrow.cluster_model.release.profiles import RELEASES
from harrow.cluster_model.settings import Value
from harrow.cluster_model.sim.choices import Choices
from harrow.cluster_model.topology import KRAFT, ZOOKEEPER, BrokerSpec, ClusterSpec, TopicSpec

SECOND = 1_000_000
RELEASE_OF = {ZOOKEEPER: "2.4", KRAFT: "4.3"}
ERROR_OF_NEW = {ZOOKEEPER: errors.LEADER_NOT_AVAILABLE, KRAFT: errors.UNKNOWN_TOPIC_OR_PARTITION}
CONTROL_PLANES = pytest.mark.parametrize("metadata", [ZOOKEEPER, KRAFT])


class Brokers:
    """Brokers 0 to 2. With ZooKeeper, broker 0 is the controller."""

    def __init__(self, metadata: Any, **settings: Value) -> None:
        spec = ClusterSpec(
            brokers=tuple(BrokerSpec(id=number) for number in range(3)),
            topics=(TopicSpec(name="t"),),
            controller=0,
            metadata=metadata,
            settings={name.replace("_", "."): value for name, value in settings.items()},
        )
        release = RELEASE_OF[metadata]
        self.cluster = Cluster(spec, release, RELEASES[release].behaviours, Choices.from_seed(0))
        self.cluster.start()
        self.answers: list[Mapping[str, str]] = []

    def name(self, *topics: str, broker: int = 1, is_allowed: bool = True) -> None:
        manager = self.cluster.brokers[broker]._topic_creation
        manager.create_topics(topics, self.answers.append, is_allowed=is_allowed)

    def wait(self) -> None:
        self.cluster.simulator.run_until(self.cluster.simulator.now_us + 2 * SECOND)

    def partitions(self, topic: str) -> dict[int, int]:
        """Return the number of replicas of each partition that has a leader."""
        metadata = self.cluster.brokers[2].metadata.partitions
        numbers = [int(name.rpartition("-")[2]) for name in metadata if name.rpartition("-")[0] == topic]
        return {number: len(self.cluster.replicas_of(f"{topic}-{number}")) for number in numbers}


@CONTROL_PLANES
def test_a_topic_that_a_client_names_gets_the_partitions_and_replicas_of_the_brokers(metadata: str) -> None:
    brokers = Brokers(metadata, num_partitions=3, default_replication_factor=2)
    brokers.name("n")
    brokers.wait()
    assert brokers.answers == [{"n": ERROR_OF_NEW[metadata]}]
    assert brokers.partitions("n") == {0: 2, 1: 2, 2: 2}
    assert brokers.cluster.partition_names() == ("t-0", "n-0", "n-1", "n-2")


@CONTROL_PLANES
def test_a_topic_is_created_only_if_the_client_and_the_settings_permit_it(metadata: str) -> None:
    brokers = Brokers(metadata)
    brokers.name("n", is_allowed=False)
    forbidding = Brokers(metadata, auto_create_topics_enable=False)
    forbidding.name("n")
    for each in (brokers, forbidding):
        each.wait()
        assert each.answers == [{"n": errors.UNKNOWN_TOPIC_OR_PARTITION}]
        assert each.partitions("n") == {}


@CONTROL_PLANES
def test_a_name_that_no_topic_may_have_is_refused(metadata: str) -> None:
    brokers = Brokers(metadata)
    brokers.name("a b", "n")
    brokers.wait()
    assert brokers.answers == [{"a b": errors.INVALID_TOPIC, "n": ERROR_OF_NEW[metadata]}]


@CONTROL_PLANES
def test_two_brokers_that_create_a_topic_at_once_create_one(metadata: str) -> None:
    brokers = Brokers(metadata)
    for broker in (1, 2, 2):
        brokers.name("n", broker=broker)
    brokers.wait()
    of_first = {"n": ERROR_OF_NEW[metadata]}
    # Broker 2 answers its second request at once, while it creates the topic for the first.
    of_second = {"n": errors.UNKNOWN_TOPIC_OR_PARTITION}
    assert sorted(map(str, brokers.answers)) == sorted(map(str, [of_first, of_first, of_second]))
    assert brokers.partitions("n") == {0: 1}


@CONTROL_PLANES
def test_a_broker_that_could_not_create_a_topic_tries_again_for_the_next_request(metadata: str) -> None:
    brokers = Brokers(metadata, default_replication_factor=4)
    brokers.name("n")
    brokers.wait()
    brokers.name("n")
    brokers.wait()
    error = errors.INVALID_REPLICATION_FACTOR if metadata == ZOOKEEPER else ERROR_OF_NEW[KRAFT]
    assert brokers.answers == [{"n": error}, {"n": error}]
    assert brokers.partitions("n") == {}
