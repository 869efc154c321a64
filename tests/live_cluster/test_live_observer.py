"""Tests of what is seen of real brokers."""

from types import SimpleNamespace
from typing import Any

from harrow.cluster_model.trace import Clock, Trace
from harrow.live_cluster.live_observer import LiveObserver
from harrow.live_cluster.wire.replicas import ReplicaOffsets


def test_a_partition_without_a_leader_has_no_leading_replica_to_look_at() -> None:
    seen: Any = SimpleNamespace(controller=None, partition_state=None, electable=None)
    cluster: Any = SimpleNamespace(links=None, logs={}, seen=seen, replicas_of=None)
    about: Any = SimpleNamespace(is_acked=None, is_failed=None, is_consumed=None)
    watch: Any = SimpleNamespace(offsets=lambda: {"t-0": ReplicaOffsets(3, 2, leads=True)})
    observer = LiveObserver(cluster, about, about, Trace(Clock()), {0: watch}, lambda *_: 0)
    assert observer.replica("t-0", -1) is None
    found = observer.replica("t-0", 0)
    assert found is not None
    assert found.hw == 2
