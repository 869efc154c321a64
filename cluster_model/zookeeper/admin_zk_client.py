"""Creates topics in ZooKeeper for a broker that is not the controller (``AdminZkClient.scala``)."""

from collections.abc import Callable, Mapping
from typing import Final

from harrow.cluster_model import errors
from harrow.cluster_model.controller.administration import NewTopic
from harrow.cluster_model.controller.new_topics import (
    ConfiguredTopics,
    ExcessiveRequestError,
    KnownBrokers,
    PlannedTopic,
    planned_topics,
)
from harrow.cluster_model.events import ReplicasAssigned
from harrow.cluster_model.protocol import ReplicaAssignment
from harrow.cluster_model.settings import BrokerConfig
from harrow.cluster_model.sim.host import Host
from harrow.cluster_model.zookeeper.service import protocol as zk
from harrow.cluster_model.zookeeper.service.client import ZooKeeperClient

OnCreated = Callable[[Mapping[str, str]], None]
"""A callback that gets the error of each topic."""

_CREATED: Final = errors.LEADER_NOT_AVAILABLE
"""The error of a topic that exists now, but has no leader yet."""


class AdminZkClient:
    """Writes topics to ZooKeeper, where the controller notices them.

    A client sees LEADER_NOT_AVAILABLE for a topic that was created, or that another broker created
    at the same time.
    """

    def __init__(
        self, host: Host, zookeeper: ZooKeeperClient, config: BrokerConfig, topics: ConfiguredTopics
    ) -> None:
        self._host = host
        self._zookeeper = zookeeper
        self._config = config
        self._topics = topics

    def create_topics(self, topics: tuple[NewTopic, ...], on_created: OnCreated) -> None:
        """Read which brokers and topics there are, and create new topics."""
        self._zookeeper.submit(
            (zk.GetChildren(zk.BROKER_IDS), zk.GetChildren(zk.BROKER_TOPICS)),
            lambda response: self._plan(topics, response, on_created),
        )

    def _plan(
        self, topics: tuple[NewTopic, ...], response: zk.ZooKeeperResponse, on_created: OnCreated
    ) -> None:
        if response.error != zk.OK:
            self.create_topics(topics, on_created)
            return
        brokers, existing = response.results
        live = tuple(sorted(map(int, brokers.children)))
        try:
            plan, outcomes = planned_topics(
                topics,
                dict.fromkeys(existing.children, 0),
                KnownBrokers(live, live, self._topics.racks),
                self._config,
                self._topics.release,
            )
        except ExcessiveRequestError:
            on_created({topic.name: errors.POLICY_VIOLATION for topic in topics})
            return
        refused = {name: _client_error(outcome.error) for name, outcome in outcomes.items()}
        if not plan:
            on_created(refused)
            return
        self._zookeeper.submit(
            tuple([zk.Create(zk.topic_path(topic.name), _assigned(topic)) for topic in plan]),
            lambda answer: self._finish(topics, plan, answer, refused, on_created),
        )

    def _finish(
        self,
        topics: tuple[NewTopic, ...],
        plan: list[PlannedTopic],
        response: zk.ZooKeeperResponse,
        refused: dict[str, str],
        on_created: OnCreated,
    ) -> None:
        if response.error != zk.OK:
            self.create_topics(topics, on_created)
            return
        for topic, result in zip(plan, response.results, strict=True):
            if result.error == zk.OK:
                for number, replicas in enumerate(topic.assignment):
                    self._host.emit(ReplicasAssigned, f"{topic.name}-{number}", replicas, (), ())
        on_created({**refused, **dict.fromkeys([topic.name for topic in plan], _CREATED)})


def _assigned(topic: PlannedTopic) -> tuple[ReplicaAssignment, ...]:
    return tuple(map(ReplicaAssignment, topic.assignment))


def _client_error(error: str) -> str:
    return _CREATED if error == errors.TOPIC_ALREADY_EXISTS else error
