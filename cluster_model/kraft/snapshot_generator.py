"""Takes snapshots of a node's metadata, and deletes log records that a snapshot covers.

Modelled on ``SnapshotGenerator.java`` and ``KafkaMetadataLog.maybeClean``.
"""

from collections.abc import Callable
from typing import Final

from harrow.cluster_model.events import (
    MetadataLogStarted,
    MetadataSnapshotTaken,
    MetadataSnapshotWritten,
)
from harrow.cluster_model.kraft.cluster_image import ClusterImage
from harrow.cluster_model.kraft.metadata_log import MetadataLog, MetadataSnapshot
from harrow.cluster_model.kraft.records import size_in_bytes
from harrow.cluster_model.settings import BrokerConfig
from harrow.cluster_model.sim.host import Host
from harrow.cluster_model.sim.periodic_task import PeriodicTask
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND

CLEANING_INTERVAL_US: Final = 60 * US_PER_SECOND
"""How often a node checks for old snapshots (``RaftMetadataLogCleanerManager``)."""


class SnapshotGenerator:
    """Takes the snapshots of one incarnation of a node: a controller or a broker.

    *image* returns the state after all committed records that the node has applied.
    """

    def __init__(
        self,
        node: int,
        host: Host,
        log: MetadataLog,
        config: BrokerConfig,
        image: Callable[[], ClusterImage],
    ) -> None:
        self._node = node
        self._host = host
        self._log = log
        self._image = image
        self._bytes_max = config.metadata_snapshot_bytes
        self._interval_us = config.metadata_snapshot_interval_us
        self._retention_bytes = config.metadata_retention_bytes
        self._retention_us = config.metadata_retention_us
        # The offset up to which records were counted; None before the node has replayed its own
        # log.
        self._counted: int | None = None
        self._bytes = 0
        self._since_us = 0
        self._timer_is_set = False
        self._cleaner = PeriodicTask(host, CLEANING_INTERVAL_US, self._clean)

    def start(self) -> None:
        self._since_us = self._host.clock.now_us
        self._cleaner.start()
        if len(self._log.snapshots) > 1:
            self._cleaner.request()
        self._await_interval()

    def _await_interval(self) -> None:
        """Check again when the interval between snapshots ends.

        In Kafka the next NoOpRecord after that time causes the snapshot.
        """
        if self._interval_us and not self._timer_is_set:
            self._timer_is_set = True
            self._host.set_timer(
                self._since_us + self._interval_us - self._host.clock.now_us, self._interval_over
            )

    def _interval_over(self, _: None) -> None:
        self._timer_is_set = False
        if self._is_due() and self._has_news():
            self._take()
        if not self._is_due():
            self._await_interval()

    def _is_due(self) -> bool:
        return 0 < self._interval_us <= self._host.clock.now_us - self._since_us

    def _has_news(self) -> bool:
        latest = self._log.latest_snapshot
        return self._counted is not None and self._counted > (0 if latest is None else latest.end_offset)

    def on_commit(self, end_offset: int) -> None:
        """Count the bytes of new records, and take a snapshot after enough bytes or enough time.

        Records that the node had when it started, or that came in a snapshot, do not count
        (``publishSnapshot``).
        """
        counted, self._counted = self._counted, end_offset
        if counted is None or counted < self._log.start_offset:
            self._reset()
            return
        self._bytes += sum(size_in_bytes(record) for _, record in self._log.read(counted, end_offset))
        if self._bytes >= self._bytes_max or self._is_due():
            self._take()

    def _reset(self) -> None:
        self._bytes = 0
        self._since_us = self._host.clock.now_us
        self._await_interval()

    def _take(self) -> None:
        assert self._counted is not None
        self._reset()
        log, end_offset = self._log, self._counted
        epoch = log.epoch_at(end_offset - 1)
        assert epoch is not None
        records = self._image().write()
        snapshot = MetadataSnapshot(
            end_offset,
            epoch,
            self._host.clock.now_us,
            records,
            sum(map(size_in_bytes, records)),
        )
        if not log.add_snapshot(snapshot):
            return
        self._host.emit(MetadataSnapshotTaken, self._node, end_offset, epoch)
        self._host.publish(MetadataSnapshotWritten, self._node, end_offset, epoch, records)
        if len(log.snapshots) > 1:
            self._cleaner.request()

    def _clean(self) -> bool:
        log = self._log
        if log.clean(self._retention_bytes, self._retention_us, self._host.clock.now_us):
            self._host.emit(MetadataLogStarted, self._node, log.start_offset, log.end_offset)
        return len(log.snapshots) > 1
