"""Tracks the coordinators of groups and transactions: the last leaders of internal partitions."""

from harrow.cluster_model.events import BecameLeader


class Coordinators:
    """The leaders of partitions, according to the events that were passed to `note`.

    A coordinator that was paused or cut off reports its last appends late: only when the
    coordinator returns and learns that they were replicated. In the log these appends precede the
    records of its successor, but the trace may show them later.
    """

    def __init__(self) -> None:
        self._leaders: dict[str, tuple[int, int]] = {}

    def note(self, event: BecameLeader) -> None:
        """Keep the event's leader, unless a leader of a later epoch is already known."""
        leader = event.leader_epoch, event.broker
        self._leaders[event.partition] = max(leader, self._leaders.get(event.partition, leader))

    def is_superseded(self, partition: str | None, broker: int) -> bool:
        """Return whether another broker became leader of the partition after *broker*."""
        leader = None if partition is None else self._leaders.get(partition)
        return leader is not None and leader[1] != broker
