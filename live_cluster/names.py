"""Translation between a campaign's names of brokers and topics and those of its cluster."""

from collections.abc import Mapping
from dataclasses import field
from types import MappingProxyType
from typing import Any, Final

from harrow.cluster_model.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Names:
    """Ids of brokers and names of topics on the cluster, by those of the campaign.

    A topic without an entry has the same name on both. If ``brokers`` has entries, the cluster's
    other brokers do not belong to the campaign.
    """

    brokers: Mapping[int, int] = field(default_factory=lambda: MappingProxyType({}))
    topics: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def broker(self, broker: int) -> int:
        """Return the cluster's id of a broker."""
        return self.brokers.get(broker, broker)

    def topic(self, topic: str) -> str:
        """Return the cluster's name of a topic."""
        return self.topics.get(topic, topic)

    def partition(self, partition: str) -> str:
        """Return the cluster's name of a partition."""
        topic, _, number = partition.rpartition("-")
        return f"{self.topic(topic)}-{number}"

    def own_broker(self, broker: int) -> int | None:
        """Return the campaign's id of a broker, None if it has none."""
        if not self.brokers:
            return broker
        return next((own for own, name in self.brokers.items() if name == broker), None)

    def own_topic(self, topic: str) -> str:
        """Return the campaign's name of a topic."""
        return next((own for own, name in self.topics.items() if name == topic), topic)

    def own_partition(self, partition: str) -> str:
        """Return the campaign's name of a partition."""
        topic, _, number = partition.rpartition("-")
        return f"{self.own_topic(topic)}-{number}"

    def own_brokers(self, brokers: tuple[int, ...]) -> tuple[int, ...]:
        """Return the ids of those brokers that the campaign has, in its order."""
        return tuple(own for broker in brokers if (own := self.own_broker(broker)) is not None)


SAME: Final = Names()
"""The names on a cluster that was started for the campaign."""


def names_of(client: Mapping[str, Any]) -> Names:
    """Return the names for a client's library, which uses the cluster's topics."""
    return Names(topics=client.get("topics", {}))
