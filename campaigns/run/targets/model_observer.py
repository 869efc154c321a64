"""Observes a simulated cluster for conditions and for the run."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import chain
from operator import attrgetter
from typing import Any

from harrow.campaigns.clients.clients import Clients
from harrow.campaigns.run.targets.trace_scan import TraceScan
from harrow.checks.evidence import FinalLog
from harrow.cluster_model.broker.partition import Partition
from harrow.cluster_model.cluster import Cluster
from harrow.cluster_model.history import OK
from harrow.cluster_model.log.disk import LogFile


class ModelReplica:
    """The state of a replica as its broker knows it, read anew on each access."""

    __slots__ = ("_replica",)

    def __init__(self, replica: Partition) -> None:
        self._replica = replica

    @property
    def role(self) -> str:
        return "leader" if self._replica.is_leader() else "follower"

    @property
    def leo(self) -> int:
        return self._replica.log.log_end_offset

    @property
    def log_start(self) -> int:
        """The log start offset."""
        return self._replica.log.log_start_offset

    @property
    def hw(self) -> int:
        return self._replica.log.high_watermark

    @property
    def leader_epoch(self) -> int:
        return self._replica.leader_epoch

    @property
    def flushed(self) -> int:
        return self._replica.log.flushed_offset

    @property
    def isr(self) -> tuple[int, ...]:
        return tuple(self._replica.isr)

    @property
    def remote(self) -> dict[int, int]:
        if not self._replica.is_leader():
            return {}
        # An unknown LEO (-1) counts as 0: nothing fetched yet.
        return {r.broker: max(r.log_end_offset, 0) for r in self._replica.remote_replicas.values()}

    @property
    def epochs(self) -> tuple[tuple[int, int], ...]:
        return tuple(self._replica.log.epochs.entries)

    @property
    def log(self) -> tuple[str, ...]:
        log = self._replica.log
        begin = log.log_start_offset
        return tuple(value for batch in log.batches if batch.next_offset > begin for value in batch.values)

    @property
    def records(self) -> Iterator[tuple[int, str]]:
        begin = self._replica.log.log_start_offset
        return chain.from_iterable(
            batch.records()
            if batch.base_offset >= begin
            else ((offset, value) for offset, value in batch.records() if offset >= begin)
            for batch in self._replica.log.batches
            if batch.next_offset > begin
        )


class ClusterObserver:
    """Observes brokers, the control plane, the history and the trace of a run."""

    def __init__(self, cluster: Cluster, clients: Clients) -> None:
        self._cluster = cluster
        self._operations_seen = 0
        self._acked: dict[str, None] = {}
        self._failed: dict[str, None] = {}
        scan = TraceScan(cluster.trace.events)
        self.step_taken = scan.step_taken
        self.first_match = scan.first_match
        self.controller = cluster.controller
        self.quorum = cluster.quorum
        self.quorum_leader = cluster.quorum_leader
        self.replicas_of = cluster.replicas_of
        self.is_registered = cluster.is_registered
        self.electable = cluster.electable
        self.recovery_sets = cluster.recovery_sets
        self.is_consumed = clients.is_consumed

    def replica(self, partition: str, broker: int) -> ModelReplica | None:
        replica = self._live_replica(partition, broker)
        return None if replica is None else ModelReplica(replica)

    def _live_replica(self, partition: str, broker: int) -> Partition | None:
        running_broker = self._cluster.brokers.get(broker)
        replica = None if running_broker is None else running_broker.replicas.partitions.get(partition)
        return None if replica is None or replica.is_offline else replica

    def final_logs(self, partitions: Iterable[str]) -> dict[str, dict[int, FinalLog]]:
        """Return the logs of each partition's replicas, at the end of a run.

        For a broker that is down, the log is read from its disk. Most replicas of a large cluster
        have an empty log, and equal ones share an object.
        """
        cluster = self._cluster
        empty: dict[tuple[Any, ...], FinalLog] = {}
        logs: dict[str, dict[int, FinalLog]] = {}
        for partition in partitions:
            state = cluster.partition_state(partition)
            isr = () if state is None else state.isr
            of_partition = logs[partition] = {}
            for broker in cluster.replicas_of(partition):
                live, disk = self._live_replica(partition, broker), cluster.disks[broker]
                file, epochs = disk.log_file(partition), tuple(disk.epoch_checkpoint(partition))
                begin = file.segments[0].base_offset if live is None else live.log.log_start_offset
                hw = 0 if live is None else live.log.high_watermark
                in_sync = broker in isr
                if file.batches or file.damaged:
                    of_partition[broker] = _final_log(file, hw, epochs, begin, in_sync=in_sync)
                    continue
                key = file.log_end_offset, hw, file.flushed_offset, epochs, begin, in_sync
                log = empty.get(key)
                if log is None:
                    log = empty[key] = _final_log(file, hw, epochs, begin, in_sync=in_sync)
                of_partition[broker] = log
        return logs

    def partition_state(self, partition: str) -> tuple[int, int, tuple[int, ...]] | None:
        state = self._cluster.partition_state(partition)
        return None if state is None else (state.leader, state.leader_epoch, state.isr)

    def assignment(self, partition: str) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]] | None:
        assigned = self._cluster.assignment(partition)
        return None if assigned is None else (assigned.replicas, assigned.adding, assigned.removing)

    def broker_state(self, broker: int) -> str:
        process = self._cluster.nodes[broker]
        if not process.running:
            return "down"
        return "paused" if process.paused else "up"

    def is_impaired(self, broker: int) -> bool:
        process, network = self._cluster.processes[broker], self._cluster.network
        return (
            process.running
            and not process.paused
            and (network.disturbs(process.name) or self._cluster.paces[broker].request_us > 0)
            and not self._is_cut_off(process.name)
        )

    def _is_cut_off(self, name: str) -> bool:
        """Return whether a broker reaches no other process of the control plane.

        Then its session ends. One reachable process is enough to keep the session: a ZooKeeper
        client tries the servers in turn, and any voter of KRaft may be or become the active
        controller. A controller in the broker's own process does not count, because it needs other
        voters to stay active.
        """
        others = [other for other in self._cluster.control_plane.process_names if other != name]
        return bool(others) and all(self._cluster.network.is_cut(name, other) for other in others)

    def is_stuck(self, partition: str, broker: int) -> bool:
        state = self._cluster.partition_state(partition)
        if state is None or state.leader not in self._cluster.disks or state.leader == broker:
            return False
        damaged = self._cluster.disks[state.leader].log_file(partition).damaged
        if not damaged:
            return False
        replica = self.replica(partition, broker)
        return replica is not None and max(damaged) >= replica.leo

    def is_acked(self, value: str) -> bool:
        self._read_history()
        return value in self._acked

    def is_failed(self, value: str) -> bool:
        self._read_history()
        return value in self._failed

    def _read_history(self) -> None:
        operations = self._cluster.history.operations
        if len(operations) == self._operations_seen:
            return
        for operation in operations[self._operations_seen :]:
            if operation.is_completion:
                reported = self._acked if operation.type == OK else self._failed
                reported.update((value, None) for _, _, value in operation.sends())
        self._operations_seen = len(operations)


def _final_log(
    file: LogFile, hw: int, epochs: tuple[tuple[int, int], ...], begin: int, *, in_sync: bool
) -> FinalLog:
    return FinalLog(
        leo=file.log_end_offset,
        hw=hw,
        flushed=file.flushed_offset,
        epochs=epochs,
        batches=tuple(file.batches[bisect_right(file.batches, begin, key=attrgetter("next_offset")) :]),
        damaged=frozenset(file.damaged),
        begins_at=begin,
        in_sync=in_sync,
    )
