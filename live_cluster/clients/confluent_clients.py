"""Clients of confluent-kafka, that is of librdkafka (`harrow.live_cluster.clients.client_library.ClientLibrary`)."""

import contextlib
import math
import struct
import time
from collections import deque
from collections.abc import Callable, Mapping
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
from harrow.live_cluster.clients.client_library import Ended, MembershipError, Poll, TransactionCallError

_NEVER_SENT: Final = frozenset({KafkaError.MSG_SIZE_TOO_LARGE, KafkaError._PURGE_QUEUE})  # noqa: SLF001 - so it is called
"""Errors with which a record is surely in no log. After any other an earlier attempt may have put it there."""
_COMMITTED_S: Final = 5.0
_SEEK_S: Final = 10.0
_RETRY_S: Final = 0.05
_NOTHING: Final = -1
_METADATA_MARK: Final = b"CGMDv2:"
_GENERATION: Final = struct.Struct("=i")
_WITHOUT_INSTANCE: Final = b"\1"
_RESETS: Final = {"earliest": OFFSET_BEGINNING, "latest": OFFSET_END}
"""Where librdkafka begins, by ``auto.offset.reset``, where its group has committed nothing."""
_CALL_S: Final = 60.0
"""How long a call may take before it is made again, as the Java client's ``max.block.ms`` has it by default."""
_METADATA_S: Final = 5.0
_BETWEEN_S: Final = 0.1
"""``retry.backoff.ms``."""
_KAFKA_NAMES: Final = {
    KafkaError._FENCED: "PRODUCER_FENCED",  # noqa: SLF001 - so it is called
    KafkaError._PURGE_QUEUE: "ABORTED",  # noqa: SLF001 - so it is called
    KafkaError._PURGE_INFLIGHT: "ABORTED",  # noqa: SLF001 - so it is called
}
"""Errors of librdkafka's own that stand for one of Kafka's."""
_UNKNOWN_PARTITION: Final = KafkaError._UNKNOWN_PARTITION  # noqa: SLF001 - so it is called
_END: Final = KafkaError._PARTITION_EOF  # noqa: SLF001 - so it is called


class ConfluentProducer:
    """A producer whose records end while it is polled."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._fatal: str | None = None
        # What waits for a partition of a topic, and when that was asked for last.
        self._unknown: deque[tuple[str, Callable[[], None]]] = deque()
        self._asked_s = -math.inf
        self._producer = Producer({**settings, "error_cb": self._failed})

    def fatal_error(self) -> str | None:
        return self._fatal

    def send(self, topic: str, partition: int, value: bytes, key: bytes | None, ended: Ended) -> None:
        self._send(topic, partition, value, key, ended, time.monotonic() + _CALL_S)

    def _send(
        self, topic: str, partition: int, value: bytes, key: bytes | None, ended: Ended, until_s: float
    ) -> None:
        def failed(type_: str, error: BaseException | KafkaError) -> None:
            # The Java client has it wait until the partition is there; librdkafka gives up with the metadata that it has.
            if _is_unknown_partition(error) and time.monotonic() < until_s:
                again = partial(self._send, topic, partition, value, key, ended, until_s)
                self._unknown.append((topic, again))
            else:
                ended(type_, None, _name_of(error))

        def delivered(error: KafkaError | None, message: Any) -> None:
            if error is None:
                offset = message.offset()
                # None is told with acks=0, nor of a duplicate that the leader no longer remembers.
                ended(OK, offset if offset is not None and offset >= 0 else None, None)
            else:
                failed(FAIL if error.code() in _NEVER_SENT else INFO, error)

        try:
            self._producer.produce(topic, value, key, partition=partition, on_delivery=delivered)
        except (BufferError, KafkaException) as error:
            failed(FAIL, error)

    def poll(self, timeout_s: float) -> None:
        try:
            self._producer.poll(timeout_s)
        except KafkaException as raised:  # After a fatal error it does nothing but say so again.
            self._failed(raised.args[0])
            time.sleep(timeout_s)
        if self._unknown and time.monotonic() >= self._asked_s + _BETWEEN_S:
            self._asked_s = time.monotonic()
            self._send_again()

    def _send_again(self) -> None:
        """Ask for the partitions of topics that have too few, and send what waits for them."""
        waiting = [self._unknown.popleft() for _ in range(len(self._unknown))]
        for topic in {topic for topic, _ in waiting}:
            with contextlib.suppress(KafkaException):
                self._producer.list_topics(topic, _METADATA_S)
        for _, send in waiting:
            send()

    def _failed(self, error: KafkaError) -> None:
        if error.fatal():
            self._fatal = _kafka_name(error)


class ConfluentTransactions(ConfluentProducer):
    """A producer with transactions."""

    def init_transactions(self) -> None:
        self._call(self._producer.init_transactions, _CALL_S)

    def begin_transaction(self) -> None:
        self._call(self._producer.begin_transaction)

    def send_offsets(self, offsets: Mapping[str, int], group_metadata: Any) -> None:
        self._call(self._producer.send_offsets_to_transaction, _places(offsets), group_metadata, _CALL_S)

    def commit_transaction(self) -> None:
        self._call(self._producer.commit_transaction, _CALL_S)

    def abort_transaction(self) -> None:
        self._call(self._producer.abort_transaction, _CALL_S)

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
    """A consumer that librdkafka tells of the end of each partition."""

    def __init__(self, settings: dict[str, Any]) -> None:
        # An assigned consumer needs a group's name, and no group.
        own = {"group.id": settings["client.id"], "enable.auto.commit": False, "enable.partition.eof": True}
        self._consumer = Consumer({**settings, **own})
        self._positions: dict[str, int] = {}
        self._at_end: set[str] = set()

    def assign(self, partitions: list[str]) -> None:
        self._positions = dict.fromkeys(partitions, 0)
        self._consumer.assign(
            [
                TopicPartition(topic, int(number), OFFSET_BEGINNING)
                for topic, _, number in (partition.rpartition("-") for partition in partitions)
            ]
        )

    def poll(self, records_max: int, timeout_s: float) -> Poll:
        records: dict[str, list[tuple[int, str]]] = {}
        messages: list[Any] = self._consumer.consume(records_max, timeout_s)
        for message in messages:
            partition = f"{message.topic()}-{message.partition()}"
            if message.error() is None:
                value = message.value() or b""
                records.setdefault(partition, []).append(
                    (message.offset(), value.decode("utf-8", "backslashreplace"))
                )
                self._positions[partition] = message.offset() + 1
                self._at_end.discard(partition)
            elif message.error().code() == _END:
                self._positions[partition] = message.offset()
                self._at_end.add(partition)
        return Poll(records, self._positions, frozenset(self._at_end))


class ConfluentMember:
    """A consumer that is a member of a group.

    The Java client commits by itself what an application was given when it polls again; so does this one, for it is told of
    that, and nothing counts as processed because it was handed over.
    """

    def __init__(self, settings: dict[str, Any]) -> None:
        own = {"enable.auto.offset.store": False, "enable.partition.eof": True}
        self._consumer = Consumer({**settings, **own})
        self._group: str = settings["group.id"]
        self._reset = _RESETS.get(settings.get("auto.offset.reset", ""))
        is_cooperative = "cooperative" in str(settings.get("partition.assignment.strategy", ""))
        self._assigns_more = is_cooperative or settings.get("group.protocol") == "consumer"
        self._reached: dict[str, int] = {}

    def subscribe(
        self,
        topics: list[str],
        on_assigned: Callable[[list[str], int], Mapping[str, int]],
        on_revoked: Callable[[list[str], bool], None],
    ) -> None:
        def assigned(_: Any, partitions: list[TopicPartition]) -> None:
            names = _names(partitions)
            begins = on_assigned(names, self._generation())
            # Where nothing is said it is assigned from where its group has committed, once this returns.
            if begins:
                places = _places({name: begins.get(name) for name in names})
                assign = self._consumer.incremental_assign if self._assigns_more else self._consumer.assign
                assign(places)

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
        self._consumer.assign(_places(dict.fromkeys(partitions)))

    def committed(self, partitions: list[str]) -> dict[str, int]:
        try:
            found = self._consumer.committed(_places(dict.fromkeys(partitions)), _COMMITTED_S)
        except KafkaException:
            return {}
        return {
            f"{place.topic}-{place.partition}": max(place.offset, _NOTHING)
            for place in found
            if not place.error
        }

    def poll(self, records_max: int, timeout_s: float) -> dict[str, list[tuple[int, str]]]:
        records: dict[str, list[tuple[int, str]]] = {}
        messages: list[Any] = self._consumer.consume(records_max, timeout_s)
        for message in messages:
            if message.error() is None:
                value = (message.value() or b"").decode("utf-8", "backslashreplace")
                name = f"{message.topic()}-{message.partition()}"
                records.setdefault(name, []).append((message.offset(), value))
                self._reached[name] = message.offset() + 1
            elif message.error().code() == _END:
                self._reached[f"{message.topic()}-{message.partition()}"] = message.offset()
            elif message.error().fatal():
                raise MembershipError(_kafka_name(message.error()))
        return records

    def reached(self) -> dict[str, int]:
        return self._reached

    def rewind(self, partitions: list[str]) -> dict[str, int]:
        found: dict[str, int] = {}
        # One that is not found would be read on behind what was not committed.
        while missing := [name for name in partitions if name not in found]:
            found.update(self.committed(missing))
        for name, offset in found.items():
            self._reached.pop(name, None)
            begin = self._reset if offset < 0 else offset
            if begin is not None:
                self._seek(*_places({name: begin}))
        return found

    def _seek(self, place: TopicPartition) -> None:
        """Have it read on from a place; not before it has begun to read the partition it can."""
        until_s = time.monotonic() + _SEEK_S
        while True:
            try:
                self._consumer.seek(place)
            except KafkaException:
                if time.monotonic() > until_s:
                    raise
                time.sleep(_RETRY_S)
            else:
                return

    def group_metadata(self, *, as_member: bool) -> Any:
        if as_member:
            return self._consumer.consumer_group_metadata()
        # What a producer is given where no consumer is at hand (``rd_kafka_consumer_group_metadata_new``): no generation, no member.
        return (
            _METADATA_MARK + _GENERATION.pack(_NOTHING) + self._group.encode() + b"\0\0" + _WITHOUT_INSTANCE
        )

    def processed(self, offsets: Mapping[str, int]) -> None:
        for place in _places(offsets):
            # What it does not read any more it cannot commit.
            with contextlib.suppress(KafkaException):
                self._consumer.store_offsets(offsets=[place])

    def commit(self, offsets: Mapping[str, int]) -> str | None:
        try:
            told = self._consumer.commit(offsets=_places(offsets), asynchronous=False)
        except KafkaException as raised:
            return _kafka_name(raised.args[0])
        return next((_kafka_name(place.error) for place in told or () if place.error), None)

    def close(self) -> None:
        self._consumer.close()

    def _generation(self) -> int:
        """Return the generation, which stands in what a producer commits offsets with (``rd_kafka_consumer_group_metadata_write``)."""
        metadata = bytes(self._consumer.consumer_group_metadata() or b"")
        begins = metadata.find(_METADATA_MARK)
        if begins < 0:
            return _NOTHING
        (generation,) = _GENERATION.unpack_from(metadata, begins + len(_METADATA_MARK))
        return int(generation)


def _names(partitions: list[TopicPartition]) -> list[str]:
    return [f"{place.topic}-{place.partition}" for place in partitions]


def _places(offsets: Mapping[str, int | None]) -> list[TopicPartition]:
    places = []
    for name, offset in offsets.items():
        topic, _, number = name.rpartition("-")
        given = () if offset is None else (offset,)
        places.append(TopicPartition(topic, int(number), *given))
    return places


def _kafka_name(error: KafkaError) -> str:
    return _KAFKA_NAMES.get(error.code()) or str(error.name())


def _is_unknown_partition(error: BaseException | KafkaError) -> bool:
    known = _kafka_error(error)
    return known is not None and known.code() == _UNKNOWN_PARTITION


def _name_of(error: BaseException | KafkaError) -> str:
    known = _kafka_error(error)
    return "_QUEUE_FULL" if known is None else _kafka_name(known)


def _kafka_error(error: BaseException | KafkaError) -> KafkaError | None:
    known = error.args[0] if isinstance(error, KafkaException) and error.args else error
    return known if isinstance(known, KafkaError) else None


make_producer = ConfluentProducer
make_transactions = ConfluentTransactions
make_member = ConfluentMember
make_consumer = ConfluentConsumer
