"""Declares the parts of a cluster and its clients, as a campaign describes them.

The sections of campaign files are derived from these dataclasses and their fields
(`harrow.cluster_model.fields`).
"""

# Plain Python: its dataclasses have fields with metadata, which are read at run time.

from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, Final, Literal

from harrow.cluster_model.fields import (
    Bandwidth,
    BrokerId,
    Client,
    ClientName,
    Count,
    Duration,
    DurationOrNever,
    DurationRangeMarker,
    Partition,
    Rate,
    SettingsMarker,
    Skip,
    Topic,
    TopicName,
    described,
)
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.settings import (
    AUTO_COMMIT,
    BROKER,
    CONSUMER,
    GROUP_ID,
    NO_TEXT,
    PRODUCER,
    TOPIC,
    TRANSACTIONAL_ID,
    Value,
)
from harrow.cluster_model.sim.virtual_time import US_PER_MS, US_PER_SECOND

Settings = Annotated[Mapping[str, Value], SettingsMarker]

# Limits of a cluster. A campaign that exceeds one of them is a mistake or an attack.
BROKERS_MAX: Final = 100
BROKER_ID_MAX: Final = 1_000
PARTITIONS_MAX: Final = 10_000
FIRST_CONTROLLER_ID: Final = 3_000
"""The node id of the first separate controller, as in Kafka's examples."""
ZOOKEEPER_SERVERS_MAX: Final = 9
FIRST_ZOOKEEPER_ID: Final = 2_001
"""The node id of the first ZooKeeper server, zookeeper-1. Ids of brokers are smaller."""
_NODE_DIGITS_MAX: Final = 4
CLIENTS_MAX: Final = 100
VOTERS_MAX: Final = 9
LOG_DIRS_MAX: Final = 100
_RECORD_BYTES_MAX: Final = 1_000_000

CONFLUENT_KAFKA: Final = "confluent-kafka"
KAFKA_PYTHON: Final = "kafka-python"
ZOOKEEPER: Final = "zookeeper"
KRAFT: Final = "kraft"
CONTROL_PLANES: Final[Mapping[str, str]] = {ZOOKEEPER: "ZooKeeper", KRAFT: "KRaft"}
"""The control planes, each with its name as a sentence writes it."""
Metadata = Literal["zookeeper", "kraft"]
Library = Literal["confluent-kafka", "kafka-python"]
"""The client library on real brokers. The model has only the Java client."""
_LIBRARY: Final = "Its library on real brokers; by default confluent-kafka. The model has the Java client."


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSpec:
    """A broker."""

    id: int = described("The broker's id.", minimum=0, maximum=BROKER_ID_MAX)
    rack: str | None = described("Its rack.", default=None, instead_of=("broker.rack",))
    joins_us: DurationOrNever = described(
        "When it first starts and joins the cluster; `never` if only the script starts it (`add_broker`). By default it "
        "starts with the cluster. Topics are created without brokers that join later.",
        default=0,
        key="joins",
        counts_if_set=True,
    )
    settings: Settings = described("Settings of this broker.", factory=dict, scope=BROKER)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSpec:
    """A topic."""

    name: TopicName = described("The topic's name; its partitions are name-0, name-1 and so on.")
    partitions: int = described(
        "How many partitions; by default 1, or as many as `assignment` has.",
        default=1,
        minimum=1,
        maximum=PARTITIONS_MAX,
        shrinks=False,
    )
    replication_factor: Count = described(
        "How many replicas; by default 3, or all brokers if there are fewer.",
        default=1,
        shrinks=False,
        safe=(3,),
        guards=("disk-failure", "disk-loss-in-isr", "log.flush.interval.messages"),
    )
    assignment: tuple[tuple[BrokerId, ...], ...] = described(
        "The replicas of each partition, preferred leader first; by default as Kafka assigns them.",
        default=(),
        shrinks=False,
    )
    settings: Settings = described("Settings of this topic.", factory=dict, scope=TOPIC)

    def partition_names(self) -> tuple[str, ...]:
        """Return the topic's partitions as ``name-number``."""
        return tuple(f"{self.name}-{number}" for number in range(self.partitions))


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkSpec:
    """The network between all processes."""

    latency_min_us: Annotated[int, DurationRangeMarker] = described(
        "The delay of a message in one direction, chosen at random for each.",
        default=200,
        key="latency",
        upper="latency_max_us",
        open="latency",
        shrinks=False,
    )
    latency_max_us: int = described("The longest latency.", default=1_000, key="")
    bytes_per_second: Bandwidth | None = described(
        "How much each process can send, and how much it can receive, such as `1Gbit/s`; by default without limit.",
        default=None,
        key="bandwidth",
        counts_if_set=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskCosts:
    """What a kind of disk takes for a flush (``fsync``), and how much it writes."""

    flush_us: int
    bytes_per_second: int


SSD: Final = "ssd"
DISK_KINDS: Final[Mapping[str, DiskCosts]] = {
    SSD: DiskCosts(flush_us=US_PER_MS, bytes_per_second=500_000_000),
    "nvme": DiskCosts(flush_us=50, bytes_per_second=2_000_000_000),
    "hdd": DiskCosts(flush_us=10 * US_PER_MS, bytes_per_second=150_000_000),
    "cloud": DiskCosts(flush_us=US_PER_MS, bytes_per_second=131_072_000),
}
"""Kinds of disks and their costs.

A flush of an SSD takes 0.8 ms (median) to 1.3 ms (mean), measured with fio for etcd by Olivi and
Spreitzer, "Using Fio to Tell Whether Your Storage is Fast Enough for Etcd" (IBM, 2019). etcd's page
"Performance" names 10 ms for spinning disks, and often less than 1 ms for SSDs. An NVMe disk for
data centres, which keeps its cache when the power fails, takes 12 to 58 us: Callaghan, "SSDs, power
loss protection and fsync latency" (2026). Cloud disks are like gp3 of Amazon EBS, which writes
125 MiB/s unless more is paid for; fio measured 0.7 ms (gp3) and 1.4 ms (gp2) per flush.
"""
DiskKind = Literal["ssd", "nvme", "hdd", "cloud"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskSpec:
    """The brokers' disks."""

    kind: DiskKind | None = described(
        "What disks they are, which decides `flush` and `write`. By default a flush takes as long as on an SSD, and "
        "writes have no limit.",
        default=None,
        counts_if_set=True,
    )
    flush_us: Duration | None = described(
        "How long a flush (fsync) takes that an append waits for, as with `log.flush.interval.messages`; by default as "
        "on that kind of disk.",
        default=None,
        key="flush",
        counts_if_set=True,
    )
    bytes_per_second: Bandwidth | None = described(
        "How much a log directory writes; by default as on that kind of disk.",
        default=None,
        key="write",
        counts_if_set=True,
    )
    page_cache_bytes: int = described(
        "How many bytes the page cache of a log directory takes before appends wait for the disk.",
        default=1_000_000_000,
        key="page_cache",
        minimum=0,
        counts_if_set=True,
    )
    writeback_us: DurationOrNever = described(
        "After how long the operating system flushes by itself; `never` if it does not.",
        default=30 * US_PER_SECOND,
        key="writeback",
        open="writeback",
    )
    log_dirs: int = described(
        "How many log directories a broker has (`log.dirs`), each on a disk of its own.",
        default=1,
        minimum=1,
        maximum=LOG_DIRS_MAX,
    )

    @property
    def costs(self) -> tuple[int, int | None]:
        """How long a flush takes, and how many bytes a log directory writes per second."""
        flush_us, bytes_per_second = self.flush_us, self.bytes_per_second
        if flush_us is None:
            flush_us = DISK_KINDS[self.kind or SSD].flush_us
        if bytes_per_second is None and self.kind is not None:
            bytes_per_second = DISK_KINDS[self.kind].bytes_per_second
        return flush_us, bytes_per_second


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaSpec:
    """The bytes per second that a client may send to and fetch from each broker.

    Only the batches in requests and responses count.
    """

    client: Client | None = described(
        "The name of a client; by default every client without a quota of its own.", default=None
    )
    producer_byte_rate: Bandwidth | None = described("How much it may send.", default=None)
    consumer_byte_rate: Bandwidth | None = described("How much it may fetch.", default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSpec:
    """The servers of a cluster."""

    SECTIONS: ClassVar[Mapping[str, str]] = {"zookeeper": "ZooKeeper.", "kraft": "The controllers of KRaft."}

    brokers: tuple[BrokerSpec, ...] = described(
        "How many brokers (ids from 0; by default 3), or a list of them.",
        implied=True,
        numbered=True,
        maximum=BROKERS_MAX,
    )
    controller: BrokerId | None = described(
        "The broker that starts first, and so becomes the controller.", default=None, shrinks=False
    )
    topics: tuple[TopicSpec, ...] = described("By default one topic t with one partition.", implied=True)
    network: NetworkSpec = described("The network.", default=NetworkSpec())
    disk: DiskSpec = described("The disks.", default=DiskSpec())
    zookeeper_servers: int = described(
        "How many ZooKeeper servers there are, zookeeper-1 and so on. They need a majority.",
        default=1,
        key="zookeeper.servers",
        minimum=1,
        maximum=ZOOKEEPER_SERVERS_MAX,
        shrinks=False,
    )
    zookeeper_tick_us: Duration = described(
        "The interval at which sessions expire.", default=2 * US_PER_SECOND, key="zookeeper.tick", minimum=1
    )
    zookeeper_init_limit: Count = described(
        "How many ticks a new ensemble leader and its followers have until a majority has its log (`initLimit`).",
        default=10,
        key="zookeeper.init_limit",
    )
    zookeeper_sync_limit: Count = described(
        "How many ticks a leader and its followers may then go without a message from each other (`syncLimit`).",
        default=5,
        key="zookeeper.sync_limit",
    )
    metadata: Metadata | None = described(
        "Where brokers keep their metadata; by default as in the release.", default=None, shrinks=False
    )
    voters: int = described(
        "How many controllers the KRaft quorum has; with `combined` at most the number of initial brokers.",
        default=3,
        key="kraft.voters",
        minimum=1,
        maximum=VOTERS_MAX,
        shrinks=False,
        safe=(5,),
        guards=("metadata-lost",),
    )
    combined: bool = described(
        "Whether the KRaft controllers run in the processes of the first brokers instead of their own.",
        default=False,
        key="kraft.combined",
        shrinks=False,
    )
    quotas: tuple[QuotaSpec, ...] = described(
        "Quotas of clients; by default none.", default=(), counts_if_set=True
    )
    settings: Mapping[str, Value] = described("Settings of all brokers.", factory=dict, key="")

    def partition_names(self) -> tuple[str, ...]:
        """Return the partitions of all topics that are not internal, topic by topic."""
        return tuple(
            name
            for topic in self.topics
            if topic.name not in INTERNAL_TOPICS
            for name in topic.partition_names()
        )

    def initial_brokers(self) -> tuple[BrokerSpec, ...]:
        """Return the brokers that start with the cluster."""
        return tuple(broker for broker in self.brokers if broker.joins_us == 0)

    def zookeeper_ids(self) -> tuple[int, ...]:
        """Return the node ids of the ZooKeeper servers."""
        return tuple(range(FIRST_ZOOKEEPER_ID, FIRST_ZOOKEEPER_ID + self.zookeeper_servers))

    def controller_ids(self) -> tuple[int, ...]:
        """Return the voters of the KRaft quorum: separate nodes, or the first brokers.

        With `combined` and fewer brokers than the default number of voters, all brokers are voters.
        A campaign that sets a larger number is refused.
        """
        if self.combined:
            return tuple(broker.id for broker in self.initial_brokers())[: self.voters]
        return tuple(range(FIRST_CONTROLLER_ID, FIRST_CONTROLLER_ID + self.voters))


CONSUMER_OFFSETS: Final = "__consumer_offsets"
TRANSACTION_STATE: Final = "__transaction_state"
INTERNAL_TOPICS: Final = (CONSUMER_OFFSETS, TRANSACTION_STATE)
"""The topics in which coordinators of groups and transactions keep their state (``Topic.java``)."""


def is_internal(partition: str) -> bool:
    """Return whether a partition such as ``__consumer_offsets-0`` is one of an internal topic."""
    return partition.startswith("__") and partition.rpartition("-")[0] in INTERNAL_TOPICS


class Coordinated:
    """A client that may need a coordinator, and therefore an internal topic."""

    __slots__ = ()

    def internal_topics(self) -> tuple[str, ...]:
        """Return the internal topics that brokers create for this client."""
        raise NotImplementedError(type(self).__name__)


KEYS_MAX: Final = 1_000_000
Commit = Literal["auto", "after", "before", "never"]
TRANSACTION_RECORDS_MAX: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerSpec(Coordinated):
    """A producer."""

    SECTIONS: ClassVar[Mapping[str, str]] = {
        "transaction": "The transactions of generated records, if the producer has a `transactional.id`."
    }

    # A generated record without a key goes where the release's partitioner puts it. The partition
    # of a record with a key follows from the key's hash.
    name: ClientName = described("By default producer-0, producer-1 and so on.", implied=True)
    interval_us: Rate | None = described(
        "How often it generates a record; by default it sends only the records of the script.",
        default=None,
        key="rate",
        open="rate",
        # If a swarm draws the rate, producers send to all partitions.
        closed_by=("workload.producers.partitions",),
        shrinks=False,
    )
    partitions: tuple[Partition, ...] = described(
        "The partitions of generated records; by default all.", default=(), unique=True
    )
    start_us: Duration = described("When it begins; by default 0s.", default=0, key="start", shrinks=False)
    stop_us: Duration | None = described(
        "When it ends; by default with the workload.", default=None, key="stop", shrinks=False
    )
    record_bytes: int = described("The size of a record.", default=30, minimum=1, maximum=_RECORD_BYTES_MAX)
    keys: int = described(
        "How many keys generated records have, `k0`, `k1` and so on, drawn for each record; by default they have none. A topic "
        "with `cleanup.policy=compact` refuses records without keys.",
        default=0,
        minimum=0,
        maximum=KEYS_MAX,
        open="keys",
    )
    tombstone_every: int = described(
        "With `keys`: one record in this many is a tombstone, which deletes its key; by default none.",
        default=0,
        minimum=0,
        maximum=KEYS_MAX,
        open="tombstone_every",
    )
    transaction_records: Count = described(
        "How many records a transaction has; by default 10.",
        default=10,
        key="transaction.records",
        maximum=TRANSACTION_RECORDS_MAX,
        counts_if_set=True,
    )
    transaction_abort_every: Skip = described(
        "One transaction in this many is aborted; by default none.",
        default=0,
        key="transaction.abort_every",
        maximum=TRANSACTION_RECORDS_MAX,
        counts_if_set=True,
    )
    library: Library = described(_LIBRARY, default=CONFLUENT_KAFKA)
    settings: Settings = described("Settings of this producer.", factory=dict, scope=PRODUCER)

    @property
    def transactional_id(self) -> str:
        """Its transactional.id, empty if it has none."""
        return str(self.settings.get(TRANSACTIONAL_ID, NO_TEXT))

    def internal_topics(self) -> tuple[str, ...]:
        """Return the topic of its transaction coordinator, if it has transactions."""
        return (TRANSACTION_STATE,) if self.transactional_id else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerSpec(Coordinated):
    """A consumer.

    Without `group.id` it reads its partitions from the beginning. With `group.id` it reads the
    partitions that it is assigned, from their committed offsets.
    """

    name: ClientName = described("By default consumer-0, consumer-1 and so on.", implied=True)
    partitions: tuple[Partition, ...] = described(
        "The partitions that it reads; by default all. With `group.id` it assigns itself these, and only commits for its group.",
        default=(),
        unique=True,
    )
    topics: tuple[Topic, ...] = described(
        "With `group.id`: the topics to which it subscribes; by default all.",
        default=(),
        unique=True,
        counts_if_set=True,
    )
    commit: Commit = described(
        "With `group.id`: when the application commits: as `enable.auto.commit` says (`auto`), `after` it has processed the "
        "records of a poll, `before` that, or `never`.",
        default="auto",
        counts_if_set=True,
    )
    start_us: Duration = described("When it begins; by default 0s.", default=0, key="start")
    stop_us: Duration | None = described(
        "With `group.id`: when it closes and leaves its group; by default never.",
        default=None,
        key="stop",
        counts_if_set=True,
    )
    poll_interval_us: Duration = described(
        "How often it polls, which is the time that it needs for the records of a poll; by default 100ms.",
        default=100 * US_PER_MS,
        key="poll_interval",
        minimum=1,
    )
    library: Library = described(_LIBRARY, default=CONFLUENT_KAFKA)
    settings: Settings = described("Settings of this consumer.", factory=dict, scope=CONSUMER)

    @property
    def group(self) -> str:
        """Its group, `NO_TEXT` for none."""
        return str(self.settings.get(GROUP_ID, NO_TEXT))

    def internal_topics(self) -> tuple[str, ...]:
        """Return the topic with its group's offsets, if it has a group."""
        return (CONSUMER_OFFSETS,) if self.group != NO_TEXT else ()


EXACTLY_ONCE: Final = "exactly_once"
AT_LEAST_ONCE: Final = "at_least_once"
AT_MOST_ONCE: Final = "at_most_once"
AUTO_COMMITTED: Final = "auto_commit"
IDEMPOTENT_SINK: Final = "idempotent_sink"
WATERMARK: Final = "watermark"
HIGHEST_FINISHED: Final = "highest_finished"
Delivery = Literal[
    "exactly_once",
    "at_least_once",
    "at_most_once",
    "auto_commit",
    "idempotent_sink",
    "watermark",
    "highest_finished",
]
"""How an application tries to have each input record take effect exactly once."""
WORKERS_MAX: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationSpec(Coordinated):
    """An application that reads a topic in a group and writes a record for each input record.

    The output goes to another topic. One entry is one instance. Instances with the same `group.id`
    are one application, and share its input.
    """

    name: ClientName = described("By default application-0, application-1 and so on.", implied=True)
    source: Topic = described("The topic that it reads; `any` is the first topic of the cluster.", key="from")
    target: Topic | None = described(
        "The topic that it writes to; with `idempotent_sink` it writes to none. `own` is one like the topic that it reads, which the "
        "cluster gets in addition.",
        default=None,
        key="to",
    )
    delivery: Delivery = described(
        "How it commits its input. `exactly_once`: with its output, in a transaction. `at_least_once`: after its output is "
        "acknowledged. `at_most_once`: before processing. `auto_commit`: every `auto.commit.interval.ms`. `idempotent_sink`: it "
        "stores offset and result together outside Kafka, and commits nothing. `watermark`: it hands records to workers, and "
        "commits the lowest unfinished offset; `highest_finished`: the highest finished one.",
        default=EXACTLY_ONCE,
        shrinks=False,
        safe=(EXACTLY_ONCE, WATERMARK),
        guards=(
            *("commit after processing", "commit before processing"),
            *("commit of the highest finished offset", "enable.auto.commit"),
        ),
    )
    work_us: Duration = described(
        "How long a record takes; with workers a random time up to twice as long.",
        default=0,
        key="work",
    )
    workers: Count = described(
        "With `watermark` and `highest_finished`: how many records are processed at the same time.",
        default=4,
        maximum=WORKERS_MAX,
    )
    group_metadata: bool = described(
        "With `exactly_once`: whether its commits name the group member and generation (KIP-447, from 2.5 on).",
        default=True,
        shrinks=False,
        safe=(True,),
        guards=("no group metadata (KIP-447)",),
    )
    rewinds: bool = described(
        "Whether it seeks back to the committed offsets after an aborted transaction, or after a record that it could not write. "
        "Otherwise it skips those records.",
        default=True,
        shrinks=False,
        safe=(True,),
        guards=("no seek after an abort",),
    )
    start_us: Duration = described("When it begins; by default 0s.", default=0, key="start")
    stop_us: Duration | None = described(
        "When it closes and leaves its group; by default never.", default=None, key="stop"
    )
    restart_us: Duration = described(
        "How soon it is started again after it has ended because its producer or consumer failed for good.",
        default=US_PER_SECOND,
        key="restart",
        minimum=1,
    )
    consumer: Settings = described(
        "Settings of its consumer; its `group.id` is by default its name.", factory=dict, scope=CONSUMER
    )
    producer: Settings = described(
        "Settings of its producer; with `exactly_once` its `transactional.id` is by default its name.",
        factory=dict,
        scope=PRODUCER,
    )

    @property
    def group(self) -> str:
        """Its group."""
        return str(self.consumer.get(GROUP_ID) or self.name)

    @property
    def transactional_id(self) -> str:
        """Its transactional.id, empty if it has none."""
        if self.delivery != EXACTLY_ONCE:
            return NO_TEXT
        return str(self.producer.get(TRANSACTIONAL_ID) or self.name)

    def consumer_settings(self) -> dict[str, Value]:
        """Return the settings of its consumer, including those that other fields imply."""
        return {
            **self.consumer,
            GROUP_ID: self.group,
            AUTO_COMMIT: self.delivery == AUTO_COMMITTED,
        }

    def producer_settings(self) -> dict[str, Value]:
        """Return the settings of its producer, including those that other fields imply."""
        settings = {name: value for name, value in self.producer.items() if name != TRANSACTIONAL_ID}
        return {**settings, TRANSACTIONAL_ID: self.transactional_id} if self.transactional_id else settings

    def internal_topics(self) -> tuple[str, ...]:
        """Return the topics of its group coordinator and of its transaction coordinator, if any."""
        return (CONSUMER_OFFSETS, TRANSACTION_STATE) if self.transactional_id else (CONSUMER_OFFSETS,)


def node_id(process: str) -> int | None:
    """Return the node id of the control plane server called *process*; None if there is none."""
    kind, _, number = process.rpartition("-")
    if not number.isdecimal() or len(number) > _NODE_DIGITS_MAX:
        return None
    node = {"controller": 0, ZOOKEEPER: FIRST_ZOOKEEPER_ID - 1}.get(kind, -BROKER_ID_MAX) + int(number)
    return node if node >= FIRST_ZOOKEEPER_ID and process_name(node) == process else None


def quorum_counterpart(node: int, quorum: Sequence[int]) -> int | None:
    """Return the KRaft voter that a campaign means by the id of a ZooKeeper server; None if none.

    This lets a campaign that names ZooKeeper servers run on a release with KRaft.
    """
    place = node - FIRST_ZOOKEEPER_ID
    is_kraft_quorum = all(not FIRST_ZOOKEEPER_ID <= voter < FIRST_CONTROLLER_ID for voter in quorum)
    return quorum[place] if is_kraft_quorum and 0 <= place < len(quorum) else None


def server_text(node: object) -> object:
    """Return the name of a ZooKeeper server in campaigns, and any other node unchanged."""
    is_server = isinstance(node, int) and FIRST_ZOOKEEPER_ID <= node < FIRST_CONTROLLER_ID
    return process_name(node) if is_server and isinstance(node, int) else node


def is_server(node: int) -> bool:
    """Return whether a node is a ZooKeeper server or a separate controller."""
    return node >= FIRST_ZOOKEEPER_ID


def node_text(node: int) -> str:
    """Return a node in words: ``broker 1``, ``controller-3000``, ``zookeeper-1``."""
    return process_name(node) if is_server(node) else f"broker {node}"


def process_name(node: int) -> str:
    """Return the process name of a broker, a separate controller or a ZooKeeper server."""
    if node >= FIRST_CONTROLLER_ID:
        return f"controller-{node}"
    return f"zookeeper-{node - FIRST_ZOOKEEPER_ID + 1}" if node >= FIRST_ZOOKEEPER_ID else f"broker-{node}"
