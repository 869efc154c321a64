"""Clients of kafka-python (a `ClientLibrary`)."""

import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError, KafkaTimeoutError, MessageSizeTooLargeError

from harrow.cluster_model.history import FAIL, INFO, OK
from harrow.live_cluster.clients.client_library import LibraryMember, OnOutcome, Poll, TransactionCallError

_BOOTSTRAP_MS: Final = 50_000
"""How long a client looks for its first broker."""
_NEVER_SENT: Final = (MessageSizeTooLargeError,)
"""Errors after which a record is surely in no log. After any other error, an earlier attempt may
have succeeded."""


class KafkaPythonProducer:
    """A producer that reports outcomes in a thread of the library."""

    def __init__(self, settings: dict[str, Any]) -> None:
        # Only transactional producers have fatal errors; others get a new producer id by
        # themselves.
        self._fatal: str | None = None
        self._has_offsets = settings.get("acks") != 0
        self._producer = KafkaProducer(
            bootstrap_timeout_ms=_BOOTSTRAP_MS, allow_auto_create_topics=False, **settings
        )

    def send(
        self, topic: str, partition: int, value: bytes, key: bytes | None, on_outcome: OnOutcome
    ) -> None:
        try:
            future = self._producer.send(topic, value, key, partition=partition)
        except KafkaError as error:
            # The producer did not accept the record.
            on_outcome(FAIL, None, _name_of(error))
            return
        future.add_callback(lambda stored: on_outcome(OK, self._offset(stored.offset), None))
        future.add_errback(
            lambda error: on_outcome(FAIL if isinstance(error, _NEVER_SENT) else INFO, None, _name_of(error))
        )

    def _offset(self, stored: int) -> int | None:
        # The offset is -1 for a duplicate of a batch that the leader no longer remembers.
        return stored if self._has_offsets and stored >= 0 else None

    def poll(self, timeout_s: float) -> None:
        time.sleep(timeout_s)

    def fatal_error(self) -> str | None:
        return self._fatal


class KafkaPythonTransactions(KafkaPythonProducer):
    """A producer with transactions."""

    def init_transactions(self) -> None:
        self._call(self._producer.init_transactions)

    def begin_transaction(self) -> None:
        self._call(self._producer.begin_transaction)

    def send_offsets(self, offsets: Mapping[str, int], group_metadata: Any) -> None:
        """Refuse: applications use confluent-kafka, as members of groups do."""
        raise NotImplementedError("applications are clients of confluent-kafka")

    def commit_transaction(self) -> None:
        self._call(self._producer.commit_transaction)

    def abort_transaction(self) -> None:
        self._call(self._producer.abort_transaction)

    def _call(self, call: Callable[[], None]) -> None:
        try:
            call()
        except KafkaError as error:
            is_fatal = self._has_failed()
            if is_fatal:
                self._fatal = _name_of(error)
            raise TransactionCallError(
                _name_of(error), is_fatal=is_fatal, is_retriable=isinstance(error, KafkaTimeoutError)
            ) from error

    def _has_failed(self) -> bool:
        manager = self._producer._transaction_manager  # noqa: SLF001 - the library has no public accessor
        return bool(manager is not None and manager.has_fatal_error())


class KafkaPythonConsumer:
    """A consumer without a group.

    The end of a partition is the last high watermark that the consumer knows.
    """

    def __init__(self, settings: dict[str, Any]) -> None:
        self._consumer = KafkaConsumer(
            bootstrap_timeout_ms=_BOOTSTRAP_MS,
            group_id=None,
            enable_auto_commit=False,
            allow_auto_create_topics=False,
            **settings,
        )
        self._partitions: dict[TopicPartition, str] = {}
        self._positions: dict[str, int] = {}

    def assign(self, partitions: list[str]) -> None:
        for partition in partitions:
            topic, _, number = partition.rpartition("-")
            self._partitions[TopicPartition(topic, int(number))] = partition
            self._positions[partition] = 0
        self._consumer.assign(list(self._partitions))
        self._consumer.seek_to_beginning()

    def poll(self, records_max: int, timeout_s: float) -> Poll:
        records: dict[str, list[tuple[int, str]]] = {}
        try:
            read = self._consumer.poll(int(timeout_s * 1_000), records_max)
        except KafkaError:  # An offset is out of range, and the campaign does not reset it.
            read = {}
        for name, messages in read.items():
            records[self._partitions[name]] = [
                (message.offset, (message.value or b"").decode("utf-8", "backslashreplace"))
                for message in messages
            ]
        at_end = set()
        for name, partition in self._partitions.items():
            position, high_watermark = self._position(name), self._consumer.highwater(name)
            if position is not None:
                self._positions[partition] = position
                if high_watermark is not None and position >= high_watermark:
                    at_end.add(partition)
        return Poll(records, self._positions, frozenset(at_end))

    def _position(self, name: TopicPartition) -> int | None:
        """Return the next offset, None while the consumer looks for it."""
        try:
            position: int | None = self._consumer.position(name, timeout_ms=0)
        except KafkaError:
            return None
        return position


def _name_of(error: KafkaError) -> str:
    return str(getattr(error, "message", None) or type(error).__name__)


make_producer = KafkaPythonProducer


def make_member(_: dict[str, Any]) -> LibraryMember:
    """Refuse: rebalances can end in another thread, so the polls of a member show less."""
    raise NotImplementedError("members of groups are clients of confluent-kafka")


make_transactions = KafkaPythonTransactions
make_consumer = KafkaPythonConsumer
