"""Passes on the contents of real clients' messages byte by byte."""

import struct
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import Any, Final, Protocol

from harrow.cluster_model.coordinators.protocol import Subscription
from harrow.cluster_model.log.record_batch import RecordBatch
from harrow.live_cluster.serve.contents.client_batches import RefusedBatchError, batch_bytes, read_batch
from harrow.live_cluster.wire.coordinator_messages import client_assignment, subscribed_topics

_DATA: Final = "#"
"""Begins a name that stands for bytes. No topic and no partition has such a name."""


class TwoClocks(Protocol):
    """Converts times of clients' clocks to times of the model, and back."""

    def model_us(self, client_ms: int) -> int:
        """Return a time of clients as a time of the model."""

    def client_ms(self, model_us: int) -> int:
        """Return a time of the model as a time of clients."""


class WireContents:
    """The contents of the messages of clients (`Contents`).

    The model stores subscriptions and assignments as names of topics and partitions. Behind them
    stands one more name that has all bytes, because a coordinator must return what it was given,
    also after another broker has read its log. In assignments a number makes that name unique.
    """

    def __init__(self, clocks: TwoClocks) -> None:
        self._clocks = clocks
        self._numbers = count()

    def batches(self, data: bytes) -> tuple[Any, ...]:
        """Return a `ClientBatch`, which gets its names when its partition is known.

        A batch that brokers refuse is its `RefusedBatchError`: they may append the others.
        """
        try:
            return (read_batch(data, self._clocks.model_us),)
        except RefusedBatchError as error:
            return (error,)

    def batch_bytes(self, batch: RecordBatch) -> bytes:
        return batch_bytes(batch, self._clocks.client_ms(batch.max_timestamp_us))

    def subscription(self, data: bytes) -> Subscription:
        try:
            topics = subscribed_topics(data)
        except (struct.error, UnicodeDecodeError):
            # Other protocols than the consumers' have metadata of their own.
            topics = []
        return Subscription((*topics, _named(data)))

    def subscription_bytes(self, subscription: Subscription) -> bytes:
        return _data_of(subscription.topics)

    def assignment(self, data: bytes) -> tuple[str, ...]:
        if not data:
            return ()
        try:
            partitions = client_assignment(data)
        except (struct.error, UnicodeDecodeError):
            partitions = []
        return (*partitions, _named(data, next(self._numbers)))

    def assignment_bytes(self, partitions: Sequence[str]) -> bytes:
        return _data_of(partitions)


def partition_names(assignment: Iterable[str]) -> Iterator[str]:
    """Yield the partitions in an assignment, without the name that has its bytes."""
    return (name for name in assignment if not name.startswith(_DATA))


def _named(data: bytes, number: int = 0) -> str:
    return f"{_DATA}{number}:{b64encode(data).decode()}"


def _data_of(names: Sequence[str]) -> bytes:
    if not names or not names[-1].startswith(_DATA):
        return b""
    return b64decode(names[-1].partition(":")[2])
