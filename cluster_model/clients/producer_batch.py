"""Defines a producer's batch of records, and the state of its delivery (``ProducerBatch.java``)."""

from dataclasses import field

from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.log.record_batch import NO_PRODUCER_ID, NO_SEQUENCE, KeyedRecords, RecordBatch
from harrow.cluster_model.protocol import NO_EPOCH


@dataclass(slots=True, eq=False)
class ProducerBatch:
    """Records for one partition that are sent together.

    ``leader_epoch`` is the epoch that the producer knew of at the last attempt. ``maybe_appended``
    becomes true after the first attempt whose outcome is unknown. ``sequence_was_reset`` says
    whether the batch got another sequence number, and has not been sent with it yet.
    """

    partition: str
    created_us: int
    max_timestamp_us: int = 0
    values: list[str] = field(default_factory=list)
    keys: dict[int, tuple[str, bool]] = field(default_factory=dict)
    """By the index of a record with a key: the key, and whether the record is a tombstone."""
    size_bytes: int = 0
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = 0
    base_sequence: int = NO_SEQUENCE
    attempts: int = 0
    leader_epoch: int = NO_EPOCH
    retry_at_us: int = 0
    in_retry: bool = False
    is_done: bool = False
    maybe_appended: bool = False
    sequence_was_reset: bool = False
    is_transactional: bool = False

    def has_sequence(self) -> bool:
        return self.base_sequence != NO_SEQUENCE

    @property
    def last_sequence(self) -> int:
        return self.base_sequence + len(self.values) - 1

    def record_batch(self, skew_us: int = 0) -> RecordBatch:
        """Return the batch as a request carries it, with timestamps of a clock *skew_us* ahead."""
        has_producer = self.producer_id != NO_PRODUCER_ID
        return RecordBatch(
            tuple(self.values),
            self.producer_id,
            self.producer_epoch if has_producer else -1,
            self.base_sequence,
            size_bytes=self.size_bytes,
            is_transactional=self.is_transactional,
            max_timestamp_us=self.max_timestamp_us + skew_us,
            keyed=self._keyed_records() if self.keys else None,
        )

    def on_clock_step(self, by_us: int) -> None:
        """Shift the batch's times after the clock jumped."""
        self.created_us -= by_us
        self.retry_at_us -= by_us
        self.max_timestamp_us -= by_us

    def _keyed_records(self) -> KeyedRecords:
        indexes = range(len(self.values))
        keyed = [self.keys.get(index, (None, False)) for index in indexes]
        keys = tuple([key for key, _ in keyed])
        tombstones = tuple([is_tombstone for _, is_tombstone in keyed])
        return KeyedRecords(keys, tombstones, tuple(indexes), len(indexes))
