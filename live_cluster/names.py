"""What a campaign calls brokers and topics, and what they are called on the cluster that it runs on."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Names:
    """Ids of brokers and names of topics on the cluster, by those of the campaign.

    What is left out is called the same; but where brokers are named, the cluster's other brokers are none of the campaign's.
    """

    brokers: Mapping[int, int] = field(default_factory=lambda: MappingProxyType({}))
    topics: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def broker(self, broker: int) -> int:
        """Return what the cluster calls a broker."""
        return self.brokers.get(broker, broker)

    def topic(self, topic: str) -> str:
        """Return what the cluster calls a topic."""
        return self.topics.get(topic, topic)

    def partition(self, partition: str) -> str:
        """Return what the cluster calls a partition."""
        topic, _, number = partition.rpartition("-")
        return f"{self.topic(topic)}-{number}"

    def own_broker(self, broker: int) -> int | None:
        """Return what the campaign calls a broker, None for one that it does not have."""
        if not self.brokers:
            return broker
        return next((own for own, name in self.brokers.items() if name == broker), None)

    def own_topic(self, topic: str) -> str:
        """Return what the campaign calls a topic."""
        return next((own for own, name in self.topics.items() if name == topic), topic)

    def own_partition(self, partition: str) -> str:
        """Return what the campaign calls a partition."""
        topic, _, number = partition.rpartition("-")
        return f"{self.own_topic(topic)}-{number}"

    def own_brokers(self, brokers: tuple[int, ...]) -> tuple[int, ...]:
        """Return what the campaign calls brokers, in the same order, without those that it does not have."""
        return tuple(own for broker in brokers if (own := self.own_broker(broker)) is not None)


SAME: Final = Names()
"""On a cluster that was started for a campaign everything is called as it says."""


def names_of(client: Mapping[str, Any]) -> Names:
    """Return what the topics that a client was told of are called on the cluster: libraries know no other names."""
    return Names(topics=client.get("topics", {}))
