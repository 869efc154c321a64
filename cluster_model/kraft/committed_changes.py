"""Translates committed metadata records into trace events.

Registrations, elections and ISRs take effect when their records are committed. The controller may
die before it knows that they are, but its successor uses the records. So the first quorum leader
that finds a record committed emits the events of the record.
"""

from collections.abc import Callable, Collection
from typing import Final

from harrow.cluster_model import events
from harrow.cluster_model.kraft.cluster_image import ClusterImage
from harrow.cluster_model.kraft.metadata_log import MetadataLog
from harrow.cluster_model.kraft.records import (
    BrokerRegistrationChangeRecord,
    MetadataRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicSettingsRecord,
)
from harrow.cluster_model.protocol import LeaderAndIsr, ReplicaAssignment
from harrow.cluster_model.topic_settings import Settings
from harrow.cluster_model.trace import Trace

_REGISTRATION: Final = (events.REGISTRATION,)
METADATA_LOSS: Final = "metadata loss"
"""The reason of a leadership that applies again only because later decisions are lost."""


class CommittedChanges:
    """The committed metadata of a cluster, whose changes it reports as events."""

    def __init__(
        self, trace: Trace, created: Collection[str], on_settings: Callable[[str, Settings], None]
    ) -> None:
        self._trace = trace
        self._on_settings = on_settings
        # The partitions that the campaign declares. Their first replicas need no event.
        self._created = frozenset(created)
        self._image = ClusterImage()
        self._records: list[tuple[int, MetadataRecord]] = []
        self._controller = events.NO_CONTROLLER
        self._epoch = 0
        self._decided: dict[tuple[str, int], tuple[bool, str]] = {}
        self._last_known: set[tuple[str, int]] = set()
        # The state that the last compared snapshot should have.
        self._snapshot_image = ClusterImage()
        self.may_diverge = False
        """Whether, after losses of disks, a later leader may lack committed records."""
        trace.subscribe(events.ElectionDecided, self._note_decision)
        trace.subscribe(events.LastKnownLeaderChosen, self._note_last_known)
        trace.subscribe(events.MetadataSnapshotWritten, self._snapshot_written)

    def partition_state(self, partition: str) -> LeaderAndIsr | None:
        record = self._image.partitions.get(partition)
        return None if record is None else _leader_and_isr(record)

    def assignment(self, partition: str) -> ReplicaAssignment | None:
        record = self._image.partitions.get(partition)
        return None if record is None else record.assignment

    def partition(self, partition: str) -> PartitionRecord | None:
        return self._image.partitions.get(partition)

    def broker_epoch(self, broker: int) -> int | None:
        """Return the broker epoch of a broker's last registration."""
        registration = self._image.brokers.get(broker)
        return None if registration is None else registration.broker_epoch

    def is_unfenced(self, broker: int) -> bool:
        registration = self._image.brokers.get(broker)
        return registration is not None and not registration.fenced

    @property
    def controller(self) -> int | None:
        """The controller that became active last; None if it has resigned."""
        return None if self._controller == events.NO_CONTROLLER else self._controller

    @property
    def controller_epoch(self) -> int:
        """The quorum epoch of the last active controller."""
        return self._epoch

    def set_controller(self, controller: int, epoch: int) -> None:
        self._controller, self._epoch = controller, epoch
        self._trace.emit(events.ControllerChanged, controller, epoch)

    def _note_decision(
        self, _controller: int, partition: str, leader_epoch: int, unclean: bool, reason: str
    ) -> None:
        self._decided[partition, leader_epoch] = (unclean, reason)
        self._last_known.discard((partition, leader_epoch))

    def _note_last_known(self, _controller: int, partition: str, leader_epoch: int) -> None:
        self._last_known.add((partition, leader_epoch))

    def apply_committed(self, node: int, log: MetadataLog, high_watermark: int) -> None:
        """Apply the records of a leader's log below its high watermark.

        If two logs have a record of the same epoch at an offset, they are the same up to that
        offset. So it is enough to compare the last record.
        """
        applied = len(self._records)
        last = min(applied, high_watermark) - 1
        if last >= 0 and not self._has_same_record(log, last):
            self._trace.publish(events.CommittedMetadataCut, node, last, applied)
            if self.may_diverge:
                self.may_diverge = False
                self._adopt(log, high_watermark)
            return
        for epoch, record in log.read(applied, high_watermark):
            self._records.append((epoch, record))
            self._apply(record)

    def are_all_in(self, log: MetadataLog) -> bool:
        """Return whether a log has all committed records."""
        last = len(self._records) - 1
        return log.end_offset > last and (last < 0 or self._has_same_record(log, last))

    def _adopt(self, log: MetadataLog, high_watermark: int) -> None:
        """Adopt the metadata of a leader that lacks committed records.

        Emit events for the differences, although no controller decided them.
        """
        before, image = self._image, log.replay(ClusterImage(), high_watermark)
        self._records[log.start_offset :] = log.read(log.start_offset, high_watermark)
        self._image, self._snapshot_image = image, ClusterImage()
        for broker in sorted({*before.brokers, *image.brokers}):
            earlier_registration, present = before.brokers.get(broker), image.brokers.get(broker)
            was_unfenced, is_unfenced = (
                earlier_registration is not None and not earlier_registration.fenced,
                present is not None and not present.fenced,
            )
            if is_unfenced and present is not None and (not was_unfenced or earlier_registration != present):
                self._trace.emit(events.BrokerRegistered, broker, present.broker_epoch)
            elif was_unfenced and not is_unfenced:
                self._trace.emit(events.SessionExpired, broker, _REGISTRATION)
        for name, record in image.partitions.items():
            earlier = before.partitions.get(name)
            if earlier is None or earlier.assignment != record.assignment:
                self._trace.emit(
                    events.ReplicasAssigned, name, record.replicas, record.adding, record.removing
                )
            if earlier is None or _leader_and_isr(earlier) != _leader_and_isr(record):
                leadership = (name, record.leader, record.leader_epoch, record.isr)
                self._trace.emit(events.LeaderElected, self._controller, *leadership, False, METADATA_LOSS)

    def _has_same_record(self, log: MetadataLog, offset: int) -> bool:
        """Return whether a log has the committed record at an offset.

        If the log starts right after that record, compare only the epochs.
        """
        if offset >= log.start_offset:
            return log.read(offset, offset + 1)[0] == self._records[offset]
        return log.epoch_at(offset) == self._records[offset][0]

    def _snapshot_written(
        self, node: int, end_offset: int, epoch: int, records: tuple[MetadataRecord, ...]
    ) -> None:
        """Compare a snapshot with the state after the committed records that it covers."""
        committed = len(self._records)
        if end_offset < self._snapshot_image.next_offset:
            self._snapshot_image = ClusterImage()
        image = self._snapshot_image
        for _, record in self._records[image.next_offset : end_offset]:
            image.apply(record)
        is_same = (
            end_offset <= committed
            and epoch == self._records[end_offset - 1][0]
            and frozenset(records) == frozenset(image.write())
        )
        if not is_same:
            self._trace.publish(events.MetadataSnapshotDiffers, node, end_offset, committed)

    def _apply(self, record: MetadataRecord) -> None:
        image = self._image
        if isinstance(record, PartitionRecord):
            before = image.partitions.get(record.partition)
            image.apply(record)
            self._emit_change(before, record)
        elif isinstance(record, BrokerRegistrationChangeRecord):
            was_fenced = image.brokers[record.broker].fenced
            image.apply(record)
            if was_fenced and not record.fenced:
                self._trace.emit(events.BrokerRegistered, record.broker, record.broker_epoch)
            elif record.fenced and not was_fenced:
                kind = events.SessionExpired if record.expired else events.SessionClosed
                self._trace.emit(kind, record.broker, _REGISTRATION)
        else:
            image.apply(record)
            if isinstance(record, TopicSettingsRecord):
                self._on_settings(record.topic, dict(record.settings))
            if isinstance(record, RemoveTopicRecord):
                for name in image.removed_partitions(record.topic):
                    self._trace.publish(events.PartitionDeleted, name)

    def _emit_change(self, before: PartitionRecord | None, record: PartitionRecord) -> None:
        name, by_controller = record.partition, record.altered_by < 0
        leadership = (self._controller, name, record.leader, record.leader_epoch, record.isr)
        is_added = before is None and name not in self._created
        is_assigned = is_added or (before is not None and record.assignment != before.assignment)
        if is_assigned:
            self._trace.emit(events.ReplicasAssigned, name, record.replicas, record.adding, record.removing)
        if before is None or record.leader_epoch != before.leader_epoch:
            # A decision is noted only once, even if its record was lost and committed again.
            unclean, reason = self._decided.pop((name, record.leader_epoch), (False, METADATA_LOSS))
            self._trace.emit(events.LeaderElected, *leadership, unclean, reason)
            if (name, record.leader_epoch) in self._last_known:
                self._last_known.remove((name, record.leader_epoch))
                self._trace.publish(
                    events.LastKnownLeaderElected, self._controller, name, record.leader_epoch
                )
        elif is_assigned and record.isr == before.isr:
            pass  # Neither the leader nor the ISR has changed.
        elif by_controller:
            self._trace.emit(events.IsrReduced, *leadership)
        else:
            self._trace.emit(events.IsrWritten, record.altered_by, name, record.leader_epoch, record.isr)
        if before is not None:
            self._trace.publish(
                events.PartitionStateWritten,
                self._controller if by_controller else record.altered_by,
                name,
                _leader_and_isr(before),
                _leader_and_isr(record),
                self._epoch,
                self._epoch,
            )


def _leader_and_isr(record: PartitionRecord) -> LeaderAndIsr:
    return LeaderAndIsr(record.leader, record.leader_epoch, record.isr, record.partition_epoch)
