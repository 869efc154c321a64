"""Defines the evidence that rules judge: the history, the replicas' logs, the trace, settings."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Final

from harrow.cluster_model.history import Operation
from harrow.cluster_model.invariants.catalogue import SHOWN_BY_TRACE
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.log.record_batch import RecordBatch
from harrow.cluster_model.release.profiles import Behaviours, behaviours_with
from harrow.cluster_model.settings import TopicConfig
from harrow.cluster_model.trace import TraceEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalLog:
    """A replica's log after healing. ``epochs`` are (leader epoch, start offset) pairs.

    A replica that is not ``in_sync`` has not rejoined the ISR, and may have any records. If harrow
    observes a broker only through its answers to clients, ``flushed`` is None, and ``batches`` end
    at the high watermark. ``damaged`` has the base offsets of batches that have a wrong CRC and
    cannot be read. ``begins_at`` is the log start offset. If it is inside a batch, DeleteRecords
    deleted the batch's records below it.
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
        """Return the value at each offset from 0 on, None where the log has no readable record."""
        values: list[str | None] = []
        damaged = self.damaged
        for batch in self.batches:
            begin = batch.base_offset
            if begin != len(values):
                values += (None,) * (begin - len(values))
            if begin in damaged:
                values += (None,) * (batch.next_offset - begin)
            elif batch.keyed is not None and batch.is_compacted:
                values += (None,) * (batch.next_offset - begin)
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

    ``group`` is empty for a consumer without a group. The consumer reads its ``partitions``; if
    there are none, the partitions of its ``topics``; without either, every partition. An
    undisturbed group reads new records within ``patience_us``, the sum of the timeouts that can
    follow one another. A member may take up to ``max_poll_interval_us`` between two polls, and a
    rebalancing group waits for it.
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
        """Return whether the consumer subscribes to the partition's topic, or is assigned to it."""
        if self.partitions:
            return partition in self.partitions
        return not self.topics or partition.rpartition("-")[0] in self.topics


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationSettings:
    """The settings on which promises to an application depend, and its processes in the history.

    ``delivery`` is one of `harrow.cluster_model.topology.Delivery`. An application without a
    ``target`` topic stores its results outside of Kafka. ``consumers`` and ``producers`` are the
    processes.
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

    A setting that the topic leaves unset can differ between brokers, so ``on_broker`` has the
    settings in force on each broker. ``min_insync_replicas`` is the smallest value of any leader,
    and ``unclean_leader_election`` says whether any controller would elect uncleanly.

    If an administrator has changed settings, these are the last ones. ``earlier`` has those before,
    oldest first, each with the time until which they were in force. What Kafka promised depends on
    the settings at that moment: an unclean election needs ``unclean.leader.election.enable`` when
    it takes place, and an ack needs ``min.insync.replicas`` when it is sent.
    """

    replicas: tuple[int, ...]
    min_insync_replicas: int
    unclean_leader_election: bool
    flush_messages: int
    on_broker: Mapping[int, TopicConfig] = field(default_factory=dict)
    earlier: tuple[tuple[int, "PartitionSettings"], ...] = ()

    def during(self, at_us: int) -> tuple["PartitionSettings", ...]:
        """Return the settings in force at a time: at the moment of a change, both."""
        begin_us = None
        found = []
        for until_us, settings in self.earlier:
            if at_us <= until_us and (begin_us is None or begin_us <= at_us):
                found.append(settings)
            begin_us = until_us
        return (*found, self) if begin_us is None or begin_us <= at_us else tuple(found)

    def elects_uncleanly(self, at_us: int) -> bool:
        """Return whether a controller would elect uncleanly at a time."""
        return any(settings.unclean_leader_election for settings in self.during(at_us))

    def least_min_insync_replicas(self, leader: int, at_us: int) -> int:
        """Return the ``min.insync.replicas`` of a leader at a time."""
        if not self.earlier:
            return self.min_insync_replicas_of(leader)
        return min([settings.min_insync_replicas_of(leader) for settings in self.during(at_us)])

    def config_on(self, broker: int, at_us: int) -> TopicConfig | None:
        """Return the configuration of the topic on a broker at a time."""
        return self.during(at_us)[-1].on_broker.get(broker)

    def min_insync_replicas_of(self, leader: int) -> int:
        """Return the ``min.insync.replicas`` of a leader under these settings alone."""
        own = self.on_broker.get(leader)
        return self.min_insync_replicas if own is None else own.min_insync_replicas

    def allows_unclean_election(self, controller: int | None) -> bool:
        """Return whether a controller elects uncleanly; for None, whether every controller does."""
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
    """How a partition served clients after only a core of the brokers had been healed.

    ``leader``, ``leader_epoch`` and ``isr`` are those of the control plane. To elect a leader, one
    broker of each of the ``recovery_sets`` has to be alive: the ISR, or the sets of KIP-966.
    ``leader_state`` says whether the leader's broker ``LEADS``, is ``UNAWARE`` that it should, or
    is ``PAUSED`` or ``DOWN``. ``high_watermark`` is that of its log. ``unread`` are the (offset,
    value) pairs, by rising offset, of records that the leader had when it was first observed to
    lead in this epoch, but that a consumer did not get although it read from the beginning.
    ``isr_end`` is the smallest LEO in the ISR, as far as the leader knew.
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
    """What a run observed after it had healed only a core of its brokers.

    The core, ``brokers``, is large enough to serve all partitions; the other brokers stayed as the
    faults had left them. ``partitions`` has the state at ``looked_us``, which is when all
    partitions served, or when ``within_us`` had passed since ``healed_us``. It is empty if the run
    ended earlier. ``impaired`` are the brokers outside the core that Kafka takes for healthy: they
    ran and could keep their sessions, although some fault against them was in force. ``controller``
    is the broker that ``/controller`` names.
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
    """The evidence of one run.

    ``producers`` and ``consumers`` are by history process; a restarted client has a process for
    each session. harrow reads everything back with consumers of its own; of these, only the
    consumers with read_committed are listed. ``read_back`` names the partitions that were read to
    their end after the cluster had healed. ``held_up`` maps a partition to the offset beyond which
    read_committed consumers got no record, although every transaction must have ended by then; the
    partition was read back up to that offset.

    ``unfinished`` says why a run ended too early to decide, such as a script that waited in vain.
    If no fault of the schedule struck, ``not_struck`` has a line for each of them that says why.

    ``behaviours`` are the switches whose values differ from those of the release. ``invariants``
    names the invariants that were checked, by default those that the trace alone shows. No setting
    permits an anomaly of a ``demanded`` rule, whatever Kafka promises. ``core`` is None if
    everything was healed at once. ``metadata`` is the control plane: ``zookeeper`` or ``kraft``.

    The trace of a real cluster is not ``in_order``: it may list events of one moment in a different
    order than they happened. If ``follows_logs`` is false, harrow could not watch any log, so the
    trace has neither appends nor truncations. ``offset_replicas`` are the logs of
    ``__consumer_offsets``, if applications commit offsets in transactions and the logs could be
    read.
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
        return behaviours_with(self.release, self.behaviours)
