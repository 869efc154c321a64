"""The observer of real brokers answers as that of the model."""

from types import SimpleNamespace
from typing import Any

from harrow.cluster_model.log.record_batch import RecordBatch
from harrow.cluster_model.trace import Clock, Trace
from harrow.live_cluster.target.live_observer import LiveObserver
from harrow.live_cluster.wire.replicas import ReplicaOffsets


def test_a_partition_without_a_leader_has_no_leading_replica() -> None:
    metadata: Any = SimpleNamespace(controller=None, partition_state=None, electable=None)
    cluster: Any = SimpleNamespace(links=None, logs={}, observed_metadata=metadata, replicas_of=None)
    about: Any = SimpleNamespace(is_acked=None, is_failed=None, is_consumed=None)
    watch: Any = SimpleNamespace(offsets=lambda: {"t-0": ReplicaOffsets(3, 2, leads=True)})
    observer = LiveObserver(cluster, about, about, Trace(Clock()), {0: watch}, lambda *_: 0)
    assert observer.replica("t-0", -1) is None
    replica = observer.replica("t-0", 0)
    assert replica is not None
    assert replica.hw == 2


def test_only_records_from_the_log_start_on_are_readable() -> None:
    def batch(offset: int, *values: str) -> RecordBatch:
        return RecordBatch(base_offset=offset, leader_epoch=0, values=values)

    batches = (batch(0, "a"), batch(1, "b", "c"), batch(3, "d"))
    metadata: Any = SimpleNamespace(controller=None, partition_state=None, electable=None)
    logs: Any = {0: SimpleNamespace(batches=lambda _: batches)}
    cluster: Any = SimpleNamespace(links=None, logs=logs, observed_metadata=metadata, replicas_of=None)
    about: Any = SimpleNamespace(is_acked=None, is_failed=None, is_consumed=None)
    watch: Any = SimpleNamespace(offsets=lambda: {"t-0": ReplicaOffsets(4, 4, leads=True)})
    observer = LiveObserver(cluster, about, about, Trace(Clock()), {0: watch}, lambda *_: 2)
    replica = observer.replica("t-0", 0)
    assert replica is not None
    # As in the model, deleted records of a partly deleted batch remain but cannot be read.
    assert replica.log == ("b", "c", "d")
    assert list(replica.records) == [(2, "c"), (3, "d")]
