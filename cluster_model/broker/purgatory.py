"""Implements the purgatory: requests that wait for replicas, for data, or for their deadline.

Modelled on ``DelayedOperation.scala``. The purgatory tries an operation again when one of its
partitions changes, and completes it by force at its deadline.
"""

from harrow.cluster_model.compiling import mypyc_attr


@mypyc_attr(allow_interpreted_subclasses=True)
class TimedOperation:
    """An operation with a deadline."""

    __slots__ = ("completed", "deadline_us")

    completed: bool
    deadline_us: int

    def expire(self) -> None:
        """Complete the operation by force, because its deadline is over."""
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class DelayedOperation(TimedOperation):
    """An operation that waits for replicas."""

    __slots__ = ()

    def try_complete(self) -> bool:
        """Complete the operation if its condition holds. Return whether it is complete."""
        raise NotImplementedError


class Watchers:
    """The operations that wait for one partition (``DelayedOperationPurgatory.Watchers``).

    Operations that have completed elsewhere are dropped by the next `check`.
    """

    __slots__ = ("_operations",)

    def __init__(self) -> None:
        self._operations: list[DelayedOperation] = []

    def watch(self, operation: DelayedOperation) -> None:
        """Try an operation again whenever something happens to the partition."""
        self._operations.append(operation)

    def check(self) -> None:
        """Try the operations, oldest first, after the partition changed."""
        operations = self._operations
        if not operations:
            return
        self._operations = []
        still_waiting = [o for o in operations if not o.completed and not o.try_complete()]
        # Operations that were added in the meantime come after the older ones.
        self._operations = still_waiting + self._operations
