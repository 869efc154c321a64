"""Counts how often a run reached each rare state of `harrow.campaigns.probes.probes`.

Most are counted from the trace when the run is over. What a controller or a coordinator refuses, or what becomes of the
quorum, is worth no line in a trace: subscribers are told of it while it happens, and so is the `NoticeCounter`.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import compress
from operator import itemgetter
from typing import Any, Final

from harrow.campaigns.probes.probes import PROBES
from harrow.checks.replay.cluster_state import ClusterState
from harrow.checks.replay.partition_state import FOLLOWER, LEADER, PartitionState
from harrow.cluster_model import errors, events
from harrow.cluster_model.controller.control_plane import REASSIGNMENT
from harrow.cluster_model.coordinators.groups.group import (
    COMPLETING_REBALANCE,
    DEAD,
    PREPARING_REBALANCE,
)
from harrow.cluster_model.coordinators.transactions.transaction_metadata import (
    COMPLETE,
    ONGOING,
    PREPARED,
)
from harrow.cluster_model.events import EVENTS, Event
from harrow.cluster_model.kraft.committed_changes import METADATA_LOSS
from harrow.cluster_model.packed_log import blocks_of
from harrow.cluster_model.protocol import NO_LEADER
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND
from harrow.cluster_model.topology import CONSUMER_OFFSETS, TRANSACTION_STATE
from harrow.cluster_model.trace import Trace, TraceEvent, decode
from harrow.cluster_model.zookeeper.service import protocol as zk

_FLAP_US: Final = US_PER_SECOND
_MARKERS_DELAYED_US: Final = US_PER_SECOND
_HELD_BACK_US: Final = 5 * US_PER_SECOND
_NOT_DECIDED: Final = ("topic creation", METADATA_LOSS)
_FENCED: Final = (errors.PRODUCER_FENCED, errors.INVALID_PRODUCER_EPOCH)

_APPENDED: Final = 1
_ACKNOWLEDGED: Final = 2

_OFFSETS_PREFIX: Final = f"{CONSUMER_OFFSETS}-"
_TRANSACTIONS_PREFIX: Final = f"{TRANSACTION_STATE}-"

_Replica = tuple[int, str]


def count_probes(trace: Sequence[TraceEvent], noticed: Mapping[str, int] | None = None) -> dict[str, int]:
    """Return how often each probe was hit, with those that a `NoticeCounter` has counted; probes that were not are left out."""
    counter = _Counter()
    frequent, wanted = _FREQUENT, _WANTED
    by_name: Counter[str] = Counter()
    end_us = 0
    for rows in blocks_of(trace):
        names = list(map(itemgetter(1), rows))
        by_name.update(names)
        for event in compress(rows, map(wanted.__contains__, names)):
            handler = frequent.get(event[1])
            if handler is not None:
                handler(counter, *event[2:])
            else:
                counter.take(decode(event))
        end_us = rows[-1][0]
    counter.end(end_us)
    counts = counter.counts
    if noticed is not None:
        counts.update(noticed)
    counts |= {probe: by_name[name] for name, probe in _PROBE_BY_EVENT.items() if name in by_name}
    return {probe: counts[probe] for probe in PROBES if probe in counts}


class NoticeCounter:
    """Counts what subscribers alone are told of, from virtual time 0 on: before that the cluster starts."""

    def __init__(self, trace: Trace) -> None:
        self.counts: dict[str, int] = {}
        for kind, probe in _PROBE_BY_NOTICE.items():
            self._watch(trace, kind, probe)
        trace.subscribe(events.ControllerRequestRefused, self._request_refused)
        trace.subscribe(events.OpenTransactionFenced, self._transaction_fenced)

    def _watch(self, trace: Trace, kind: Callable[..., Event], probe: str) -> None:
        def noticed(at_us: int, *_: Any) -> None:
            self._hit(at_us, probe)

        trace.subscribe(kind, noticed)

    def _hit(self, at_us: int, probe: str) -> None:
        if at_us >= 0:
            self.counts[probe] = self.counts.get(probe, 0) + 1

    def _request_refused(
        self, at_us: int, _controller: int, api: str, _broker: int, _partition: str, error: str
    ) -> None:
        probe = _PROBE_BY_REFUSAL.get((api, error))
        if probe is not None:
            self._hit(at_us, probe)

    def _transaction_fenced(
        self, at_us: int, _broker: int, _transactional_id: str, is_timed_out: bool
    ) -> None:
        self._hit(at_us, "transaction-timed-out" if is_timed_out else "transaction-aborted-for-successor")


class _Counter:
    """The counts so far, the state of the cluster, and the little that no state remembers.

    A handler is called before the state takes its event into account.
    """

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.state = ClusterState({})
        self._lives: dict[int, int] = {}
        self._taken_out_us: dict[_Replica, int] = {}
        # In which epoch a partition's leader was last elected: reducing an ISR raises it, too.
        self._elected_epoch: dict[str, int] = {}
        # How far each partition was ever committed, and read.
        self._committed: dict[str, int] = {}
        self._read_end: dict[str, int] = {}
        # Who led a partition last, and from where; in which epoch and life a replica last led.
        self._last_leader: dict[str, tuple[int, int]] = {}
        self._led: dict[_Replica, tuple[int, int]] = {}
        self._truncated: set[_Replica] = set()
        # Batches, by their records: in one mapping, for an event that is unpacked has records of its own.
        self._batches: dict[Any, int] = {}
        # Whom a leader has asked to have in the ISR and has not been answered yet, by partition.
        self._joining: dict[str, tuple[int, ...]] = {}
        self._failed_leader: dict[Any, int] = {}
        self._controller = events.NO_CONTROLLER
        # Which broker told of each group last, and in which state; what its members were given last.
        self._groups: dict[str, tuple[int, str]] = {}
        self._assignments: dict[str, Any] = {}
        # What coordinators last wrote of each transactional id, by that and by producer id.
        self._transactions: dict[str, events.TransactionStateChanged] = {}
        self._producers: dict[int, events.TransactionStateChanged] = {}
        # When a replica of __transaction_state last became leader.
        self._coordinators_elected_us = 0
        # When and at which offset the transaction of each producer that is open in a partition began there.
        self._opened: dict[tuple[str, int], tuple[int, int]] = {}

    def take(self, event: Event) -> None:
        """Look at an event, and take it into account where it changes the state."""
        handler = _HANDLERS.get(event.name)
        if handler is not None:
            handler(self, event)
        if event.name in _STRUCTURE:
            self.state.take(event)

    def end(self, at_us: int) -> None:
        """Count what lasted until the end of the run."""
        for opened_us, _ in self._opened.values():
            self._look_whether_held_back(opened_us, at_us)

    def _hit(self, probe: str) -> None:
        self.counts[probe] = self.counts.get(probe, 0) + 1

    def _partitions(self) -> Sequence[PartitionState]:
        return list(self.state.partitions.values())

    def _controllers(self) -> list[int]:
        return [known.broker for known in self.state.brokers.values() if known.is_active_controller]

    # Brokers and their sessions

    def broker_started(self, event: events.BrokerStarted) -> None:
        self._lives[event.broker] = self._lives.get(event.broker, 0) + 1
        if self.state.broker(event.broker).is_registered:
            self._hit("bounced-broker")
        if any(event.broker in joining for joining in self._joining.values()):
            self._hit("member-restarted-while-joining")

    def broker_stopped(self, event: events.BrokerStopped) -> None:
        down = {known.broker for known in self.state.brokers.values() if not known.is_live}
        partitions = self._partitions()
        controllers = self._controllers()
        if event.broker in controllers:
            self._hit("controller-died")
            if any(partition.leader in {*down, NO_LEADER} for partition in partitions):
                self._hit("controller-died-during-election")
        elif not controllers and any(partition.leader == event.broker for partition in partitions):
            self._hit("leader-died-without-controller")
        if down:
            self._hit("two-brokers-down")
        for partition in partitions:
            if partition.isr == (event.broker,):
                self._hit("last-isr-member-died")
            # A replica is known here from its first leadership on.
            if event.broker in partition.replicas and partition.replicas.keys() <= {*down, event.broker}:
                self._hit("all-replicas-down")

    def broker_resumed(self, event: events.BrokerResumed) -> None:
        for partition in self._partitions():
            replica = partition.replicas.get(event.broker)
            if replica is None or replica.role != LEADER:
                continue
            if replica.leader_epoch < self._elected_epoch.get(partition.name, 0):
                self._hit("paused-leader-woke-deposed")
        controllers = self._controllers()
        if event.broker in controllers and len(controllers) > 1:
            self._hit("paused-controller-woke-deposed")

    def session_expired(self, event: events.SessionExpired) -> None:
        self._hit("session-expired")
        known = self.state.brokers.get(event.broker)
        is_gone = events.ends_registration(event.broker, event.ephemerals)
        if is_gone and (known is None or known.is_live):
            self._hit("session-expired-alive")
        if zk.CONTROLLER in event.ephemerals and self.state.broker(event.broker).is_active_controller:
            self._hit("controller-lost-its-session")

    # Controllers and what they write

    def controller_elected(self, event: events.ControllerElected) -> None:
        if event.at_us > 0:
            self._hit("controller-changed")
            if self._controller == event.broker:
                self._hit("controller-reelected")
        self._controller = event.broker
        if any(other != event.broker for other in self._controllers()):
            self._hit("controllers-overlapped")

    def leader_elected(self, event: events.LeaderElected) -> None:
        self._look_for_unheard(event)
        self._elected_epoch[event.partition] = max(
            event.leader_epoch, self._elected_epoch.get(event.partition, 0)
        )
        if event.leader == NO_LEADER:
            # In KRaft that is another leader epoch, as an election is.
            self._hit("partition-offline")
        elif event.unclean:
            self._hit("unclean-election")
        elif event.reason == "preferred leader":
            self._hit("preferred-leader-elected")
        elif event.reason not in _NOT_DECIDED:
            self._hit("clean-election")
            state = self.state.partition(event.partition)
            # With the change that completes its reassignment a replica joins the ISR and leads.
            if state.elections and event.leader not in state.isr and event.reason != REASSIGNMENT:
                self._hit("elr-member-elected")

    def _look_for_unheard(self, event: events.LeaderElected) -> None:
        state = self.state.partition(event.partition)
        former = state.replicas.get(state.leader)
        if former is None or former.role != LEADER or event.leader == state.leader:
            return
        if former.leader_epoch == state.leader_epoch and not set(state.isr) <= {state.leader, *former.isr}:
            self._hit("isr-write-unheard")

    def isr_reduced(self, event: events.IsrReduced) -> None:
        if event.leader == NO_LEADER and not any(
            self.state.broker(member).is_registered for member in event.isr
        ):
            self._hit("partition-offline")
        if len(event.isr) == 1:
            self._hit("isr-shrank-to-one")

    # Leaders

    def became_leader(self, event: events.BecameLeader) -> None:
        replica = (event.broker, event.partition)
        self._truncated.discard(replica)
        self._forget_transactions_lost(event)
        if event.partition.startswith(_TRANSACTIONS_PREFIX):
            self._coordinators_elected_us = event.at_us
        life = self._lives.get(event.broker, 0)
        led_epoch, led_life = self._led.get(replica, (-1, life))
        if led_epoch == event.leader_epoch and led_life != life:
            self._hit("leader-restarted-in-its-epoch")
        self._led[replica] = (event.leader_epoch, life)
        state = self.state.partition(event.partition).replica(event.broker)
        if state.role == LEADER and led_life == life and self._has_led_between(event, led_epoch):
            self._hit("leader-missed-its-deposition")
        if state.role != LEADER:
            before, before_start = self._last_leader.get(event.partition, (event.broker, 0))
            if before != event.broker and self._has_pending_offsets(event.partition):
                self._hit("coordinator-moved-with-pending-offsets")
            if before != event.broker and before_start == event.start_offset:
                self._hit("fast-leader-changes")
            if state.high_watermark < self._committed.get(event.partition, 0):
                self._hit("leader-hw-behind")
            self._last_leader[event.partition] = (event.broker, event.start_offset)

    def _has_pending_offsets(self, partition: str) -> bool:
        # One that is complete has no partitions any more.
        return partition.startswith(_OFFSETS_PREFIX) and any(
            partition in known.partitions for known in self._transactions.values()
        )

    def _has_led_between(self, event: events.BecameLeader, epoch: int) -> bool:
        elections = self.state.partition(event.partition).elections
        return any(
            epoch < line.event.leader_epoch < event.leader_epoch
            and line.event.leader not in (event.broker, NO_LEADER)
            for line in elections
        )

    def isr_pending(self, event: events.IsrPending) -> None:
        known = self.state.partition(event.partition).replica(event.broker).isr
        self._joining[event.partition] = tuple(member for member in event.isr if member not in known)

    def isr_refused(self, event: events.IsrRefused) -> None:
        self._hit("isr-write-refused")
        self._joining.pop(event.partition, None)

    def isr_changed(self, event: events.IsrChanged) -> None:
        self._joining.pop(event.partition, None)
        state = self.state.partition(event.partition)
        if event.change == "shrink":
            self._hit("isr-shrank")
            for member in state.replica(event.broker).isr:
                if member not in event.isr:
                    self._taken_out_us[member, event.partition] = event.at_us
        else:
            self._hit("isr-expanded")
            for member in event.isr:
                taken_out_us = self._taken_out_us.pop((member, event.partition), None)
                if taken_out_us is not None and event.at_us - taken_out_us <= _FLAP_US:
                    self._hit("isr-flapped")
        if len(event.isr) == 1:
            self._hit("isr-shrank-to-one")
        if event.leader_epoch < self._elected_epoch.get(event.partition, 0):
            self._hit("zombie-leader-changed-isr")

    def batch_appended(
        self, _broker: int, partition: str, _: int, epoch: int, _producer: int, _sequence: int, values: Any
    ) -> None:
        if epoch < self._elected_epoch.get(partition, 0):
            self._hit("zombie-leader-accepted-write")
        known = self._batches.get(values, 0)
        if known & _APPENDED:
            self._hit("batch-appended-again")
        elif values:
            self._batches[values] = known | _APPENDED

    def high_watermark_set(self, broker: int, partition: str, hw: int) -> None:
        if hw > self._committed.get(partition, 0):
            self._committed[partition] = hw
        state = self.state.partitions.get(partition) or self.state.partition(partition)
        replica = state.replicas.get(broker) or state.replica(broker)
        replica.high_watermark = hw

    def records_served(
        self, broker: int, partition: str, _client: str, _offset: int, end_offset: int, _hw: int
    ) -> None:
        if end_offset > self._read_end.get(partition, 0):
            self._read_end[partition] = end_offset
        if self._is_zombie(broker, partition) and not self._follows(broker, partition):
            self._hit("zombie-leader-served-read")

    def batch_acknowledged(self, broker: int, partition: str, _: int, _acks: int, values: Any) -> None:
        self._batches[values] = self._batches.get(values, 0) | _ACKNOWLEDGED
        if self._is_zombie(broker, partition):
            self._hit("zombie-leader-acknowledged")

    def _is_zombie(self, broker: int, partition: str) -> bool:
        """Return whether another broker, or none, has been elected to lead a partition."""
        state = self.state.partitions.get(partition)
        return state is not None and bool(state.elections) and state.leader != broker

    def _follows(self, broker: int, partition: str) -> bool:
        replica = self.state.partitions[partition].replicas.get(broker)
        return replica is not None and replica.role == FOLLOWER

    def epoch_end_answered(self, event: events.EpochEndAnswered) -> None:
        if event.end_offset == -1:
            self._hit("epoch-undefined-answer")
        elif event.answer_epoch not in (event.leader_epoch, -1):
            self._hit("epoch-unknown-to-leader")

    def request_rejected(self, event: events.RequestRejected) -> None:
        probe = _PROBE_BY_REJECTION.get((event.api, event.error))
        if probe is not None:
            self._hit(probe)

    def delete_records_answered(self, event: events.DeleteRecordsAnswered) -> None:
        if event.error == errors.NONE:
            self._hit("records-deleted-by-request")

    # Followers and their logs

    def became_follower(self, event: events.BecameFollower) -> None:
        self._truncated.discard((event.broker, event.partition))

    def log_truncated(self, event: events.LogTruncated) -> None:
        replica = (event.broker, event.partition)
        self._hit("truncated")
        if event.to_offset < self._committed.get(event.partition, 0):
            self._hit("truncated-below-hw")
        if event.to_offset < self._read_end.get(event.partition, 0):
            self._hit("truncated-below-read")
        if event.partition in self._last_leader and event.from_offset > self._last_leader[event.partition][1]:
            self._hit("follower-ahead-of-leader")
        if replica in self._truncated:
            self._hit("follower-truncated-twice")
        self._truncated.add(replica)

    def log_opened(self, event: events.LogOpened) -> None:
        if event.hw < self.state.partition(event.partition).replica(event.broker).high_watermark:
            self._hit("hw-checkpoint-stale-at-restart")

    def unflushed_lost(self, event: events.UnflushedLost) -> None:
        self._hit("unflushed-lost")
        if event.from_offset < self._committed.get(event.partition, 0):
            self._hit("committed-unflushed-lost")

    def log_cleaned(self, event: events.LogCleaned) -> None:
        self._hit("log-compacted")
        if event.to_offset > self._committed.get(event.partition, 0):
            self._hit("compacted-above-hw")

    def log_lost(self, event: events.LogLost) -> None:
        self._hit("log-lost-with-disk")
        if self.state.partition(event.partition).isr == (event.broker,):
            self._hit("last-isr-member-lost-its-disk")

    # Producers

    def send_failed(self, event: events.SendFailed) -> None:
        self._failed_leader[event.values] = event.leader
        if event.error == "NETWORK_EXCEPTION" and self._batches.get(event.values, 0) & _ACKNOWLEDGED:
            self._hit("ack-lost-after-append")

    def sent_again(self, event: events.SentAgain) -> None:
        if self._failed_leader.get(event.values, event.leader) != event.leader:
            self._hit("producer-retried-to-new-leader")
        if self._batches.get(event.values, 0) & _APPENDED:
            self._hit("retried-after-append")

    # Disks of voters

    def metadata_log_lost(self, event: events.MetadataLogLost) -> None:
        self._hit("metadata-log-lost")
        if not event.is_kept:
            self._hit("metadata-majority-lost")

    # Groups

    def group_state_changed(self, event: events.GroupStateChanged) -> None:
        if event.state == DEAD:
            # A broker says so, too, of a group that another one coordinates by now.
            return
        broker, state = self._groups.get(event.group, (event.broker, ""))
        if broker != event.broker:
            self._hit("group-coordinator-moved")
        elif (state, event.state) == (COMPLETING_REBALANCE, PREPARING_REBALANCE):
            self._hit("rebalance-interrupted")
        self._groups[event.group] = (event.broker, event.state)

    def group_assigned(self, event: events.GroupAssigned) -> None:
        self._reassigned(event.group, event.assignments)

    def target_assigned(self, event: events.TargetAssigned) -> None:
        self._reassigned(event.group, event.assignments)

    def _reassigned(self, group: str, assignments: Any) -> None:
        if self._assignments.get(group, assignments) != assignments:
            self._hit("group-rebalanced")
        self._assignments[group] = assignments

    def member_reconciled(self, event: events.MemberReconciled) -> None:
        if event.revoking:
            self._hit("member-asked-to-revoke")

    def partitions_revoked(self, event: events.PartitionsRevoked) -> None:
        if event.lost:
            self._hit("partitions-lost")

    def offsets_committed(self, event: events.OffsetsCommitted) -> None:
        _, state = self._groups.get(event.group, (event.broker, ""))
        if event.member and state == PREPARING_REBALANCE:
            self._hit("commit-during-rebalance")

    # Transactions

    def transaction_state_changed(self, event: events.TransactionStateChanged) -> None:
        before = self._transactions.get(event.transactional_id)
        if before is not None and (before.state == ONGOING or before.state in PREPARED):
            if before.broker != event.broker:
                self._hit("transaction-coordinator-moved")
            if before.state in PREPARED and event.state in COMPLETE:
                if before.broker != event.broker:
                    self._hit("markers-completed-by-successor")
                if event.at_us - before.at_us >= _MARKERS_DELAYED_US:
                    self._hit("markers-delayed")
        self._transactions[event.transactional_id] = event
        self._producers[event.producer_id] = event

    def transaction_begun(self, event: events.TransactionBegun) -> None:
        if not self._leads(event.broker, event.partition):
            return
        self._opened[event.partition, event.producer_id] = (event.at_us, event.first_offset)
        known = self._producers.get(event.producer_id)
        # What a new coordinator has read in its log it does not tell, and a former one may still tell of its own.
        if (
            known is None
            or known.at_us < self._coordinators_elected_us
            or not self._coordinates(known.broker)
        ):
            return
        if known.state != ONGOING or event.partition not in known.partitions:
            self._hit("late-transactional-batch")

    def _coordinates(self, broker: int) -> bool:
        return any(
            leader == broker
            for name, (leader, _) in self._last_leader.items()
            if name.startswith(_TRANSACTIONS_PREFIX)
        )

    def transaction_marker_written(self, event: events.TransactionMarkerWritten) -> None:
        if not self._leads(event.broker, event.partition):
            return
        opened = self._opened.pop((event.partition, event.producer_id), None)
        if event.first_offset < 0:
            self._hit("marker-without-transaction")
        elif opened is not None:
            self._look_whether_held_back(opened[0], event.at_us)

    def _look_whether_held_back(self, opened_us: int, at_us: int) -> None:
        if at_us - opened_us >= _HELD_BACK_US:
            self._hit("lso-held-back")

    def _forget_transactions_lost(self, event: events.BecameLeader) -> None:
        """Forget the transactions of a partition that its new leader does not have."""
        lost = [
            key
            for key, (_, first_offset) in self._opened.items()
            if key[0] == event.partition and first_offset >= event.start_offset
        ]
        for key in lost:
            del self._opened[key]

    def transaction_error(self, event: events.TransactionError) -> None:
        if not event.fatal:
            self._hit("transaction-only-abortable")
        elif event.error in _FENCED:
            self._hit("producer-fenced")

    def _leads(self, broker: int, partition: str) -> bool:
        return self.state.partition(partition).replica(broker).role == LEADER


_HANDLERS: Final[Mapping[str, Callable[..., None]]] = {
    events.BrokerStarted.name: _Counter.broker_started,
    events.BrokerStopped.name: _Counter.broker_stopped,
    events.BrokerResumed.name: _Counter.broker_resumed,
    events.SessionExpired.name: _Counter.session_expired,
    events.ControllerElected.name: _Counter.controller_elected,
    events.LeaderElected.name: _Counter.leader_elected,
    events.IsrReduced.name: _Counter.isr_reduced,
    events.BecameLeader.name: _Counter.became_leader,
    events.BecameFollower.name: _Counter.became_follower,
    events.IsrChanged.name: _Counter.isr_changed,
    events.IsrPending.name: _Counter.isr_pending,
    events.IsrRefused.name: _Counter.isr_refused,
    events.DeleteRecordsAnswered.name: _Counter.delete_records_answered,
    events.LogTruncated.name: _Counter.log_truncated,
    events.LogOpened.name: _Counter.log_opened,
    events.UnflushedLost.name: _Counter.unflushed_lost,
    events.LogLost.name: _Counter.log_lost,
    events.LogCleaned.name: _Counter.log_cleaned,
    events.EpochEndAnswered.name: _Counter.epoch_end_answered,
    events.SendFailed.name: _Counter.send_failed,
    events.SentAgain.name: _Counter.sent_again,
    events.RequestRejected.name: _Counter.request_rejected,
    events.MetadataLogLost.name: _Counter.metadata_log_lost,
    events.GroupStateChanged.name: _Counter.group_state_changed,
    events.GroupAssigned.name: _Counter.group_assigned,
    events.TargetAssigned.name: _Counter.target_assigned,
    events.MemberReconciled.name: _Counter.member_reconciled,
    events.PartitionsRevoked.name: _Counter.partitions_revoked,
    events.OffsetsCommitted.name: _Counter.offsets_committed,
    events.TransactionStateChanged.name: _Counter.transaction_state_changed,
    events.TransactionBegun.name: _Counter.transaction_begun,
    events.TransactionMarkerWritten.name: _Counter.transaction_marker_written,
    events.TransactionError.name: _Counter.transaction_error,
}
"""What is called with an event of each kind."""
_FREQUENT: Final[Mapping[str, Callable[..., None]]] = {
    events.HighWatermarkSet.name: _Counter.high_watermark_set,
    events.BatchAppended.name: _Counter.batch_appended,
    events.RecordsServed.name: _Counter.records_served,
    events.BatchAcknowledged.name: _Counter.batch_acknowledged,
}
"""What is called with the fields of an event: of these there are so many that objects would cost too much."""
_PROBE_BY_EVENT: Final = {
    kind.name: name
    for name, probe in PROBES.items()
    if probe.each
    for kind in probe.at
    if kind.name in EVENTS
}
"""What is hit by each event of a kind, whatever the event says."""
_OF_PARTITIONS: Final[set[type[Event]]] = {
    events.LeaderElected,
    events.IsrReduced,
    events.IsrWritten,
    events.IsrChanged,
    events.BecameLeader,
    events.BecameFollower,
    events.LogOpened,
    events.LogTruncated,
    events.UnflushedLost,
    events.LogLost,
    events.CorruptionCut,
}
_STRUCTURE: Final = frozenset(
    kind.name for kind in (ClusterState.HANDLERS.keys() - {events.CheckpointWritten}) | _OF_PARTITIONS
)
"""What changes brokers, leaders, ISRs and watermarks. Records are left out: no probe asks where they stand."""
_WANTED: Final = frozenset((*_STRUCTURE, *_HANDLERS, *_FREQUENT))

_PROBE_BY_NOTICE: Final = {
    kind: name for name, probe in PROBES.items() if probe.each for kind in probe.at if kind.name not in EVENTS
}


def _refusals(kind: type[Event]) -> dict[tuple[str, str], str]:
    """Return which probe is hit by the refusal of a request, by its API and the error."""
    return {
        (api, error): name
        for name, probe in PROBES.items()
        if kind in probe.at
        for api in probe.apis
        for error in probe.errors
    }


_PROBE_BY_REJECTION: Final = _refusals(events.RequestRejected)
_PROBE_BY_REFUSAL: Final = _refusals(events.ControllerRequestRefused)
