"""The section ``cluster``."""

from typing import Any, Final

from campaigns.literal_texts import duration_range_text, duration_text
from campaigns.plan import Plan
from campaigns.written.settings import SharedSettings, settings_map
from campaigns.yaml_text import Items, Rows, Word
from cluster_model.topology import BrokerSpec, ClusterSpec, DiskSpec, NetworkSpec, TopicSpec

_TICK_DEFAULT_US: Final = ClusterSpec(brokers=(), topics=()).zookeeper_tick_us


def cluster_rows(plan: Plan, shared: SharedSettings) -> Rows:
    """Return the section; brokers and topics are always said, for everything else refers to them."""
    cluster = plan.cluster
    rows = Rows(brokers=_brokers(cluster.brokers))
    if cluster.controller is not None:
        rows["controller"] = cluster.controller
    rows["topics"] = Items(_topic(topic, shared) for topic in cluster.topics)
    if cluster.network != NetworkSpec():
        latency = (cluster.network.latency_min_us, cluster.network.latency_max_us)
        rows["network"] = {"latency": Word(duration_range_text(latency))}
    if cluster.disk != DiskSpec():
        writeback_us = cluster.disk.writeback_us
        rows["disk"] = {"writeback": Word("never" if writeback_us is None else duration_text(writeback_us))}
    if cluster.zookeeper_tick_us != _TICK_DEFAULT_US:
        rows["zookeeper"] = {"tick": Word(duration_text(cluster.zookeeper_tick_us))}
    return rows


def _brokers(brokers: tuple[BrokerSpec, ...]) -> Any:
    """Return the number of brokers, or a list where there is more to say of them."""
    if brokers and brokers == tuple(BrokerSpec(id=number) for number in range(len(brokers))):
        return len(brokers)
    return Items(map(_broker, brokers))


def _broker(broker: BrokerSpec) -> dict[str, Any]:
    entry: dict[str, Any] = {"id": broker.id}
    if broker.rack is not None:
        entry["rack"] = broker.rack
    if broker.settings:
        entry["settings"] = settings_map(broker.settings)
    return entry


def _topic(topic: TopicSpec, shared: SharedSettings) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": topic.name}
    if topic.partitions != max(1, len(topic.assignment)):
        entry["partitions"] = topic.partitions
    # How many replicas a topic has by default depends on the brokers; a reader wants to know.
    if not topic.assignment or topic.replication_factor != len(topic.assignment[0]):
        entry["replication_factor"] = topic.replication_factor
    if topic.assignment:
        entry["assignment"] = topic.assignment
    own = shared.own(topic.settings)
    if own:
        entry["settings"] = own
    return entry
