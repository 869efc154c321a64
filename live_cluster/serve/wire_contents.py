"""Passes on the contents of real clients' messages byte by byte."""

from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Sequence
from itertools import count
from typing import Final

from harrow.cluster_model.coordinators.protocol import Subscription
from harrow.cluster_model.log.record_batch import RecordBatch
from harrow.live_cluster.serve.client_batches import CorruptBatchError, batch_bytes, read_batch
from harrow.live_cluster.wire.coordinator_messages import client_assignment, subscribed_topics

_DATA: Final = "#"
"""Begins a name that stands for bytes. No topic and no partition has such a name."""


class WireContents:
    """The contents of the messages of one client (`Contents`); *request* names the current request.

    The model stores subscriptions and assignments as names of topics and partitions. Behind them
    stands one more name that has all bytes, because a coordinator must return what it was given,
    also after another broker has read its log. A number makes that name unique.
    """

    def __init__(self, model_time: Callable[[int], int], numbers: "count[int]") -> None:
        self._model_time = model_time
        self._numbers = numbers
        self.request = ""

    def batches(self, data: bytes) -> tuple[RecordBatch, ...]:
        if not data:
            raise CorruptBatchError("there is no batch")
        return (read_batch(data, self.request, self._model_time),)

    def batch_bytes(self, batch: RecordBatch) -> bytes:
        return batch_bytes(batch)

    def subscription(self, data: bytes) -> Subscription:
        return Subscription(self._with_data(subscribed_topics(data), data))

    def subscription_bytes(self, subscription: Subscription) -> bytes:
        return _data_of(subscription.topics)

    def assignment(self, data: bytes) -> tuple[str, ...]:
        return self._with_data(client_assignment(data), data) if data else ()

    def assignment_bytes(self, partitions: Sequence[str]) -> bytes:
        return _data_of(partitions)

    def _with_data(self, names: Iterable[str], data: bytes) -> tuple[str, ...]:
        return (*names, f"{_DATA}{next(self._numbers)}:{b64encode(data).decode()}")


def _data_of(names: Sequence[str]) -> bytes:
    if not names or not names[-1].startswith(_DATA):
        return b""
    return b64decode(names[-1].partition(":")[2])
