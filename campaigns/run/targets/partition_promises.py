"""What the settings of a cluster promise of its partitions."""

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
    elects_uncleanly: bool = True,
) -> dict[str, PartitionSettings]:
    """Return what is promised of each of these partitions, from what each broker makes of its topic's settings.

    Where controllers never *elect uncleanly*, no setting has them do so.
    """
    of_topics = {
        topic.name: {broker.id: topic_config(topic.name, broker.id) for broker in spec.brokers}
        for topic in spec.topics
    }
    if not elects_uncleanly:
        of_topics = {
            name: {broker: replace(own, unclean_leader_election=False) for broker, own in on_broker.items()}
            for name, on_broker in of_topics.items()
        }
    found = {}
    for partition in names:
        on_broker, replicas = of_topics[partition.rpartition("-")[0]], replicas_of(partition)
        found[partition] = PartitionSettings(
            replicas=replicas,
            min_insync_replicas=min(on_broker[broker].min_insync_replicas for broker in replicas),
            unclean_leader_election=any(own.unclean_leader_election for own in on_broker.values()),
            flush_messages=max(on_broker[broker].flush_messages for broker in replicas),
            on_broker=on_broker,
        )
    return found
