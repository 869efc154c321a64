"""Collects the settings of partitions on which promises depend."""

from collections.abc import Callable, Iterable
from dataclasses import replace

from harrow.checks.evidence import PartitionSettings
from harrow.cluster_model.settings import TopicConfig
from harrow.cluster_model.topology import ClusterSpec


def partition_settings(
    spec: ClusterSpec,
    names: Iterable[str],
    replicas_of: Callable[[str], tuple[int, ...]],
    topic_config: Callable[[str, int], TopicConfig],
    *,
    allows_unclean_election: bool = True,
) -> dict[str, PartitionSettings]:
    """Return the settings of each partition, from the topic's settings on each broker.

    Without *elects_uncleanly*, controllers ignore the setting that allows unclean elections.
    """
    by_topic = {
        topic.name: {broker.id: topic_config(topic.name, broker.id) for broker in spec.brokers}
        for topic in spec.topics
    }
    if not allows_unclean_election:
        by_topic = {
            name: {broker: replace(own, unclean_leader_election=False) for broker, own in on_broker.items()}
            for name, on_broker in by_topic.items()
        }
    settings = {}
    for partition in names:
        on_broker, replicas = by_topic[partition.rpartition("-")[0]], replicas_of(partition)
        settings[partition] = PartitionSettings(
            replicas=replicas,
            min_insync_replicas=min(on_broker[broker].min_insync_replicas for broker in replicas),
            unclean_leader_election=any(own.unclean_leader_election for own in on_broker.values()),
            flush_messages=max(on_broker[broker].flush_messages for broker in replicas),
            on_broker=on_broker,
        )
    return settings
