"""The controller with ZooKeeper handles administrators' requests."""

from typing import Any

import pytest

from harrow.cluster_model import errors
from harrow.cluster_model.cluster import Cluster
from harrow.cluster_model.controller import administration
from harrow.cluster_model.controller.administration import (
    PREFERRED,
    SET,
    UNCLEAN,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    ElectLeadersRequest,
    NewPartitions,
    NewTopic,
)
from harrow.cluster_model.protocol import NO_LEADER
from harrow.cluster_model.release.profiles import RELEASES
from harrow.cluster_model.sim.choices import Choices
from harrow.cluster_model.topology import ZOOKEEPER, BrokerSpec, ClusterSpec, TopicSpec

SECOND = 1_000_000
RELEASE = "2.8"


class Administered:
    """Brokers 0 to 2. Broker 0 is the controller; brokers 1 and 2 have replicas of t-0."""

    def __init__(self, release: str = RELEASE) -> None:
        spec = ClusterSpec(
            brokers=tuple(BrokerSpec(id=number) for number in range(3)),
            topics=(TopicSpec(name="t", assignment=((1, 2),)),),
            controller=0,
            metadata=ZOOKEEPER,
        )
        self.cluster = Cluster(spec, release, RELEASES[release].behaviours, Choices.from_seed(0))
        self.cluster.start()
        self.answers: list[Any] = []

    def send(self, request: Any, broker: int = 0) -> None:
        self.cluster.brokers[broker]._lifecycle.administer(request, self.answers.append)

    def ask(self, request: Any, broker: int = 0) -> Any:
        self.send(request, broker)
        self.run()
        return self.answers[-1]

    def run(self, seconds: int = 2) -> None:
        self.cluster.simulator.run_until(self.cluster.simulator.now_us + seconds * SECOND)

    def create(self, *topics: NewTopic, **options: Any) -> dict[str, str]:
        answer = self.ask(CreateTopicsRequest(topics, **options))
        return {name: created.error for name, created in answer.topics.items()}

    def leader(self, partition: str) -> int:
        state = self.cluster.partition_state(partition)
        assert state is not None
        return state.leader


def test_another_broker_refuses_and_changes_nothing() -> None:
    administered = Administered()
    answer = administered.ask(CreateTopicsRequest((NewTopic("n", 1, 1),)), broker=1)
    assert (answer.error, answer.topics["n"].error) == (errors.NOT_CONTROLLER, errors.NOT_CONTROLLER)
    assert administered.cluster.assignment("n-0") is None


@pytest.mark.parametrize(
    ("topic", "error"),
    [
        (NewTopic("t", 1, 1), errors.TOPIC_ALREADY_EXISTS),
        (NewTopic("n", 1, 4), errors.INVALID_REPLICATION_FACTOR),
        (NewTopic("n", 0, 1), errors.INVALID_PARTITIONS),
        (NewTopic("n", assignment=((0, (0, 9)),)), errors.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("n", 1, 1, settings=(("no.such", "1"),)), errors.INVALID_CONFIG),
        (NewTopic("n", assignment=((0, (2, 0)),)), errors.NONE),
    ],
)
def test_a_topic_has_leaders_once_its_creation_is_answered(topic: NewTopic, error: str) -> None:
    administered = Administered()
    assert administered.create(topic) == {topic.name: error}
    if error == errors.NONE:
        assert administered.leader("n-0") == 2
        assert administered.cluster.brokers[1].metadata.live_leader("n-0") == 2
    assert ("n-0" in administered.cluster.partition_names()) == (error == errors.NONE)


def test_a_request_that_only_validates_writes_nothing() -> None:
    administered = Administered()
    assert administered.create(NewTopic("n", 1, 1), validate_only=True) == {"n": errors.NONE}
    assert administered.cluster.assignment("n-0") is None


def test_added_partitions_have_leaders() -> None:
    administered = Administered()
    answer = administered.ask(CreatePartitionsRequest({"t": NewPartitions(3), "no": NewPartitions(1)}))
    assert {name: error for name, (error, _) in answer.topics.items()} == {
        "t": errors.NONE,
        "no": errors.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert all(administered.leader(f"t-{number}") >= 0 for number in range(3))
    again = administered.ask(CreatePartitionsRequest({"t": NewPartitions(3)}))
    assert again.topics["t"][0] == errors.INVALID_PARTITIONS


def test_the_creation_of_a_topic_elects_no_leaders_for_other_topics() -> None:
    """A controller of 0.11 does not notice that a topic now permits unclean elections."""
    administered = Administered("0.11")
    cluster = administered.cluster
    administered.run()
    for broker in (2, 1):
        cluster.crash_broker(broker, power_loss=False)
        administered.run(20)
    cluster.start_broker(2)
    administered.run(20)
    request = administration.AlterTopicSettingsRequest(
        {"t": (("unclean.leader.election.enable", SET, "true"),)}
    )
    assert administered.ask(request).topics["t"] == administration.SUCCESS
    assert administered.create(NewTopic("n", assignment=((0, (2,)),))) == {"n": errors.NONE}
    assert (administered.leader("n-0"), administered.leader("t-0")) == (2, NO_LEADER)


def test_no_broker_keeps_anything_of_a_deleted_topic() -> None:
    administered = Administered()
    cluster = administered.cluster
    answer = administered.ask(DeleteTopicsRequest(("t", "missing")))
    assert [error for error, _ in answer.topics.values()] == [errors.NONE, errors.UNKNOWN_TOPIC_OR_PARTITION]
    assert cluster.partition_names() == ()
    for broker in cluster.brokers.values():
        assert broker.metadata.leader_and_epoch("t-0") is None
        assert not broker.replicas.logs.has("t-0")
    cluster.delete_controller_znode()
    administered.run(10)
    assert cluster.assignment("t-0") is None


def test_a_setting_reaches_brokers_that_run_and_those_that_start_later() -> None:
    administered = Administered()
    cluster = administered.cluster
    cluster.crash_broker(2, power_loss=False)
    request = administration.AlterTopicSettingsRequest({"t": (("min.insync.replicas", SET, "2"),)})
    assert administered.ask(request).topics["t"] == administration.SUCCESS
    cluster.start_broker(2)
    administered.run(20)
    assert {cluster.leader(broker, "t-0").min_insync_replicas for broker in (1, 2)} == {2}


def test_leadership_returns_to_the_preferred_replica_on_request() -> None:
    administered = Administered()
    cluster = administered.cluster
    cluster.crash_broker(1, power_loss=False)
    administered.run(30)
    refused = administered.ask(ElectLeadersRequest(PREFERRED, ("t-0", "no-0"))).partitions
    assert [error for error, _ in refused.values()] == [
        errors.PREFERRED_LEADER_NOT_AVAILABLE,
        errors.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    cluster.start_broker(1)
    administered.run(30)
    assert administered.leader("t-0") == 2
    assert administered.ask(ElectLeadersRequest(PREFERRED, None)).partitions["t-0"][0] == errors.NONE
    assert administered.leader("t-0") == 1
    answer = administered.ask(ElectLeadersRequest(PREFERRED, ("t-0",)))
    assert answer.partitions["t-0"][0] == errors.ELECTION_NOT_NEEDED


def test_an_administrator_can_force_an_unclean_election() -> None:
    administered = Administered()
    cluster = administered.cluster
    cluster.crash_broker(1, power_loss=False)
    administered.run(30)
    cluster.crash_broker(2, power_loss=False)
    administered.run(30)
    cluster.start_broker(1)
    administered.run(30)
    assert administered.leader("t-0") < 0 or administered.leader("t-0") == 2
    answer = administered.ask(ElectLeadersRequest(UNCLEAN, ("t-0",)))
    assert answer.partitions["t-0"][0] == errors.NONE
    assert administered.leader("t-0") == 1


def test_a_controller_that_resigns_answers_the_request_that_it_handles() -> None:
    administered = Administered()
    administered.send(CreateTopicsRequest((NewTopic("n", 1, 1),)))
    administered.cluster.expire_session(0)
    administered.run(30)
    (answer,) = administered.answers
    assert answer.topics["n"].error in {errors.NONE, errors.NOT_CONTROLLER}
