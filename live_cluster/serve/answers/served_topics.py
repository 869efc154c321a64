"""Names the topics of a served cluster, which clients create and delete while it runs.

A topic that is created again after its deletion is another topic, with another id (KIP-516). The
model has no ids, so each life of a topic has a name of its own there (`LIFE`). Clients see one
name.
"""

from collections.abc import Iterator, Mapping
from typing import Final
from uuid import NAMESPACE_OID, UUID, uuid5

from harrow.cluster_model import events
from harrow.cluster_model.cluster import Cluster
from harrow.cluster_model.controller.new_topics import LIFE
from harrow.live_cluster.names import Names

_UNKNOWN: Final = "!"
"""Replaces a character that no name of a client has."""


class ServedNames(Names):
    """The names of topics in the model and for clients. The model's brokers have the same ids."""

    __slots__ = ()

    def campaign_topic(self, topic: str) -> str:
        """Return the model's name of the latest topic with a name.

        No client can name another life of a topic.
        """
        lives = (name for name in reversed(tuple(self.topics)) if self.topics[name] == topic)
        return next(lives, topic.replace(LIFE, _UNKNOWN))


class ServedTopics(Mapping[str, UUID]):
    """The topics of a served cluster, by the names that clients use, with their ids."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        # The later lives of topics: by the names in the model, the names for clients.
        self._later: dict[str, str] = {}
        self.names = ServedNames(topics=self._later)
        # The topics that have ever existed, deleted ones included.
        self._by_id: dict[UUID, str] = {}
        for partition in (*cluster.partition_names(), *cluster.internal_partitions()):
            self._add(partition)
        cluster.trace.subscribe(events.ReplicasAssigned, self._add)

    def prepare_creation(self, topic: str) -> None:
        """Give a topic that a client wants to create a new name if there was such a topic."""
        current = self.names.campaign_topic(topic)
        if self._cluster.is_deleted(f"{current}-0"):
            lives = sum(name == topic for name in self._later.values())
            self._later[f"{topic}{LIFE}{lives + 2}"] = topic

    def find(self, id_: UUID) -> str | None:
        """Return the model's name of the topic that has an id; None if no topic has it now."""
        topic = self._by_id.get(id_)
        return None if topic is None or self._cluster.is_deleted(f"{topic}-0") else topic

    def __getitem__(self, topic: str) -> UUID:
        return _id_of(self.names.campaign_topic(topic))

    def __iter__(self) -> Iterator[str]:
        partitions = (*self._cluster.partition_names(), *self._cluster.internal_partitions())
        topics = dict.fromkeys(name.rpartition("-")[0] for name in partitions)
        return iter(dict.fromkeys(map(self.names.cluster_topic, topics)))

    def __len__(self) -> int:
        return len(tuple(iter(self)))

    def _add(self, partition: str, *_: object) -> None:
        topic = partition.rpartition("-")[0]
        self._by_id[_id_of(topic)] = topic


def _id_of(topic: str) -> UUID:
    """Return the id of a topic from its name in the model."""
    return uuid5(NAMESPACE_OID, topic)
