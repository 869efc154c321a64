"""The parts of messages that brokers store or pass on but do not interpret."""

import time
from collections.abc import Sequence
from typing import Final, Protocol

from harrow.cluster_model.coordinators.protocol import Subscription
from harrow.cluster_model.log.record_batch import RecordBatch
from harrow.cluster_model.sim.virtual_time import US_PER_MS
from harrow.live_cluster.wire import coordinator_messages
from harrow.live_cluster.wire.stored_batches import as_batches, encoded, whole_batches


class Contents(Protocol):
    """Translates records, subscriptions and assignments between the model and the wire."""

    def batches(self, data: bytes) -> tuple[RecordBatch, ...]: ...

    def batch_bytes(self, batch: RecordBatch) -> bytes: ...

    def subscription(self, data: bytes) -> Subscription: ...

    def subscription_bytes(self, subscription: Subscription) -> bytes: ...

    def assignment(self, data: bytes) -> tuple[str, ...]: ...

    def assignment_bytes(self, partitions: Sequence[str]) -> bytes: ...


class ModelContents:
    """The contents of messages between the model's clients and real brokers."""

    def batches(self, data: bytes) -> tuple[RecordBatch, ...]:
        return tuple(batch for stored, _ in whole_batches(data) for batch in as_batches(stored))

    def batch_bytes(self, batch: RecordBatch) -> bytes:
        return encoded(batch, batch.max_timestamp_us // US_PER_MS or int(time.time() * 1_000))

    def subscription(self, data: bytes) -> Subscription:
        return Subscription(tuple(coordinator_messages.subscribed_topics(data)))

    def subscription_bytes(self, subscription: Subscription) -> bytes:
        return coordinator_messages.subscription(subscription.topics)

    def assignment(self, data: bytes) -> tuple[str, ...]:
        return tuple(coordinator_messages.assigned_partitions(data))

    def assignment_bytes(self, partitions: Sequence[str]) -> bytes:
        return coordinator_messages.assignment(partitions)


MODEL_CONTENTS: Final = ModelContents()
