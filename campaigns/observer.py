"""What conditions see of a running cluster."""

from campaigns.clients import Clients
from cluster_model.cluster import Cluster
from cluster_model.history import FAIL, INFO, OK
from faults.condition import EventCondition, ReplicaView


class ClusterObserver:
    """Looks at brokers, ZooKeeper, the history and the trace of a run.

    Each event of the trace is looked at once for each event that a step waits for.
    """

    def __init__(self, cluster: Cluster, clients: Clients) -> None:
        self._cluster = cluster
        self._clients = clients
        self._operations_seen = 0
        self._acked: dict[str, None] = {}
        self._failed: dict[str, None] = {}
        self._step_position = 0
        self._scanned: dict[EventCondition, tuple[int, bool]] = {}

    def replica(self, partition: str, broker: int) -> ReplicaView | None:
        """Return a replica, None while its broker is down or has not heard of it yet."""
        life = self._cluster.brokers.get(broker)
        found = None if life is None else life.replicas.partitions.get(partition)
        if found is None:
            return None
        remote = {}
        if found.is_leader():
            # An unknown LEO (-1) counts as 0: nothing fetched yet.
            remote = {r.broker: max(r.log_end_offset, 0) for r in found.remote_replicas.values()}
        return ReplicaView(
            role="leader" if found.is_leader() else "follower",
            leo=found.log.log_end_offset,
            hw=found.log.high_watermark,
            leader_epoch=found.leader_epoch,
            flushed=found.log.flushed_offset,
            remote=remote,
            epochs=tuple(found.log.epochs.entries),
            log=tuple(value for batch in found.log.batches for value in batch.values),
        )

    def partition_state(self, partition: str) -> tuple[int, int, tuple[int, ...]] | None:
        """Return (leader, leader epoch, ISR) as the partition's znode has them."""
        state = self._cluster.partition_state(partition)
        return None if state is None else (state.leader, state.leader_epoch, state.isr)

    def controller(self) -> int | None:
        """Return the broker in ``/controller``."""
        return self._cluster.controller()

    def broker_state(self, broker: int) -> str:
        """Return ``up``, ``down`` or ``paused``."""
        process = self._cluster.processes[broker]
        if not process.running:
            return "down"
        return "paused" if process.paused else "up"

    def is_registered(self, broker: int) -> bool:
        """Return whether ``/brokers/ids`` has the broker."""
        return self._cluster.is_registered(broker)

    def is_acked(self, value: str) -> bool:
        """Return whether a send of this value was reported as a success."""
        self._read_history()
        return value in self._acked

    def is_failed(self, value: str) -> bool:
        """Return whether a send of this value was reported as a failure, definite or not."""
        self._read_history()
        return value in self._failed

    def is_consumed(self, value: str) -> bool:
        """Return whether a consumer got this value."""
        return self._clients.is_consumed(value)

    def step_taken(self, position: int) -> None:
        """From *position* of the trace on counts what the next step waits for."""
        self._step_position = position
        self._scanned.clear()

    def first_match(self, condition: EventCondition) -> int | None:
        """Return the position in the trace behind the first such event since the step before."""
        position, is_match = self._scanned.get(condition, (self._step_position, False))
        if is_match:
            return position
        events = self._cluster.trace.events
        while position < len(events) and not is_match:
            is_match = condition.matches(events[position])
            position += 1
        self._scanned[condition] = (position, is_match)
        return position if is_match else None

    def _read_history(self) -> None:
        operations = self._cluster.history.operations
        for operation in operations[self._operations_seen :]:
            if operation.f == "send" and operation.type in (OK, FAIL, INFO):
                written = operation.value[0][2]
                value = written[1] if isinstance(written, tuple) else written
                (self._acked if operation.type == OK else self._failed)[value] = None
        self._operations_seen = len(operations)
