"""Reads the batches that real clients write, and keeps their bytes."""

import struct
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Final, NamedTuple

from kafka.record.util import calc_crc32c

from harrow.cluster_model.log.record_batch import NO_PRODUCER_ID, KeyedRecords, RecordBatch
from harrow.live_cluster.serve.contents.compacted_batches import ClientPayload, keyed_records, with_records
from harrow.live_cluster.serve.contents.record_identity import Identity, identities
from harrow.live_cluster.wire.stored_batches import encoded

_HEADER: Final = struct.Struct(">qiibIhiqqqhii")
"""The header of a batch of magic 2 (``DefaultRecordBatch.java``)."""
_BASE_OFFSET, _LEADER_EPOCH, _LEADER_EPOCH_AT = struct.Struct(">q"), struct.Struct(">i"), 12
_CHECKED_FROM: Final = 21
_MAGIC: Final = 2
_LENGTH_COUNTED_FROM: Final = 12
_COMPRESSION, _TRANSACTIONAL, _CONTROL = 0x07, 0x10, 0x20
_RECORD_BYTES_MIN: Final = 7
_COMPRESSED_RECORDS_MAX: Final = 200_000
"""How many records a compressed batch may have; an uncompressed one has no room for more."""


class RefusedBatchError(ValueError):
    """A broker refuses a batch; *error* is the name of Kafka's error."""

    error: str


class UnknownFormatError(RefusedBatchError):
    """A batch has a format before magic 2, which Kafka 4 does not accept either."""

    error = "UNSUPPORTED_FOR_MESSAGE_FORMAT"


class CorruptBatchError(RefusedBatchError):
    """A batch is torn or has a wrong checksum."""

    error = "CORRUPT_MESSAGE"


class LargeBatchError(RefusedBatchError):
    """A batch is larger than ``max.message.bytes`` of its topic."""

    error = "MESSAGE_SIZE_TOO_LARGE"


class InvalidRecordError(RefusedBatchError):
    """A client sent a transaction marker, or records that contradict the batch's header.

    See ``LogValidator.validateBatch`` and ``DefaultRecordBatch.iterator``.
    """

    error = "INVALID_RECORD"


class InternalTopicError(RefusedBatchError):
    """A batch is for a topic that only coordinators write."""

    error = "INVALID_TOPIC"


class ClientBatch(NamedTuple):
    """A batch of a client, whose records have no names yet."""

    data: bytes
    checksum: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records: int
    is_transactional: bool
    max_timestamp_us: int

    def named(self, prefix: str, identity: Identity | None = None, *, is_keyed: bool = False) -> RecordBatch:
        """Return the batch as the model has it, with the keys of its records if *is_keyed*.

        A record's value is its *identity*, if it has one. Else it is *prefix* and a number: the
        record's sequence number, if it has one.

        Raises:
            InvalidRecordError: The records contradict the header.

        """
        first = 0 if self.producer_id == NO_PRODUCER_ID else self.base_sequence
        values = [f"{prefix}.{number}" for number in range(first, first + self.records)]
        if identity is not None:
            values = [own or name for own, name in zip_longest(self._identities(identity), values)]
        return RecordBatch(
            tuple(values),
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            size_bytes=len(self.data),
            is_transactional=self.is_transactional,
            max_timestamp_us=self.max_timestamp_us,
            keyed=self._keyed(values) if is_keyed else None,
            payload=ClientPayload(self.data),
        )

    def _keyed(self, names: Sequence[str]) -> KeyedRecords:
        try:
            return keyed_records(self.data, names)
        except ValueError as error:
            raise InvalidRecordError(str(error)) from error

    def _identities(self, identity: Identity) -> Sequence[str | None]:
        try:
            own = identities(self.data, identity)
        except ValueError as error:
            raise InvalidRecordError(str(error)) from error
        if own and len(own) != self.records:
            raise InvalidRecordError("the batch has another number of records")
        return own


def read_batch(data: bytes, model_time: Callable[[int], int]) -> ClientBatch:
    """Read a client's batch.

    *model_time* converts the milliseconds of a client's clock to the model's time in microseconds.

    Raises:
        RefusedBatchError: A broker would refuse the batch.

    """
    if len(data) < _HEADER.size:
        raise CorruptBatchError("the batch has no whole header")
    (_, length, _, magic, checksum, attributes, last_delta, _, max_timestamp_ms, *rest) = _HEADER.unpack_from(
        data
    )
    producer_id, producer_epoch, base_sequence, count = rest
    if magic != _MAGIC:
        raise UnknownFormatError(f"the batch has magic {magic}")
    if length + _LENGTH_COUNTED_FROM != len(data):
        raise CorruptBatchError("the batch has a wrong length")
    if calc_crc32c(data[_CHECKED_FROM:]) != checksum:
        raise CorruptBatchError("the batch has a wrong checksum")
    room = (len(data) - _HEADER.size) // _RECORD_BYTES_MIN
    count_max = _COMPRESSED_RECORDS_MAX if attributes & _COMPRESSION else room
    if not 1 <= count == last_delta + 1 <= count_max:
        raise InvalidRecordError("the batch has a wrong number of records")
    if attributes & _CONTROL:
        raise InvalidRecordError("the batch is a transaction marker")
    if producer_id > NO_PRODUCER_ID and base_sequence < 0:
        raise InvalidRecordError("the batch has a producer id but no sequence number")
    return ClientBatch(
        *(data, checksum, producer_id, producer_epoch, base_sequence, count),
        is_transactional=bool(attributes & _TRANSACTIONAL),
        max_timestamp_us=0 if max_timestamp_ms < 0 else max(0, model_time(max_timestamp_ms)),
    )


def batch_bytes(batch: RecordBatch, created_ms: int = 0) -> bytes:
    """Return the bytes of a batch in a log: the client's, with its offset and leader epoch.

    Records that compaction has removed are missing. A transaction marker, which was created at
    *created_ms*, is as Kafka writes it. Records of internal topics are the model's own.
    """
    if batch.payload is None:
        return encoded(batch, created_ms)
    payload, keyed = batch.payload.data, batch.keyed
    if keyed is not None and keyed.is_compacted:
        payload = with_records(payload, keyed.offset_deltas)
    data = bytearray(payload)
    _BASE_OFFSET.pack_into(data, 0, batch.base_offset)
    _LEADER_EPOCH.pack_into(data, _LEADER_EPOCH_AT, batch.leader_epoch)
    return bytes(data)


class RecordNames:
    """Names the records of all clients.

    If the user says what identifies a record, that is its name. Else a record of an idempotent
    producer is named by its partition, producer id, producer epoch and sequence number, so it has
    the same name in a retried batch. Any other record is named by the request that brought it.
    """

    def __init__(self, identity: Identity | None = None) -> None:
        self.identity = identity
        # Some producers start again at sequence number 0 in the same epoch, as Java's up to 2.4
        # after UNKNOWN_PRODUCER_ID. Their first batch is then another one than before.
        self._first: dict[tuple[str, int, int], tuple[int, int]] = {}

    def named(
        self, partition: str, batch: ClientBatch, request: str, *, is_keyed: bool = False
    ) -> RecordBatch:
        """Return a batch with names; *request* names the request that brought it.

        With *is_keyed* the batch also has keys, which a compacted topic needs.
        """
        if batch.producer_id == NO_PRODUCER_ID:
            return batch.named(f"{partition}:{request}", self.identity, is_keyed=is_keyed)
        key = partition, batch.producer_id, batch.producer_epoch
        start, checksum = self._first.get(key, (0, batch.checksum))
        if batch.base_sequence == 0:
            start += checksum != batch.checksum
            self._first[key] = start, batch.checksum
        return batch.named(self.sequence_of(*key), self.identity, is_keyed=is_keyed)

    def sequence_of(self, partition: str, producer_id: int, producer_epoch: int) -> str:
        """Return the name of a producer's present sequence of records in a partition."""
        start, _ = self._first.get((partition, producer_id, producer_epoch), (0, 0))
        restarts = "'" * start
        return f"{partition}:{producer_id}.{producer_epoch}{restarts}"
