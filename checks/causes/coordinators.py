"""Who coordinates groups and transactions: the leader of a partition of an internal topic, in the latest epoch that any has begun."""

from harrow.cluster_model.events import BecameLeader


class Coordinators:
    """The leaders of partitions up to a line of the trace.

    A broker that has stood still, or was cut off, tells late what it has appended as coordinator: when it goes on and sees that others have
    it. Its successor has that in its log before anything of its own, so that the order in the trace is not the one in the log.
    """

    def __init__(self) -> None:
        self._leaders: dict[str, tuple[int, int]] = {}

    def note(self, event: BecameLeader) -> None:
        """Take notice of who leads, unless somebody has begun to in a later epoch."""
        led = event.leader_epoch, event.broker
        self._leaders[event.partition] = max(led, self._leaders.get(event.partition, led))

    def is_of_past(self, partition: str | None, broker: int) -> bool:
        """Return whether another broker than this one leads the partition by now."""
        led = None if partition is None else self._leaders.get(partition)
        return led is not None and led[1] != broker
