"""Implements a partition on one broker, as leader or follower (``Partition.scala``).

HW is the high watermark of a log, and LEO its log end offset.
"""

from collections.abc import Callable
from dataclasses import field
from typing import Final

from harrow.cluster_model import errors, protocol
from harrow.cluster_model.broker.replica import CountedSession, Replica
from harrow.cluster_model.controller.control_plane import INELIGIBLE, OUTDATED, AlterPartitionManager
from harrow.cluster_model.events import (
    BatchAppended,
    BatchReplicated,
    BecameFollower,
    BecameLeader,
    DeleteRecordsObeyed,
    HighWatermarkSet,
    HoleReplicated,
    IsrChanged,
    IsrForgotten,
    IsrPending,
    IsrRefused,
    LeaderEpochTaken,
    TransactionBegun,
    TransactionMarkerWritten,
)
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.log.leader_epoch_cache import UNDEFINED_EPOCH_OFFSET
from harrow.cluster_model.log.log_manager import LogManager
from harrow.cluster_model.log.record_batch import COMMIT, NO_SEQUENCE, ControlBatch, RecordBatch
from harrow.cluster_model.log.unified_log import DELETE_RECORDS, NO_OFFSET, AppendResult, UnifiedLog
from harrow.cluster_model.release.replication import ReplicationSwitches
from harrow.cluster_model.settings import NO_LIMIT_US, TopicConfig
from harrow.cluster_model.sim.host import Host

EXPAND: Final = "expand"
SHRINK: Final = "shrink"


class KafkaStorageError(Exception):
    """A log directory cannot be written (``KafkaStorageException``)."""


@dataclass(slots=True, eq=False)
class Partition:
    """The replica of a partition on this broker and, if it leads, its view of other replicas."""

    name: str
    broker: int
    host: Host
    logs: LogManager
    switches: ReplicationSwitches
    alter_partition_manager: AlterPartitionManager
    on_isr_altered: Callable[["Partition", bool], None]
    lag_time_max_us: int
    min_insync_replicas: int
    # Returns whether a broker with a broker epoch may join ISRs, according to the metadata here.
    may_join_isr: Callable[[int, int], bool]
    unclean_leader_election: bool
    # The partitions of this broker whose ISR is being written, so that their requests wait.
    isr_writes: dict[str, None] = field(default_factory=dict)
    lag_max_messages: int = 0
    """``replica.lag.max.messages``. It counts only with `isr_lag_counts_messages`."""
    timestamp_before_max_us: int = NO_LIMIT_US
    timestamp_after_max_us: int = NO_LIMIT_US
    limits_timestamps: bool = field(init=False)
    # Switches that each append, fetch and acknowledgement reads. For speed they are attributes.
    checks_min_isr: bool = field(init=False)
    waits_for_min_isr: bool = field(init=False)
    counts_whole_isr: bool = field(init=False)
    limits_min_isr: bool = field(init=False)
    acks_wait_for_hw: bool = field(init=False)
    adopts_log_start: bool = field(init=False)
    hw_never_falls: bool = field(init=False)
    limits_consumers: bool = field(init=False)
    limits_consumers_as_follower: bool = field(init=False)
    log: UnifiedLog = field(init=False)
    controller_epoch: int = 0
    leader: int = protocol.NO_LEADER
    leader_epoch: int = protocol.NO_EPOCH
    leader_epoch_start: int = 0
    partition_epoch: int = 0
    replicas: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()
    # The ISR, plus followers that an unconfirmed write of the ISR may have added.
    maximal_isr: tuple[int, ...] = ()
    # The ISR that the leader has requested, until the answer or the next LeaderAndIsr arrives.
    pending_isr: tuple[int, ...] | None = None
    remote_replicas: dict[int, Replica] = field(default_factory=dict)
    followers: tuple[Replica, ...] = ()
    """The remote replicas, which each append and each fetch of a follower goes through."""
    # While the ISR is being written, a thread holds the lock of the partition. Requests for the
    # partition wait here, each as a function that handles the request again.
    blocked_requests: tuple[Callable[[], None], ...] = ()
    hw_completes_fetches: bool = False
    """Whether waiting fetches of followers are answered when the HW moves."""
    is_deleted: bool = False
    """Whether this broker has deleted its replica."""
    is_offline: bool = False
    """Whether the log directory has failed.

    The replica neither leads nor follows until the broker restarts.
    """

    def __post_init__(self) -> None:
        self.log = self.logs.open(self.name)
        switches = self.switches
        self.checks_min_isr = switches.min_isr_checked
        self.waits_for_min_isr = switches.hw_waits_for_min_isr
        self.counts_whole_isr = switches.hw_waits_for_whole_isr
        self.limits_min_isr = switches.min_isr_limited_to_replica_count
        self.acks_wait_for_hw = switches.ack_waits_for_hw
        self.adopts_log_start = switches.log_start_follows_leader
        self.hw_never_falls = switches.hw_never_falls
        self.limits_consumers = switches.consumer_reads_below_hw
        self.limits_consumers_as_follower = switches.follower_serves_below_hw
        self._limit_timestamps()

    def _limit_timestamps(self) -> None:
        self.limits_timestamps = min(self.timestamp_before_max_us, self.timestamp_after_max_us) < NO_LIMIT_US

    def configure(self, config: TopicConfig) -> None:
        """Follow the changed settings of the topic."""
        self.min_insync_replicas = config.min_insync_replicas
        self.unclean_leader_election = config.unclean_leader_election
        self.timestamp_before_max_us = config.timestamp_before_max_us
        self.timestamp_after_max_us = config.timestamp_after_max_us
        self._limit_timestamps()

    @property
    def has_state(self) -> bool:
        """Whether the controller has sent a state of the partition since the broker started."""
        return self.leader_epoch != protocol.NO_EPOCH

    @property
    def isr_write_in_flight(self) -> bool:
        """Whether the leader has requested a change of the ISR and has no answer yet."""
        return self.pending_isr is not None

    def is_leader(self) -> bool:
        """Return whether this broker believes that it leads the partition."""
        return self.leader == self.broker

    def take_offline(self) -> None:
        """Stop serving the partition (``ReplicaManager.markPartitionOffline``)."""
        self.is_offline = True
        self.leader = protocol.NO_LEADER
        self.isr = self.maximal_isr = ()

    def mark_deleted(self) -> None:
        """Stop leading and following."""
        self.is_deleted = True
        self.pending_isr = None
        self.leader = protocol.NO_LEADER
        self.isr = self.maximal_isr = ()

    # Becoming leader or follower

    def make_leader(self, state: protocol.LeaderAndIsrPartitionState) -> bool:
        """Become leader, or lead in a new epoch. Return whether the HW rose."""
        is_new_leader = not self.is_leader()
        if not is_new_leader and state.leader_and_isr.leader_epoch == self.leader_epoch:
            return self._update_isr(state)
        forgets_positions = is_new_leader or self.switches.reelected_leader_forgets_positions
        self._update_state(state)
        self.isr = self.maximal_isr = state.leader_and_isr.isr
        self.leader_epoch_start = self.log.log_end_offset
        if self.switches.epoch_entry_on_election:
            self.log.epochs.assign(self.leader_epoch, self.leader_epoch_start)
        for replica in self.remote_replicas.values():
            replica.reset(
                self.log.log_end_offset,
                self.host.clock.now_us,
                in_isr=replica.broker in self.isr,
                forgets_positions=forgets_positions,
                counts_as_fetch=self.switches.reelection_counts_as_fetch,
            )
        self.leader = self.broker
        self.host.emit(
            BecameLeader, self.broker, self.name, self.leader_epoch, self.leader_epoch_start, self.isr
        )
        return self.maybe_increment_hw()

    def _update_isr(self, state: protocol.LeaderAndIsrPartitionState) -> bool:
        """Continue as leader, with the ISR in the metadata log.

        In KRaft a change of the ISR does not change the leader epoch.
        """
        previous_isr = self.isr
        for replica in self._update_replicas(state.replicas):
            replica.reset(
                self.log.log_end_offset,
                self.host.clock.now_us,
                in_isr=False,
                forgets_positions=True,
                counts_as_fetch=False,
            )
        is_unchanged = state.leader_and_isr.partition_epoch == self.partition_epoch
        if is_unchanged and self.switches.isr_change_survives_repeated_state:
            return self.maybe_increment_hw()
        if is_unchanged and self.pending_isr is not None:
            self.host.emit(IsrForgotten, self.broker, self.name, self.leader_epoch, state.leader_and_isr.isr)
        self.pending_isr = None
        self.isr = self.maximal_isr = state.leader_and_isr.isr
        self.partition_epoch = state.leader_and_isr.partition_epoch
        if set(self.isr) != set(previous_isr):
            change = EXPAND if len(self.isr) > len(previous_isr) else SHRINK
            self.host.emit(IsrChanged, self.broker, self.name, self.leader_epoch, self.isr, change)
        return self.maybe_increment_hw()

    def make_follower(self, state: protocol.LeaderAndIsrPartitionState) -> bool:
        """Follow a leader. Return whether the fetcher must begin again.

        Since KIP-320 a new leader epoch requires that. In earlier releases only a new leader did.
        """
        old_leader, old_epoch = self.leader, self.leader_epoch
        self._update_state(state)
        self.isr = self.maximal_isr = ()
        self.leader = state.leader_and_isr.leader
        if (self.leader, self.leader_epoch) == (old_leader, old_epoch):
            return False
        self.host.emit(BecameFollower, self.broker, self.name, self.leader_epoch, self.leader)
        return self.leader != old_leader or self.switches.fetch_leader_epoch_fencing

    def _update_state(self, state: protocol.LeaderAndIsrPartitionState) -> None:
        self.pending_isr = None
        self.controller_epoch = state.controller_epoch
        self.leader_epoch = state.leader_and_isr.leader_epoch
        self.host.publish(LeaderEpochTaken, self.broker, self.name, self.leader_epoch)
        self.partition_epoch = state.leader_and_isr.partition_epoch
        self._update_replicas(state.replicas)

    def _update_replicas(self, replicas: tuple[int, ...]) -> list[Replica]:
        """Set the assigned replicas; return new ones (``Partition.updateAssignmentAndIsr``)."""
        self.replicas = replicas
        for broker in [other for other in self.remote_replicas if other not in replicas]:
            self.remote_replicas.pop(broker).leave_session()
        added = []
        for broker in replicas:
            if broker != self.broker and broker not in self.remote_replicas:
                replica = self.remote_replicas[broker] = Replica(broker)
                added.append(replica)
        self.followers = tuple(self.remote_replicas.values())
        return added

    # As leader, appending and committing

    def append_as_leader(self, batch: RecordBatch, acks: int) -> tuple[AppendResult, bool]:
        """Append a producer's batch. Return the result and whether the HW rose.

        Modelled on ``appendRecordsToLeader``. While the ISR is smaller than
        ``min.insync.replicas``, a batch with acks=all (-1) is not appended, and the result is
        NOT_ENOUGH_REPLICAS.
        """
        rejection = self._rejection(acks)
        if rejection is None and self.limits_timestamps and self._has_invalid_timestamp(batch):
            rejection = AppendResult(errors.INVALID_TIMESTAMP, None, -1)
        if rejection is not None:
            return rejection, False
        # From now on each fetch of a follower must be checked, whatever the result of the append.
        for replica in self.followers:
            replica.leave_session()
        outcome = self.log.outcome_without_append(batch, self.leader_epoch)
        if outcome is not None:
            return outcome, self.maybe_increment_hw()
        if not self.logs.can_append(self.name, (batch,)):
            return AppendResult(errors.KAFKA_STORAGE_ERROR, None, -1), False
        opened_at = self.log.open_transaction(batch) if batch.is_transactional else NO_OFFSET
        result = self.log.append_validated(batch, self.leader_epoch)
        self.host.emit(
            BatchAppended,
            self.broker,
            self.name,
            result.base_offset,
            self.leader_epoch,
            batch.producer_id,
            batch.base_sequence,
            batch.values,
        )
        if batch.is_transactional and result.batch is not None:
            self._report_transaction(result.batch, opened_at)
        hw_rose = self.maybe_increment_hw()
        self.logs.on_append(self.log)
        return result, hw_rose

    def may_append(self, batch: RecordBatch, acks: int) -> bool:
        """Return whether a producer's batch would be written: not rejected, and no duplicate."""
        is_rejected = self._rejection(acks) is not None or (
            self.limits_timestamps and self._has_invalid_timestamp(batch)
        )
        return not is_rejected and (self.log.outcome_without_append(batch, self.leader_epoch) is None)

    def _has_invalid_timestamp(self, batch: RecordBatch) -> bool:
        """Return whether a batch is too old or too new (``LogValidator.validateTimestamp``)."""
        age_us = self.host.clock.now_us + self.host.skew_us - batch.max_timestamp_us
        return age_us > self.timestamp_before_max_us or -age_us > self.timestamp_after_max_us

    def _rejection(self, acks: int) -> AppendResult | None:
        """Return the error for every batch if the partition accepts none now; otherwise None."""
        if self.leader != self.broker:
            return AppendResult(self._not_leader(), None, -1)
        if acks == -1 and self.checks_min_isr and self._is_under_min_isr(self.isr):
            return AppendResult(errors.NOT_ENOUGH_REPLICAS, None, -1)
        return None

    def maybe_increment_hw(self) -> bool:
        """Raise the leader's HW if possible; return whether it moved.

        The HW is the smallest LEO among the leader, the members of the maximal ISR, and other
        replicas that are caught up and so may join the ISR soon. It never falls, unless the switch
        `hw_never_falls` is off.
        """
        if self.isr_writes and self.name in self.isr_writes:
            return False
        if self.waits_for_min_isr and self._is_under_min_isr(self.isr):
            return False
        high_watermark = self.log.log_end_offset
        if self.counts_whole_isr:
            caught_up_since_us = self.host.clock.now_us - self.lag_time_max_us
            isr = self.maximal_isr
            for replica in self.followers:
                if replica.log_end_offset < high_watermark and (
                    replica.broker in isr
                    or (replica.caught_up_us >= caught_up_since_us and self._hw_waits_for(replica))
                ):
                    high_watermark = replica.log_end_offset
        if high_watermark <= self.log.high_watermark and (
            self.hw_never_falls or not self._may_fall_to(high_watermark)
        ):
            return False
        return self._update_hw(high_watermark)

    def _update_hw(self, high_watermark: int) -> bool:
        if not self.log.update_high_watermark(high_watermark):
            return False
        self.host.emit(HighWatermarkSet, self.broker, self.name, self.log.high_watermark)
        return True

    def _may_fall_to(self, high_watermark: int) -> bool:
        return 0 <= high_watermark < self.log.high_watermark

    def is_committed(self, required_offset: int) -> tuple[bool, str]:
        """Return whether a produce with acks=all can be answered now, and with which error.

        The produce has records below *required_offset*.
        """
        if self.leader != self.broker:
            is_failed = self.switches.deposed_leader_fails_pending_produces
            return True, self._not_leader() if is_failed else errors.NONE
        if self.log.high_watermark < required_offset and self.acks_wait_for_hw:
            return False, errors.NONE
        if self.checks_min_isr and self._is_under_min_isr(self.maximal_isr):
            return True, errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        return True, errors.NONE

    def _is_under_min_isr(self, isr: tuple[int, ...]) -> bool:
        min_isr = self.min_insync_replicas
        if self.limits_min_isr:
            min_isr = min(min_isr, len(self.replicas))
        return len(isr) < min_isr

    def delete_records(self, offset: int) -> tuple[str, int]:
        """Raise the log start to *offset*; return the error and the resolved offset.

        Modelled on ``deleteRecordsOnLeader`` (KIP-107). `DELETE_TO_HIGH_WATERMARK` stands for the
        HW. If the offset is in the middle of a batch, the earlier records of that batch stay in the
        log, but no client gets them.
        """
        if self.leader != self.broker:
            return self._not_leader(), offset
        if offset == protocol.DELETE_TO_HIGH_WATERMARK:
            offset = self.log.high_watermark
        if not 0 <= offset <= self.log.high_watermark:
            return errors.OFFSET_OUT_OF_RANGE, offset
        self.host.emit(DeleteRecordsObeyed, self.broker, self.name, offset)
        log_start = offset
        if not self.switches.delete_records_stops_at_offset:
            log_start = min(self.log.next_batch_offset(offset), self.log.high_watermark)
        self.logs.increment_log_start(self.name, log_start, DELETE_RECORDS)
        return errors.NONE, offset

    def low_watermark(self, is_alive: Callable[[int], bool]) -> tuple[str, int]:
        """Return an error and the lowest log start of live replicas (``lowWatermarkIfLeader``)."""
        if self.leader != self.broker:
            return self._not_leader(), NO_OFFSET
        starts = [r.log_start_offset for r in self.remote_replicas.values() if is_alive(r.broker)]
        return errors.NONE, min([self.log.log_start_offset, *starts])

    # As follower

    def append_as_follower(
        self, batches: tuple[RecordBatch, ...], leader_hw: int, leader_log_start: int = 0
    ) -> bool:
        """Append fetched batches, and adopt the leader's HW and log start.

        Return whether the offset has moved up to which consumers may read here. Modelled on
        ``appendRecordsToFollowerOrFutureReplica``.

        Raises:
            UnexpectedAppendOffset: a batch does not begin at the log end. Earlier batches stay.
            KafkaStorageError: the log directory has failed.

        """
        if batches and not self.logs.can_append(self.name, batches):
            raise KafkaStorageError
        for batch in batches:
            if self._has_to_restart_at(batch):
                self.logs.truncate_fully_and_start_at(self.name, batch.base_offset)
            opened_at = self.log.open_transaction(batch) if batch.is_transactional else NO_OFFSET
            self.log.append_as_follower(batch)
            if batch.keyed is not None and batch.is_compacted:
                self._report_compacted_batch(batch)
            else:
                self.host.emit(
                    BatchReplicated,
                    self.broker,
                    self.name,
                    batch.base_offset,
                    batch.leader_epoch,
                    batch.producer_id,
                    batch.base_sequence,
                    batch.values,
                )
            if batch.is_transactional:
                self._report_transaction(batch, opened_at)
        if batches:
            self.logs.on_append(self.log)
        hw_moved = self._update_hw(leader_hw)
        if leader_log_start and self.adopts_log_start:
            self.logs.increment_log_start(self.name, leader_log_start)
        if hw_moved or not batches:
            return hw_moved
        return not (self.limits_consumers_as_follower and self.limits_consumers)

    def _report_transaction(self, stored: RecordBatch, opened_at: int) -> None:
        """Report that a batch began a transaction, or ended the one that began at *opened_at*."""
        if isinstance(stored, ControlBatch):
            self.host.emit(
                TransactionMarkerWritten,
                self.broker,
                self.name,
                stored.producer_id,
                stored.producer_epoch,
                opened_at,
                stored.base_offset,
                stored.control_type == COMMIT,
                stored.coordinator_epoch,
            )
        elif opened_at == NO_OFFSET:
            self.host.emit(
                TransactionBegun,
                self.broker,
                self.name,
                stored.producer_id,
                stored.producer_epoch,
                stored.base_offset,
            )

    def _has_to_restart_at(self, batch: RecordBatch) -> bool:
        """Return whether an empty log has to restart at the beginning of a batch (KAFKA-6975).

        After DeleteRecords the leader's log may start in the middle of a batch. The log of a new
        follower then starts there too, but the first batch that it fetches begins earlier.
        """
        log = self.log
        return (
            batch.base_offset < log.log_end_offset < batch.next_offset
            and log.log_start_offset == log.log_end_offset
            and self.switches.follower_accepts_log_start_mid_batch
        )

    def _report_compacted_batch(self, batch: RecordBatch) -> None:
        """Report the records of a replicated batch that the leader had compacted."""
        end = batch.base_offset
        for offset, values in batch.runs():
            end = offset + len(values)
            sequence = batch.base_sequence
            if sequence != NO_SEQUENCE:
                sequence += offset - batch.base_offset
            self.host.emit(
                BatchReplicated,
                self.broker,
                self.name,
                offset,
                batch.leader_epoch,
                batch.producer_id,
                sequence,
                values,
            )
        if end < batch.next_offset:
            self.host.emit(HoleReplicated, self.broker, self.name, batch.next_offset)

    def truncate_to(self, offset: int, reason: str) -> None:
        """Remove the records from *offset* on."""
        self.logs.truncate(self.name, offset, reason)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drop all records, because this log ends before the leader's log starts."""
        self.logs.truncate_fully_and_start_at(self.name, offset)

    # As leader of followers

    def update_follower(
        self,
        replica: Replica,
        fetch_offset: int,
        leader_leo: int,
        broker_epoch: int = protocol.NO_EPOCH,
        log_start: int | None = None,
    ) -> bool:
        """Take note of a follower's fetch and log start, if known; return whether the HW rose."""
        previous_leo = replica.log_end_offset
        replica.last_sent_hw = self.log.high_watermark
        replica.update_fetch_state(fetch_offset, leader_leo, self.host.clock.now_us)
        replica.broker_epoch = broker_epoch
        if log_start is not None:
            replica.log_start_offset = log_start
        if replica.broker not in self.isr and not self.isr_write_in_flight and self._is_in_sync(replica):
            self._start_isr_change((*self.isr, replica.broker), EXPAND)
        return previous_leo != fetch_offset and self.maybe_increment_hw()

    def replica_of(self, broker: int) -> Replica | None:
        """Return the replica on another broker; None if this broker does not know it.

        In KRaft a new follower may have read further in the metadata log than its leader.
        """
        return self.remote_replicas.get(broker)

    def has_unsent_high_watermark(self, broker: int) -> bool:
        """Return whether a follower has not received the current HW (``lastSentHighWatermark``)."""
        replica = self.remote_replicas.get(broker)
        return replica is not None and self.log.high_watermark > replica.last_sent_hw

    def record_failed_fetch(self, replica: Replica) -> None:
        """Take note of a follower's fetch from outside the log or in another leader epoch."""
        if not self.switches.failed_fetch_keeps_follower_state:
            replica.forget_fetches()

    def mark_news_in_other_session(self, replica: Replica, session: CountedSession) -> None:
        """If another session counts fetches for the replica, let it check the partition again."""
        if replica.session is not None and replica.session is not session:
            replica.session.mark_news(self.name)

    def leave_session(self, broker: int, session: CountedSession) -> None:
        """Stop counting fetches of a session for a follower, because it dropped the partition."""
        replica = self.remote_replicas.get(broker)
        if replica is not None and replica.session is session:
            replica.leave_session()

    def follows_quietly(self, broker: int, offset: int, session: CountedSession) -> bool:
        """Return whether the next fetch of a follower in the ISR would add no information.

        If so, from now on each fetch of *session* counts as one from the leader's LEO, until the
        session changes or the log grows.
        """
        replica = self.remote_replicas.get(broker)
        if (
            replica is None
            or broker not in self.isr
            or not offset == replica.log_end_offset == self.log.log_end_offset
        ):
            return False
        replica.follow_session(session)
        return True

    def _is_in_sync(self, replica: Replica) -> bool:
        """Return whether a follower has reached the HW (not the LEO) and may join the ISR."""
        if not self._is_eligible(replica):
            return False
        if replica.log_end_offset < self.log.high_watermark and self.switches.isr_expansion_checks_hw:
            return False
        return (
            not self.switches.isr_expansion_checks_epoch_start
            or replica.log_end_offset >= self.leader_epoch_start
        )

    def _is_eligible(self, replica: Replica) -> bool:
        """Return whether a follower may be in the ISR, whatever its position.

        Modelled on ``isReplicaIsrEligible`` (KIP-841, KIP-903).
        """
        if not self.switches.isr_expansion_checks_registration:
            return True
        epoch = replica.broker_epoch if self.switches.isr_expansion_checks_broker_epoch else protocol.NO_EPOCH
        return self.may_join_isr(replica.broker, epoch)

    def _hw_waits_for(self, replica: Replica) -> bool:
        """Return whether the HW waits for a caught-up replica (``shouldWaitForReplicaToJoinIsr``).

        It waits unless the replica may not join the ISR.
        """
        return not self.switches.hw_ignores_unregistered_followers or self._is_eligible(replica)

    def maybe_shrink_isr(self) -> bool:
        """Remove followers from the ISR that were not caught up for ``replica.lag.time.max.ms``.

        Return whether a member of the ISR is behind, so that the check must run again.
        """
        if self.leader != self.broker:
            return False
        if self.isr_write_in_flight:
            return True
        if self.switches.isr_lag_counts_messages:
            return self._shrink_isr_by_messages()
        leo, replicas = self.log.log_end_offset, self.remote_replicas
        # A reassignment may remove a replica that is still in the ISR (``isFollowerOutOfSync``).
        removed = [b for b in self.isr if b != self.broker and b not in replicas]
        behind = [b for b in self.isr if b in replicas and replicas[b].log_end_offset != leo]
        if behind or removed:
            caught_up_since_us = self.host.clock.now_us - self.lag_time_max_us
            dropped = removed + [b for b in behind if replicas[b].caught_up_us < caught_up_since_us]
            if dropped:
                self._start_isr_change(tuple(b for b in self.isr if b not in dropped), SHRINK)
        return bool(behind or removed)

    def _shrink_isr_by_messages(self) -> bool:
        """Remove followers from the ISR that are too many records behind, or no longer fetch.

        Modelled on ``getOutOfSyncReplicas`` of Kafka 0.8. As long as a follower fetches, only the
        number of records matters.
        """
        leo, fetched_since_us = self.log.log_end_offset, self.host.clock.now_us - self.lag_time_max_us
        members = [self.remote_replicas[b] for b in self.isr if b in self.remote_replicas]
        removed = [b for b in self.isr if b != self.broker and b not in self.remote_replicas]
        stuck = [r.broker for r in members if r.fetched_us < fetched_since_us]
        slow = [r.broker for r in members if 0 <= r.log_end_offset < leo - self.lag_max_messages]
        out_of_sync = removed + stuck + slow
        if out_of_sync:
            self._start_isr_change(tuple(b for b in self.isr if b not in out_of_sync), SHRINK)
        return len(self.isr) > 1

    def _start_isr_change(self, new_isr: tuple[int, ...], change: str) -> None:
        if change == SHRINK and not self.switches.isr_shrink_waits_for_write:
            self.isr = self.maximal_isr = new_isr
            self.maybe_increment_hw()
        self.pending_isr = new_isr
        if self.switches.requests_wait_for_isr_write:
            self.isr_writes[self.name] = None
        elif change == EXPAND and self.switches.maximal_isr:
            self.maximal_isr = tuple(dict.fromkeys((*self.maximal_isr, *new_isr)))
            self.host.emit(IsrPending, self.broker, self.name, self.leader_epoch, self.maximal_isr)
        state = protocol.LeaderAndIsr(self.broker, self.leader_epoch, new_isr, self.partition_epoch)

        def apply_answer(partition_epoch: int | None) -> None:
            # If a LeaderAndIsr has arrived before the answer, the answer is stale
            # (``handleAlterIsrResponse``).
            if self.pending_isr is new_isr:
                self.on_isr_altered(self, self.isr_written(new_isr, change, partition_epoch))

        # A member that has not fetched yet has no broker epoch (``addBrokerEpochToIsr``).
        epochs = {
            b: max(replica.broker_epoch, protocol.NO_EPOCH) for b, replica in self.remote_replicas.items()
        }
        self.alter_partition_manager.submit(self.name, state, self.controller_epoch, apply_answer, epochs)

    def isr_written(self, new_isr: tuple[int, ...], change: str, partition_epoch: int | None) -> bool:
        """Apply the answer to an ISR write; return whether the HW rose.

        *partition_epoch* is the partition epoch after the write. If the write was refused, it is
        None, `INELIGIBLE` or `OUTDATED`.

        A refused write does not change the ISR. The controller has changed the partition before,
        and its LeaderAndIsr is on the way. Since KIP-497 the HW still waits for the follower that
        may have joined, unless the controller found the follower `INELIGIBLE`. After `OUTDATED` the
        leader requests no change until the metadata log brings the current state
        (``handleAlterPartitionError``). After `INELIGIBLE` or `OUTDATED` the HW waits for the next
        fetch. Otherwise the HW may rise now, because of the fetch that caused the write.
        """
        self.isr_writes.pop(self.name, None)
        if partition_epoch == OUTDATED:
            self.host.emit(IsrRefused, self.broker, self.name, self.leader_epoch, new_isr, change)
            return False
        self.pending_isr = None
        if partition_epoch == INELIGIBLE:
            self.host.emit(IsrRefused, self.broker, self.name, self.leader_epoch, new_isr, change)
            self.maximal_isr = self.isr
            return False
        if partition_epoch is None:
            self.host.emit(IsrRefused, self.broker, self.name, self.leader_epoch, new_isr, change)
            if not self.switches.leader_discards_refused_isr:
                self.isr = self.maximal_isr = new_isr
            elif change == EXPAND and self.switches.maximal_isr:
                # An earlier request may have succeeded, although its answer was lost.
                self.maximal_isr = tuple(dict.fromkeys((*self.maximal_isr, *new_isr)))
        else:
            self.isr = self.maximal_isr = new_isr
            self.partition_epoch = partition_epoch
            self.host.emit(IsrChanged, self.broker, self.name, self.leader_epoch, new_isr, change)
        return self.maybe_increment_hw()

    # Reading

    def check_epoch(self, current_leader_epoch: int) -> str:
        """Return the error for a reader with another leader epoch, or if this broker does not lead.

        The epoch is checked first (``Partition.getLocalLog``), so a follower that knows a newer
        epoch reports that.
        """
        is_current = current_leader_epoch in (self.leader_epoch, protocol.NO_EPOCH)
        if is_current and self.leader == self.broker:
            return errors.NONE  # This is the common case.
        if self.is_offline:
            return errors.KAFKA_STORAGE_ERROR
        if is_current:
            return errors.NOT_LEADER_FOR_PARTITION
        is_behind = current_leader_epoch < self.leader_epoch
        return errors.FENCED_LEADER_EPOCH if is_behind else errors.UNKNOWN_LEADER_EPOCH

    def check_fetch(self, current_leader_epoch: int, request: protocol.FetchRequest) -> str:
        """Return the error for a fetch. Followers also serve consumers that send a rack (KIP-392).

        Followers check the leader epoch as well (``Partition.readRecords`` with
        ``fetchOnlyFromLeader=false``).
        """
        if current_leader_epoch == self.leader_epoch and self.leader == self.broker:
            return errors.NONE  # This is the common case. Each fetch and each waiting fetch checks it.
        if current_leader_epoch == protocol.NO_EPOCH and self.leader == self.broker:
            return errors.NONE
        error = self.check_epoch(current_leader_epoch)
        if (
            error == errors.NOT_LEADER_FOR_PARTITION
            and request.rack is not None
            and self._serves_as_follower()
        ):
            return errors.NONE
        return error

    def _serves_as_follower(self) -> bool:
        return self.switches.follower_fetching and not self.is_deleted

    def _not_leader(self) -> str:
        return errors.KAFKA_STORAGE_ERROR if self.is_offline else errors.NOT_LEADER_FOR_PARTITION

    def divergence(self, offset: int, last_epoch: int) -> tuple[str, tuple[int, int] | None]:
        """Return an error, and where a follower's log diverges from this log (KIP-595).

        The place is this log's largest epoch up to *last_epoch*, and the end of that epoch; None if
        the logs do not diverge. *last_epoch* is the epoch of the follower's record before *offset*.
        """
        epoch, end_offset = self.log.epochs.end_offset_for(last_epoch, self.log.log_end_offset)
        if end_offset == UNDEFINED_EPOCH_OFFSET:
            return errors.OFFSET_OUT_OF_RANGE, None
        diverges = epoch < last_epoch or end_offset < offset
        return errors.NONE, (epoch, end_offset) if diverges else None

    def has_diverged(self, offset: int, last_epoch: int) -> bool:
        """Return whether a follower's log has diverged from this one, or cannot be compared."""
        error, diverging = self.divergence(offset, last_epoch)
        return error != errors.NONE or diverging is not None

    def high_watermark_lags(self) -> bool:
        """Return whether consumers cannot get the end of the partition yet (KIP-207)."""
        return self.switches.end_offset_waits_for_hw and self.leader_epoch_start > self.log.high_watermark

    def has_offset(self, offset: int) -> bool:
        """Return whether an offset is within the log or at its end."""
        return self.log.log_start_offset <= offset <= self.log.log_end_offset

    def is_hole(self, offset: int, isolation: int) -> bool:
        """Return whether compaction has removed all readable batches from *offset* on."""
        return self.log.is_hole(offset, self.readable_end(isolation))

    def readable_end(self, isolation: int) -> int:
        """Return the end for a reader: LEO for followers, this replica's HW or LSO for others."""
        if isolation == protocol.LOG_END or not self.limits_consumers:
            return self.log.log_end_offset
        if self.leader != self.broker and not self.limits_consumers_as_follower:
            return self.log.log_end_offset
        return (
            self.log.last_stable_offset if isolation == protocol.READ_COMMITTED else self.log.high_watermark
        )
