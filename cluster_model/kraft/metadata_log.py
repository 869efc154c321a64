"""The metadata log of one node and its snapshots, as they stand on its disk (``KafkaMetadataLog.scala``)."""

from dataclasses import dataclass

from harrow.cluster_model.kraft.cluster_image import ClusterImage
from harrow.cluster_model.kraft.records import MetadataRecord, size_in_bytes
from harrow.cluster_model.log.leader_epoch_cache import LeaderEpochCache

OffsetAndEpoch = tuple[int, int]


@dataclass(slots=True, frozen=True)
class MetadataSnapshot:
    """The records that amount to what the log says below ``end_offset`` (``Snapshots.java``).

    ``epoch`` is that of the last record below it, ``taken_us`` when the first node had taken over that record.
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
    """Records with the epochs of the quorum in which they were appended, who led last, and who got this node's vote.

    ``records`` begin at ``start_offset``; what was before that is in the snapshots, of which the first ends there or later.
    Everything is flushed before it is acknowledged (``KafkaRaftClient``), so a power loss takes nothing.
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
        # The oldest first.
        self.snapshots: list[MetadataSnapshot] = []
        # Of the records, counted from the first time that somebody asks.
        self._size_bytes: int | None = None
        # The file quorum-state.
        self.epoch = 0
        self.leader = -1
        self.voted_for = -1
        # The broker epoch in the file .kafka_cleanshutdown, -1 where it is not there.
        self.clean_shutdown_epoch = -1

    @property
    def end_offset(self) -> int:
        return self.start_offset + len(self.records)

    @property
    def last_epoch(self) -> int:
        """The epoch of the last record, in the latest snapshot if the log is empty; 0 where there is neither (``lastFetchedEpoch``)."""
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
        """Return the records from an offset on, which the log has to have."""
        assert offset >= self.start_offset
        end = None if end_offset is None else max(end_offset - self.start_offset, 0)
        return tuple(self.records[offset - self.start_offset : end])

    def epoch_at(self, offset: int) -> int | None:
        """Return the epoch of the record at an offset, or of the last one in a snapshot that ends right behind it; None of an older one."""
        if offset >= self.start_offset:
            return self.records[offset - self.start_offset][0]
        return next(
            (snapshot.epoch for snapshot in self.snapshots if snapshot.end_offset == offset + 1), None
        )

    def replayed(self, image: ClusterImage, end_offset: int) -> ClusterImage:
        """Return an image that has taken over the records below an offset, which are committed.

        Who has taken over nothing yet begins with the latest snapshot, as does who has not got as far as the log begins
        (``KafkaRaftClient.updateListenersProgress``).
        """
        latest = self.latest_snapshot
        if latest is not None and (image.next_offset == 0 or image.next_offset < self.start_offset):
            image = ClusterImage.of_snapshot(latest.records, latest.end_offset)
        for _, record in self.read(image.next_offset, end_offset):
            image.apply(record)
        return image

    # Where another log parts from this one

    def snapshot_for(self, fetch_offset: int, last_fetched_epoch: int) -> MetadataSnapshot | None:
        """Return the snapshot that a follower has to go on from, None where this log has what it needs (``validateOffsetAndEpoch``).

        Who has nothing gets one where there is any (``KafkaRaftClient.tryCompleteFetchRequest``).
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
        """Return the epoch and its end offset to which a follower has to go back, None where its log is the beginning of this."""
        if fetch_offset == 0 and last_fetched_epoch == 0:
            return None
        epoch, end_offset = self._end_offset_for(last_fetched_epoch)
        if epoch == last_fetched_epoch and end_offset >= fetch_offset:
            return None
        return max(epoch, 0), max(end_offset, 0)

    def _end_offset_for(self, epoch: int) -> tuple[int, int]:
        """Return the largest epoch that is not above another one, and where it ends (``endOffsetForEpoch``)."""
        if not self.records and self.snapshots:
            return self.last_epoch, self.end_offset
        return self.epochs.end_offset_for(epoch, self.end_offset)

    def truncate_to_divergence(self, epoch: int, end_offset: int) -> int:
        """Go back to where this log and the leader's part, and return that offset (``truncateToEndOffset``)."""
        own_epoch, own_end = self._end_offset_for(epoch)
        offset = min(end_offset, own_end) if own_epoch == epoch else max(own_end, 0)
        self._truncate_to(offset)
        return offset

    def _truncate_to(self, offset: int) -> None:
        """Cut the log off. Kafka's node ends where that is below a snapshot, which only what is committed is in; here it starts anew."""
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
        """Keep a snapshot that this node has taken; return whether it is a new one (``createNewSnapshot``)."""
        latest = self.latest_snapshot
        if snapshot.end_offset < self.start_offset or (latest is not None and latest.id >= snapshot.id):
            return False
        self.snapshots.append(snapshot)
        return True

    def start_from_snapshot(self, snapshot: MetadataSnapshot) -> None:
        """Begin anew with a leader's snapshot (``truncateToLatestSnapshot``): nothing before it is needed any more, and nothing behind it known."""
        self.snapshots = [snapshot]
        self.records = []
        self.epochs = LeaderEpochCache()
        self.start_offset = snapshot.end_offset
        self._size_bytes = None

    def clean(self, retention_bytes: int, retention_us: int, now_us: int) -> bool:
        """Delete old snapshots, and the log before the oldest that stays; return whether there was any (``maybeClean``)."""
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
        """Delete a snapshot, and whatever the next one has in it (``deleteBeforeSnapshot``)."""
        del self.snapshots[0]
        start_offset = self.snapshots[0].end_offset
        del self.records[: start_offset - self.start_offset]
        self.start_offset = start_offset
        self._size_bytes = None
        if self.records:
            self.epochs.truncate_from_start(start_offset)
        else:
            self.epochs = LeaderEpochCache()
