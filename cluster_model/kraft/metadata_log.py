"""Stores a node's metadata log and snapshots on its disk (``KafkaMetadataLog.scala``)."""

from harrow.cluster_model.kraft.cluster_image import ClusterImage
from harrow.cluster_model.kraft.records import MetadataRecord, size_in_bytes
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.log.leader_epoch_cache import LeaderEpochCache

OffsetAndEpoch = tuple[int, int]


@dataclass(slots=True, frozen=True)
class MetadataSnapshot:
    """The state after the records below ``end_offset``, itself as records (``Snapshots.java``).

    ``epoch`` is the epoch of the last record below ``end_offset``. ``taken_us`` is when the node
    that took the snapshot did so.
    """

    end_offset: int
    epoch: int
    taken_us: int
    records: tuple[MetadataRecord, ...]
    size_bytes: int

    @property
    def id(self) -> OffsetAndEpoch:
        return self.end_offset, self.epoch


class MetadataLog:
    """Records with the quorum epochs of the leaders that appended them, and a node's vote.

    ``records`` start at ``start_offset``. Snapshots cover older records. The first snapshot ends at
    ``start_offset`` or later. Everything is flushed before it is acknowledged
    (``KafkaRaftClient``), so a power loss loses nothing.
    """

    __slots__ = (
        "_size_bytes",
        "clean_shutdown_epoch",
        "epoch",
        "epochs",
        "leader",
        "records",
        "snapshots",
        "start_offset",
        "voted_for",
    )

    def __init__(self) -> None:
        self.start_offset = 0
        self.records: list[tuple[int, MetadataRecord]] = []
        self.epochs = LeaderEpochCache()
        # The oldest snapshot first.
        self.snapshots: list[MetadataSnapshot] = []
        # The size of the records, which is computed on demand.
        self._size_bytes: int | None = None
        # The content of the file quorum-state.
        self.epoch = 0
        self.leader = -1
        self.voted_for = -1
        # The broker epoch in the file .kafka_cleanshutdown, -1 if the file is missing.
        self.clean_shutdown_epoch = -1

    def dismantle(self) -> None:
        """Drop all records (`Cluster.dismantle`)."""
        self.records.clear()
        self.snapshots.clear()

    @property
    def end_offset(self) -> int:
        return self.start_offset + len(self.records)

    @property
    def last_epoch(self) -> int:
        """The epoch of the last record; of the latest snapshot if there is no record; otherwise 0.

        Modelled on ``lastFetchedEpoch``.
        """
        if self.records:
            return self.records[-1][0]
        return self.snapshots[-1].epoch if self.snapshots else 0

    @property
    def latest_snapshot(self) -> MetadataSnapshot | None:
        return self.snapshots[-1] if self.snapshots else None

    def append(self, epoch: int, record: MetadataRecord) -> None:
        self.epochs.assign(epoch, self.end_offset)
        self.records.append((epoch, record))
        self._size_bytes = None

    def read(self, offset: int, end_offset: int | None = None) -> tuple[tuple[int, MetadataRecord], ...]:
        """Return the records from *offset* on, which must not be below the log start."""
        assert offset >= self.start_offset
        end = None if end_offset is None else max(end_offset - self.start_offset, 0)
        return tuple(self.records[offset - self.start_offset : end])

    def epoch_at(self, offset: int) -> int | None:
        """Return the epoch of the record at an offset; None if only snapshots cover the record.

        An exception is the last record that a snapshot covers: it has the epoch of the snapshot.
        """
        if offset >= self.start_offset:
            return self.records[offset - self.start_offset][0]
        return next(
            (snapshot.epoch for snapshot in self.snapshots if snapshot.end_offset == offset + 1), None
        )

    def replay(self, image: ClusterImage, end_offset: int) -> ClusterImage:
        """Return *image* with the committed records below *end_offset* applied.

        If the image is empty or ends below the log start, begin with the latest snapshot instead
        (``KafkaRaftClient.updateListenersProgress``).
        """
        latest = self.latest_snapshot
        if latest is not None and (image.next_offset == 0 or image.next_offset < self.start_offset):
            image = ClusterImage.of_snapshot(latest.records, latest.end_offset)
        for _, record in self.read(image.next_offset, end_offset):
            image.apply(record)
        return image

    # Divergence from other logs

    def snapshot_for(self, fetch_offset: int, last_fetched_epoch: int) -> MetadataSnapshot | None:
        """Return the snapshot that a follower must fetch; None if this log has what it needs.

        A follower with an empty log gets a snapshot if there is one (``validateOffsetAndEpoch``,
        ``KafkaRaftClient.tryCompleteFetchRequest``).
        """
        if not self.snapshots:
            return None
        first = self.snapshots[0]
        is_before = (
            fetch_offset == 0
            or fetch_offset < self.start_offset
            or last_fetched_epoch < first.epoch
            or (fetch_offset == self.start_offset and last_fetched_epoch != first.epoch)
        )
        return self.snapshots[-1] if is_before else None

    def divergence(self, fetch_offset: int, last_fetched_epoch: int) -> OffsetAndEpoch | None:
        """Return the epoch and offset to which a follower must truncate; None if it need not."""
        if fetch_offset == 0 and last_fetched_epoch == 0:
            return None
        epoch, end_offset = self._end_offset_for(last_fetched_epoch)
        if epoch == last_fetched_epoch and end_offset >= fetch_offset:
            return None
        return max(epoch, 0), max(end_offset, 0)

    def _end_offset_for(self, epoch: int) -> tuple[int, int]:
        """Return the largest epoch up to *epoch*, and its end offset (``endOffsetForEpoch``)."""
        if not self.records and self.snapshots:
            return self.last_epoch, self.end_offset
        return self.epochs.end_offset_for(epoch, self.end_offset)

    def truncate_to_divergence(self, epoch: int, end_offset: int) -> int:
        """Truncate to where the leader's log diverges.

        Return that offset (``truncateToEndOffset``).
        """
        own_epoch, own_end = self._end_offset_for(epoch)
        offset = min(end_offset, own_end) if own_epoch == epoch else max(own_end, 0)
        self._truncate_to(offset)
        return offset

    def _truncate_to(self, offset: int) -> None:
        """Remove the records from *offset* on.

        If *offset* is below the log start, records that a snapshot covers would go, although these
        are committed. There, Kafka's node stops with an error. Here the log becomes empty.
        """
        if offset < self.start_offset:
            self.start_offset = 0
            self.records = []
            self.snapshots = []
        else:
            del self.records[offset - self.start_offset :]
            self.snapshots = [snapshot for snapshot in self.snapshots if snapshot.end_offset <= offset]
        self.epochs.truncate_from_end(offset)
        self._size_bytes = None

    # Snapshots

    def add_snapshot(self, snapshot: MetadataSnapshot) -> bool:
        """Add a snapshot that this node took. Return whether it is new (``createNewSnapshot``)."""
        latest = self.latest_snapshot
        if snapshot.end_offset < self.start_offset or (latest is not None and latest.id >= snapshot.id):
            return False
        self.snapshots.append(snapshot)
        return True

    def start_from_snapshot(self, snapshot: MetadataSnapshot) -> None:
        """Replace the whole log by a leader's snapshot (``truncateToLatestSnapshot``)."""
        self.snapshots = [snapshot]
        self.records = []
        self.epochs = LeaderEpochCache()
        self.start_offset = snapshot.end_offset
        self._size_bytes = None

    def clean(self, retention_bytes: int, retention_us: int, now_us: int) -> bool:
        """Delete old snapshots, and the log below the oldest remaining one (``maybeClean``).

        Return whether the log start has moved.
        """
        before = self.start_offset
        while len(self.snapshots) > 1 and self._is_too_large(retention_bytes):
            self._delete_first_snapshot()
        while (
            len(self.snapshots) > 1
            and retention_us >= 0
            and now_us - self.snapshots[0].taken_us > retention_us
        ):
            self._delete_first_snapshot()
        return self.start_offset > before

    def _is_too_large(self, retention_bytes: int) -> bool:
        if retention_bytes < 0:
            return False
        if self._size_bytes is None:
            self._size_bytes = sum(size_in_bytes(record) for _, record in self.records)
        return self._size_bytes + sum(snapshot.size_bytes for snapshot in self.snapshots) > retention_bytes

    def _delete_first_snapshot(self) -> None:
        """Delete the oldest snapshot, and records below the next one (``deleteBeforeSnapshot``)."""
        del self.snapshots[0]
        start_offset = self.snapshots[0].end_offset
        del self.records[: start_offset - self.start_offset]
        self.start_offset = start_offset
        self._size_bytes = None
        if self.records:
            self.epochs.truncate_from_start(start_offset)
        else:
            self.epochs = LeaderEpochCache()
