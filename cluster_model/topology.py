"""What a cluster and its clients are made of, as a campaign describes them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from cluster_model.settings import Value
from cluster_model.virtual_time import US_PER_MS, US_PER_SECOND


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSpec:
    """A broker: its id, its rack (None for no rack) and settings of its own."""

    id: int
    rack: str | None = None
    settings: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSpec:
    """A topic. ``assignment`` lists the replicas of each partition, preferred leader first."""

    name: str
    partitions: int = 1
    replication_factor: int = 1
    assignment: tuple[tuple[int, ...], ...] = ()
    settings: Mapping[str, Value] = field(default_factory=dict)

    def partition_names(self) -> tuple[str, ...]:
        """Return the topic's partitions as ``name-number``."""
        return tuple(f"{self.name}-{number}" for number in range(self.partitions))


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkSpec:
    """One-way latency of a message, drawn evenly from [min, max], in microseconds."""

    latency_min_us: int = 200
    latency_max_us: int = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskSpec:
    """When the operating system flushes what Kafka has not; None for never by itself."""

    writeback_us: int | None = 30 * US_PER_SECOND


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSpec:
    """The servers. ``controller`` is the broker that is started first."""

    brokers: tuple[BrokerSpec, ...]
    topics: tuple[TopicSpec, ...]
    controller: int | None = None
    settings: Mapping[str, Value] = field(default_factory=dict)
    network: NetworkSpec = NetworkSpec()
    disk: DiskSpec = DiskSpec()
    zookeeper_tick_us: int = 2 * US_PER_SECOND

    def partition_names(self) -> tuple[str, ...]:
        """Return all partitions, topic by topic."""
        return tuple(name for topic in self.topics for name in topic.partition_names())


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerSpec:
    """A producer. It generates a record every ``interval_us``, or only what a script sends.

    Generated records have no key and go to ``partitions`` (all of them when empty)
    as the release's partitioner says. ``record_bytes`` is the size of a payload.
    """

    name: str
    settings: Mapping[str, Value] = field(default_factory=dict)
    partitions: tuple[str, ...] = ()
    interval_us: int | None = None
    start_us: int = 0
    stop_us: int | None = None
    record_bytes: int = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerSpec:
    """A consumer that reads its assigned partitions (all when empty) from the beginning."""

    name: str
    settings: Mapping[str, Value] = field(default_factory=dict)
    partitions: tuple[str, ...] = ()
    start_us: int = 0
    poll_interval_us: int = 100 * US_PER_MS
