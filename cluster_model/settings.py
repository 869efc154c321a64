"""Declares Kafka's settings, under Kafka's names, with the defaults of each release.

`SETTINGS` is the catalogue. `broker_config`, `topic_config`, `producer_config` and
`consumer_config` turn a campaign's settings into the configurations of actors. In a campaign,
values are bool, int or str, with times in the unit of the setting's name (``.ms``, ``.seconds``).
"""

# Plain Python: it is mostly a table, which is read only once.

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, fields
from itertools import chain
from types import MappingProxyType
from typing import Any, Final, TypeVar

from harrow.cluster_model.lazy_dataclass import dataclass, replace
from harrow.cluster_model.registry import Registry, derived, derived_up_to, typed_items
from harrow.cluster_model.release.profiles import RELEASES, Behaviours
from harrow.cluster_model.release.switch import version_of
from harrow.cluster_model.sim.virtual_time import US_PER_MS, US_PER_SECOND

C = TypeVar("C")
V = TypeVar("V")

Value = bool | int | str

BROKER: Final = "broker"
TOPIC: Final = "topic"
PRODUCER: Final = "producer"
CONSUMER: Final = "consumer"
SCOPES: Final = (BROKER, TOPIC, PRODUCER, CONSUMER)
CLIENTS: Final = (PRODUCER, CONSUMER)

CONTROL_PLANE: Final = "CONTROL_PLANE"
"""The name of a separate listener for the controller."""
NO_LISTENER: Final = "none"
"""Stands for Kafka's null as the name of a listener."""
CONTROL_PLANE_LISTENER: Final = "control.plane.listener.name"
NO_SELECTOR: Final = "none"
"""Stands for Kafka's null as the name of a class."""
RACK_AWARE_SELECTOR: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
"""The class that selects a replica in the consumer's rack (KIP-392)."""
NO_TEXT: Final = ""
"""Stands for Kafka's null as a name."""

INT_MAX: Final = 2**31 - 1
LONG_MAX: Final = 2**63 - 1
_SETTING: Final = "setting"
_FLUSH_INTERVAL: Final = "log.flush.interval.ms"
_US_PER_MINUTE: Final = 60 * US_PER_SECOND


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of brokers, topics, producers or consumers (``scope``).

    ``defaults`` are pairs (first release, value), oldest first. ``kind`` is ``bool``, ``int``,
    ``ms``, ``seconds``, ``choice``, ``ratio`` (a number from 0 to 1, kept as text), ``text`` (a
    name, or `NO_TEXT`) or ``replicas`` (pairs of partition number and broker, such as ``0:1,0:2``,
    or `ALL_REPLICAS`, or nothing). ``since`` is the first release with the setting. ``until`` is
    the last one, empty if the newest release has it, and ``instead`` names the settings that
    replaced it. ``needs`` is a switch of `Behaviours`: while it is off, nothing reads the setting.
    Such settings belong to releases that are older than every profile. ``metadata`` is the control
    plane if only one of the two reads the setting. ``safe`` are the values, safest first, with
    which the setting permits no anomaly. ``guards`` names what else these values may prevent: kinds
    of causes, permissions, and rules (`harrow.campaigns.run.remedies`). If the safe values only
    prevent one event, ``prevents`` is its name: in a run without that event they would help by
    chance, because they change the latencies. ``former`` are the setting's names in older releases
    or in Kafka's own messages. A producer refuses the setting unless the settings in ``beside`` are
    set too. ``inherits`` is the setting of brokers that a setting of topics overrides, by default
    the one with ``log.`` before its name, or `NO_TEXT` for none. ``is_list`` says that Kafka's
    value is a list, to which AlterConfigs can append. ``is_dynamic`` says that an administrator can
    change a setting of brokers while they run; those that topics inherit are so anyway (KIP-226).
    ``fallback`` is the setting of brokers that decides while this one is null, with its default.
    ``aliases`` are other words that Kafka accepts for a choice or for an item of a list,
    such as the class of an assignor, each with the word of ``choices``.
    """

    name: str
    scope: str
    kind: str
    defaults: tuple[tuple[str, Value], ...]
    doc: str
    minimum: int = 0
    maximum: int = LONG_MAX
    choices: tuple[str, ...] = ()
    since: str = "0.10.2"
    needs: str = ""
    metadata: str = ""
    until: str = ""
    instead: tuple[str, ...] = ()
    safe: tuple[Value, ...] = ()
    guards: tuple[str, ...] = ()
    prevents: str = ""
    former: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    aliases: tuple[tuple[str, str], ...] = ()
    inherits: str | None = None
    is_list: bool = False
    is_dynamic: bool = False
    fallback: tuple[str, Value] | None = None

    @property
    def broker_name(self) -> str:
        """The setting of brokers that this setting of topics overrides; `NO_TEXT` for none."""
        return f"log.{self.name}" if self.inherits is None else self.inherits

    def default(self, release: str) -> Value:
        version = RELEASES[release].version
        value = self.defaults[0][1]
        for first, candidate in self.defaults:
            if version_of(first) <= version:
                value = candidate
        return value

    def exists_in(self, release: str) -> bool:
        return version_of(self.since) <= RELEASES[release].version and not self.is_gone(release)

    def is_gone(self, release: str) -> bool:
        """Return whether a release no longer has the setting, which older releases have."""
        return bool(self.until) and version_of(self.until) < RELEASES[release].version

    def missing_in(self, release: str) -> str:
        """Return a message that *release* does not have the setting, and which releases have it."""
        if not self.is_gone(release):
            return f"Kafka {release} has no {self.name}; it came with {self.since}"
        instead = f": use {' and '.join(self.instead)}" if self.instead else ""
        return (
            f"Kafka {release} no longer has {self.name}; {self.until} was the last release with it{instead}"
        )


def _always(value: Value) -> tuple[tuple[str, Value], ...]:
    return (("0.10.2", value),)


READ_UNCOMMITTED: Final = "read_uncommitted"
READ_COMMITTED: Final = "read_committed"
CLASSIC: Final = "classic"
CONSUMER_PROTOCOL: Final = "consumer"
"""The values of ``group.protocol``.

With `CLASSIC` a group member assigns the partitions, with `CONSUMER_PROTOCOL` the group coordinator
(KIP-848).
"""
ANY_ASSIGNOR: Final = "none"
"""Stands for Kafka's null as ``group.remote.assignor``: the coordinator chooses the assignor."""
SERVER_ASSIGNORS: Final = ("uniform", "range")
DELETE: Final = "delete"
COMPACT: Final = "compact"
CLEANUP_POLICIES: Final = (DELETE, COMPACT, f"{COMPACT},{DELETE}")
"""All values of ``cleanup.policy``. The order of policies within a value does not matter."""
_POLICY_ALIASES: Final = ((f"{DELETE},{COMPACT}", f"{COMPACT},{DELETE}"),)
ALL_REPLICAS: Final = "*"
"""In a setting that lists replicas, stands for every replica of the topic."""
ASSIGNORS: Final = (
    "range",
    "roundrobin",
    "sticky",
    "cooperative-sticky",
    "range,cooperative-sticky",
    "roundrobin,cooperative-sticky",
    "sticky,cooperative-sticky",
    "cooperative-sticky,range",
)
"""The values of ``partition.assignment.strategy``.

They are single assignors, by their names in the group protocol, and the lists that a group needs
while it migrates to or from cooperative rebalances (KIP-429).
"""
_ASSIGNOR_CLASSES: Final = tuple(
    (f"org.apache.kafka.clients.consumer.{name}Assignor", word)
    for name, word in (
        ("Range", "range"),
        ("RoundRobin", "roundrobin"),
        ("Sticky", "sticky"),
        ("CooperativeSticky", "cooperative-sticky"),
    )
)
"""Kafka's classes of assignors, and the names by which each of them calls itself."""
_SERVER_ASSIGNOR_CLASSES: Final = tuple(
    (f"org.apache.kafka.coordinator.group.assignor.{word.capitalize()}Assignor", word)
    for word in SERVER_ASSIGNORS
)
_LOSS_RULES: Final = (
    *("lost-write", "unseen", "inconsistent-offsets", "log-divergence"),
    *("isr-holds-committed", "log-matching"),
)
"""The rules that find the loss of committed or acknowledged records."""
_LOSS_ON_A_MACHINE: Final = (
    *("log.flush.interval.messages", "disk-failure", "disk-loss-in-isr"),
    *("last-in-isr-lost-disk", "in-isr-after-disk-loss"),
)
"""Causes that lose the records of a single machine, which a second in-sync replica would keep."""
_UNCLEAN_DEFAULTS: Final = (("0.10.2", True), ("0.11", False))

_CATALOGUE: Final = (
    # Brokers
    Setting("unclean.leader.election.enable", BROKER, "bool", _UNCLEAN_DEFAULTS,
            "Whether a replica outside the ISR may become leader if no member of the ISR is alive (KIP-106).",
            safe=(False,), guards=_LOSS_RULES),
    Setting("min.insync.replicas", BROKER, "int", _always(1),
            "The minimum size of the ISR at which acks=all is accepted.", minimum=1, maximum=INT_MAX,
            safe=(2,), guards=("acks=0", "acks=1", "unclean.leader.election.enable", *_LOSS_ON_A_MACHINE, *_LOSS_RULES)),
    Setting("replica.lag.time.max.ms", BROKER, "ms", (("0.10.2", 10_000), ("2.5", 30_000)),
            "How long a follower may lag the leader's LEO before it leaves the ISR (KIP-537).", minimum=1),
    Setting("replica.lag.max.messages", BROKER, "int", _always(4_000),
            "Up to 0.8, which only `behaviours` can select: how many records a follower may lag the leader's LEO before it "
            "leaves the ISR (removed by KIP-16).", minimum=1, needs="isr_lag_counts_messages"),
    Setting("replica.fetch.wait.max.ms", BROKER, "ms", _always(500),
            "How long a follower's fetch waits for data in the leader's purgatory.", maximum=INT_MAX),
    Setting("replica.fetch.max.bytes", BROKER, "int", _always(1_048_576),
            "How many bytes of a partition a follower fetches at once, but at least one batch."),
    Setting("max.incremental.fetch.session.cache.slots", BROKER, "int", _always(1_000),
            "How many fetch sessions a broker keeps (KIP-227).", maximum=INT_MAX, since="1.1"),
    Setting("replica.fetch.backoff.ms", BROKER, "ms", _always(1_000),
            "How long a follower does not fetch a partition after an error.", maximum=INT_MAX),
    Setting("replica.socket.timeout.ms", BROKER, "ms", _always(30_000),
            "How long a follower waits for a connection to its leader. The model connects at once, so this has no effect "
            "there: the broker's request.timeout.ms ends an unanswered fetch.", minimum=1, maximum=INT_MAX),
    Setting("request.timeout.ms", BROKER, "ms", _always(30_000),
            "How long a follower waits for its leader's answer. Only a broker's own settings apply it to a broker; shared "
            "settings apply it to clients.", minimum=1, maximum=INT_MAX),
    Setting("replica.high.watermark.checkpoint.interval.ms", BROKER, "ms", _always(5_000),
            "How often a broker writes high watermarks to replication-offset-checkpoint.", minimum=1),
    Setting("log.flush.interval.messages", BROKER, "int", _always(LONG_MAX),
            "After how many records a log is flushed to disk.", minimum=1, safe=(1,), guards=_LOSS_RULES,
            prevents="unflushed_lost", former=("log.flush.interval",)),
    Setting("log.flush.interval.ms", BROKER, "ms", _always(LONG_MAX),
            "How long a log may stay unflushed at the time of a check; by default log.flush.scheduler.interval.ms.",
            former=("log.default.flush.interval.ms",), fallback=("log.flush.scheduler.interval.ms", LONG_MAX)),
    Setting("log.flush.scheduler.interval.ms", BROKER, "ms", _always(LONG_MAX),
            "How often a broker checks for logs to flush; by default never after the first 30 s, so log.flush.interval.ms "
            "alone flushes nothing.", minimum=1,
            former=("log.default.flush.scheduler.interval.ms",)),
    Setting("log.segment.bytes", BROKER, "int", _always(1 << 30),
            "The maximum size of a log segment. A new segment makes the broker flush the old one. Recovery starts with the "
            "segment of the recovery point.", minimum=14, maximum=INT_MAX,
            former=("log.file.size",)),
    Setting("log.roll.ms", BROKER, "ms", _always(604_800_000),
            "By how much a record's timestamp may exceed that of the first batch in the same segment.", minimum=1, fallback=("log.roll.hours", 168)),
    Setting("log.retention.ms", BROKER, "ms", _always(604_800_000),
            "The age of a segment's newest record at which the segment is deleted; -1 for no limit.", minimum=-1, fallback=("log.retention.hours", 168)),
    Setting("log.retention.bytes", BROKER, "int", _always(-1),
            "The size of a log at which its oldest segment is deleted, if the rest is at least that large; -1 for no limit.", minimum=-1),
    Setting("log.retention.check.interval.ms", BROKER, "ms", _always(300_000),
            "How often a broker checks for segments to delete, for the first time 30 s after its start.", minimum=1,
            former=("log.cleanup.interval.mins",)),
    Setting("log.message.timestamp.before.max.ms", BROKER, "ms", _always(LONG_MAX),
            "By how much a record's timestamp may be behind the leader's clock. The leader refuses an earlier one "
            "(INVALID_TIMESTAMP, KIP-937).", since="3.6"),
    Setting("log.message.timestamp.after.max.ms", BROKER, "ms", (("0.10.2", LONG_MAX), ("4.0", 3_600_000)),
            "By how much a record's timestamp may be ahead of the leader's clock. The leader refuses a later one (KIP-937, "
            "KIP-1030).",
            since="3.6"),
    Setting("log.message.timestamp.difference.max.ms", BROKER, "ms", _always(LONG_MAX),
            "Up to 3.9: by how much a record's timestamp may differ from the leader's clock in either direction, while the two "
            "newer settings have their defaults.", until="3.9",
            instead=("log.message.timestamp.before.max.ms", "log.message.timestamp.after.max.ms")),
    Setting("log.cleanup.policy", BROKER, "choice", _always(DELETE),
            "Whether retention deletes old records, compaction removes all but the latest record of each key, or both.", choices=CLEANUP_POLICIES,
            aliases=_POLICY_ALIASES, is_list=True),
    Setting("log.cleaner.backoff.ms", BROKER, "ms", _always(15_000),
            "How long the cleaner waits after it has found no log dirty enough.", minimum=1, is_dynamic=True),
    Setting("log.cleaner.min.cleanable.ratio", BROKER, "ratio", _always("0.5"),
            "The fraction of a log that must be dirty before the log is compacted."),
    Setting("log.cleaner.min.compaction.lag.ms", BROKER, "ms", _always(0),
            "The minimum age of a record before compaction may remove it."),
    Setting("log.cleaner.max.compaction.lag.ms", BROKER, "ms", _always(LONG_MAX),
            "The maximum age of a dirty record before its log is compacted, however little is dirty (KIP-354).", minimum=1, since="2.3"),
    Setting("log.cleaner.delete.retention.ms", BROKER, "ms", _always(86_400_000),
            "How long a tombstone stays after it was first cleaned, for slow readers."),
    Setting("log.flush.start.offset.checkpoint.interval.ms", BROKER, "ms", _always(60_000),
            "How often a broker writes log start offsets to log-start-offset-checkpoint (KIP-107).", minimum=1,
            maximum=INT_MAX, since="0.11"),
    Setting("log.flush.offset.checkpoint.interval.ms", BROKER, "ms", _always(60_000),
            "How often a broker writes flushed offsets to recovery-point-offset-checkpoint.", minimum=1,
            maximum=INT_MAX),
    Setting("zookeeper.session.timeout.ms", BROKER, "ms", (("0.10.2", 6_000), ("2.5", 18_000)),
            "How long a broker's ZooKeeper session and its ephemeral znodes outlive the broker (KIP-537).", minimum=1,
            maximum=INT_MAX, metadata="zookeeper", until="3.9"),
    Setting("broker.session.timeout.ms", BROKER, "ms", _always(9_000),
            "In KRaft: how long a broker may send no heartbeat before the controller fences it.", minimum=1,
            maximum=INT_MAX, since="2.8", metadata="kraft"),
    Setting("broker.heartbeat.interval.ms", BROKER, "ms", _always(2_000),
            "In KRaft: how often a broker sends heartbeats to the controller.", minimum=1, maximum=INT_MAX, since="2.8", metadata="kraft"),
    Setting("initial.broker.registration.timeout.ms", BROKER, "ms", _always(60_000),
            "In KRaft: how long a starting broker tries to register before it exits.", maximum=INT_MAX,
            since="2.8", metadata="kraft"),
    Setting("controller.quorum.election.timeout.ms", BROKER, "ms", _always(1_000),
            "How long a voter waits for a leader, and for votes; up to twice as long, chosen at random.", minimum=1,
            maximum=INT_MAX, since="2.8", metadata="kraft",
            former=("quorum.election.timeout.ms",)),
    Setting("controller.quorum.election.backoff.max.ms", BROKER, "ms", _always(1_000),
            "The longest time that a losing candidate waits before it tries again.", minimum=1,
            maximum=INT_MAX, since="2.8", metadata="kraft"),
    Setting("controller.quorum.fetch.timeout.ms", BROKER, "ms", _always(2_000),
            "How long a voter waits for its leader before it becomes a candidate; from 3.7 on a leader resigns after one and a "
            "half times as long without a majority.", minimum=1, maximum=INT_MAX, since="2.8", metadata="kraft",
            former=("quorum.fetch.timeout.ms",)),
    Setting("controller.quorum.request.timeout.ms", BROKER, "ms", _always(2_000),
            "How long a node of the quorum waits for an answer.", minimum=1, maximum=INT_MAX, since="2.8", metadata="kraft"),
    Setting("metadata.log.max.record.bytes.between.snapshots", BROKER, "int", _always(20_971_520),
            "In KRaft: how many bytes of the metadata log a node applies before it writes a snapshot.", minimum=1, since="3.0", metadata="kraft"),
    Setting("metadata.log.max.snapshot.interval.ms", BROKER, "ms", _always(3_600_000),
            "In KRaft: how long after its start or its last snapshot a node writes one anyway; 0 for no limit (KIP-876).",
            since="3.4", metadata="kraft"),
    Setting("metadata.max.retention.bytes", BROKER, "int", (("0.10.2", -1), ("3.4", 104_857_600)),
            "In KRaft: the size of metadata log and snapshots at which the oldest snapshot is deleted, with the log up to the "
            "next one; -1 for no limit.", minimum=-1, since="3.0", metadata="kraft"),
    Setting("metadata.max.retention.ms", BROKER, "ms", _always(604_800_000),
            "In KRaft: the age at which a snapshot is deleted, unless it is the only one; -1 for no limit.", minimum=-1, since="3.0", metadata="kraft"),
    Setting("auto.create.topics.enable", BROKER, "bool", _always(True),
            "Whether a broker creates a topic that a client names in a request for metadata. Only real clients of a served "
            "cluster name topics that do not exist."),
    Setting("num.partitions", BROKER, "int", _always(1),
            "How many partitions such a topic gets, and one that a client creates without a number. Topics of the campaign have "
            "their own `partitions`.", minimum=1, maximum=INT_MAX),
    Setting("default.replication.factor", BROKER, "int", _always(1),
            "How many replicas such topics get. Topics of the campaign have their own `replication_factor`.", minimum=1,
            maximum=32_767),
    Setting("auto.leader.rebalance.enable", BROKER, "bool", _always(True),
            "Whether the controller returns leadership to preferred replicas by itself."),
    Setting("leader.imbalance.check.interval.seconds", BROKER, "seconds", _always(300),
            "How often the controller checks for preferred replicas that do not lead.", minimum=1, maximum=INT_MAX),
    Setting("leader.imbalance.per.broker.percentage", BROKER, "int", _always(10),
            "With ZooKeeper: the percentage of a broker's preferred partitions that may be led by others.", metadata="zookeeper", until="3.9", maximum=INT_MAX),
    Setting("controller.socket.timeout.ms", BROKER, "ms", _always(30_000),
            "How long the controller waits for a broker's answer, and a broker that shuts down for the controller's.",
            minimum=1, maximum=INT_MAX),
    Setting("num.network.threads", BROKER, "int", _always(3),
            "The number of threads that receive requests and send answers. Each blocks while the request queue is full.", minimum=1,
            maximum=INT_MAX, is_dynamic=True),
    Setting("num.io.threads", BROKER, "int", _always(8),
            "The number of threads that handle requests. A thread that appends waits for its disk.", minimum=1, maximum=INT_MAX, is_dynamic=True),
    Setting("queued.max.requests", BROKER, "int", _always(500),
            "The number of requests that may wait for an I/O thread.", minimum=1, maximum=INT_MAX),
    Setting(CONTROL_PLANE_LISTENER, BROKER, "choice", _always(NO_LISTENER),
            "With ZooKeeper: a broker's listener for the controller, with a queue and a thread of its own; by default the one "
            "for other brokers (KIP-291).", choices=(NO_LISTENER, CONTROL_PLANE), since="2.2", metadata="zookeeper",
            until="3.9"),
    Setting("replica.selector.class", BROKER, "choice", _always(NO_SELECTOR),
            "Which replica a leader tells a consumer to read from; by default itself (KIP-392). RackAwareReplicaSelector: the "
            "most caught-up replica in the consumer's rack (client.rack), if the leader is in another. cluster.brokers has the "
            "racks (broker.rack).",
            choices=(NO_SELECTOR, RACK_AWARE_SELECTOR), since="2.4"),
    Setting("controlled.shutdown.enable", BROKER, "bool", _always(True),
            "Whether a broker that shuts down has its leaderships moved first."),
    Setting("controlled.shutdown.max.retries", BROKER, "int", _always(3),
            "With ZooKeeper: how often a broker that shuts down asks the controller, including the first time.", maximum=INT_MAX,
            metadata="zookeeper", until="3.9"),
    Setting("controlled.shutdown.retry.backoff.ms", BROKER, "ms", _always(5_000),
            "With ZooKeeper: how long a broker that shuts down waits after each failed attempt.", metadata="zookeeper",
            until="3.9"),
    Setting("offsets.topic.num.partitions", BROKER, "int", _always(50),
            "The number of partitions of __consumer_offsets, which limits how many brokers coordinate groups.", minimum=1, maximum=10_000),
    Setting("offsets.topic.replication.factor", BROKER, "int", _always(3),
            "The number of replicas of __consumer_offsets.", minimum=1, maximum=INT_MAX),
    Setting("offsets.topic.segment.bytes", BROKER, "int", _always(100 << 20),
            "segment.bytes of __consumer_offsets.", minimum=14, maximum=INT_MAX),
    Setting("offsets.commit.timeout.ms", BROKER, "ms", _always(5_000),
            "How long a group coordinator waits until all in-sync replicas have a commit.", minimum=1, maximum=INT_MAX),
    Setting("offsets.retention.minutes", BROKER, "int", (("0.10.2", 1_440), ("2.0", 10_080)),
            "How long a group's offsets are kept after it is empty (KIP-186); up to 2.0 how long each is kept after its commit "
            "(KIP-211).", minimum=1,
            maximum=INT_MAX),
    Setting("offsets.retention.check.interval.ms", BROKER, "ms", _always(600_000),
            "How often a group coordinator checks for expired offsets.", minimum=1),
    Setting("group.min.session.timeout.ms", BROKER, "ms", _always(6_000),
            "The shortest session.timeout.ms that a group coordinator accepts.", maximum=INT_MAX),
    Setting("group.max.session.timeout.ms", BROKER, "ms", (("0.10.2", 300_000), ("2.3", 1_800_000)),
            "The longest session.timeout.ms that a group coordinator accepts.", maximum=INT_MAX),
    Setting("group.consumer.session.timeout.ms", BROKER, "ms", _always(45_000),
            "With group.protocol=consumer: how long a member may send no heartbeat before it is removed (KIP-848).",
            minimum=1, maximum=INT_MAX, since="4.0"),
    Setting("group.consumer.min.session.timeout.ms", BROKER, "ms", _always(45_000),
            "The minimum of group.consumer.session.timeout.ms.", minimum=1, maximum=INT_MAX, since="4.0"),
    Setting("group.consumer.max.session.timeout.ms", BROKER, "ms", _always(60_000),
            "The maximum of group.consumer.session.timeout.ms.", minimum=1, maximum=INT_MAX, since="4.0"),
    Setting("group.consumer.heartbeat.interval.ms", BROKER, "ms", _always(5_000),
            "With group.protocol=consumer: how often members send heartbeats, whose answers bring their assignment.",
            minimum=1, maximum=INT_MAX, since="4.0"),
    Setting("group.consumer.min.heartbeat.interval.ms", BROKER, "ms", _always(5_000),
            "The minimum of group.consumer.heartbeat.interval.ms.", minimum=1, maximum=INT_MAX, since="4.0"),
    Setting("group.consumer.max.heartbeat.interval.ms", BROKER, "ms", _always(15_000),
            "The maximum of group.consumer.heartbeat.interval.ms.", minimum=1, maximum=INT_MAX, since="4.0"),
    Setting("group.consumer.max.size", BROKER, "int", _always(INT_MAX),
            "The maximum number of members of a group with group.protocol=consumer.", minimum=1, maximum=INT_MAX, since="4.0"),
    Setting("group.consumer.assignors", BROKER, "choice", _always("uniform,range"),
            "The coordinator's assignors for group.protocol=consumer; the first one is used unless members ask for another.",
            choices=("uniform,range", "range,uniform", *SERVER_ASSIGNORS), since="4.0",
            aliases=_SERVER_ASSIGNOR_CLASSES),
    Setting("group.consumer.assignment.interval.ms", BROKER, "ms", _always(1_000),
            "The minimum time between two target assignments of a group (KIP-1263).",
            maximum=INT_MAX, since="4.3", is_dynamic=True),
    Setting("group.initial.rebalance.delay.ms", BROKER, "ms", (("0.10.2", 0), ("0.11", 3_000)),
            "How long an empty group waits for more members after the first one has joined (KIP-134).", maximum=INT_MAX,
            since="0.11"),
    Setting("transaction.state.log.num.partitions", BROKER, "int", _always(50),
            "The number of partitions of __transaction_state, which limits how many brokers coordinate transactions (KIP-98).", minimum=1,
            maximum=10_000, since="0.11"),
    Setting("transaction.state.log.replication.factor", BROKER, "int", _always(3),
            "The number of replicas of __transaction_state.", minimum=1, maximum=INT_MAX, since="0.11"),
    Setting("transaction.state.log.min.isr", BROKER, "int", _always(2),
            "min.insync.replicas of __transaction_state.", minimum=1, maximum=INT_MAX, since="0.11"),
    Setting("transaction.state.log.segment.bytes", BROKER, "int", _always(100 << 20),
            "segment.bytes of __transaction_state.", minimum=14, maximum=INT_MAX, since="0.11"),
    Setting("quota.window.num", BROKER, "int", _always(11),
            "The number of samples of a client's traffic that a broker keeps, including the current one.", minimum=1,
            maximum=INT_MAX),
    Setting("quota.window.size.seconds", BROKER, "seconds", _always(1),
            "The length of each of these samples.", minimum=1, maximum=INT_MAX),
    Setting("replication.quota.window.num", BROKER, "int", _always(11),
            "The number of samples of throttled replication traffic that a broker keeps (KIP-73).", minimum=1,
            maximum=INT_MAX),
    Setting("replication.quota.window.size.seconds", BROKER, "seconds", _always(1),
            "The length of each of these samples.", minimum=1, maximum=INT_MAX),
    Setting("leader.replication.throttled.rate", BROKER, "int", _always(LONG_MAX),
            "The bytes per second that a broker sends to followers outside the ISR, for partitions in "
            "leader.replication.throttled.replicas (KIP-73).", minimum=1),
    Setting("follower.replication.throttled.rate", BROKER, "int", _always(LONG_MAX),
            "The bytes per second that a broker fetches while it is below the high watermark, for partitions in "
            "follower.replication.throttled.replicas (KIP-73).", minimum=1),
    Setting("transaction.max.timeout.ms", BROKER, "ms", _always(900_000),
            "The longest transaction.timeout.ms that a producer may request.", minimum=1, maximum=INT_MAX, since="0.11",
            former=("max.transaction.timeout.ms",)),
    Setting("transaction.abort.timed.out.transaction.cleanup.interval.ms", BROKER, "ms", (("0.11", 60_000), ("2.5", 10_000)),
            "How often a transaction coordinator checks for transactions past their timeout.", minimum=1, maximum=INT_MAX,
            since="0.11"),
    Setting("transactional.id.expiration.ms", BROKER, "ms", _always(604_800_000),
            "How long a coordinator remembers an unused transactional.id.", minimum=1, maximum=INT_MAX, since="0.11"),
    Setting("transaction.remove.expired.transaction.cleanup.interval.ms", BROKER, "ms", _always(3_600_000),
            "How often a coordinator checks for transactional ids to forget.", minimum=1, maximum=INT_MAX, since="0.11"),
    # Topics
    Setting("unclean.leader.election.enable", TOPIC, "bool", _UNCLEAN_DEFAULTS,
            "The broker's setting, for one topic.", inherits="unclean.leader.election.enable"),
    Setting("min.insync.replicas", TOPIC, "int", _always(1),
            "The broker's setting, for one topic.", minimum=1, maximum=INT_MAX, inherits="min.insync.replicas"),
    Setting("flush.messages", TOPIC, "int", _always(LONG_MAX),
            "log.flush.interval.messages, for one topic.", minimum=1, inherits="log.flush.interval.messages"),
    Setting("flush.ms", TOPIC, "ms", _always(LONG_MAX),
            "log.flush.interval.ms, for one topic.", inherits="log.flush.interval.ms"),
    Setting("segment.bytes", TOPIC, "int", _always(1 << 30),
            "log.segment.bytes, for one topic.", minimum=14, maximum=INT_MAX),
    Setting("segment.ms", TOPIC, "ms", _always(604_800_000),
            "log.roll.ms, for one topic.", minimum=1, inherits="log.roll.ms"),
    Setting("retention.ms", TOPIC, "ms", _always(604_800_000),
            "log.retention.ms, for one topic.", minimum=-1, safe=(-1,), guards=("deleted-by-wrong-clock",)),
    Setting("retention.bytes", TOPIC, "int", _always(-1),
            "log.retention.bytes, for one topic.", minimum=-1, safe=(-1,)),
    Setting("message.timestamp.before.max.ms", TOPIC, "ms", _always(LONG_MAX),
            "log.message.timestamp.before.max.ms, for one topic (KIP-937).", since="3.6"),
    Setting("message.timestamp.after.max.ms", TOPIC, "ms", (("0.10.2", LONG_MAX), ("4.0", 3_600_000)),
            "log.message.timestamp.after.max.ms, for one topic (KIP-937).", since="3.6"),
    Setting("message.timestamp.difference.max.ms", TOPIC, "ms", _always(LONG_MAX),
            "log.message.timestamp.difference.max.ms, for one topic.", until="3.9",
            instead=("message.timestamp.before.max.ms", "message.timestamp.after.max.ms")),
    Setting("cleanup.policy", TOPIC, "choice", _always(DELETE),
            "log.cleanup.policy, for one topic.", choices=CLEANUP_POLICIES,
            aliases=_POLICY_ALIASES, is_list=True),
    Setting("min.cleanable.dirty.ratio", TOPIC, "ratio", _always("0.5"),
            "log.cleaner.min.cleanable.ratio, for one topic.", inherits="log.cleaner.min.cleanable.ratio"),
    Setting("min.compaction.lag.ms", TOPIC, "ms", _always(0),
            "log.cleaner.min.compaction.lag.ms, for one topic.", inherits="log.cleaner.min.compaction.lag.ms"),
    Setting("max.compaction.lag.ms", TOPIC, "ms", _always(LONG_MAX),
            "log.cleaner.max.compaction.lag.ms, for one topic (KIP-354).", minimum=1, since="2.3", inherits="log.cleaner.max.compaction.lag.ms"),
    Setting("delete.retention.ms", TOPIC, "ms", _always(86_400_000),
            "log.cleaner.delete.retention.ms, for one topic.", safe=(604_800_000,),
            guards=("tombstone-expired-by-wrong-clock",), inherits="log.cleaner.delete.retention.ms"),
    Setting("leader.replication.throttled.replicas", TOPIC, "replicas", _always(""),
            "The leaders that leader.replication.throttled.rate limits: numbers of partitions, each with its broker, such as "
            "0:1,1:2, or * for all (KIP-73).", inherits=NO_TEXT, is_list=True),
    Setting("follower.replication.throttled.replicas", TOPIC, "replicas", _always(""),
            "The followers that follower.replication.throttled.rate limits, in the same notation (KIP-73).", inherits=NO_TEXT, is_list=True),
    # Producers
    Setting("acks", PRODUCER, "choice", (("0.10.2", "1"), ("3.0", "all")),
            "What a producer waits for: 0 nothing, 1 the leader's append, all every replica in the ISR (KIP-679).",
            choices=("0", "1", "all"), safe=("all",), aliases=(("-1", "all"),),
            former=("request.required.acks",)),
    Setting("enable.idempotence", PRODUCER, "bool", (("0.11", False), ("3.0", True)),
            "Whether leaders recognise retries by producer id and sequence number (KIP-98, KIP-679).", since="0.11",
            safe=(True,), guards=("stored-out-of-order", "retry-without-idempotence")),
    Setting("retries", PRODUCER, "int", (("0.10.2", 0), ("2.1", INT_MAX)),
            "How often a producer retries a batch after a retriable error.", maximum=INT_MAX,
            former=("message.send.max.retries",)),
    Setting("max.in.flight.requests.per.connection", PRODUCER, "int", _always(5),
            "How many requests a producer sends to a broker before the first is answered.", minimum=1,
            maximum=INT_MAX, safe=(1,), guards=("stored-out-of-order",)),
    Setting("retry.backoff.ms", PRODUCER, "ms", _always(100),
            "How long a producer waits before its first retry of a batch."),
    Setting("retry.backoff.max.ms", PRODUCER, "ms", _always(1_000),
            "The maximum to which this backoff, and the one between metadata requests, grow (KIP-580).", since="3.7"),
    Setting("request.timeout.ms", PRODUCER, "ms", _always(30_000),
            "How long a producer waits for an answer, and how long a broker waits for acks=all.", maximum=INT_MAX,
            former=("timeout.ms",)),
    Setting("delivery.timeout.ms", PRODUCER, "ms", _always(120_000),
            "The longest time from send to the report of its outcome (KIP-91).", maximum=INT_MAX, since="2.1"),
    Setting("linger.ms", PRODUCER, "ms", (("0.10.2", 0), ("4.0", 5)),
            "How long a batch waits for more records (KIP-1030).",
            former=("queue.buffering.max.ms",)),
    Setting("batch.size", PRODUCER, "int", _always(16_384),
            "How many bytes a batch may have, but at least one record.", maximum=INT_MAX,
            former=("batch.num.messages",)),
    Setting("metadata.max.age.ms", PRODUCER, "ms", _always(300_000),
            "How often a producer refreshes its metadata without an error.",
            former=("topic.metadata.refresh.interval.ms",)),
    Setting("reconnect.backoff.ms", PRODUCER, "ms", _always(50),
            "How long a client waits before it reconnects to the same broker."),
    Setting("reconnect.backoff.max.ms", PRODUCER, "ms", _always(1_000),
            "The maximum to which the reconnect backoff grows (KIP-144).", since="0.11"),
    Setting("transactional.id", PRODUCER, "text", _always(NO_TEXT),
            "The name under which a producer has transactions. A new session with the same name fences the previous one. By "
            "default it has none (KIP-98).",
            since="0.11", safe=("only",), guards=("no transactional.id",)),
    Setting("transaction.timeout.ms", PRODUCER, "ms", _always(60_000),
            "How long a transaction may be open before its coordinator aborts it.", minimum=1, maximum=INT_MAX, since="0.11"),
    Setting("max.block.ms", PRODUCER, "ms", _always(60_000),
            "How long a call of a transactional producer waits for its coordinator; the call may be repeated.",
            former=("block.on.buffer.full", "metadata.fetch.timeout.ms")),
    Setting("partitioner.rack.aware", PRODUCER, "bool", _always(False),
            "Whether records without a key go to partitions with a leader in the producer's rack, if there are any (KIP-1123).",
            since="4.4", beside=("client.rack",)),
    Setting("client.rack", PRODUCER, "text", _always(NO_TEXT),
            "The rack of a producer, for partitioner.rack.aware (KIP-1123).", since="4.4"),
    # Consumers
    Setting("fetch.max.wait.ms", CONSUMER, "ms", _always(500),
            "How long a consumer's fetch waits for data in the leader's purgatory.", maximum=INT_MAX,
            former=("fetch.wait.max.ms",)),
    Setting("max.partition.fetch.bytes", CONSUMER, "int", _always(1_048_576),
            "How many bytes of a partition a consumer fetches at once, but at least one batch.", maximum=INT_MAX,
            former=("fetch.message.max.bytes",)),
    Setting("max.poll.records", CONSUMER, "int", _always(500),
            "The maximum number of records that a poll returns.", minimum=1, maximum=INT_MAX),
    Setting("auto.offset.reset", CONSUMER, "choice", _always("latest"),
            "Where a consumer continues when its position is out of range.",
            choices=("earliest", "latest", "none"), safe=("earliest", "none")),
    Setting("group.id", CONSUMER, "text", _always(NO_TEXT),
            "The consumer's group. Without one it reads all partitions alone, and commits nothing."),
    Setting("group.instance.id", CONSUMER, "text", _always(NO_TEXT),
            "The identity of a group member across restarts (KIP-345).", since="2.3"),
    Setting("group.protocol", CONSUMER, "choice", _always(CLASSIC),
            "Who assigns partitions: a group member (classic), or the coordinator (consumer, KIP-848).",
            choices=(CLASSIC, CONSUMER_PROTOCOL), since="4.0",
            aliases=((CLASSIC.upper(), CLASSIC), (CONSUMER_PROTOCOL.upper(), CONSUMER_PROTOCOL))),
    Setting("group.remote.assignor", CONSUMER, "choice", _always(ANY_ASSIGNOR),
            "With group.protocol=consumer: the assignor that a member asks for. With none the coordinator uses its first one.",
            choices=(ANY_ASSIGNOR, *SERVER_ASSIGNORS), since="4.0"),
    Setting("session.timeout.ms", CONSUMER, "ms", (("0.10.2", 10_000), ("3.0", 45_000)),
            "How long a member may send no heartbeat before it is removed from its group (KIP-735).", minimum=1, maximum=INT_MAX),
    Setting("heartbeat.interval.ms", CONSUMER, "ms", _always(3_000),
            "How often a member sends heartbeats, whose answers tell it of a rebalance.", minimum=1, maximum=INT_MAX),
    Setting("max.poll.interval.ms", CONSUMER, "ms", _always(300_000),
            "How long an application may take between polls before its consumer leaves the group, and how long a rebalance "
            "waits for members (KIP-62).", minimum=1, maximum=INT_MAX),
    Setting("partition.assignment.strategy", CONSUMER, "choice", (("0.10.2", "range"), ("3.0", "range,cooperative-sticky")),
            "The assignors that a member supports, the preferred one first; all members must have one in common (KIP-429).", choices=ASSIGNORS,
            aliases=_ASSIGNOR_CLASSES),
    Setting("enable.auto.commit", CONSUMER, "bool", _always(True),
            "Whether a group member commits the offsets of its polls by itself.", safe=(False,),
            former=("auto.commit.enable", "autocommit.enable")),
    Setting("auto.commit.interval.ms", CONSUMER, "ms", _always(5_000),
            "How often a group member commits the offsets of its polls, during poll.", maximum=INT_MAX),
    Setting("default.api.timeout.ms", CONSUMER, "ms", _always(60_000),
            "How long a blocking commit is retried (KIP-266).", maximum=INT_MAX, since="2.0"),
    Setting("isolation.level", CONSUMER, "choice", _always(READ_UNCOMMITTED),
            "Whether a consumer receives records of open and aborted transactions (KIP-98).",
            choices=(READ_UNCOMMITTED, READ_COMMITTED), since="0.11", safe=(READ_COMMITTED,)),
    Setting("request.timeout.ms", CONSUMER, "ms", (("0.10.2", 305_000), ("2.0", 30_000)),
            "How long a consumer waits for an answer (KIP-266).", maximum=INT_MAX),
    Setting("retry.backoff.ms", CONSUMER, "ms", _always(100),
            "How long a consumer waits before it fetches again after an error."),
    Setting("retry.backoff.max.ms", CONSUMER, "ms", _always(1_000),
            "The maximum to which the backoff between metadata requests grows (KIP-580).", since="3.7"),
    Setting("metadata.max.age.ms", CONSUMER, "ms", _always(300_000),
            "How often a consumer refreshes its metadata without an error."),
    Setting("reconnect.backoff.ms", CONSUMER, "ms", _always(50),
            "How long a client waits before it reconnects to the same broker."),
    Setting("reconnect.backoff.max.ms", CONSUMER, "ms", _always(1_000),
            "The maximum to which the reconnect backoff grows (KIP-144).", since="0.11"),
    Setting("client.rack", CONSUMER, "text", _always(NO_TEXT),
            "The consumer's rack, for brokers with a replica.selector.class (KIP-392); by default none.",
            since="2.4"),
)  # fmt: skip

SETTINGS: Final[Registry[tuple[str, str], Setting]] = Registry(
    ((setting.scope, setting.name), setting) for setting in _CATALOGUE
)
"""All settings that harrow knows, by (scope, name)."""


def scopes_of(name: str) -> tuple[str, ...]:
    """Return the scopes that have a setting called *name*."""
    return tuple(scope for scope in SCOPES if (scope, name) in SETTINGS)


@derived
def settings_in(release: str) -> frozenset[tuple[str, str]]:
    """Return the (scope, name) of each setting that a release has."""
    return frozenset(place for place, setting in SETTINGS.items() if setting.exists_in(release))


@derived
def qualified_names() -> Mapping[str, tuple[str, str]]:
    """Return the settings that producers and consumers both have, by their names for one of them.

    A prefix tells them apart, as in Kafka Streams and in Kafka Connect:
    ``consumer.request.timeout.ms``.
    """
    return {
        f"{scope}.{name}": (scope, name)
        for scope, name in SETTINGS
        if scope in CLIENTS and all((client, name) in SETTINGS for client in CLIENTS)
    }


def setting_names(scopes: Iterable[str] = SCOPES) -> list[str]:
    """Return the names of the settings in *scopes*, sorted."""
    wanted = frozenset(scopes)
    return sorted({name for scope, name in SETTINGS if scope in wanted})


@derived
def former_names() -> Mapping[str, str]:
    """Return the current names of settings, by each former name."""
    return {former: setting.name for setting in SETTINGS.values() for former in setting.former}


def shared_with(scope: str, release: str, settings: Mapping[str, V]) -> dict[str, V]:
    """Return which of the shared *settings* apply to a *scope* in a release.

    Topics inherit a setting that brokers have too, so it applies to brokers only. A setting that
    brokers and clients have applies to clients only; for a broker, a campaign sets it in the
    broker's own settings. The value of a qualified name overrides that of the plain name.
    """
    existing = settings_in(release)
    shared = {
        name: value
        for name, value in settings.items()
        if (scope, name) in existing
        and not (scope == TOPIC and (BROKER, name) in SETTINGS)
        and not (scope == BROKER and ((PRODUCER, name) in SETTINGS or (CONSUMER, name) in SETTINGS))
    }
    keys = qualified_names()
    own = {name: keys[name] for name in settings if name in keys}
    return shared | {
        name: settings[qualified]
        for qualified, (of, name) in own.items()
        if of == scope and (of, name) in existing
    }


def _setting(name: str) -> Any:
    """Declare a field of a configuration whose value is that of the setting *name*."""
    return field(metadata={_SETTING: name})


@derived
def _defaults(scope: str, release: str) -> Mapping[str, Value]:
    """Return the defaults of all settings of a scope, by name."""
    return {name: setting.default(release) for (of, name), setting in SETTINGS.items() if of == scope}


def _in_us(setting: Setting, value: Any) -> int:
    unit = US_PER_SECOND if setting.kind == "seconds" else US_PER_MS
    return min(int(value), LONG_MAX // US_PER_SECOND) * unit


def _field_value(setting: Setting, value: Any) -> Any:
    """Return the value of a setting; if it is a time, in microseconds."""
    return _in_us(setting, value) if setting.kind in ("ms", "seconds") else value


class ResolvedSettings:
    """The settings of one process: explicit values, and the release's defaults for all others."""

    __slots__ = ("_explicit", "_release", "_scope", "_values")

    def __init__(self, scope: str, release: str, explicit: Mapping[str, Value]) -> None:
        self._scope = scope
        self._release = release
        self._explicit = explicit
        self._values = {**_defaults(scope, release), **explicit}

    def get(self, name: str) -> Any:
        return self._values[name]

    def us(self, name: str) -> int:
        """Return the value of a setting that is a time, in microseconds."""
        return _in_us(SETTINGS[self._scope, name], self.get(name))

    def configure(self, config: type[C], **computed: Any) -> C:
        """Return a configuration with *computed* fields, and all other fields from settings."""
        values = dict(_default_fields(config, self._scope, self._release))
        names = _fields_by_setting(config)
        values |= {names[name]: self.field_value(name) for name in self._explicit if name in names}
        return config(**{**values, **computed})

    def field_value(self, name: str) -> Any:
        """Return the value of a setting; if it is a time, in microseconds."""
        return _field_value(SETTINGS[self._scope, name], self.get(name))

    def reconnect_backoff_max_us(self) -> int:
        """Return the maximum of the reconnect backoff.

        The backoff does not grow before KIP-144, nor if only ``reconnect.backoff.ms`` is set
        (``CommonClientConfigs.postProcessReconnectBackoffConfigs``).
        """
        name = "reconnect.backoff.max.ms"
        grows = name in self._explicit or "reconnect.backoff.ms" not in self._explicit
        backoff_us = self.us("reconnect.backoff.ms")
        if not grows or not SETTINGS[self._scope, name].exists_in(self._release):
            return backoff_us
        return max(backoff_us, self.us(name))

    def retry_backoff_max_us(self) -> int:
        """Return the maximum of the retry backoff, which does not grow before KIP-580."""
        name = "retry.backoff.max.ms"
        has_maximum = SETTINGS[self._scope, name].exists_in(self._release)
        return self.us(name if has_maximum else "retry.backoff.ms")


@derived
def _default_fields(config: type[Any], scope: str, release: str) -> Mapping[str, Any]:
    """Return the fields of a configuration with the defaults of a release."""
    resolved = ResolvedSettings(scope, release, {})
    return {item: resolved.field_value(name) for name, item in _fields_by_setting(config).items()}


@derived
def _fields_by_setting(config: type[Any]) -> Mapping[str, str]:
    """Return the names of a configuration's fields, by the settings that they come from."""
    return {item.metadata[_SETTING]: item.name for item in fields(config) if _SETTING in item.metadata}


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConfig:
    """A broker's settings, with times in microseconds."""

    unclean_leader_election: bool = _setting("unclean.leader.election.enable")
    min_insync_replicas: int = _setting("min.insync.replicas")
    replica_lag_time_max_us: int = _setting("replica.lag.time.max.ms")
    replica_lag_max_messages: int = _setting("replica.lag.max.messages")
    replica_fetch_wait_max_us: int = _setting("replica.fetch.wait.max.ms")
    replica_fetch_max_bytes: int = _setting("replica.fetch.max.bytes")
    fetch_session_slots: int = _setting("max.incremental.fetch.session.cache.slots")
    replica_fetch_backoff_us: int = _setting("replica.fetch.backoff.ms")
    request_timeout_us: int = _setting("request.timeout.ms")
    hw_checkpoint_interval_us: int = _setting("replica.high.watermark.checkpoint.interval.ms")
    flush_interval_messages: int = _setting("log.flush.interval.messages")
    flush_interval_us: int
    flush_scheduler_interval_us: int = _setting("log.flush.scheduler.interval.ms")
    segment_bytes: int = _setting("log.segment.bytes")
    segment_us: int = _setting("log.roll.ms")
    retention_us: int = _setting("log.retention.ms")
    retention_bytes: int = _setting("log.retention.bytes")
    retention_check_interval_us: int = _setting("log.retention.check.interval.ms")
    timestamp_before_max_us: int = _setting("log.message.timestamp.before.max.ms")
    timestamp_after_max_us: int = _setting("log.message.timestamp.after.max.ms")
    timestamp_difference_max_us: int = _setting("log.message.timestamp.difference.max.ms")
    cleanup_policy: str = _setting("log.cleanup.policy")
    cleaner_backoff_us: int = _setting("log.cleaner.backoff.ms")
    min_cleanable_ratio: str = _setting("log.cleaner.min.cleanable.ratio")
    min_compaction_lag_us: int = _setting("log.cleaner.min.compaction.lag.ms")
    max_compaction_lag_us: int = _setting("log.cleaner.max.compaction.lag.ms")
    delete_retention_us: int = _setting("log.cleaner.delete.retention.ms")
    log_start_checkpoint_interval_us: int = _setting("log.flush.start.offset.checkpoint.interval.ms")
    recovery_point_checkpoint_interval_us: int = _setting("log.flush.offset.checkpoint.interval.ms")
    zookeeper_session_timeout_us: int = _setting("zookeeper.session.timeout.ms")
    broker_session_timeout_us: int = _setting("broker.session.timeout.ms")
    broker_heartbeat_interval_us: int = _setting("broker.heartbeat.interval.ms")
    initial_registration_timeout_us: int = _setting("initial.broker.registration.timeout.ms")
    quorum_election_timeout_us: int = _setting("controller.quorum.election.timeout.ms")
    quorum_election_backoff_max_us: int = _setting("controller.quorum.election.backoff.max.ms")
    quorum_fetch_timeout_us: int = _setting("controller.quorum.fetch.timeout.ms")
    quorum_request_timeout_us: int = _setting("controller.quorum.request.timeout.ms")
    metadata_snapshot_bytes: int = _setting("metadata.log.max.record.bytes.between.snapshots")
    metadata_snapshot_interval_us: int = _setting("metadata.log.max.snapshot.interval.ms")
    metadata_retention_bytes: int = _setting("metadata.max.retention.bytes")
    metadata_retention_us: int = _setting("metadata.max.retention.ms")
    auto_create_topics: bool = _setting("auto.create.topics.enable")
    default_partitions: int = _setting("num.partitions")
    default_replication_factor: int = _setting("default.replication.factor")
    auto_leader_rebalance: bool = _setting("auto.leader.rebalance.enable")
    leader_imbalance_check_interval_us: int = _setting("leader.imbalance.check.interval.seconds")
    leader_imbalance_percentage: int = _setting("leader.imbalance.per.broker.percentage")
    controller_socket_timeout_us: int = _setting("controller.socket.timeout.ms")
    network_threads: int = _setting("num.network.threads")
    io_threads: int = _setting("num.io.threads")
    queued_requests_max: int = _setting("queued.max.requests")
    control_plane_listener: str = _setting(CONTROL_PLANE_LISTENER)
    replica_selector: str = _setting("replica.selector.class")
    controlled_shutdown: bool = _setting("controlled.shutdown.enable")
    controlled_shutdown_max_retries: int = _setting("controlled.shutdown.max.retries")
    controlled_shutdown_retry_backoff_us: int = _setting("controlled.shutdown.retry.backoff.ms")
    quota_samples: int = _setting("quota.window.num")
    quota_sample_us: int = _setting("quota.window.size.seconds")
    replication_quota_samples: int = _setting("replication.quota.window.num")
    replication_quota_sample_us: int = _setting("replication.quota.window.size.seconds")
    leader_throttled_rate: int = _setting("leader.replication.throttled.rate")
    follower_throttled_rate: int = _setting("follower.replication.throttled.rate")
    offsets_topic_partitions: int = _setting("offsets.topic.num.partitions")
    offsets_topic_replication_factor: int = _setting("offsets.topic.replication.factor")
    offsets_topic_segment_bytes: int = _setting("offsets.topic.segment.bytes")
    offsets_commit_timeout_us: int = _setting("offsets.commit.timeout.ms")
    offsets_retention_us: int
    offsets_retention_check_interval_us: int = _setting("offsets.retention.check.interval.ms")
    group_min_session_timeout_us: int = _setting("group.min.session.timeout.ms")
    group_max_session_timeout_us: int = _setting("group.max.session.timeout.ms")
    group_initial_rebalance_delay_us: int = _setting("group.initial.rebalance.delay.ms")
    consumer_group_session_timeout_us: int = _setting("group.consumer.session.timeout.ms")
    consumer_group_heartbeat_interval_us: int = _setting("group.consumer.heartbeat.interval.ms")
    consumer_group_max_size: int = _setting("group.consumer.max.size")
    consumer_group_assignors: tuple[str, ...]
    consumer_group_assignment_interval_us: int
    transaction_topic_partitions: int = _setting("transaction.state.log.num.partitions")
    transaction_topic_replication_factor: int = _setting("transaction.state.log.replication.factor")
    transaction_topic_min_isr: int = _setting("transaction.state.log.min.isr")
    transaction_max_timeout_us: int = _setting("transaction.max.timeout.ms")
    transaction_abort_interval_us: int = _setting(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms"
    )
    transactional_id_expiration_us: int = _setting("transactional.id.expiration.ms")
    transactional_id_cleanup_interval_us: int = _setting(
        "transaction.remove.expired.transaction.cleanup.interval.ms"
    )
    transaction_topic_segment_bytes: int = _setting("transaction.state.log.segment.bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicConfig:
    """A topic's settings on one broker, from which they inherit (``LogConfig.fromProps``).

    Without ``delete`` in ``cleanup.policy``, both retention fields are -1.
    """

    unclean_leader_election: bool
    min_insync_replicas: int
    flush_messages: int
    flush_us: int
    segment_bytes: int
    segment_us: int
    retention_us: int
    retention_bytes: int
    timestamp_before_max_us: int
    timestamp_after_max_us: int
    compacts: bool
    min_cleanable_ratio: float
    min_compaction_lag_us: int
    max_compaction_lag_us: int
    delete_retention_us: int
    leader_throttled_replicas: str
    follower_throttled_replicas: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerConfig:
    """A producer's settings, with times in microseconds. ``acks`` is 0, 1 or -1 (all)."""

    acks: int
    idempotence: bool
    retries: int
    max_in_flight: int
    retry_backoff_us: int = _setting("retry.backoff.ms")
    retry_backoff_max_us: int
    request_timeout_us: int = _setting("request.timeout.ms")
    delivery_timeout_us: int
    linger_us: int = _setting("linger.ms")
    batch_size_bytes: int = _setting("batch.size")
    metadata_max_age_us: int = _setting("metadata.max.age.ms")
    reconnect_backoff_us: int = _setting("reconnect.backoff.ms")
    reconnect_backoff_max_us: int
    transactional_id: str = _setting("transactional.id")
    transaction_timeout_us: int = _setting("transaction.timeout.ms")
    max_block_us: int = _setting("max.block.ms")
    is_rack_aware: bool = _setting("partitioner.rack.aware")
    client_rack: str = _setting("client.rack")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerConfig:
    """A consumer's settings, with times in microseconds."""

    isolation_level: str = _setting("isolation.level")

    fetch_max_wait_us: int = _setting("fetch.max.wait.ms")
    max_partition_fetch_bytes: int = _setting("max.partition.fetch.bytes")
    max_poll_records: int = _setting("max.poll.records")
    auto_offset_reset: str = _setting("auto.offset.reset")
    group: str = _setting("group.id")
    group_instance: str = _setting("group.instance.id")
    group_protocol: str = _setting("group.protocol")
    remote_assignor: str = _setting("group.remote.assignor")
    session_timeout_us: int = _setting("session.timeout.ms")
    heartbeat_interval_us: int = _setting("heartbeat.interval.ms")
    max_poll_interval_us: int = _setting("max.poll.interval.ms")
    assignors: tuple[str, ...]
    auto_commit: bool = _setting("enable.auto.commit")
    auto_commit_interval_us: int = _setting("auto.commit.interval.ms")
    api_timeout_us: int | None
    request_timeout_us: int = _setting("request.timeout.ms")
    retry_backoff_us: int = _setting("retry.backoff.ms")
    retry_backoff_max_us: int
    metadata_max_age_us: int = _setting("metadata.max.age.ms")
    reconnect_backoff_us: int = _setting("reconnect.backoff.ms")
    reconnect_backoff_max_us: int
    client_rack: str = _setting("client.rack")


def broker_config(release: str, explicit: Mapping[str, Value]) -> BrokerConfig:
    return _broker_config(release, typed_items(explicit))


@derived_up_to(64)  # The brokers of a run usually have the same settings.
def _broker_config(release: str, settings: tuple[tuple[str, type, Value], ...]) -> BrokerConfig:
    explicit = {name: value for name, _, value in settings}
    resolved = ResolvedSettings(BROKER, release, explicit)
    # ``KafkaConfig.logFlushIntervalMs``.
    name = _FLUSH_INTERVAL if _FLUSH_INTERVAL in explicit else "log.flush.scheduler.interval.ms"
    return resolved.configure(
        BrokerConfig,
        flush_interval_us=resolved.us(name),
        consumer_group_assignors=tuple(str(resolved.get("group.consumer.assignors")).split(",")),
        consumer_group_assignment_interval_us=resolved.us(_ASSIGNMENT_INTERVAL)
        if SETTINGS[BROKER, _ASSIGNMENT_INTERVAL].exists_in(release)
        else 0,
        offsets_retention_us=int(resolved.get("offsets.retention.minutes")) * _US_PER_MINUTE,
    )


def reconfigured(config: BrokerConfig, dynamic: Mapping[str, Value]) -> BrokerConfig:
    """Return the configuration of a broker with the settings that an administrator has changed."""
    names = {**_fields_by_setting(BrokerConfig), _FLUSH_INTERVAL: "flush_interval_us"}
    changes = {
        names[name]: _field_value(SETTINGS[BROKER, name], value)
        for name, value in dynamic.items()
        if name in names
    }
    return replace(config, **changes)


def _us(milliseconds: int) -> int:
    return min(milliseconds, LONG_MAX // US_PER_SECOND) * US_PER_MS


NO_LIMIT_US: Final = _us(LONG_MAX)
"""Kafka's largest time in microseconds, which means that there is no limit."""


def topic_config(explicit: Mapping[str, Value], broker: BrokerConfig) -> TopicConfig:
    def us(name: str, default_us: int) -> int:
        return _us(int(explicit[name])) if name in explicit else default_us

    policies = str(explicit.get("cleanup.policy", broker.cleanup_policy)).split(",")
    deletes, compacts = DELETE in policies, COMPACT in policies
    segment_us = us("segment.ms", broker.segment_us)
    max_lag_us = us("max.compaction.lag.ms", broker.max_compaction_lag_us)
    before_us = us("message.timestamp.before.max.ms", broker.timestamp_before_max_us)
    after_us = us("message.timestamp.after.max.ms", broker.timestamp_after_max_us)
    difference_us = us("message.timestamp.difference.max.ms", broker.timestamp_difference_max_us)
    return TopicConfig(
        unclean_leader_election=bool(
            explicit.get("unclean.leader.election.enable", broker.unclean_leader_election)
        ),
        min_insync_replicas=int(explicit.get("min.insync.replicas", broker.min_insync_replicas)),
        flush_messages=int(explicit.get("flush.messages", broker.flush_interval_messages)),
        flush_us=us("flush.ms", broker.flush_interval_us),
        segment_bytes=int(explicit.get("segment.bytes", broker.segment_bytes)),
        # The cleaner does not compact the active segment. So a segment must be rolled before its
        # records reach the maximum compaction lag (``LogConfig.maxSegmentMs``).
        segment_us=min(segment_us, max_lag_us) if compacts else segment_us,
        retention_us=us("retention.ms", broker.retention_us) if deletes else -1,
        retention_bytes=int(explicit.get("retention.bytes", broker.retention_bytes)) if deletes else -1,
        # Where the newer setting has no limit, the older one applies
        # (``LogConfig.messageTimestampBeforeMaxMs``).
        timestamp_before_max_us=difference_us if before_us == NO_LIMIT_US else before_us,
        timestamp_after_max_us=difference_us if after_us == NO_LIMIT_US else after_us,
        compacts=compacts,
        min_cleanable_ratio=float(explicit.get("min.cleanable.dirty.ratio", broker.min_cleanable_ratio)),
        min_compaction_lag_us=us("min.compaction.lag.ms", broker.min_compaction_lag_us),
        max_compaction_lag_us=max_lag_us,
        delete_retention_us=us("delete.retention.ms", broker.delete_retention_us),
        leader_throttled_replicas=str(explicit.get("leader.replication.throttled.replicas", "")),
        follower_throttled_replicas=str(explicit.get("follower.replication.throttled.replicas", "")),
    )


def producer_config(
    release: str, explicit: Mapping[str, Value], behaviours: Behaviours | None = None
) -> ProducerConfig:
    """Return a producer's configuration in *release*, with *behaviours* or those of the release.

    As in Kafka, idempotence changes other defaults: acks=all, unlimited retries, and no more
    requests in flight than the release allows. If idempotence is on only by default (KIP-679), an
    explicit setting that conflicts with it turns it off
    (``ProducerConfig.postProcessAndValidateIdempotenceConfigs``).
    """
    resolved = ResolvedSettings(PRODUCER, release, explicit)
    behaviours = behaviours or RELEASES[release].behaviours
    idempotence = behaviours.clients.idempotence and bool(resolved.get(IDEMPOTENCE))
    if explicit.get(TRANSACTIONAL_ID):
        idempotence = True
    elif idempotence and IDEMPOTENCE not in explicit:
        idempotence = not any(_idempotence_conflicts(release, explicit, behaviours))
    acks = str(explicit.get("acks", "all" if idempotence else resolved.get("acks")))
    in_flight = resolved.get("max.in.flight.requests.per.connection")
    if idempotence and "max.in.flight.requests.per.connection" not in explicit:
        in_flight = min(in_flight, behaviours.log.idempotent_in_flight_max)
    retries = INT_MAX if idempotence and "retries" not in explicit else resolved.get("retries")
    delivery_timeout_us = resolved.us("delivery.timeout.ms")
    if "delivery.timeout.ms" not in explicit:
        # The default is raised to at least linger.ms + request.timeout.ms
        # (``KafkaProducer.configureDeliveryTimeout``).
        delivery_timeout_us = max(
            delivery_timeout_us,
            _least_delivery_timeout_us(resolved.us("linger.ms"), resolved.us("request.timeout.ms")),
        )
    return resolved.configure(
        ProducerConfig,
        acks=-1 if acks == "all" else int(acks),
        idempotence=idempotence,
        retries=retries,
        max_in_flight=in_flight,
        delivery_timeout_us=delivery_timeout_us,
        reconnect_backoff_max_us=resolved.reconnect_backoff_max_us(),
        retry_backoff_max_us=resolved.retry_backoff_max_us(),
    )


def _least_delivery_timeout_us(linger_us: int, request_timeout_us: int) -> int:
    """Return the minimum of delivery.timeout.ms: the sum of the two times, but at most an int."""
    return min(linger_us + request_timeout_us, INT_MAX * US_PER_MS)


# Settings that Kafka refuses

IDEMPOTENCE: Final = "enable.idempotence"
TRANSACTIONAL_ID: Final = "transactional.id"
TRANSACTION_TIMEOUT: Final = "transaction.timeout.ms"
ISOLATION_LEVEL: Final = "isolation.level"
IN_FLIGHT: Final = "max.in.flight.requests.per.connection"
MIN_ISR: Final = "min.insync.replicas"
DELIVERY_TIMEOUT: Final = "delivery.timeout.ms"
AUTO_OFFSET_RESET: Final = "auto.offset.reset"
GROUP_ID: Final = "group.id"
_ANY_GROUP: Final = "any"
AUTO_COMMIT: Final = "enable.auto.commit"
_SESSION_TIMEOUT: Final = "session.timeout.ms"
ASSIGNMENT_STRATEGY: Final = "partition.assignment.strategy"
_HEARTBEAT: Final = "heartbeat.interval.ms"
GROUP_PROTOCOL: Final = "group.protocol"
REMOTE_ASSIGNOR: Final = "group.remote.assignor"
_ASSIGNMENT_INTERVAL: Final = "group.consumer.assignment.interval.ms"
_GROUP_SESSION: Final = "group.consumer.session.timeout.ms"
_GROUP_HEARTBEAT: Final = "group.consumer.heartbeat.interval.ms"
_BOUNDED: Final = (
    (_GROUP_SESSION, "group.consumer.min.session.timeout.ms", "group.consumer.max.session.timeout.ms"),
    (
        _GROUP_HEARTBEAT,
        "group.consumer.min.heartbeat.interval.ms",
        "group.consumer.max.heartbeat.interval.ms",
    ),
)
"""Settings of brokers, each with the settings that are its minimum and its maximum."""
_COORDINATOR_PREFIXES: Final = ("group.", "offsets.", "transaction")
OF_GROUPS: Final = frozenset(
    {
        *(AUTO_COMMIT, "auto.commit.interval.ms", "default.api.timeout.ms", ASSIGNMENT_STRATEGY),
        *(_SESSION_TIMEOUT, _HEARTBEAT, "max.poll.interval.ms", GROUP_PROTOCOL, REMOTE_ASSIGNOR),
    }
)
"""Settings that only affect consumers with a ``group.id``."""
OF_CLASSIC_PROTOCOL: Final = frozenset({_SESSION_TIMEOUT, _HEARTBEAT, ASSIGNMENT_STRATEGY})
"""Settings that a consumer refuses together with ``group.protocol=consumer``.

Modelled on ``ConsumerConfig.checkUnsupportedConfigsPostProcess``.
"""
_INSTEAD_WITH_CONSUMER_PROTOCOL: Final = {
    _SESSION_TIMEOUT: "brokers set it with group.consumer.session.timeout.ms",
    _HEARTBEAT: "brokers set it with group.consumer.heartbeat.interval.ms",
    ASSIGNMENT_STRATEGY: f"brokers assign with group.consumer.assignors and {REMOTE_ASSIGNOR}",
}
_ASSIGNOR_SINCE: Final = {"sticky": "0.11", "cooperative-sticky": "2.4"}
_IN_FLIGHT_REFUSED_SINCE: Final = version_of("4.0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """Settings that Kafka refuses together.

    ``setting`` must change because of the ``others``. Kafka would accept ``remedy`` as its value;
    if ``remedy`` is None, the setting must be left out. ``needed`` is the message. Where ``remedy``
    is a time, ``{remedy}`` in the message stands for it.
    """

    setting: str
    others: tuple[str, ...] = ()
    needed: str
    remedy: Value | None = None


def is_of_coordinators(setting: Setting) -> bool:
    """Return whether a setting matters only to groups or transactions, and so to coordinators."""
    if setting.scope == CONSUMER:
        return setting.name in OF_GROUPS or setting.name == "isolation.level"
    return setting.name.startswith(_COORDINATOR_PREFIXES) or setting.name == "max.block.ms"


def conflicts(release: str, explicit: Mapping[str, Value], behaviours: Behaviours) -> Iterator[Conflict]:
    """Yield the conflicts between *explicit* settings that Kafka's producer refuses."""
    yield from _identity_conflicts(release, explicit, behaviours)
    for name in filter(explicit.get, explicit):
        if (PRODUCER, name) in SETTINGS:
            for other in SETTINGS[PRODUCER, name].beside:
                if not explicit.get(other):
                    yield Conflict(setting=name, needed=f"{name} needs {other}")
    if DELIVERY_TIMEOUT in explicit:
        # `KafkaProducer.configureDeliveryTimeout`, since KIP-91.
        config = producer_config(release, explicit, behaviours)
        least_us = _least_delivery_timeout_us(config.linger_us, config.request_timeout_us)
        if config.delivery_timeout_us < least_us:
            yield Conflict(
                setting=DELIVERY_TIMEOUT,
                others=("linger.ms", "request.timeout.ms"),
                needed="delivery.timeout.ms must be at least linger.ms + request.timeout.ms ({remedy})",
                remedy=least_us // US_PER_MS,
            )


def _identity_conflicts(
    release: str, explicit: Mapping[str, Value], behaviours: Behaviours
) -> Iterator[Conflict]:
    """Yield conflicts with transactional.id or with enable.idempotence."""
    if explicit.get(TRANSACTIONAL_ID):
        if explicit.get(IDEMPOTENCE) is False:
            needed = f"needs {IDEMPOTENCE}=true"
            yield Conflict(setting=IDEMPOTENCE, others=(TRANSACTIONAL_ID,), needed=needed, remedy=True)
        for conflict in _idempotence_conflicts(release, explicit, behaviours):
            others = (IDEMPOTENCE if explicit.get(IDEMPOTENCE) else TRANSACTIONAL_ID,)
            yield replace(conflict, others=others if conflict.others else ())
    elif explicit.get(IDEMPOTENCE):
        yield from _idempotence_conflicts(release, explicit, behaviours)
    elif IDEMPOTENCE not in explicit and RELEASES[release].version >= _IN_FLIGHT_REFUSED_SINCE:
        # From 4.0 on, too many requests in flight no longer turn off idempotence that is on only by
        # default.
        for conflict in _idempotence_conflicts(release, explicit, behaviours):
            if conflict.setting == IN_FLIGHT:
                yield replace(
                    conflict, others=(), needed=f"{IDEMPOTENCE} is true by default: it {conflict.needed}"
                )


def broker_conflicts(release: str, explicit: Mapping[str, Value]) -> Iterator[Conflict]:
    """Yield the settings that Kafka's brokers refuse (``GroupCoordinatorConfig``, KIP-848)."""
    if not SETTINGS[BROKER, _GROUP_SESSION].exists_in(release):
        return
    resolved = ResolvedSettings(BROKER, release, explicit)
    for name, least, most in _BOUNDED:
        if resolved.get(name) < resolved.get(least):
            yield _out_of_bounds(
                explicit, name, least, f"must be at least {least} ({resolved.get(least)} ms)"
            )
        elif resolved.get(name) > resolved.get(most):
            yield _out_of_bounds(explicit, name, most, f"must be at most {most} ({resolved.get(most)} ms)")
    if resolved.get(_GROUP_HEARTBEAT) >= resolved.get(_GROUP_SESSION):
        needed = f"must be less than {_GROUP_SESSION} ({resolved.get(_GROUP_SESSION)} ms)"
        yield _out_of_bounds(explicit, _GROUP_HEARTBEAT, _GROUP_SESSION, needed)


def _out_of_bounds(explicit: Mapping[str, Value], name: str, bound: str, needed: str) -> Conflict:
    """Return the conflict of a setting with its bound.

    The bound must change if only it is explicit.
    """
    is_explicit = name in explicit
    others = (bound,) if is_explicit and bound in explicit else ()
    return Conflict(setting=name if is_explicit else bound, others=others, needed=f"{name} {needed}")


def consumer_conflicts(release: str, explicit: Mapping[str, Value]) -> Iterator[Conflict]:
    """Yield the conflicts between *explicit* settings that Kafka's consumer refuses."""
    if not explicit.get(GROUP_ID):
        if explicit.get(AUTO_COMMIT) and RELEASES[release].version >= version_of("2.2"):
            yield Conflict(
                setting=AUTO_COMMIT, needed=f"needs a {GROUP_ID}: there is no group to commit for (KIP-289)"
            )
        return
    config = consumer_config(release, explicit)
    if config.group_protocol == CONSUMER_PROTOCOL:
        for name in sorted(OF_CLASSIC_PROTOCOL & explicit.keys()):
            yield Conflict(
                setting=name,
                others=(GROUP_PROTOCOL,),
                needed=f"{name} cannot be set with {GROUP_PROTOCOL}=consumer: {_INSTEAD_WITH_CONSUMER_PROTOCOL[name]}",
            )
        return
    if explicit.get(REMOTE_ASSIGNOR, ANY_ASSIGNOR) != ANY_ASSIGNOR:
        yield Conflict(setting=REMOTE_ASSIGNOR, needed=f"{REMOTE_ASSIGNOR} needs {GROUP_PROTOCOL}=consumer")
    if config.heartbeat_interval_us >= config.session_timeout_us:
        is_explicit = _HEARTBEAT in explicit
        yield Conflict(
            setting=_HEARTBEAT if is_explicit else _SESSION_TIMEOUT,
            others=(_SESSION_TIMEOUT,) if is_explicit else (),
            needed=f"{_HEARTBEAT} must be less than {_SESSION_TIMEOUT}",
        )
    for name in config.assignors:
        since = _ASSIGNOR_SINCE.get(name, "0.10.2")
        if RELEASES[release].version < version_of(since):
            yield Conflict(
                setting=ASSIGNMENT_STRATEGY,
                needed=f"Kafka {release} has no assignor {name}; it came with {since}",
            )


def _idempotence_conflicts(
    release: str, explicit: Mapping[str, Value], behaviours: Behaviours
) -> Iterator[Conflict]:
    """Yield the settings with which idempotence is impossible.

    Modelled on ``ProducerConfig``: configureAcks, configureRetries and configureInflightRequests.
    """
    others = (IDEMPOTENCE,)
    if not behaviours.clients.idempotence:
        yield Conflict(
            setting=IDEMPOTENCE, needed="there is no idempotent producer: `behaviours` switch it off"
        )
    if str(explicit.get("acks", "all")) not in ("all", "-1"):
        needed = f"needs acks=all, not acks={explicit['acks']}"
        yield Conflict(setting="acks", others=others, needed=needed, remedy="all")
    if explicit.get("retries") == 0:
        yield Conflict(setting="retries", others=others, needed="needs retries of more than 0")
    limit = behaviours.log.idempotent_in_flight_max
    in_flight = explicit.get(IN_FLIGHT, 0)
    if int(in_flight) > limit:
        needed = f"needs {IN_FLIGHT} of at most {limit} in Kafka {release}, not {in_flight}"
        yield Conflict(setting=IN_FLIGHT, others=others, needed=needed, remedy=limit)


def reconciled(
    release: str,
    chosen: Mapping[str, Value],
    behaviours: Behaviours,
    *,
    fixed: Mapping[str, Value] = MappingProxyType({}),
    replicas: int | None = None,
) -> dict[str, Value]:
    """Return *chosen* settings, changed so that Kafka accepts them together with *fixed* ones.

    For each conflict, ``Conflict.setting`` gets its remedy or is dropped if it is a chosen setting;
    otherwise, a chosen setting that conflicts with it is dropped. min.insync.replicas is reduced to
    the number of *replicas*. If the group protocol is chosen, settings that it refuses are dropped.
    """
    settings = dict(chosen)
    if MIN_ISR in settings and replicas is not None:
        settings[MIN_ISR] = min(int(settings[MIN_ISR]), replicas)
    # Each round resolves the conflicts of one setting.
    for _ in range(2 * len(settings)):
        of_producer = shared_with(PRODUCER, release, {**fixed, **settings})
        remaining = chain(
            conflicts(release, of_producer, behaviours),
            broker_conflicts(release, shared_with(BROKER, release, {**fixed, **settings})),
        )
        if GROUP_PROTOCOL in settings:
            of_member = {GROUP_ID: _ANY_GROUP, **shared_with(CONSUMER, release, settings)}
            remaining = chain(remaining, consumer_conflicts(release, of_member))
        for conflict in remaining:
            if _settle_conflict(settings, conflict):
                break
        else:
            break
    return settings


def _settle_conflict(settings: dict[str, Value], conflict: Conflict) -> bool:
    """Change chosen *settings* to resolve a conflict, and return whether that was possible."""
    if conflict.setting in settings:
        if conflict.remedy is None:
            del settings[conflict.setting]
        else:
            settings[conflict.setting] = conflict.remedy
        return True
    for other in conflict.others:
        if settings.pop(other, False):
            if other == IDEMPOTENCE and TRANSACTIONAL_ID not in settings:
                settings[other] = False
            return True
    return False


def consumer_config(release: str, explicit: Mapping[str, Value]) -> ConsumerConfig:
    return _consumer_config(release, typed_items(explicit))


@derived_up_to(64)  # Each run reads everything back with the same settings.
def _consumer_config(release: str, settings: tuple[tuple[str, type, Value], ...]) -> ConsumerConfig:
    explicit = {name: value for name, _, value in settings}
    resolved = ResolvedSettings(CONSUMER, release, explicit)
    api_timeout = "default.api.timeout.ms"
    return resolved.configure(
        ConsumerConfig,
        assignors=tuple(str(resolved.get(ASSIGNMENT_STRATEGY)).split(",")),
        api_timeout_us=resolved.us(api_timeout)
        if SETTINGS[CONSUMER, api_timeout].exists_in(release)
        else None,
        reconnect_backoff_max_us=resolved.reconnect_backoff_max_us(),
        retry_backoff_max_us=resolved.retry_backoff_max_us(),
    )
