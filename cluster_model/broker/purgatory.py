"""The purgatory for delayed produces and deletions. Fetches use `fetch_session.FetchWatchers`.

After ``DelayedOperation.scala``: an operation is watched under each of its partitions, is tried
again when something happens there, and is completed by force at its deadline. The next check of a
list drops its completed operations.
"""

from typing import Generic, Protocol, TypeVar


class DelayedOperation(Protocol):
    """A waiting operation."""

    completed: bool

    def try_complete(self) -> bool:
        """Complete the operation if what it waits for has happened."""


Operation = TypeVar("Operation", bound=DelayedOperation)


class Purgatory(Generic[Operation]):
    """Delayed operations by partition."""

    __slots__ = ("_watchers",)

    def __init__(self) -> None:
        self._watchers: dict[str, list[Operation]] = {}

    def watch(self, operation: Operation, partitions: list[str]) -> None:
        """Try an operation again whenever something happens to one of its partitions."""
        for partition in partitions:
            self._watchers.setdefault(partition, []).append(operation)

    def check(self, partition: str) -> None:
        """Try the operations that wait for a partition, oldest first, after it changed."""
        watchers = self._watchers.get(partition)
        if not watchers:
            return
        self._watchers[partition] = []
        still_waiting = [o for o in watchers if not o.completed and not o.try_complete()]
        # Operations added in the meantime come after the older ones.
        self._watchers[partition] = still_waiting + self._watchers[partition]
