"""What rules see of a run: the history, the replicas' logs, the trace and what was promised."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from harrow.cluster_model.history import Operation
from harrow.cluster_model.invariants.catalogue import TOLD_BY_TRACE
from harrow.cluster_model.log.record_batch import RecordBatch
from harrow.cluster_model.release.profiles import Behaviours, behaviours_in
from harrow.cluster_model.settings import TopicConfig
from harrow.cluster_model.trace import TraceEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalLog:
    """A replica's log after healing. ``epochs`` are (leader epoch, start offset) pairs.

    One that is not ``in_sync`` has not come back into the ISR, and may hold anything. Of a broker that is seen through
    its answers alone ``flushed`` is None, and ``batches`` end where it lets them be read: at its high watermark. Of ``damaged`` batches,
    by base offset, the CRC is wrong: they cannot be read. Where ``begins_at`` is in the middle of a batch, what that has before was
    deleted (DeleteRecords).
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
        """The offset at which the log begins: retention may have deleted what was before."""
        return max(self.first_offset, self.begins_at)

    @property
    def first_offset(self) -> int:
        """The offset of the first record that is stored, be it deleted or not."""
        return self.batches[0].base_offset if self.batches else self.leo

    def values(self) -> list[str | None]:
        """Return the records' values by offset, None for control records and for what has been deleted, compacted or damaged."""
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
    """What the promise to a producer depends on. ``acks`` is ``"0"``, ``"1"`` or ``"all"``."""

    name: str
    acks: str
    idempotence: bool
    max_in_flight: int
    retries: int
    transactional_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerSettings:
    """What the promise to a consumer depends on. One that is a member of no group has an empty ``group``.

    It is to read its ``partitions``, or else those of its ``topics``, or else everything. Once nothing is wrong, a group
    reads on within ``patience_us``, the sum of the timeouts that can follow one another. A member may stay away
    for ``max_poll_interval_us`` after a poll, and a group that rebalances waits for it.
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
        """Return whether it subscribes to a partition's topic, or has assigned itself the partition."""
        if self.partitions:
            return partition in self.partitions
        return not self.topics or partition.rpartition("-")[0] in self.topics


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationSettings:
    """What the promise to an instance of an application depends on, and which processes of the history it was.

    ``delivery`` is one of `harrow.cluster_model.topology.Delivery`. One without a ``target`` stores its results outside of Kafka.
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
    """What the promise about a partition depends on.

    Brokers fill in what the topic does not set, each with its own settings: ``on_broker`` has what comes of it.
    ``min_insync_replicas`` is the least that a leader may go by, ``unclean_leader_election`` whether any controller
    would elect so.
    """

    replicas: tuple[int, ...]
    min_insync_replicas: int
    unclean_leader_election: bool
    flush_messages: int
    on_broker: Mapping[int, TopicConfig] = field(default_factory=dict)

    def min_insync_replicas_of(self, leader: int) -> int:
        """Return what holds while a broker leads."""
        own = self.on_broker.get(leader)
        return self.min_insync_replicas if own is None else own.min_insync_replicas

    def elects_uncleanly(self, controller: int | None) -> bool:
        """Return whether a controller does; None: whether every one does."""
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

    ``leader``, ``leader_epoch`` and ``isr`` are as the control plane has them; of each of the ``recovery_sets`` one broker
    has to be alive, so that there is a leader: of the ISR, or as KIP-966 has it. The leader's broker ``LEADS``, is
    ``UNAWARE`` that it should, ``PAUSED`` or ``DOWN``; its log had this high watermark. ``unread``
    are records, as (offset, value), that the leader had when it was first found to lead in this epoch,
    but that a consumer did not get who began at the beginning. ``isr_end`` is the smallest LEO among
    the ISR, as the leader knew it.
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
    """A sufficient core of brokers was healed, the others stayed as the faults had left them.

    ``partitions`` is what was found at ``looked_us``, when all was well or ``within_us`` had passed
    since ``healed_us``; it is empty when the run did not get that far. ``impaired`` are the brokers
    outside the core that ran and could keep their ZooKeeper sessions while some fault still stood
    against them: Kafka takes them for well. ``controller`` is as in ``/controller``.
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

    ``producers`` and ``consumers`` are by history process; a client that was restarted has a process for
    each session. Of consumers that read
    for the run itself only those count that read what is committed. ``read_back`` names the partitions that were read to their end after
    the cluster had healed; ``unfinished`` says in words why a run did not get far enough
    to tell (a script that waited in vain, a partition without a leader at the end). ``not_struck`` says why no fault
    of the schedule struck, with a line for each; it is empty where one did.
    ``behaviours`` are the switches that were set against what the release does. ``invariants``
    were watched; by default they are those that the trace alone tells. Of the ``demanded`` rules
    no anomaly is permitted, whatever Kafka promises. ``core`` is None where everything was healed at once.
    ``held_up`` are the partitions of which nothing could be read with read_committed from an offset on, when any transaction had to
    have ended: that was read back, up to there. A trace of what was noticed from outside is not ``in_order``: a moment may have its events in another one than they happened in.
    ``offset_replicas`` are the logs of ``__consumer_offsets``, where applications commit offsets in transactions and they are known.
    Where no log could be watched ``follows_logs`` is false: it has neither appends nor truncations. ``metadata`` is where brokers
    keep theirs: ``zookeeper`` or ``kraft``.
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
    invariants: frozenset[str] = TOLD_BY_TRACE
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
        """Return what brokers and clients did by their release and the switches that were set."""
        return behaviours_in(self.release).with_switches(**self.behaviours)
