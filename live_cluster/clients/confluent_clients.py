"""Clients of confluent-kafka, which uses librdkafka (a `ClientLibrary`)."""

import contextlib
import math
import struct
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)

from harrow.cluster_model.history import FAIL, INFO, OK
from harrow.live_cluster.clients.client_library import MembershipError, OnOutcome, Poll, TransactionCallError

_NEVER_SENT: Final = frozenset({KafkaError.MSG_SIZE_TOO_LARGE, KafkaError._PURGE_QUEUE})  # noqa: SLF001 - its public name
"""Errors after which a record is surely in no log. After any other error, an earlier attempt may
have succeeded."""
_COMMITTED_TIMEOUT_S: Final = 5.0
_SEEK_TIMEOUT_S: Final = 10.0
_SEEK_INTERVAL_S: Final = 0.05
_NOTHING: Final = -1
_METADATA_MARK: Final = b"CGMDv2:"
_GENERATION: Final = struct.Struct("=i")
_WITHOUT_INSTANCE: Final = b"\1"
_RESETS: Final = {"earliest": OFFSET_BEGINNING, "latest": OFFSET_END}
"""Where librdkafka begins without a committed offset, by ``auto.offset.reset``."""
_CALL_TIMEOUT_S: Final = 60.0
"""The time limit of a call, like the default of the Java client's ``max.block.ms``."""
_METADATA_TIMEOUT_S: Final = 5.0
_METADATA_INTERVAL_S: Final = 0.1
"""How often a producer looks for a new partition, like the default of ``retry.backoff.ms``."""
_KAFKA_NAMES: Final = {
    KafkaError._FENCED: "PRODUCER_FENCED",  # noqa: SLF001 - its public name
    KafkaError._PURGE_QUEUE: "ABORTED",  # noqa: SLF001 - its public name
    KafkaError._PURGE_INFLIGHT: "ABORTED",  # noqa: SLF001 - its public name
}
"""librdkafka's own errors that stand for one of Kafka's."""
_UNKNOWN_PARTITION: Final = KafkaError._UNKNOWN_PARTITION  # noqa: SLF001 - its public name
_END_OF_PARTITION: Final = KafkaError._PARTITION_EOF  # noqa: SLF001 - its public name


class ConfluentProducer:
    """A producer that reports outcomes while `poll` runs."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._fatal: str | None = None
        # Records that wait for a new partition of their topic, and the time of the last metadata
        # request.
        self._waiting: deque[tuple[str, Callable[[], None]]] = deque()
        self._last_refresh_s = -math.inf
        self._producer = Producer({**settings, "error_cb": self._on_error})

    def fatal_error(self) -> str | None:
        return self._fatal

    def send(
        self, topic: str, partition: int, value: bytes, key: bytes | None, on_outcome: OnOutcome
    ) -> None:
        self._send(topic, partition, value, key, on_outcome, time.monotonic() + _CALL_TIMEOUT_S)

    def _send(
        self,
        topic: str,
        partition: int,
        value: bytes,
        key: bytes | None,
        on_outcome: OnOutcome,
        until_s: float,
    ) -> None:
        def failed(type_: str, error: BaseException | KafkaError) -> None:
            # The Java client waits for the partition; librdkafka gives up if the partition is not
            # in its current metadata.
            if _is_unknown_partition(error) and time.monotonic() < until_s:
                again = partial(self._send, topic, partition, value, key, on_outcome, until_s)
                self._waiting.append((topic, again))
            else:
                on_outcome(type_, None, _error_name(error))

        def delivered(error: KafkaError | None, message: Any) -> None:
            if error is None:
                offset = message.offset()
                # There is no offset with acks=0, or for a duplicate that the leader no longer
                # remembers.
                on_outcome(OK, offset if offset is not None and offset >= 0 else None, None)
            else:
                failed(FAIL if error.code() in _NEVER_SENT else INFO, error)

        try:
            self._producer.produce(topic, value, key, partition=partition, on_delivery=delivered)
        except (BufferError, KafkaException) as error:
            failed(FAIL, error)

    def poll(self, timeout_s: float) -> None:
        try:
            self._producer.poll(timeout_s)
        except KafkaException as raised:  # After a fatal error every poll raises it.
            self._on_error(raised.args[0])
            time.sleep(timeout_s)
        if self._waiting and time.monotonic() >= self._last_refresh_s + _METADATA_INTERVAL_S:
            self._last_refresh_s = time.monotonic()
            self._send_again()

    def _send_again(self) -> None:
        """Refresh the metadata of topics with unknown partitions, and send their records again."""
        waiting = [self._waiting.popleft() for _ in range(len(self._waiting))]
        for topic in {topic for topic, _ in waiting}:
            with contextlib.suppress(KafkaException):
                self._producer.list_topics(topic, _METADATA_TIMEOUT_S)
        for _, send in waiting:
            send()

    def _on_error(self, error: KafkaError) -> None:
        if error.fatal():
            self._fatal = _kafka_name(error)


class ConfluentTransactions(ConfluentProducer):
    """A producer with transactions."""

    def init_transactions(self) -> None:
        self._call(self._producer.init_transactions, _CALL_TIMEOUT_S)

    def begin_transaction(self) -> None:
        self._call(self._producer.begin_transaction)

    def send_offsets(self, offsets: Mapping[str, int], group_metadata: Any) -> None:
        self._call(
            self._producer.send_offsets_to_transaction, _partitions(offsets), group_metadata, _CALL_TIMEOUT_S
        )

    def commit_transaction(self) -> None:
        self._call(self._producer.commit_transaction, _CALL_TIMEOUT_S)

    def abort_transaction(self) -> None:
        self._call(self._producer.abort_transaction, _CALL_TIMEOUT_S)

    def _call(self, call: Callable[..., None], *arguments: Any) -> None:
        try:
            call(*arguments)
        except KafkaException as raised:
            error = raised.args[0]
            if error.fatal():
                self._fatal = _kafka_name(error)
            raise TransactionCallError(
                _kafka_name(error), is_fatal=error.fatal(), is_retriable=error.retriable()
            ) from raised


class ConfluentConsumer:
    """A consumer without a group; librdkafka reports the end of each partition."""

    def __init__(self, settings: dict[str, Any]) -> None:
        # librdkafka requires a group id even without a group.
        own = {"group.id": settings["client.id"], "enable.auto.commit": False, "enable.partition.eof": True}
        self._consumer = Consumer({**settings, **own})
        self._positions: dict[str, int] = {}
        self._at_end: set[str] = set()

    def assign(self, partitions: list[str]) -> None:
        self._positions = dict.fromkeys(partitions, 0)
        self._consumer.assign(_partitions(dict.fromkeys(partitions, OFFSET_BEGINNING)))

    def poll(self, records_max: int, timeout_s: float) -> Poll:
        records: dict[str, list[tuple[int, str]]] = {}
        for partition, message in _messages(self._consumer, records_max, timeout_s):
            if message.error() is None:
                records.setdefault(partition, []).append(_record(message))
                self._positions[partition] = message.offset() + 1
                self._at_end.discard(partition)
            elif message.error().code() == _END_OF_PARTITION:
                self._positions[partition] = message.offset()
                self._at_end.add(partition)
        return Poll(records, self._positions, frozenset(self._at_end))


class ConfluentMember:
    """A consumer that is a member of a group.

    In each poll, the Java client commits the records of the previous poll. librdkafka would commit
    records as soon as it has delivered them, so this class lets it commit only the offsets that the
    worker passes to `set_processed`.
    """

    def __init__(self, settings: dict[str, Any]) -> None:
        own = {"enable.auto.offset.store": False, "enable.partition.eof": True}
        self._consumer = Consumer({**settings, **own})
        self._group: str = settings["group.id"]
        self._reset = _RESETS.get(settings.get("auto.offset.reset", ""))
        is_cooperative = "cooperative" in str(settings.get("partition.assignment.strategy", ""))
        self._assigns_incrementally = is_cooperative or settings.get("group.protocol") == "consumer"
        self._reached: dict[str, int] = {}

    def subscribe(
        self,
        topics: list[str],
        on_assigned: Callable[[list[str], int], Mapping[str, int]],
        on_revoked: Callable[[list[str], bool], None],
    ) -> None:
        def assigned(_: Any, partitions: list[TopicPartition]) -> None:
            names = _names(partitions)
            start_offsets = on_assigned(names, self._generation())
            # Without an explicit assignment here, librdkafka begins at the committed offsets.
            if start_offsets:
                assign = (
                    self._consumer.incremental_assign
                    if self._assigns_incrementally
                    else self._consumer.assign
                )
                assign(_partitions({name: start_offsets.get(name) for name in names}))

        def revoked(partitions: list[TopicPartition], *, is_lost: bool) -> None:
            for name in _names(partitions):
                self._reached.pop(name, None)
            on_revoked(_names(partitions), is_lost)

        self._consumer.subscribe(
            topics,
            on_assign=assigned,
            on_revoke=lambda _, partitions: revoked(partitions, is_lost=False),
            on_lost=lambda _, partitions: revoked(partitions, is_lost=True),
        )

    def assign(self, partitions: list[str]) -> None:
        self._consumer.assign(_partitions(dict.fromkeys(partitions)))

    def committed(self, partitions: list[str]) -> dict[str, int]:
        try:
            committed = self._consumer.committed(_partitions(dict.fromkeys(partitions)), _COMMITTED_TIMEOUT_S)
        except KafkaException:
            return {}
        return {
            f"{partition.topic}-{partition.partition}": max(partition.offset, _NOTHING)
            for partition in committed
            if not partition.error
        }

    def poll(self, records_max: int, timeout_s: float) -> dict[str, list[tuple[int, str]]]:
        records: dict[str, list[tuple[int, str]]] = {}
        for name, message in _messages(self._consumer, records_max, timeout_s):
            if message.error() is None:
                records.setdefault(name, []).append(_record(message))
                self._reached[name] = message.offset() + 1
            elif message.error().code() == _END_OF_PARTITION:
                self._reached[name] = message.offset()
            elif message.error().fatal():
                raise MembershipError(_kafka_name(message.error()))
        return records

    def read_end(self) -> dict[str, int]:
        return self._reached

    def rewind(self, partitions: list[str]) -> dict[str, int]:
        committed: dict[str, int] = {}
        # Repeat until all offsets are known. Otherwise, uncommitted records would be skipped.
        while missing := [name for name in partitions if name not in committed]:
            committed.update(self.committed(missing))
        for name, offset in committed.items():
            self._reached.pop(name, None)
            begin = self._reset if offset < 0 else offset
            if begin is not None:
                self._seek(*_partitions({name: begin}))
        return committed

    def _seek(self, partition: TopicPartition) -> None:
        """Go on reading at an offset.

        librdkafka refuses to seek before it has begun to read the partition.
        """
        until_s = time.monotonic() + _SEEK_TIMEOUT_S
        while True:
            try:
                self._consumer.seek(partition)
            except KafkaException:
                if time.monotonic() > until_s:
                    raise
                time.sleep(_SEEK_INTERVAL_S)
            else:
                return

    def group_metadata(self, *, as_member: bool) -> Any:
        if as_member:
            return self._consumer.consumer_group_metadata()
        # The metadata without a generation and a member (``rd_kafka_consumer_group_metadata_new``).
        return (
            _METADATA_MARK + _GENERATION.pack(_NOTHING) + self._group.encode() + b"\0\0" + _WITHOUT_INSTANCE
        )

    def set_processed(self, offsets: Mapping[str, int]) -> None:
        for partition in _partitions(offsets):
            # The call fails for a partition that is no longer assigned.
            with contextlib.suppress(KafkaException):
                self._consumer.store_offsets(offsets=[partition])

    def commit(self, offsets: Mapping[str, int]) -> str | None:
        try:
            committed = self._consumer.commit(offsets=_partitions(offsets), asynchronous=False)
        except KafkaException as raised:
            return _kafka_name(raised.args[0])
        errors = (partition.error for partition in committed or ())
        return next((_kafka_name(error) for error in errors if error), None)

    def close(self) -> None:
        self._consumer.close()

    def _generation(self) -> int:
        """Return the generation in the metadata (``rd_kafka_consumer_group_metadata_write``)."""
        metadata = bytes(self._consumer.consumer_group_metadata() or b"")
        mark_at = metadata.find(_METADATA_MARK)
        if mark_at < 0:
            return _NOTHING
        (generation,) = _GENERATION.unpack_from(metadata, mark_at + len(_METADATA_MARK))
        return int(generation)


def _messages(consumer: Consumer, records_max: int, timeout_s: float) -> Iterator[tuple[str, Any]]:
    messages: list[Any] = consumer.consume(records_max, timeout_s)
    return ((f"{message.topic()}-{message.partition()}", message) for message in messages)


def _record(message: Any) -> tuple[int, str]:
    return message.offset(), (message.value() or b"").decode("utf-8", "backslashreplace")


def _names(partitions: list[TopicPartition]) -> list[str]:
    return [f"{partition.topic}-{partition.partition}" for partition in partitions]


def _partitions(offsets: Mapping[str, int | None]) -> list[TopicPartition]:
    partitions = []
    for name, offset in offsets.items():
        topic, _, number = name.rpartition("-")
        position = () if offset is None else (offset,)
        partitions.append(TopicPartition(topic, int(number), *position))
    return partitions


def _kafka_name(error: KafkaError) -> str:
    return _KAFKA_NAMES.get(error.code()) or str(error.name())


def _is_unknown_partition(error: BaseException | KafkaError) -> bool:
    kafka_error = _kafka_error(error)
    return kafka_error is not None and kafka_error.code() == _UNKNOWN_PARTITION


def _error_name(error: BaseException | KafkaError) -> str:
    kafka_error = _kafka_error(error)
    return "_QUEUE_FULL" if kafka_error is None else _kafka_name(kafka_error)


def _kafka_error(error: BaseException | KafkaError) -> KafkaError | None:
    cause = error.args[0] if isinstance(error, KafkaException) and error.args else error
    return cause if isinstance(cause, KafkaError) else None


make_producer = ConfluentProducer
make_transactions = ConfluentTransactions
make_member = ConfluentMember
make_consumer = ConfluentConsumer
