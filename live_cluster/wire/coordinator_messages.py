"""What members of groups tell each other through the coordinator, and what a coordinator of transactions writes into its log."""

import struct
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from harrow.cluster_model.coordinators.transactions import transaction_metadata as transactions

_SHORT: Final = struct.Struct(">h")
_INT: Final = struct.Struct(">i")
_STATE: Final = struct.Struct(">hqhib")
"""How a ``TransactionLogValue`` begins, in all of its versions: version, producer id and epoch, timeout, state."""
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
"""By their numbers (``TransactionState.java``)."""
_NO_DATA: Final = -1
_NOBODY: Final = -1
_FIRST_FLEXIBLE: Final = 1


def subscription(topics: Sequence[str]) -> bytes:
    """Return what a member tells who assigns (``ConsumerProtocolSubscription``, version 0)."""
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
    """Return the topics of such a subscription."""
    data = bytes(metadata)
    (count,), place = _INT.unpack_from(data, _SHORT.size), _SHORT.size + _INT.size
    topics = []
    for _ in range(count):
        (length,) = _SHORT.unpack_from(data, place)
        place += _SHORT.size + length
        topics.append(data[place - length : place].decode())
    return topics


def assignment(partitions: Sequence[str]) -> bytes:
    """Return partitions as a leader may assign them: a coordinator does not look into that."""
    return ",".join(partitions).encode()


def assigned_partitions(data: bytes | None) -> list[str]:
    """Return the partitions of such an assignment."""
    text = bytes(data or b"").decode()
    return text.split(",") if text else []


class TransactionRecord(NamedTuple):
    """What a coordinator has written of a transactional id; of one that is forgotten there is no producer."""

    transactional_id: str
    state: str
    producer_id: int
    producer_epoch: int
    partitions: tuple[str, ...]


def transaction_records(batch: Any) -> Iterator[TransactionRecord]:
    """Yield the records of a batch of kafka-python out of ``__transaction_state``."""
    for record in batch:
        (length,) = _SHORT.unpack_from(record.key, _SHORT.size)
        start = 2 * _SHORT.size
        name = bytes(record.key[start : start + length]).decode()
        if record.value is None:
            yield TransactionRecord(name, transactions.DEAD, _NOBODY, _NOBODY, ())
            continue
        value = bytes(record.value)
        version, producer_id, epoch, _, state = _STATE.unpack_from(value)
        read = _compact_partitions if version >= _FIRST_FLEXIBLE else _partitions
        partitions = tuple(read(value, _STATE.size))
        yield TransactionRecord(name, _STATES[state], producer_id, epoch, partitions)


def _partitions(value: bytes, place: int) -> Iterator[str]:
    """Yield the partitions of a transaction as they stand up to version 0; there may be none at all."""
    (topics,) = _INT.unpack_from(value, place)
    place += _INT.size
    for _ in range(topics):
        (length,) = _SHORT.unpack_from(value, place)
        place += _SHORT.size + length
        topic = value[place - length : place].decode()
        (count,) = _INT.unpack_from(value, place)
        place += _INT.size
        for number in struct.unpack_from(f">{count}i", value, place):
            yield f"{topic}-{number}"
        place += count * _INT.size


def _compact_partitions(value: bytes, place: int) -> Iterator[str]:
    """Yield them as they stand since version 1: lengths are one more than they are, and behind each topic are tagged fields, of none."""
    topics, place = _varint(value, place)
    for _ in range(topics - 1):
        length, place = _varint(value, place)
        place += length - 1
        topic = value[place - length + 1 : place].decode()
        count, place = _varint(value, place)
        for number in struct.unpack_from(f">{count - 1}i", value, place):
            yield f"{topic}-{number}"
        place += (count - 1) * _INT.size + 1


def _varint(value: bytes, place: int) -> tuple[int, int]:
    """Return an unsigned number of as many bytes as it takes, and the place behind it."""
    number = shift = 0
    while True:
        byte = value[place]
        place += 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return number, place
