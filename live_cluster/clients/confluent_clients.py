"""Clients of confluent-kafka, that is of librdkafka (`harrow.live_cluster.clients.client_library.ClientLibrary`)."""

from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicPartition

from harrow.cluster_model.history import FAIL, INFO, OK
from harrow.live_cluster.clients.client_library import Ended, Poll

_NEVER_SENT: Final = frozenset({KafkaError.MSG_SIZE_TOO_LARGE, KafkaError._PURGE_QUEUE})  # noqa: SLF001 - so it is called
"""Errors with which a record is surely in no log. After any other an earlier attempt may have put it there."""
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
                ended(FAIL if error.code() in _NEVER_SENT else INFO, None, error.name())

        try:
            self._producer.produce(topic, value, key, partition=partition, on_delivery=delivered)
        except (BufferError, KafkaException) as error:
            ended(FAIL, None, _name_of(error))

    def poll(self, timeout_s: float) -> None:
        self._producer.poll(timeout_s)


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


def _name_of(error: BaseException) -> str:
    if isinstance(error, KafkaException) and error.args and isinstance(error.args[0], KafkaError):
        return str(error.args[0].name())
    return "_QUEUE_FULL"


make_producer = ConfluentProducer
make_consumer = ConfluentConsumer
