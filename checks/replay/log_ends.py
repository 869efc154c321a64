"""Where transactions of logs begin and end, and how far high watermarks are, followed event by event at little cost."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final

from harrow.checks.replay.partition_state import LogTransaction, ReplicaState
from harrow.cluster_model import events


class LogEnds:
    """What logs have of transactions, and their high watermarks: of their records nothing.

    `harrow.checks.replay.cluster_state` has all of it, and costs as much as a run; this is for rules that look at each run.
    """

    def __init__(self) -> None:
        self._replicas: dict[tuple[int, str], ReplicaState] = {}

    def of(self, broker: int, partition: str) -> ReplicaState:
        found = self._replicas.get((broker, partition))
        if found is None:
            found = self._replicas[broker, partition] = ReplicaState(broker)
        return found

    def take(self, name: str, fields: Sequence[Any]) -> None:
        """Take an event into account, by its name and fields."""
        _TAKES[name](self, *fields)

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
        for known in self.of(broker, partition).transactions:
            known.first_offset = max(known.first_offset, start)

    def _begin(self, broker: int, partition: str, producer_id: int, epoch: int, first_offset: int) -> None:
        self.of(broker, partition).transactions.append(LogTransaction(producer_id, epoch, first_offset))

    def _end(
        self, broker: int, partition: str, producer_id: int, _: int, __: int, offset: int, *___: object
    ) -> None:
        """Note the end of a transaction; those that the high watermark has passed are forgotten."""
        replica = self.of(broker, partition)
        for known in replica.transactions:
            if known.producer_id == producer_id and known.marker_offset is None:
                known.marker_offset = offset
        replica.transactions = [
            known
            for known in replica.transactions
            if known.marker_offset is None or known.marker_offset >= replica.high_watermark
        ]

    TAKES: ClassVar[Mapping[type[events.Event], Callable[..., None]]] = {
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
    """What each kind of event changes: called with its fields."""


_TAKES: Final = {kind.name: take for kind, take in LogEnds.TAKES.items()}
