"""A partition on one broker, as leader or follower (``Partition.scala``)."""

from collections.abc import Callable
from typing import Final, Protocol

from cluster_model import errors
from cluster_model.host import Host
from cluster_model.protocol import NO_EPOCH, NO_LEADER, PartitionState
from cluster_model.record_batch import RecordBatch
from cluster_model.release import Behaviours
from cluster_model.replica import Replica
from cluster_model.replica_log import AppendResult, ReplicaLog

EXPAND: Final = "expand"
SHRINK: Final = "shrink"


class IsrStore(Protocol):
    """Where a leader writes ISR changes."""

    def change_isr(self, partition: "Partition", new_isr: tuple[int, ...], change: str) -> None:
        """Write a new ISR; `Partition.isr_written` is called with what came of it."""


class Partition:
    """The replica of a partition on this broker, and as leader its knowledge of the others."""

    __slots__ = (
        "_behaviours",
        "_host",
        "_isr_store",
        "_lag_time_max_us",
        "blocked",
        "broker",
        "controller_epoch",
        "isr",
        "isr_write_in_flight",
        "leader",
        "leader_epoch",
        "leader_epoch_start",
        "log",
        "min_insync_replicas",
        "name",
        "remote_replicas",
        "replicas",
        "zk_version",
    )

    def __init__(
        self,
        name: str,
        broker: int,
        host: Host,
        log: ReplicaLog,
        behaviours: Behaviours,
        isr_store: IsrStore,
        lag_time_max_us: int,
        min_insync_replicas: int,
    ) -> None:
        self.name = name
        self.broker = broker
        self.log = log
        self._host = host
        self._behaviours = behaviours
        self._isr_store = isr_store
        self._lag_time_max_us = lag_time_max_us
        self.min_insync_replicas = min_insync_replicas
        self.controller_epoch = 0
        self.leader = NO_LEADER
        self.leader_epoch = NO_EPOCH
        self.leader_epoch_start = 0
        self.zk_version = 0
        self.replicas: tuple[int, ...] = ()
        self.isr: tuple[int, ...] = ()
        self.remote_replicas: dict[int, Replica] = {}
        # While the ISR is being written the leader's lock is held: requests for the
        # partition wait in `blocked` (each a function that handles the request again).
        self.isr_write_in_flight = False
        self.blocked: list[Callable[[], None]] = []

    def is_leader(self) -> bool:
        """Return whether this broker leads the partition, as far as it knows."""
        return self.leader == self.broker

    # Becoming leader or follower

    def make_leader(self, state: PartitionState) -> bool:
        """Become leader, or go on as leader in a new epoch; return whether the HW rose."""
        is_new_leader = not self.is_leader()
        self._take_over(state)
        self.isr = state.leader_and_isr.isr
        self.leader_epoch_start = self.log.log_end_offset
        if self._behaviours.epoch_entry_on_election:
            self.log.epochs.assign(self.leader_epoch, self.leader_epoch_start)
        for replica in self.remote_replicas.values():
            replica.reset(
                self.log.log_end_offset,
                self._host.clock.now_us,
                in_isr=replica.broker in self.isr,
                is_new_leader=is_new_leader,
            )
        self.leader = self.broker
        self._host.trace(
            (
                self._host.clock.now_us,
                "leader",
                self.broker,
                self.name,
                self.leader_epoch,
                self.leader_epoch_start,
                self.isr,
            )
        )
        self._host.invariants.became_leader(self)
        return self.maybe_increment_hw()

    def make_follower(self, state: PartitionState) -> bool:
        """Follow a leader; return False when nothing changed for this follower.

        From KIP-320 on a new leader epoch alone is a change, before only a new leader.
        """
        old_leader, old_epoch = self.leader, self.leader_epoch
        self._take_over(state)
        self.isr = ()
        self.leader = state.leader_and_isr.leader
        self._host.invariants.became_follower(self.broker, self.name)
        if self.leader == old_leader and (
            not self._behaviours.fetch_leader_epoch_fencing or self.leader_epoch == old_epoch
        ):
            return False
        self._host.trace(
            (self._host.clock.now_us, "follower", self.broker, self.name, self.leader_epoch, self.leader)
        )
        return True

    def _take_over(self, state: PartitionState) -> None:
        self.controller_epoch = state.controller_epoch
        self.leader_epoch = state.leader_and_isr.leader_epoch
        self._host.invariants.leader_epoch_taken(self.broker, self.name, self.leader_epoch)
        self.zk_version = state.leader_and_isr.zk_version
        self.replicas = state.replicas
        for broker in state.replicas:
            if broker != self.broker and broker not in self.remote_replicas:
                self.remote_replicas[broker] = Replica(broker)

    # As leader, appending and committing

    def append(self, batch: RecordBatch, acks: int) -> tuple[AppendResult, bool]:
        """Append a producer's batch; return the result and whether the HW rose.

        With acks=all (-1) NOT_ENOUGH_REPLICAS, before anything is appended, while the ISR
        is smaller than ``min.insync.replicas``.
        """
        if not self.is_leader():
            return AppendResult(errors.NOT_LEADER_FOR_PARTITION, None, -1), False
        if acks == -1 and len(self.isr) < self.min_insync_replicas and self._behaviours.min_isr_checked:
            return AppendResult(errors.NOT_ENOUGH_REPLICAS, None, -1), False
        result = self.log.append_as_leader(batch, self.leader_epoch)
        if result.batch is not None:
            self._host.trace(
                (
                    self._host.clock.now_us,
                    "append",
                    self.broker,
                    self.name,
                    result.base_offset,
                    self.leader_epoch,
                    batch.producer_id,
                    batch.base_sequence,
                    batch.values,
                )
            )
            self._host.invariants.appended(self.broker, self.name)
        return result, self.maybe_increment_hw()

    def maybe_increment_hw(self) -> bool:
        """Raise the leader's HW if it can be; it never falls.

        It is the smallest LEO of the leader, the ISR and every replica that is caught up
        in time: one that may soon join the ISR must not be left behind the HW.
        """
        if self.isr_write_in_flight:
            return False
        high_watermark = self.log.log_end_offset
        if self._behaviours.hw_counts_whole_isr:
            caught_up_since_us = self._host.clock.now_us - self._lag_time_max_us
            isr = self.isr
            for replica in self.remote_replicas.values():
                if replica.log_end_offset < high_watermark and (
                    replica.last_caught_up_us >= caught_up_since_us or replica.broker in isr
                ):
                    high_watermark = replica.log_end_offset
        if high_watermark <= self.log.high_watermark and (
            self._behaviours.hw_never_falls or not self._falls_to(high_watermark)
        ):
            return False
        self.log.high_watermark = high_watermark
        self._host.trace((self._host.clock.now_us, "hw", self.broker, self.name, high_watermark))
        self._host.invariants.high_watermark_set(self.broker, self.name)
        return True

    def _falls_to(self, high_watermark: int) -> bool:
        return 0 <= high_watermark < self.log.high_watermark

    def is_committed(self, required_offset: int) -> tuple[bool, str]:
        """Return whether acks=all can be answered for records below an offset, and with what."""
        if not self.is_leader():
            failed = self._behaviours.deposed_leader_fails_pending
            return True, errors.NOT_LEADER_FOR_PARTITION if failed else errors.NONE
        if self.log.high_watermark < required_offset and self._behaviours.ack_waits_for_hw:
            return False, errors.NONE
        if len(self.isr) < self.min_insync_replicas and self._behaviours.min_isr_checked:
            return True, errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        return True, errors.NONE

    # As leader of followers

    def update_follower(self, broker: int, fetch_offset: int, leader_leo: int) -> bool:
        """Note a follower's fetch; return whether the HW rose."""
        replica = self.remote_replicas.get(broker)
        if replica is None:
            return False
        previous_leo = replica.log_end_offset
        replica.update_fetch_state(fetch_offset, leader_leo, self._host.clock.now_us)
        if broker not in self.isr and not self.isr_write_in_flight and self._is_in_sync(replica):
            self._start_isr_change((*self.isr, broker), EXPAND)
        return previous_leo != fetch_offset and self.maybe_increment_hw()

    def _is_in_sync(self, replica: Replica) -> bool:
        """Return whether a follower may join the ISR: by the HW, not the LEO."""
        if replica.log_end_offset < self.log.high_watermark and self._behaviours.isr_expansion_checks_hw:
            return False
        return (
            not self._behaviours.isr_expansion_checks_epoch_start
            or replica.log_end_offset >= self.leader_epoch_start
        )

    def maybe_shrink_isr(self) -> None:
        """Drop the followers that have not been caught up for ``replica.lag.time.max.ms``."""
        if not self.is_leader() or self.isr_write_in_flight:
            return
        caught_up_since_us = self._host.clock.now_us - self._lag_time_max_us
        remaining = tuple(
            broker
            for broker in self.isr
            if broker == self.broker or not self._is_out_of_sync(broker, caught_up_since_us)
        )
        if len(remaining) < len(self.isr):
            self._start_isr_change(remaining, SHRINK)

    def _is_out_of_sync(self, broker: int, caught_up_since_us: int) -> bool:
        replica = self.remote_replicas[broker]
        return (
            replica.log_end_offset != self.log.log_end_offset
            and replica.last_caught_up_us < caught_up_since_us
        )

    def _start_isr_change(self, new_isr: tuple[int, ...], change: str) -> None:
        if change == SHRINK and not self._behaviours.isr_shrink_waits_for_write:
            self.isr = new_isr
            self.maybe_increment_hw()
        self.isr_write_in_flight = True
        self._isr_store.change_isr(self, new_isr, change)

    def isr_written(self, new_isr: tuple[int, ...], change: str, zk_version: int | None) -> bool:
        """Take over an ISR that has been written (version None: refused); return whether the HW rose.

        A refused write leaves the ISR as it was: the controller has changed the znode, and
        its LeaderAndIsr is on the way. The HW is tried in any case, for the fetch that caused
        the write may have raised it.
        """
        self.isr_write_in_flight = False
        if zk_version is None:
            refused = (self.broker, self.name, self.leader_epoch, new_isr, change)
            self._host.trace((self._host.clock.now_us, "isr_refused", *refused))
            if not self._behaviours.refused_isr_write_obeyed:
                self.isr = new_isr
        if zk_version is not None:
            self.isr = new_isr
            self.zk_version = zk_version
            self._host.trace(
                (self._host.clock.now_us, "isr", self.broker, self.name, self.leader_epoch, new_isr, change)
            )
            self._host.invariants.isr_changed(self)
        return self.maybe_increment_hw()

    # Reading

    def check_epoch(self, current_leader_epoch: int) -> str:
        """Return the error for a reader that knows another leader epoch (KIP-320)."""
        if not self.is_leader():
            return errors.NOT_LEADER_FOR_PARTITION
        if current_leader_epoch in (NO_EPOCH, self.leader_epoch):
            return errors.NONE
        if current_leader_epoch < self.leader_epoch:
            return errors.FENCED_LEADER_EPOCH
        return errors.UNKNOWN_LEADER_EPOCH

    def readable_end(self, *, is_follower: bool) -> int:
        """Return the offset up to which a follower (LEO) or a consumer (HW) may read."""
        if is_follower or not self._behaviours.consumer_limited_by_hw:
            return self.log.log_end_offset
        return self.log.high_watermark
