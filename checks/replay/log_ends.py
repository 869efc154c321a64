"""Follows the transactions and high watermarks of all logs through a trace, cheaply."""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final, NamedTuple

from harrow.checks.replay.partition_state import LogTransaction, ReplicaState
from harrow.cluster_model import events
from harrow.cluster_model.trace import TraceEvent


class ReadAboveLso(NamedTuple):
    """An answer to a read_committed consumer that went beyond the last stable offset.

    ``number`` is the line of the answer, ``row`` the event as the trace stores it. ``lso`` is the
    last stable offset, and ``holding`` the transaction that begins there, None if the high
    watermark is the limit.
    """

    number: int
    row: TraceEvent
    lso: int
    holding: LogTransaction | None


class LogEnds:
    """The transactions and high watermarks of logs, without their records.

    `harrow.checks.replay.cluster_state` replays everything, but takes as long as the run. This
    class is for rules that examine every run: it reads each event of a few kinds once.
    ``partitions`` are the partitions that had transactions, in the order of the trace, without
    deleted ones, for which *exists* is false. ``reads`` are the answers to *readers* that went
    beyond the last stable offset.
    """

    __slots__ = ("_replicas", "partitions", "reads")

    def __init__(
        self,
        lines: Iterable[tuple[int, TraceEvent]],
        readers: Collection[str],
        exists: Callable[[str], bool],
    ) -> None:
        self.partitions: dict[str, None] = {}
        self.reads: list[ReadAboveLso] = []
        # By partition and broker. A tuple as key would take several times as long.
        replicas: dict[str, dict[int, ReplicaState]] = {}
        self._replicas = replicas
        for number, row in lines:
            name: str = row[1]
            broker: int = row[2]
            partition: str = row[3]
            of_partition = replicas.get(partition)
            if of_partition is None:
                of_partition = replicas[partition] = {}
            replica = of_partition.get(broker)
            if replica is None:
                replica = of_partition[broker] = ReplicaState(broker)
            if name == _RAISED:
                replica.pass_to(row[4])
            elif name == _SERVED:
                if replica.transactions and row[4] in readers and row[6] > (lso := replica.lso):
                    self.reads.append(ReadAboveLso(number, row, lso, _holding(replica, lso)))
            else:
                if name == _BEGUN and exists(partition):
                    self.partitions[partition] = None
                _HANDLERS[name](replica, row)

    def of(self, broker: int, partition: str) -> ReplicaState:
        """Return the final state of a log, which has no records here."""
        return self._replicas.get(partition, {}).get(broker) or ReplicaState(broker)


def _holding(replica: ReplicaState, lso: int) -> LogTransaction | None:
    return next((each for each in replica.transactions if each.first_offset == lso), None)


def _open(replica: ReplicaState, row: TraceEvent) -> None:
    _cut_at(replica, row[4])
    replica.open(row[5], 0)


def _truncate(replica: ReplicaState, row: TraceEvent) -> None:
    end: int = row[5]
    _cut_at(replica, end)
    replica.pass_to(min(end, replica.high_watermark))


def _cut(replica: ReplicaState, row: TraceEvent) -> None:
    _cut_at(replica, row[4])


def _cut_at(replica: ReplicaState, end: int) -> None:
    replica.cut(end, 0, 0, "", "")


def _start_anew(replica: ReplicaState, _: TraceEvent) -> None:
    replica.transactions.clear()


def _raise_start(replica: ReplicaState, row: TraceEvent) -> None:
    start: int = row[4]
    for transaction in replica.transactions:
        transaction.first_offset = max(transaction.first_offset, start)


def _begin(replica: ReplicaState, row: TraceEvent) -> None:
    replica.transactions.append(LogTransaction(row[4], row[5], row[6]))


def _end(replica: ReplicaState, row: TraceEvent) -> None:
    """Set the end of a transaction, and drop transactions that the high watermark has passed."""
    producer_id: int = row[4]
    offset: int = row[7]
    for transaction in replica.transactions:
        if transaction.producer_id == producer_id and transaction.marker_offset is None:
            transaction.marker_offset = offset
    replica.transactions = [
        transaction
        for transaction in replica.transactions
        if transaction.marker_offset is None or transaction.marker_offset >= replica.high_watermark
    ]


HANDLERS: Final[Mapping[type[events.Event], Callable[[ReplicaState, TraceEvent], None]]] = {
    events.LogOpened: _open,
    events.LogTruncated: _truncate,
    events.UnflushedLost: _cut,
    events.CorruptionCut: _cut,
    events.LogLost: _cut,
    events.LogStartedAnew: _start_anew,
    events.LogStartRaised: _raise_start,
    events.TransactionBegun: _begin,
    events.TransactionMarkerWritten: _end,
}
"""The function that applies each kind of event to a replica, except for the very frequent kinds."""

FOLLOWED: Final = (*HANDLERS, events.HighWatermarkSet, events.RecordsServed)
"""The kinds of events that `LogEnds` reads. All begin with the broker and the partition."""

_HANDLERS: Final = {kind.name: handler for kind, handler in HANDLERS.items()}
_RAISED: Final = events.HighWatermarkSet.name
_SERVED: Final = events.RecordsServed.name
_BEGUN: Final = events.TransactionBegun.name
