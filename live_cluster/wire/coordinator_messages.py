"""Formats of subscriptions, of assignments and of the records in the coordinators' logs."""

import struct
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from harrow.cluster_model.coordinators.transactions import transaction_metadata as transactions

_SHORT: Final = struct.Struct(">h")
_INT: Final = struct.Struct(">i")
_LONG: Final = struct.Struct(">q")
_OFFSET_KEYS: Final = (0, 1)
_GROUP_KEY: Final = 2
"""The versions of keys, which tell offsets (``OffsetCommitKey``) from groups
(``GroupMetadataKey``)."""
_GROUP_VALUE_MAX: Final = 3
"""The last version of ``GroupMetadataValue`` that is not flexible; brokers up to 4.4 write it."""
_WITH_REBALANCE_TIMEOUT, _WITH_TIMESTAMP, _WITH_INSTANCE = 1, 2, 3
_STATE_HEADER: Final = struct.Struct(">hqhib")
"""The first fields of every version of ``TransactionLogValue``: version, producer id and epoch,
timeout, state."""
_STATES: Final = (
    transactions.EMPTY,
    transactions.ONGOING,
    transactions.PREPARE_COMMIT,
    transactions.PREPARE_ABORT,
    transactions.COMPLETE_COMMIT,
    transactions.COMPLETE_ABORT,
    transactions.DEAD,
    transactions.PREPARE_EPOCH_FENCE,
)
"""The states of transactions, by their numbers (``TransactionState.java``)."""
_NO_DATA: Final = -1
_UNSET: Final = -1
_FIRST_FLEXIBLE: Final = 1


def subscription(topics: Sequence[str]) -> bytes:
    """Return a member's subscription (``ConsumerProtocolSubscription``, version 0)."""
    names = [topic.encode() for topic in topics]
    return b"".join(
        (
            _SHORT.pack(0),
            _INT.pack(len(names)),
            *(_SHORT.pack(len(name)) + name for name in names),
            _INT.pack(_NO_DATA),
        )
    )


def subscribed_topics(metadata: bytes) -> list[str]:
    """Return the topics of a `subscription`."""
    data = bytes(metadata)
    (count,), position = _INT.unpack_from(data, _SHORT.size), _SHORT.size + _INT.size
    topics = []
    for _ in range(count):
        (length,) = _SHORT.unpack_from(data, position)
        position += _SHORT.size + length
        topics.append(data[position - length : position].decode())
    return topics


def client_assignment(data: bytes) -> list[str]:
    """Return the partitions of an assignment that a client's assignor made.

    It is a ``ConsumerProtocolAssignment`` of any version.
    """
    (count,), position = _INT.unpack_from(data, _SHORT.size), _SHORT.size + _INT.size
    partitions = []
    for _ in range(count):
        (length,) = _SHORT.unpack_from(data, position)
        position += _SHORT.size + length
        topic = data[position - length : position].decode()
        (numbers,) = _INT.unpack_from(data, position)
        position += _INT.size
        for _ in range(numbers):
            (number,) = _INT.unpack_from(data, position)
            position += _INT.size
            partitions.append(f"{topic}-{number}")
    return partitions


def assignment(partitions: Sequence[str]) -> bytes:
    """Return an assignment in a format of harrow's own: coordinators treat it as opaque bytes."""
    return ",".join(partitions).encode()


def assigned_partitions(data: bytes | None) -> list[str]:
    """Return the partitions of an `assignment`."""
    text = bytes(data or b"").decode()
    return text.split(",") if text else []


class TransactionRecord(NamedTuple):
    """The state of a transactional id in its coordinator's log; a tombstone has no producer."""

    transactional_id: str
    state: str
    producer_id: int
    producer_epoch: int
    partitions: tuple[str, ...]


def transaction_records(batch: Any) -> Iterator[TransactionRecord]:
    """Yield the records in a batch of ``__transaction_state`` that kafka-python has read."""
    for record in batch:
        (length,) = _SHORT.unpack_from(record.key, _SHORT.size)
        start = 2 * _SHORT.size
        name = bytes(record.key[start : start + length]).decode()
        if record.value is None:
            yield TransactionRecord(name, transactions.DEAD, _UNSET, _UNSET, ())
            continue
        value = bytes(record.value)
        version, producer_id, epoch, _, state = _STATE_HEADER.unpack_from(value)
        read = _compact_partitions if version >= _FIRST_FLEXIBLE else _partitions
        partitions = tuple(read(value, _STATE_HEADER.size))
        yield TransactionRecord(name, _STATES[state], producer_id, epoch, partitions)


def _partitions(value: bytes, position: int) -> Iterator[str]:
    """Yield the partitions of a transaction in version 0."""
    (topics,) = _INT.unpack_from(value, position)
    position += _INT.size
    for _ in range(topics):
        (length,) = _SHORT.unpack_from(value, position)
        position += _SHORT.size + length
        topic = value[position - length : position].decode()
        (count,) = _INT.unpack_from(value, position)
        position += _INT.size
        for number in struct.unpack_from(f">{count}i", value, position):
            yield f"{topic}-{number}"
        position += count * _INT.size


def _compact_partitions(value: bytes, position: int) -> Iterator[str]:
    """Yield the partitions of a transaction since version 1, where each length is stored plus one.

    Each topic ends with tagged fields. There are none yet, so they take one byte.
    """
    topics, position = _varint(value, position)
    for _ in range(topics - 1):
        length, position = _varint(value, position)
        position += length - 1
        topic = value[position - length + 1 : position].decode()
        count, position = _varint(value, position)
        for number in struct.unpack_from(f">{count - 1}i", value, position):
            yield f"{topic}-{number}"
        position += (count - 1) * _INT.size + 1


def _varint(value: bytes, position: int) -> tuple[int, int]:
    """Return an unsigned number of variable length, and the position after it."""
    number = shift = 0
    while True:
        byte = value[position]
        position += 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return number, position


class GroupRecord(NamedTuple):
    """A record of a group: a generation with its members, or a committed offset."""

    group: str
    generation: int | None = None
    members: tuple[str, ...] = ()
    partition: str | None = None
    offset: int = _UNSET


def group_records(batch: Any) -> Iterator[GroupRecord]:
    """Yield the records in a batch of ``__consumer_offsets`` that kafka-python has read.

    Tombstones are left out.
    """
    for record in batch:
        key = _FieldReader(bytes(record.key))
        key_version, group = key.short(), key.text()
        if record.value is None or key_version not in (*_OFFSET_KEYS, _GROUP_KEY):
            continue
        value = _FieldReader(bytes(record.value))
        version = value.short()
        if key_version in _OFFSET_KEYS:
            topic, number = key.text(), key.integer()
            yield GroupRecord(group, partition=f"{topic}-{number}", offset=value.long())
        elif version <= _GROUP_VALUE_MAX:
            value.text()
            generation = value.integer()
            value.text()
            value.text()
            if version >= _WITH_TIMESTAMP:
                value.long()
            yield GroupRecord(group, generation, tuple(_members(value, version)))


def _members(value: "_FieldReader", version: int) -> Iterator[str]:
    for _ in range(value.integer()):
        yield value.text()
        if version >= _WITH_INSTANCE:
            value.text()
        value.text()
        value.text()
        if version >= _WITH_REBALANCE_TIMEOUT:
            value.integer()
        value.integer()
        for _ in ("subscription", "assignment"):
            value.skip(value.integer())


class _FieldReader:
    """Reads the fields of a record in order."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def short(self) -> int:
        return self._number(_SHORT)

    def integer(self) -> int:
        return self._number(_INT)

    def long(self) -> int:
        return self._number(_LONG)

    def text(self) -> str:
        """Return a string, empty for null."""
        length = max(0, self.short())
        self.skip(length)
        return self._data[self._position - length : self._position].decode()

    def skip(self, size: int) -> None:
        self._position += size

    def _number(self, kind: struct.Struct) -> int:
        number: int
        (number,) = kind.unpack_from(self._data, self._position)
        self._position += kind.size
        return number
