"""Chooses a few of a cluster's topics, so that the cost of a trial does not grow with their number.

Topics of one kind fare alike: they have the same settings, as many replicas, and as many racks.
"""

import json
from collections.abc import Iterator, Sequence

from harrow.campaigns.language.loader import plan_without_work
from harrow.campaigns.language.writers.settings import settings_map
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.topology import INTERNAL_TOPICS, ClusterSpec, TopicSpec

PARTITIONS_MAX = 24
"""How many partitions are tried at most, unless there are more kinds of topics than that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FewTopics:
    """The topics that are tried instead of all topics: ``option`` gives a campaign only these."""

    option: str
    topics: int
    partitions: int
    topics_total: int
    partitions_total: int

    def __str__(self) -> str:
        """Return what is tried, in words."""
        return (
            f"{self.partitions} of {self.partitions_total} partitions are tried, in {self.topics} of "
            f"{self.topics_total} topics: each kind of replicas and settings"
        )


def only_topic(overrides: Sequence[str]) -> TopicSpec | None:
    """Return the topic that harrow tries on the cluster of *overrides*; None if it names its own.

    Raises:
        CampaignError: An option has mistakes.

    """
    cluster = plan_without_work(overrides).cluster
    (own,) = plan_without_work([f"cluster.brokers={len(cluster.brokers)}"]).cluster.topics
    return own if cluster.topics == (own,) else None


def few_topics(overrides: Sequence[str]) -> FewTopics | None:
    """Return the topics to try on the cluster of *overrides*; None if all of them are few enough.

    Raises:
        CampaignError: An option has mistakes.

    """
    cluster = plan_without_work(overrides).cluster
    total = sum(topic.partitions for topic in cluster.topics)
    if total <= PARTITIONS_MAX:
        return None
    chosen = list(_one_of_each_kind(cluster))
    each = max(1, PARTITIONS_MAX // len(chosen))
    rows = [_row(topic, each) for topic in chosen]
    return FewTopics(
        option=f"cluster.topics={json.dumps(rows)}",
        topics=len(chosen),
        partitions=sum(min(each, topic.partitions) for topic in chosen),
        topics_total=len(cluster.topics),
        partitions_total=total,
    )


def _one_of_each_kind(cluster: ClusterSpec) -> Iterator[TopicSpec]:
    racks = {broker.id: broker.rack for broker in cluster.brokers}
    seen: set[tuple[object, ...]] = set()
    for topic in cluster.topics:
        spread = frozenset(len({racks.get(broker) for broker in replicas}) for replicas in topic.assignment)
        internal = topic.name if topic.name in INTERNAL_TOPICS else ""
        kind = (
            internal,
            topic.replication_factor,
            spread,
            tuple(sorted(settings_map(topic.settings).items())),
        )
        if kind not in seen:
            seen.add(kind)
            yield topic


def _row(topic: TopicSpec, partitions_max: int) -> dict[str, object]:
    replicas = [list(brokers) for brokers in topic.assignment[:partitions_max]]
    placed: dict[str, object] = (
        {"assignment": replicas}
        if replicas
        else {
            "partitions": min(partitions_max, topic.partitions),
            "replication_factor": topic.replication_factor,
        }
    )
    settings = settings_map(topic.settings)
    return {"name": topic.name, **placed, **({"settings": settings} if settings else {})}
