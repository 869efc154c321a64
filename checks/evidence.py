"""The evidence of a run for rules: the history, the replicas' logs, the trace and the settings."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Final

from harrow.cluster_model.history import Operation
from harrow.cluster_model.invariants.catalogue import SHOWN_BY_TRACE
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.log.record_batch import RecordBatch
from harrow.cluster_model.release.profiles import Behaviours, behaviours_in
from harrow.cluster_model.settings import TopicConfig
from harrow.cluster_model.trace import TraceEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalLog:
    """A replica's log after healing. ``epochs`` are (leader epoch, start offset) pairs.

    A replica that is not ``in_sync`` has not rejoined the ISR, and may hold anything. For a broker
    that is seen only through its answers, ``flushed`` is None, and ``batches`` end at its high
    watermark, as far as it lets them be read. The ``damaged`` batches, by base offset, have a wrong
    CRC and cannot be read. If ``begins_at`` is in the middle of a batch, the batch's records before
    it were deleted (DeleteRecords).
    """

    leo: int
    hw: int
    flushed: int | None
    epochs: tuple[tuple[int, int], ...]
    batches: tuple[RecordBatch, ...]
    in_sync: bool = True
    damaged: frozenset[int] = frozenset()
    begins_at: int = 0

    @property
    def log_start(self) -> int:
        """The first offset of the log; retention may have deleted records before it."""
        return max(self.first_offset, self.begins_at)

    @property
    def first_offset(self) -> int:
        """The offset of the first stored record, deleted or not."""
        return self.batches[0].base_offset if self.batches else self.leo

    def values(self) -> list[str | None]:
        """Return values by offset."""
        values: list[str | None] = [None] * self.first_offset if self.batches else []
        for batch in self.batches:
            if batch.base_offset > len(values):
                values += (None,) * (batch.base_offset - len(values))
            if batch.base_offset in self.damaged:
                values += (None,) * (batch.next_offset - batch.base_offset)
            elif batch.keyed is not None and batch.is_compacted:
                values += (None,) * (batch.next_offset - batch.base_offset)
                for offset, value in batch.records():
                    values[offset] = value
            else:
                values += batch.values or (None,)
        deleted = min(self.log_start, len(values))
        values[:deleted] = [None] * deleted
        return values


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerSettings:
    """The settings on which promises to a producer depend.

    ``acks`` is ``"0"``, ``"1"`` or ``"all"``.
    """

    name: str
    acks: str
    idempotence: bool
    max_in_flight: int
    retries: int
    transactional_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerSettings:
    """The settings on which promises to a consumer depend.

    ``group`` is empty for no member of a group. It reads its ``partitions``, or else those of its
    ``topics``, or else everything. Without disturbances, a group reads on within ``patience_us``,
    the sum of the timeouts that can follow one another. A member may stay away for
    ``max_poll_interval_us`` after a poll, and a rebalancing group waits for it.
    """

    name: str
    read_committed: bool
    group: str = ""
    offset_reset: str = ""
    topics: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    patience_us: int = 0
    max_poll_interval_us: int = 0

    def is_to_read(self, partition: str) -> bool:
        """Return whether it subscribes to a partition's topic, or assigns itself the partition."""
        if self.partitions:
            return partition in self.partitions
        return not self.topics or partition.rpartition("-")[0] in self.topics


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationSettings:
    """The settings on which promises to an application depend, and its history processes.

    ``delivery`` is one of `harrow.cluster_model.topology.Delivery`. Without a ``target`` it stores
    its results outside of Kafka.
    """

    name: str
    group: str
    delivery: str
    source: str
    target: str | None
    group_metadata: bool
    rewinds: bool
    consumers: tuple[int, ...]
    producers: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSettings:
    """The settings on which promises about a partition depend.

    Each broker fills in what the topic leaves unset with its own settings, and ``on_broker`` has
    the result. ``min_insync_replicas`` is the smallest value of any leader,
    ``unclean_leader_election`` whether any controller would elect uncleanly.
    """

    replicas: tuple[int, ...]
    min_insync_replicas: int
    unclean_leader_election: bool
    flush_messages: int
    on_broker: Mapping[int, TopicConfig] = field(default_factory=dict)

    def min_insync_replicas_of(self, leader: int) -> int:
        """Return the setting while a broker leads."""
        own = self.on_broker.get(leader)
        return self.min_insync_replicas if own is None else own.min_insync_replicas

    def allows_unclean_election(self, controller: int | None) -> bool:
        """Return whether a controller elects uncleanly; None: whether every controller does."""
        if controller is not None and controller in self.on_broker:
            return self.on_broker[controller].unclean_leader_election
        return self.unclean_leader_election and all(
            own.unclean_leader_election for own in self.on_broker.values()
        )


LEADS: Final = "leads"
UNAWARE: Final = "unaware"
PAUSED: Final = "paused"
DOWN: Final = "down"
NO_BROKER: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionService:
    """How a partition served while only a core of the brokers had been healed.

    ``leader``, ``leader_epoch`` and ``isr`` are those of the control plane. For a leader, one
    broker of each of the ``recovery_sets`` has to be alive: of the ISR, or as KIP-966 has it. The
    leader's broker ``LEADS``, is ``UNAWARE`` that it should, ``PAUSED`` or ``DOWN``; its log had
    this high watermark. ``unread`` are records, as (offset, value), that the leader had when it was
    first observed to lead in this epoch, but that a consumer from the beginning did not get.
    ``isr_end`` is the smallest LEO in the ISR, as the leader knew it.
    """

    leader: int = NO_BROKER
    leader_epoch: int = -1
    isr: tuple[int, ...] = ()
    recovery_sets: tuple[tuple[int, ...], ...] = ()
    leader_state: str = DOWN
    high_watermark: int = 0
    unread: tuple[tuple[int, str], ...] = ()
    isr_end: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class HealedCore:
    """A sufficient core of brokers was healed, and the others stayed as the faults had left them.

    ``partitions`` is the state at ``looked_us``, when all was well or ``within_us`` had passed
    since ``healed_us``. It is empty if the run did not get that far. ``impaired`` are the brokers
    outside the core that ran and could keep their ZooKeeper sessions while some fault against them
    was in force, so that Kafka takes them for healthy. ``controller`` is as in ``/controller``.
    """

    brokers: tuple[int, ...] = ()
    healed_us: int = 0
    within_us: int = 0
    looked_us: int = 0
    impaired: tuple[int, ...] = ()
    controller: int | None = None
    partitions: Mapping[str, PartitionService] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A run, as far as rules are concerned.

    ``producers`` and ``consumers`` are by history process; a restarted client has a process for
    each session. Of the run's own consumers only those with read_committed count. ``read_back``
    names the partitions that were read to their end after the cluster had healed. ``unfinished``
    says in words why a run ended too early to decide (a script that waited in vain, a partition
    without a leader at the end). ``not_struck`` says why no fault of the schedule struck, with a
    line for each; it is empty if one did. ``behaviours`` are the switches that differ from the
    release. ``invariants`` were watched, by default those that the trace alone shows. Of the
    ``demanded`` rules no anomaly is permitted, whatever Kafka promises. ``core`` is None if
    everything was healed at once. ``held_up`` are the partitions that read_committed could not read
    beyond an offset when every transaction had to have ended; they were read back up to there. A
    trace that was observed from outside is not ``in_order``: events of one moment may have another
    order than they happened in. ``offset_replicas`` are the logs of ``__consumer_offsets``, if
    applications commit offsets in transactions and the logs are known. Without ``follows_logs`` no
    log could be watched, so the trace has neither appends nor truncations. ``metadata`` is where
    brokers keep theirs: ``zookeeper`` or ``kraft``.
    """

    release: str
    operations: Sequence[Operation]
    trace: Sequence[TraceEvent]
    process_names: Mapping[int, str]
    producers: Mapping[int, ProducerSettings]
    partitions: Mapping[str, PartitionSettings]
    replicas: Mapping[str, Mapping[int, FinalLog]]
    read_back: frozenset[str]
    unfinished: tuple[str, ...] = field(default=())
    not_struck: tuple[str, ...] = ()
    behaviours: Mapping[str, Any] = field(default_factory=dict)
    invariants: frozenset[str] = SHOWN_BY_TRACE
    demanded: frozenset[str] = frozenset()
    core: HealedCore | None = None
    consumers: Mapping[int, ConsumerSettings] = field(default_factory=dict)
    applications: tuple[ApplicationSettings, ...] = ()
    held_up: Mapping[str, int] = field(default_factory=dict)
    in_order: bool = True
    follows_logs: bool = True
    metadata: str = "zookeeper"
    offset_replicas: Mapping[str, Mapping[int, FinalLog]] = field(default_factory=dict)

    def does(self) -> Behaviours:
        """Return the behaviour of brokers and clients, by their release and the switches."""
        return behaviours_in(self.release).with_switches(**self.behaviours)
