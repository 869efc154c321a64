"""Translates the names of brokers and topics between a campaign and the cluster that it runs on."""

from collections.abc import Mapping
from dataclasses import field
from types import MappingProxyType
from typing import Any, Final

from harrow.cluster_model.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Names:
    """Maps the campaign's broker ids and topic names to the cluster's.

    A topic without an entry has the same name on both sides. If ``brokers`` has entries, the
    cluster's other brokers do not belong to the campaign.
    """

    brokers: Mapping[int, int] = field(default_factory=lambda: MappingProxyType({}))
    topics: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def cluster_broker(self, broker: int) -> int:
        """Return the cluster's id of a broker."""
        return self.brokers.get(broker, broker)

    def cluster_topic(self, topic: str) -> str:
        """Return the cluster's name of a topic."""
        return self.topics.get(topic, topic)

    def cluster_partition(self, partition: str) -> str:
        """Return the cluster's name of a partition."""
        topic, _, number = partition.rpartition("-")
        return f"{self.cluster_topic(topic)}-{number}"

    def campaign_broker(self, broker: int) -> int | None:
        """Return the campaign's id of a broker, None if the campaign does not use the broker."""
        if not self.brokers:
            return broker
        return next((campaign_name for campaign_name, name in self.brokers.items() if name == broker), None)

    def campaign_topic(self, topic: str) -> str:
        """Return the campaign's name of a topic."""
        return next((campaign_name for campaign_name, name in self.topics.items() if name == topic), topic)

    def campaign_partition(self, partition: str) -> str:
        """Return the campaign's name of a partition."""
        topic, _, number = partition.rpartition("-")
        return f"{self.campaign_topic(topic)}-{number}"

    def campaign_brokers(self, brokers: tuple[int, ...]) -> tuple[int, ...]:
        """Return the campaign's ids of those brokers that belong to the campaign."""
        return tuple(
            campaign_name for broker in brokers if (campaign_name := self.campaign_broker(broker)) is not None
        )


SAME_NAMES: Final = Names()
"""The names on a cluster that harrow started for the campaign: equal on both sides."""


def names_of(client: Mapping[str, Any]) -> Names:
    """Return the translation of topics for a *client*, whose library uses the cluster's names."""
    return Names(topics=client.get("topics", {}))
