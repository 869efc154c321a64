"""Clients of confluent-kafka, that is of librdkafka (`harrow.live_cluster.clients.client_library.ClientLibrary`)."""

from collections.abc import Callable
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicPartition

from harrow.cluster_model.history import FAIL, INFO, OK
from harrow.live_cluster.clients.client_library import Ended, Poll, TransactionError

_NEVER_SENT: Final = frozenset({KafkaError.MSG_SIZE_TOO_LARGE, KafkaError._PURGE_QUEUE})  # noqa: SLF001 - so it is called
"""Errors with which a record is surely in no log. After any other an earlier attempt may have put it there."""
_CALL_S: Final = 60.0
"""How long a call may take before it is made again, as the Java client's ``max.block.ms`` has it by default."""
_KAFKA_NAMES: Final = {
    KafkaError._FENCED: "PRODUCER_FENCED",  # noqa: SLF001 - so it is called
    KafkaError._PURGE_QUEUE: "ABORTED",  # noqa: SLF001 - so it is called
    KafkaError._PURGE_INFLIGHT: "ABORTED",  # noqa: SLF001 - so it is called
}
"""Errors of librdkafka's own that stand for one of Kafka's."""
_END: Final = KafkaError._PARTITION_EOF  # noqa: SLF001 - so it is called


class ConfluentProducer:
    """A producer whose records end while it is polled."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._producer = Producer(settings)

    def send(self, topic: str, partition: int, value: bytes, key: bytes | None, ended: Ended) -> None:
        def delivered(error: KafkaError | None, message: Any) -> None:
            if error is None:
                offset = message.offset()
                # None is told with acks=0, nor of a duplicate that the leader no longer remembers.
                ended(OK, offset if offset is not None and offset >= 0 else None, None)
            else:
                ended(FAIL if error.code() in _NEVER_SENT else INFO, None, _kafka_name(error))

        try:
            self._producer.produce(topic, value, key, partition=partition, on_delivery=delivered)
        except (BufferError, KafkaException) as error:
            ended(FAIL, None, _name_of(error))

    def poll(self, timeout_s: float) -> None:
        self._producer.poll(timeout_s)


class ConfluentTransactions(ConfluentProducer):
    """A producer with transactions."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._fatal: str | None = None
        super().__init__({**settings, "error_cb": self._failed})

    def fatal_error(self) -> str | None:
        return self._fatal

    def init_transactions(self) -> None:
        self._call(self._producer.init_transactions, _CALL_S)

    def begin_transaction(self) -> None:
        self._call(self._producer.begin_transaction)

    def commit_transaction(self) -> None:
        self._call(self._producer.commit_transaction, _CALL_S)

    def abort_transaction(self) -> None:
        self._call(self._producer.abort_transaction, _CALL_S)

    def _failed(self, error: KafkaError) -> None:
        if error.fatal():
            self._fatal = _kafka_name(error)

    def _call(self, call: Callable[..., None], *arguments: float) -> None:
        try:
            call(*arguments)
        except KafkaException as raised:
            error = raised.args[0]
            if error.fatal():
                self._fatal = _kafka_name(error)
            raise TransactionError(
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


def _kafka_name(error: KafkaError) -> str:
    return _KAFKA_NAMES.get(error.code()) or str(error.name())


def _name_of(error: BaseException) -> str:
    if isinstance(error, KafkaException) and error.args and isinstance(error.args[0], KafkaError):
        return str(error.args[0].name())
    return "_QUEUE_FULL"


make_producer = ConfluentProducer
make_transactions = ConfluentTransactions
make_consumer = ConfluentConsumer
