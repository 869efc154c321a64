"""Follows the transactions and high watermarks of logs event by event, at little cost."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final

from harrow.checks.replay.partition_state import LogTransaction, ReplicaState
from harrow.cluster_model import events


class LogEnds:
    """The transactions and high watermarks of logs, without their records.

    `harrow.checks.replay.cluster_state` replays everything, but takes as long as the run did. This
    class is for the rules that examine every run.
    """

    def __init__(self) -> None:
        self._replicas: dict[tuple[int, str], ReplicaState] = {}

    def of(self, broker: int, partition: str) -> ReplicaState:
        replica = self._replicas.get((broker, partition))
        if replica is None:
            replica = self._replicas[broker, partition] = ReplicaState(broker)
        return replica

    def take(self, name: str, fields: Sequence[Any]) -> None:
        _HANDLERS[name](self, *fields)

    def _raise(self, broker: int, partition: str, hw: int) -> None:
        self.of(broker, partition).raise_high_watermark(hw, 0)

    def _open(self, broker: int, partition: str, leo: int, hw: int) -> None:
        self._cut(broker, partition, leo)
        self.of(broker, partition).open(hw, 0)

    def _truncate(self, broker: int, partition: str, _: int, end: int, __: str) -> None:
        self._cut(broker, partition, end)
        self._raise(broker, partition, min(end, self.of(broker, partition).high_watermark))

    def _cut(self, broker: int, partition: str, end: int, *_: object) -> None:
        self.of(broker, partition).cut(end, 0, 0, "", "")

    def _start_anew(self, broker: int, partition: str, *_: object) -> None:
        self.of(broker, partition).transactions.clear()

    def _raise_start(self, broker: int, partition: str, start: int, *_: object) -> None:
        for transaction in self.of(broker, partition).transactions:
            transaction.first_offset = max(transaction.first_offset, start)

    def _begin(self, broker: int, partition: str, producer_id: int, epoch: int, first_offset: int) -> None:
        self.of(broker, partition).transactions.append(LogTransaction(producer_id, epoch, first_offset))

    def _end(
        self, broker: int, partition: str, producer_id: int, _: int, __: int, offset: int, *___: object
    ) -> None:
        """Record the end of a transaction, and drop those that the high watermark has passed."""
        replica = self.of(broker, partition)
        for transaction in replica.transactions:
            if transaction.producer_id == producer_id and transaction.marker_offset is None:
                transaction.marker_offset = offset
        replica.transactions = [
            transaction
            for transaction in replica.transactions
            if transaction.marker_offset is None or transaction.marker_offset >= replica.high_watermark
        ]

    HANDLERS: ClassVar[Mapping[type[events.Event], Callable[..., None]]] = {
        events.HighWatermarkSet: _raise,
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
    """The method that applies each kind of event, which takes the fields of the event."""


_HANDLERS: Final = {kind.name: handler for kind, handler in LogEnds.HANDLERS.items()}
