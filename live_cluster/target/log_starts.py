"""Follows the log start offsets of replicas, as brokers report them and as disks have them."""

from collections.abc import Callable, Iterable, Mapping

from harrow.cluster_model.events import (
    DeleteRecordsObeyed,
    LogDeleted,
    LogLost,
    LogStartRaised,
    LogStartReverted,
)
from harrow.cluster_model.log.unified_log import DELETE_RECORDS, LEADER_LOG_START, RETENTION_MS
from harrow.cluster_model.trace import Trace
from harrow.live_cluster.target.real_cluster import ReplicaLogs
from harrow.live_cluster.watches.observed_metadata import ObservedPartition


class LogStarts:
    """Reports log start offsets that rise or fall back, and keeps the last reported ones.

    *reported* returns the log starts that a broker has reported, *deleted_below* the offset below
    which requests may have deleted records. Brokers do not log why they delete a segment: the rules
    decide whether the age of the segment explains the deletion.
    """

    def __init__(
        self,
        trace: Trace,
        logs: Mapping[int, ReplicaLogs],
        reported: Callable[[int], Mapping[str, int]],
        partition_state: Callable[[str], ObservedPartition | None],
        deleted_below: Callable[[str], int],
    ) -> None:
        self._trace = trace
        self._logs = logs
        self._reported = reported
        self._partition_state = partition_state
        self._deleted_below = deleted_below
        self._starts: dict[tuple[int, str], int] = {}
        # The offsets up to which leaders have deleted on request.
        self._deleted_up_to: dict[str, int] = {}
        trace.subscribe(LogLost, self._forget)
        trace.subscribe(LogDeleted, self._forget)

    def log_start_of(self, broker: int, partition: str) -> int:
        return self._starts.get((broker, partition), 0)

    def observe(self, broker: int, partitions: Iterable[str]) -> None:
        """Report changes of a broker's log starts."""
        reported, logs = self._reported(broker), self._logs[broker]
        for partition in partitions:
            before, on_disk = self.log_start_of(broker, partition), logs.log_start(partition)
            start = reported.get(partition)
            if start is not None and start < before and start >= on_disk:
                self._trace.emit(LogStartReverted, broker, partition, before, start)
                self._starts[broker, partition] = start
            start = on_disk if start is None else max(start, on_disk)
            if start > before:
                self._report_raise(broker, partition, start, logs.size_bytes(partition))

    def _report_raise(self, broker: int, partition: str, start: int, bytes_left: int) -> None:
        state = self._partition_state(partition)
        leader = broker if state is None else state.leader
        reason = RETENTION_MS
        if start <= self._deleted_below(partition):
            reason = DELETE_RECORDS if broker == leader else LEADER_LOG_START
            if start > self._deleted_up_to.get(partition, 0):
                self._deleted_up_to[partition] = start
                self._trace.emit(DeleteRecordsObeyed, leader, partition, start)
        self._starts[broker, partition] = start
        self._trace.emit(LogStartRaised, broker, partition, start, reason, bytes_left)

    def _forget(self, broker: int, partition: str, *_: object) -> None:
        self._starts.pop((broker, partition), None)
