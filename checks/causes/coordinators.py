"""Tracks the coordinators of groups and transactions: the last leaders of internal partitions."""

from harrow.cluster_model.events import BecameLeader


class Coordinators:
    """The leaders of partitions, according to the events noted so far.

    A coordinator that was paused or cut off reports its last appends late: only when it is back
    and learns that they were replicated. In the log they precede the records of its successor,
    but the trace may show them after those.
    """

    def __init__(self) -> None:
        self._leaders: dict[str, tuple[int, int]] = {}

    def note(self, event: BecameLeader) -> None:
        """Record a leader, unless one of a later epoch is already recorded."""
        leader = event.leader_epoch, event.broker
        self._leaders[event.partition] = max(leader, self._leaders.get(event.partition, leader))

    def is_superseded(self, partition: str | None, broker: int) -> bool:
        """Return whether another broker has become leader of the partition since *broker* was."""
        leader = None if partition is None else self._leaders.get(partition)
        return leader is not None and leader[1] != broker
