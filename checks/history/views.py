"""Views that show rows of a history as sequences and mappings of objects."""

# Plain Python: mypyc does not support classes that inherit from `Sequence` or `Mapping`.

from collections.abc import Iterator, KeysView, Mapping, Sequence
from typing import NamedTuple, overload

from harrow.checks.history.index import HistoryIndex
from harrow.checks.history.records import Pair, SendRecord


class SendsByRow(Sequence[SendRecord]):
    """Some of the sends to a partition, stored as row numbers of the history.

    A `SendRecord` is created only for a send that is accessed. Code that visits every send of a run
    reads the columns of the history instead.
    """

    __slots__ = ("_history", "_partition", "rows")

    def __init__(self, history: HistoryIndex, partition: str, rows: Sequence[int]) -> None:
        self._history = history
        self._partition = partition
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, index: int) -> SendRecord: ...

    @overload
    def __getitem__(self, index: slice) -> "SendsByRow": ...

    def __getitem__(self, index: int | slice) -> "SendRecord | SendsByRow":
        if isinstance(index, slice):
            return SendsByRow(self._history, self._partition, self.rows[index])
        return self._history.send(self._partition, self.rows[index])


class SessionSends(NamedTuple):
    """The sends of a process to a partition, in the order of their invocations."""

    process: int
    partition: str
    sends: SendsByRow


class PolledPairs(Mapping[str, KeysView[Pair]]):
    """All (offset, value) pairs that consumers read, by partition.

    Each access builds the pairs of a partition again.
    """

    __slots__ = ("_history", "_names")

    def __init__(self, history: HistoryIndex) -> None:
        self._history = history
        self._names = {name: None for name, partition in history.partitions.items() if partition.polled}

    def __getitem__(self, partition: str) -> KeysView[Pair]:
        if partition not in self._names:
            raise KeyError(partition)
        rows = self._history.partitions[partition].polled
        return dict.fromkeys(map(self._history.records.pair, rows)).keys()

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
