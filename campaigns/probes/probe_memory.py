"""Keeps the memory that conditions of probes read: the state of the cluster and some history."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from harrow.checks.replay.cluster_state import CLUSTER_HANDLERS, ClusterState
from harrow.checks.replay.partition_state import FOLLOWER, LEADER, PartitionState, ReplicaState
from harrow.cluster_model import events
from harrow.cluster_model.coordinators.groups.group import DEAD
from harrow.cluster_model.coordinators.transactions.transaction_metadata import COMPLETE, PREPARED
from harrow.cluster_model.events import Event
from harrow.cluster_model.topology import TRANSACTION_STATE
from harrow.cluster_model.trace import TraceEvent

_APPENDED: Final = 1
_ACKNOWLEDGED: Final = 2
_TRANSACTIONS_PREFIX: Final = f"{TRANSACTION_STATE}-"

_Replica = tuple[int, str]


class ProbeMemory:
    """What has happened in a run before the event that conditions of probes decide about.

    The annotation of a handler's parameter ``event`` is the kind of event that it handles.
    """

    def __init__(self) -> None:
        self.state = ClusterState({})
        # The number of times that each broker has started: its incarnation.
        self.incarnations: dict[int, int] = {}
        # When a leader last removed a member from the ISR.
        self.removed_us: dict[_Replica, int] = {}
        # The leader epoch of each partition's last election. The present leader epoch may be
        # higher, because removing a member from the ISR can also raise it.
        self.elected_epoch: dict[str, int] = {}
        # The highest high watermark of each partition, and the end of the records that consumers
        # have read.
        self.committed: dict[str, int] = {}
        self.read_end: dict[str, int] = {}
        # The last leader of a partition, and the offset at which it began to lead. The leader epoch
        # and the incarnation of its broker in which a replica was last leader.
        self.last_leader: dict[str, tuple[int, int]] = {}
        self.last_leadership: dict[_Replica, tuple[int, int]] = {}
        # Replicas that have truncated their logs, and have not become follower or leader since.
        self.truncated: set[_Replica] = set()
        # Flags of batches (`_APPENDED`, `_ACKNOWLEDGED`), by their records. It is one mapping,
        # because the records are copied for each event, and every mapping would keep a copy.
        self._batches: dict[Any, int] = {}
        # Replicas that a leader has asked to add to the ISR, by partition, while it waits for the
        # answer.
        self.joining: dict[str, tuple[int, ...]] = {}
        # The leader to which sending a batch last failed.
        self.failed_leader: dict[Any, int] = {}
        self.controller = events.NO_CONTROLLER
        # The coordinator that last reported a group, with the state of the group. The last
        # assignment of each group.
        self.groups: dict[str, tuple[int, str]] = {}
        self.assignments: dict[str, object] = {}
        # The last state that coordinators wrote, by transactional id and by producer id.
        self.transactions: dict[str, events.TransactionStateChanged] = {}
        self.producers: dict[int, events.TransactionStateChanged] = {}
        # The last leader of each partition of __transaction_state, and when the last of them was
        # elected.
        self._coordinators: dict[str, int] = {}
        self.coordinators_elected_us = 0
        # Start time and first offset of open transactions, by partition and producer id.
        self.opened: dict[tuple[str, int], tuple[int, int]] = {}

    def take(self, event: Event) -> None:
        """Call an event's handler, and then apply the event to the state."""
        handler = _HANDLERS.get(event.name)
        if handler is not None:
            handler(self, event)
        if event.name in _STATE_EVENTS:
            self.state.take(event)

    # Queries

    def partitions(self) -> Sequence[PartitionState]:
        return list(self.state.partitions.values())

    def controllers(self) -> list[int]:
        """Return the brokers that believe they are the controller."""
        return [state.broker for state in self.state.brokers.values() if state.is_active_controller]

    def brokers_down(self) -> list[int]:
        return [state.broker for state in self.state.brokers.values() if not state.is_live]

    def replicas_on(self, broker: int) -> list[tuple[str, ReplicaState]]:
        """Return the replicas of a broker, with the names of their partitions."""
        return [
            (partition.name, partition.replicas[broker])
            for partition in self.state.partitions.values()
            if broker in partition.replicas
        ]

    def leads(self, broker: int, partition: str) -> bool:
        """Return whether a broker believes it leads a partition."""
        return self.state.partition(partition).replica(broker).role == LEADER

    def follows(self, broker: int, partition: str) -> bool:
        replica = self.state.partition(partition).replicas.get(broker)
        return replica is not None and replica.role == FOLLOWER

    def is_zombie(self, broker: int, partition: str) -> bool:
        """Return whether a partition's last election chose another broker, or none."""
        state = self.state.partitions.get(partition)
        return state is not None and bool(state.elections) and state.leader != broker

    def elections_after(self, partition: str, leader_epoch: int) -> Iterator[events.LeaderElected]:
        """Yield the elections of a partition with a later leader epoch, latest first."""
        for line in reversed(self.state.partition(partition).elections):
            if line.event.leader_epoch <= leader_epoch:
                return
            yield line.event

    def is_appended(self, values: Any) -> bool:
        return bool(self._batches.get(values, 0) & _APPENDED)

    def is_acknowledged(self, values: Any) -> bool:
        return bool(self._batches.get(values, 0) & _ACKNOWLEDGED)

    def coordinates(self, broker: int) -> bool:
        """Return whether a broker leads a partition of __transaction_state."""
        return broker in self._coordinators.values()

    def prepared(self, change: events.TransactionStateChanged) -> events.TransactionStateChanged | None:
        """Return the event that decided the end of the transaction that *change* completes."""
        before = self.transactions.get(change.transactional_id)
        is_completed = before is not None and before.state in PREPARED and change.state in COMPLETE
        return before if is_completed else None

    # Events

    def broker_started(self, event: events.BrokerStarted) -> None:
        self.incarnations[event.broker] = self.incarnations.get(event.broker, 0) + 1

    def controller_elected(self, event: events.ControllerElected) -> None:
        self.controller = event.broker

    def leader_elected(self, event: events.LeaderElected) -> None:
        self.elected_epoch[event.partition] = max(
            event.leader_epoch, self.elected_epoch.get(event.partition, 0)
        )

    def isr_pending(self, event: events.IsrPending) -> None:
        isr = self.state.partition(event.partition).replica(event.broker).isr
        self.joining[event.partition] = tuple(member for member in event.isr if member not in isr)

    def isr_refused(self, event: events.IsrRefused) -> None:
        self.joining.pop(event.partition, None)

    def isr_changed(self, event: events.IsrChanged) -> None:
        self.joining.pop(event.partition, None)
        if event.change == "shrink":
            for member in self.state.partition(event.partition).replica(event.broker).isr:
                if member not in event.isr:
                    self.removed_us[member, event.partition] = event.at_us
        else:
            for member in event.isr:
                self.removed_us.pop((member, event.partition), None)

    def log_truncated(self, event: events.LogTruncated) -> None:
        self.truncated.add((event.broker, event.partition))

    def group_state_changed(self, event: events.GroupStateChanged) -> None:
        # A former coordinator also reports the group as dead when another broker takes over.
        if event.state != DEAD:
            self.groups[event.group] = (event.broker, event.state)

    def group_assigned(self, event: events.GroupAssigned) -> None:
        self.assignments[event.group] = event.assignments

    def target_assigned(self, event: events.TargetAssigned) -> None:
        self.assignments[event.group] = event.assignments

    def transaction_state_changed(self, event: events.TransactionStateChanged) -> None:
        self.transactions[event.transactional_id] = event
        self.producers[event.producer_id] = event

    # Frequent events. Their handlers take the row of the trace, because to make an object for each
    # event would take too much time.

    def log_opened(self, row: TraceEvent) -> None:
        at_us, _, broker, partition, leo, hw = row
        self.state.partition(partition).open_log(broker, leo, hw, self.state.number, at_us)

    def became_leader(self, row: TraceEvent) -> None:
        at_us, _, broker, partition, leader_epoch, start_offset, isr = row
        state = self.state.partition(partition)
        is_new = state.replica(broker).role != LEADER
        self.truncated.discard((broker, partition))
        self._forget_lost_transactions(partition, start_offset)
        self.last_leadership[broker, partition] = (leader_epoch, self.incarnations.get(broker, 0))
        if is_new:
            self.last_leader[partition] = (broker, start_offset)
        if partition.startswith(_TRANSACTIONS_PREFIX):
            self.coordinators_elected_us = at_us
            if is_new:
                self._coordinators[partition] = broker
        state.lead_in(broker, leader_epoch, isr, self.state.number)

    def _forget_lost_transactions(self, partition: str, end_offset: int) -> None:
        """Forget the open transactions that a partition's new leader does not have."""
        lost = [
            key
            for key, (_, first_offset) in self.opened.items()
            if key[0] == partition and first_offset >= end_offset
        ]
        for key in lost:
            del self.opened[key]

    def became_follower(self, row: TraceEvent) -> None:
        _, _, broker, partition, leader_epoch, leader = row
        self.truncated.discard((broker, partition))
        self.state.partition(partition).follow_leader(broker, leader_epoch, leader)

    def high_watermark_set(self, row: TraceEvent) -> None:
        broker: int = row[2]
        partition: str = row[3]
        hw: int = row[4]
        if hw > self.committed.get(partition, 0):
            self.committed[partition] = hw
        state = self.state.partitions.get(partition) or self.state.partition(partition)
        replica = state.replicas.get(broker) or state.replica(broker)
        replica.high_watermark = hw

    def batch_appended(self, row: TraceEvent) -> None:
        values = row[-1]
        if values:
            self._batches[values] = self._batches.get(values, 0) | _APPENDED

    def records_served(self, row: TraceEvent) -> None:
        partition: str = row[3]
        end_offset: int = row[6]
        if end_offset > self.read_end.get(partition, 0):
            self.read_end[partition] = end_offset

    def send_failed(self, row: TraceEvent) -> None:
        _, _, _client, _partition, leader, _attempt, _error, values = row
        self.failed_leader[values] = leader

    def batch_acknowledged(self, row: TraceEvent) -> None:
        values = row[-1]
        self._batches[values] = self._batches.get(values, 0) | _ACKNOWLEDGED

    def transaction_begun(self, row: TraceEvent) -> None:
        at_us, _, broker, partition, producer_id, _epoch, first_offset = row
        if self.leads(broker, partition):
            self.opened[partition, producer_id] = (at_us, first_offset)

    def transaction_marker_written(self, row: TraceEvent) -> None:
        if self.leads(row[2], row[3]):
            self.opened.pop((row[3], row[4]), None)


FREQUENT: Final[Mapping[str, Callable[[ProbeMemory, TraceEvent], None]]] = {
    events.LogOpened.name: ProbeMemory.log_opened,
    events.BecameLeader.name: ProbeMemory.became_leader,
    events.BecameFollower.name: ProbeMemory.became_follower,
    events.HighWatermarkSet.name: ProbeMemory.high_watermark_set,
    events.BatchAppended.name: ProbeMemory.batch_appended,
    events.RecordsServed.name: ProbeMemory.records_served,
    events.BatchAcknowledged.name: ProbeMemory.batch_acknowledged,
    events.SendFailed.name: ProbeMemory.send_failed,
    events.TransactionBegun.name: ProbeMemory.transaction_begun,
    events.TransactionMarkerWritten.name: ProbeMemory.transaction_marker_written,
}
"""The handlers that take the row of an event."""
_HANDLERS: Final[Mapping[str, Callable[..., None]]] = {
    events.BrokerStarted.name: ProbeMemory.broker_started,
    events.ControllerElected.name: ProbeMemory.controller_elected,
    events.LeaderElected.name: ProbeMemory.leader_elected,
    events.IsrPending.name: ProbeMemory.isr_pending,
    events.IsrRefused.name: ProbeMemory.isr_refused,
    events.IsrChanged.name: ProbeMemory.isr_changed,
    events.LogTruncated.name: ProbeMemory.log_truncated,
    events.GroupStateChanged.name: ProbeMemory.group_state_changed,
    events.GroupAssigned.name: ProbeMemory.group_assigned,
    events.TargetAssigned.name: ProbeMemory.target_assigned,
    events.TransactionStateChanged.name: ProbeMemory.transaction_state_changed,
}
"""The handlers that take an event.

This table is written by hand, because compiled methods have no annotations to derive it from.
"""
_PARTITION_EVENTS: Final[set[type[Event]]] = {
    events.LeaderElected,
    events.IsrReduced,
    events.IsrWritten,
    events.IsrChanged,
    events.LogTruncated,
    events.UnflushedLost,
    events.LogLost,
    events.CorruptionCut,
}
_STATE_EVENTS: Final = frozenset(
    kind.name for kind in (CLUSTER_HANDLERS.keys() - {events.CheckpointWritten}) | _PARTITION_EVENTS
)
"""The events that change brokers, leaders, ISRs and high watermarks in the memory's `ClusterState`.
Events about records are left out, because probes do not need these."""
REMEMBERED: Final = frozenset((*_STATE_EVENTS, *_HANDLERS, *FREQUENT))
"""The events that change a `ProbeMemory`."""
