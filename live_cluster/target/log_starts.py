"""Where the logs of replicas begin: brokers tell it from 0.11 on, and what is on disk tells it where whole segments went."""

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
from harrow.live_cluster.watches.metadata_seen import SeenPartition


class LogStarts:
    """Puts into the trace that logs begin later, or earlier again, and knows where they begin as far as the trace tells.

    *told* returns the log starts that a broker has told, by partition, *deleted_below* the offset below which records
    may have been deleted by request. A broker logs no reason that tells records deleted for their age from others: the judge decides.
    """

    def __init__(
        self,
        trace: Trace,
        logs: Mapping[int, ReplicaLogs],
        told: Callable[[int], Mapping[str, int]],
        partition_state: Callable[[str], SeenPartition | None],
        deleted_below: Callable[[str], int],
    ) -> None:
        self._trace = trace
        self._logs = logs
        self._told = told
        self._partition_state = partition_state
        self._deleted_below = deleted_below
        self._known: dict[tuple[int, str], int] = {}
        # Up to where leaders were seen to do what they were asked for.
        self._obeyed: dict[str, int] = {}
        trace.subscribe(LogLost, self._is_lost)
        trace.subscribe(LogDeleted, self._is_lost)

    def of(self, broker: int, partition: str) -> int:
        """Return where a broker's log of a partition begins."""
        return self._known.get((broker, partition), 0)

    def look(self, broker: int, partitions: Iterable[str]) -> None:
        """Take note of where a broker's logs begin by now."""
        told, logs = self._told(broker), self._logs[broker]
        for partition in partitions:
            known, on_disk = self.of(broker, partition), logs.begin(partition)
            start = told.get(partition)
            if start is not None and start < known and start >= on_disk:
                self._trace.emit(LogStartReverted, broker, partition, known, start)
                self._known[broker, partition] = start
            start = on_disk if start is None else max(start, on_disk)
            if start > known:
                self._raise(broker, partition, start, logs.size_bytes(partition))

    def _raise(self, broker: int, partition: str, start: int, bytes_left: int) -> None:
        state = self._partition_state(partition)
        leader = broker if state is None else state.leader
        reason = RETENTION_MS
        if start <= self._deleted_below(partition):
            reason = DELETE_RECORDS if broker == leader else LEADER_LOG_START
            if start > self._obeyed.get(partition, 0):
                self._obeyed[partition] = start
                self._trace.emit(DeleteRecordsObeyed, leader, partition, start)
        self._known[broker, partition] = start
        self._trace.emit(LogStartRaised, broker, partition, start, reason, bytes_left)

    def _is_lost(self, _at_us: int, broker: int, partition: str, *_: object) -> None:
        self._known.pop((broker, partition), None)
