"""Tracks the coordinators of groups and transactions: the last leaders of internal partitions."""

from harrow.cluster_model.events import BecameLeader


class Coordinators:
    """The leaders of partitions up to a line of the trace.

    A broker that was paused or cut off reports late what it appended as coordinator, when it
    continues and learns that others have it. Its successor has those records in its log before its
    own, so the order of the trace is not that of the log.
    """

    def __init__(self) -> None:
        self._leaders: dict[str, tuple[int, int]] = {}

    def note(self, event: BecameLeader) -> None:
        """Record a leader, unless a broker has led in a later epoch."""
        led = event.leader_epoch, event.broker
        self._leaders[event.partition] = max(led, self._leaders.get(event.partition, led))

    def is_of_past(self, partition: str | None, broker: int) -> bool:
        """Return whether a later broker leads the partition by now."""
        led = None if partition is None else self._leaders.get(partition)
        return led is not None and led[1] != broker
