"""Collects the settings of partitions that decide what Kafka promises."""

from collections.abc import Callable, Iterable
from functools import cache

from harrow.checks.evidence import PartitionSettings
from harrow.cluster_model.lazy_dataclass import replace
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

    Without *allows_unclean_election*, controllers ignore ``unclean.leader.election.enable``.
    """
    names = tuple(names)
    by_topic = {
        topic: {broker.id: topic_config(topic, broker.id) for broker in spec.brokers}
        for topic in dict.fromkeys(name.rpartition("-")[0] for name in names)
    }
    if not allows_unclean_election:
        by_topic = {
            name: {
                broker: replace(config, unclean_leader_election=False) for broker, config in configs.items()
            }
            for name, configs in by_topic.items()
        }

    @cache
    def settings_of(topic: str, replicas: tuple[int, ...]) -> PartitionSettings:
        configs = by_topic[topic]
        return PartitionSettings(
            replicas=replicas,
            min_insync_replicas=min(configs[broker].min_insync_replicas for broker in replicas),
            unclean_leader_election=any(config.unclean_leader_election for config in configs.values()),
            flush_messages=max(configs[broker].flush_messages for broker in replicas),
            on_broker=configs,
        )

    return {name: settings_of(name.rpartition("-")[0], replicas_of(name)) for name in names}
