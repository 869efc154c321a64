"""What members of groups tell each other through the coordinator, and what a coordinator of transactions writes into its log."""

import struct
from collections.abc import Sequence
from typing import Any, Final

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


def transaction_states(batch: Any) -> dict[str, list[object]]:
    """Return state, producer id and producer epoch of the transactional ids that a batch of kafka-python is about."""
    found: dict[str, list[object]] = {}
    for record in batch:
        (length,) = _SHORT.unpack_from(record.key, _SHORT.size)
        start = 2 * _SHORT.size
        name = bytes(record.key[start : start + length]).decode()
        if record.value is None:
            found[name] = [transactions.DEAD]
        else:
            _, producer_id, epoch, _, state = _STATE.unpack_from(record.value)
            found[name] = [_STATES[state], producer_id, epoch]
    return found
