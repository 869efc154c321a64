"""What is committed in the metadata log means to the trace: registrations, elections and ISRs take effect then.

A controller may die before it knows, and its successor goes by it all the same. So it is told of when the first leader of the
quorum finds it committed.
"""

from collections.abc import Collection
from typing import Final

from harrow.cluster_model import events
from harrow.cluster_model.kraft.cluster_image import ClusterImage
from harrow.cluster_model.kraft.metadata_log import MetadataLog
from harrow.cluster_model.kraft.records import (
    BrokerRegistrationChangeRecord,
    MetadataRecord,
    PartitionRecord,
)
from harrow.cluster_model.protocol import LeaderAndIsr, ReplicaAssignment
from harrow.cluster_model.trace import Trace

_REGISTRATION: Final = (events.REGISTRATION,)
METADATA_LOSS: Final = "metadata loss"
"""Why somebody leads whom no controller has elected: later decisions are lost."""


class CommittedChanges:
    """The committed metadata, and the events that it amounts to."""

    def __init__(self, trace: Trace, created: Collection[str]) -> None:
        self._trace = trace
        # What topics are created with: the replicas of others have to be told.
        self._created = frozenset(created)
        self._image = ClusterImage()
        self._records: list[tuple[int, MetadataRecord]] = []
        self._controller = events.NO_CONTROLLER
        self._epoch = 0
        self._decided: dict[tuple[str, int], tuple[bool, str]] = {}
        self._last_known: set[tuple[str, int]] = set()
        # What the records amount to as far as the latest snapshot goes.
        self._snapshot_image = ClusterImage()
        self.may_part = False
        """Whether too many voters have lost their disks for what is committed to be in the log of every later leader."""
        trace.subscribe(events.ElectionDecided, self._decide)
        trace.subscribe(events.LastKnownLeaderChosen, self._choose_last_known)
        trace.subscribe(events.MetadataSnapshotWritten, self._snapshot_written)

    def partition_state(self, partition: str) -> LeaderAndIsr | None:
        known = self._image.partitions.get(partition)
        return None if known is None else _leader_and_isr(known)

    def assignment(self, partition: str) -> ReplicaAssignment | None:
        known = self._image.partitions.get(partition)
        return None if known is None else known.assignment

    def partition(self, partition: str) -> PartitionRecord | None:
        return self._image.partitions.get(partition)

    def broker_epoch(self, broker: int) -> int | None:
        """The broker epoch of the last registration of a broker."""
        known = self._image.brokers.get(broker)
        return None if known is None else known.broker_epoch

    def is_unfenced(self, broker: int) -> bool:
        known = self._image.brokers.get(broker)
        return known is not None and not known.fenced

    @property
    def controller(self) -> int | None:
        """The active controller, as far as anything has been seen of it."""
        return None if self._controller == events.NO_CONTROLLER else self._controller

    @property
    def controller_epoch(self) -> int:
        """The epoch of the quorum in which a controller was active last."""
        return self._epoch

    def controller_is(self, controller: int, epoch: int) -> None:
        self._controller, self._epoch = controller, epoch
        self._trace.emit(events.ControllerChanged, controller, epoch)

    def _decide(
        self, _: int, _controller: int, partition: str, leader_epoch: int, unclean: bool, reason: str
    ) -> None:
        self._decided[partition, leader_epoch] = (unclean, reason)
        self._last_known.discard((partition, leader_epoch))

    def _choose_last_known(self, _: int, _controller: int, partition: str, leader_epoch: int) -> None:
        self._last_known.add((partition, leader_epoch))

    def committed(self, node: int, log: MetadataLog, high_watermark: int) -> None:
        """Take over what a leader's log has below its high watermark.

        Logs that have the same record of the same epoch in one place have the same before it, so the last one tells of all.
        """
        known = len(self._records)
        last = min(known, high_watermark) - 1
        if last >= 0 and not self._has_same_record(log, last):
            self._trace.publish(events.CommittedMetadataCut, node, last, known)
            if self.may_part:
                self.may_part = False
                self._begin_anew(log, high_watermark)
            return
        for epoch, record in log.read(known, high_watermark):
            self._records.append((epoch, record))
            self._take(record)

    def is_all_in(self, log: MetadataLog) -> bool:
        """Return whether a log has all that is committed."""
        last = len(self._records) - 1
        return log.end_offset > last and (last < 0 or self._has_same_record(log, last))

    def _begin_anew(self, log: MetadataLog, high_watermark: int) -> None:
        """Go by a leader that lacks what was committed, and tell of what is otherwise with it: no controller decided that."""
        before, image = self._image, log.replayed(ClusterImage(), high_watermark)
        self._records[log.start_offset :] = log.read(log.start_offset, high_watermark)
        self._image, self._snapshot_image = image, ClusterImage()
        for broker in sorted({*before.brokers, *image.brokers}):
            known, present = before.brokers.get(broker), image.brokers.get(broker)
            was_there, is_there = (
                known is not None and not known.fenced,
                present is not None and not present.fenced,
            )
            if is_there and present is not None and (not was_there or known != present):
                self._trace.emit(events.BrokerRegistered, broker, present.broker_epoch)
            elif was_there and not is_there:
                self._trace.emit(events.SessionExpired, broker, _REGISTRATION)
        for name, record in image.partitions.items():
            former = before.partitions.get(name)
            if former is None or former.assignment != record.assignment:
                self._trace.emit(
                    events.ReplicasAssigned, name, record.replicas, record.adding, record.removing
                )
            if former is None or _leader_and_isr(former) != _leader_and_isr(record):
                leadership = (name, record.leader, record.leader_epoch, record.isr)
                self._trace.emit(events.LeaderElected, self._controller, *leadership, False, METADATA_LOSS)

    def _has_same_record(self, log: MetadataLog, offset: int) -> bool:
        """Return whether a log has the committed record at an offset; one that begins right behind it has its epoch."""
        if offset >= log.start_offset:
            return log.read(offset, offset + 1)[0] == self._records[offset]
        return log.epoch_at(offset) == self._records[offset][0]

    def _snapshot_written(
        self, _: int, node: int, end_offset: int, epoch: int, records: tuple[MetadataRecord, ...]
    ) -> None:
        """Compare a snapshot with what is committed below its end."""
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

    def _take(self, record: MetadataRecord) -> None:
        image = self._image
        if isinstance(record, PartitionRecord):
            before = image.partitions.get(record.partition)
            image.apply(record)
            self._tell(before, record)
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

    def _tell(self, before: PartitionRecord | None, record: PartitionRecord) -> None:
        name, by_controller = record.partition, record.altered_by < 0
        leadership = (self._controller, name, record.leader, record.leader_epoch, record.isr)
        is_added = before is None and name not in self._created
        is_assigned = is_added or (before is not None and record.assignment != before.assignment)
        if is_assigned:
            self._trace.emit(events.ReplicasAssigned, name, record.replicas, record.adding, record.removing)
        if before is None or record.leader_epoch != before.leader_epoch:
            # What was committed once, lost, and is committed again is not decided anew.
            unclean, reason = self._decided.pop((name, record.leader_epoch), (False, METADATA_LOSS))
            self._trace.emit(events.LeaderElected, *leadership, unclean, reason)
            if (name, record.leader_epoch) in self._last_known:
                self._last_known.remove((name, record.leader_epoch))
                self._trace.publish(
                    events.LastKnownLeaderElected, self._controller, name, record.leader_epoch
                )
        elif is_assigned and record.isr == before.isr:
            pass  # No replica leads or is in sync that was not before.
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
