"""The metadata log of one node, as it stands on its disk (``KafkaMetadataLog.scala``)."""

from harrow.cluster_model.kraft.records import MetadataRecord
from harrow.cluster_model.log.leader_epoch_cache import LeaderEpochCache


class MetadataLog:
    """Records with the epochs of the quorum in which they were appended, who led last, and who got this node's vote.

    Everything is flushed before it is acknowledged (``KafkaRaftClient``), so a power loss takes nothing.
    """

    __slots__ = ("clean_shutdown_epoch", "epoch", "epochs", "leader", "records", "voted_for")

    def __init__(self) -> None:
        self.records: list[tuple[int, MetadataRecord]] = []
        self.epochs = LeaderEpochCache()
        # The file quorum-state.
        self.epoch = 0
        self.leader = -1
        self.voted_for = -1
        # The broker epoch in the file .kafka_cleanshutdown, -1 where it is not there.
        self.clean_shutdown_epoch = -1

    @property
    def end_offset(self) -> int:
        return len(self.records)

    @property
    def last_epoch(self) -> int:
        """The epoch of the last record, 0 where there is none."""
        return self.records[-1][0] if self.records else 0

    def append(self, epoch: int, record: MetadataRecord) -> None:
        self.epochs.assign(epoch, len(self.records))
        self.records.append((epoch, record))

    def read(self, offset: int) -> tuple[tuple[int, MetadataRecord], ...]:
        return tuple(self.records[offset:])

    def divergence(self, fetch_offset: int, last_fetched_epoch: int) -> tuple[int, int] | None:
        """Return the epoch and its end offset to which a follower has to go back, None where its log is the beginning of this."""
        if fetch_offset == 0 and last_fetched_epoch == 0:
            return None
        epoch, end_offset = self.epochs.end_offset_for(last_fetched_epoch, len(self.records))
        if epoch == last_fetched_epoch and end_offset >= fetch_offset:
            return None
        return max(epoch, 0), max(end_offset, 0)

    def truncate_to_divergence(self, epoch: int, end_offset: int) -> int:
        """Go back to where this log and the leader's part, and return that offset (``truncateToEndOffset``)."""
        own_epoch, own_end = self.epochs.end_offset_for(epoch, len(self.records))
        offset = min(end_offset, own_end) if own_epoch == epoch else max(own_end, 0)
        del self.records[offset:]
        self.epochs.truncate_from_end(offset)
        return offset
