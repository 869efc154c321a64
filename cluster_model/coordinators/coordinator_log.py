"""Encodes the records that coordinators write to internal topics and load after an election."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from json.encoder import encode_basestring_ascii
from typing import Any, Final, NamedTuple

from harrow.cluster_model.broker.replica_manager import ReplicaManager
from harrow.cluster_model.log.record_batch import (
    NO_PRODUCER_ID,
    RECORD_OVERHEAD_BYTES,
    KeyedRecords,
    RecordBatch,
)
from harrow.cluster_model.sim.host import Host

_DECODER: Final = json.JSONDecoder()

ALL: Final = -1
"""The ``acks`` of a coordinator's writes: all in-sync replicas.

Kafka has this value as ``offsets.commit.required.acks`` and as
``TransactionLog.EnforcedRequiredAcks``.
"""

NO_EPOCH: Final = -1


class CoordinatorRecord(NamedTuple):
    """A record of an internal topic: its key and its value, which is None in a tombstone."""

    key: str
    value: Mapping[str, Any] | None


class CoordinatorLog:
    """Appends to and reads the local partitions of an internal topic, for its coordinator."""

    def __init__(self, topic: str, host: Host, replicas: ReplicaManager) -> None:
        self._topic = topic
        self._host = host
        self._replicas = replicas

    def append(
        self,
        partition: int,
        records: Sequence[CoordinatorRecord],
        timeout_us: int,
        on_complete: Callable[[str], None],
        *,
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = NO_EPOCH,
    ) -> None:
        """Append records; with a *producer_id* they belong to that producer's transaction.

        *on_complete* is called once all in-sync replicas have the records, or after the timeout. It
        gets an error or `errors.NONE`. After a timeout the records stay in the log.
        """
        name = f"{self._topic}-{partition}"
        values = tuple(_record_text(record) for record in records)
        count = len(records)
        batch = RecordBatch(
            values,
            producer_id,
            producer_epoch,
            size_bytes=sum(len(value) + RECORD_OVERHEAD_BYTES for value in values),
            is_transactional=producer_id != NO_PRODUCER_ID,
            max_timestamp_us=self._host.clock.now_us,
            keyed=KeyedRecords(
                tuple(record.key for record in records),
                tuple(record.value is None for record in records),
                tuple(range(count)),
                count,
            ),
        )
        self._replicas.append_records(
            {name: batch}, ALL, timeout_us, lambda acks: on_complete(acks[name].error)
        )

    def when_committed(self, partition: int, timeout_us: int, on_complete: Callable[[str], None]) -> None:
        """Call *on_complete* once the partition is committed, or with an error after a timeout."""
        self._replicas.when_committed(f"{self._topic}-{partition}", timeout_us, on_complete)

    def batches(self, partition: int) -> Iterator[RecordBatch]:
        """Yield the batches that a new coordinator loads: from the log start to the log end."""
        replica = self._replicas.partitions.get(f"{self._topic}-{partition}")
        if replica is not None:
            start = replica.log.log_start_offset
            yield from (batch for batch in replica.log.batches if batch.next_offset > start)


def records_of(batch: RecordBatch) -> Iterator[CoordinatorRecord]:
    """Yield the records of a batch in an internal topic. A transaction marker has no records."""
    if batch.keyed is None:
        return
    for key, value, is_tombstone in zip(batch.keyed.keys, batch.values, batch.keyed.tombstones, strict=True):
        assert key is not None, "a coordinator's record without a key"
        yield CoordinatorRecord(key, None if is_tombstone else record_value(value, key))


def record_value(text: str, key: str) -> Any:
    """Return the value from a record's text, which is the key, a space, and the value as JSON."""
    return _DECODER.raw_decode(text, len(key) + 1)[0]


def _record_text(record: CoordinatorRecord) -> str:
    """Return a record as text. It begins with the key, so that traces are readable."""
    return f"{record.key} {_to_json(record.value)}"


def _to_json(value: object) -> str:
    """Return JSON without spaces.

    Records are small. For each of them, `json.JSONEncoder` would create another encoder, which
    takes several times as long in compiled code. To ask whether an object is a ``Mapping`` would
    take longer than the rest.
    """
    if isinstance(value, str):
        return encode_basestring_ascii(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, dict):
        return f"{{{','.join([f'{encode_basestring_ascii(key)}:{_to_json(item)}' for key, item in value.items()])}}}"
    assert isinstance(value, list | tuple)
    return f"[{','.join([_to_json(item) for item in value])}]"
