"""The last known assignment of each partition of a real cluster."""

import itertools
import threading
from collections.abc import Mapping, Sequence

from harrow.cluster_model.events import ReplicasAssigned
from harrow.cluster_model.topology import is_internal
from harrow.live_cluster.links.observed_requests import Report
from harrow.live_cluster.wire.administration import Assignment


class ObservedAssignments:
    """The assignments of all partitions, new ones included.

    Watches update it; any thread may read it.
    """

    def __init__(self, report: Report) -> None:
        self._report = report
        self._lock = threading.Lock()
        self._of: dict[str, Assignment] = {}
        self.may_move = False
        """Whether the campaign reassigns partitions; otherwise watches need not ask for
        reassignments."""

    def begin(self, topics: Mapping[str, Sequence[Sequence[int]]]) -> None:
        """Set the initial replicas of topics, by partition."""
        for topic, partitions in topics.items():
            for number, replicas in enumerate(partitions):
                self._of[f"{topic}-{number}"] = Assignment(tuple(replicas))

    def partition_names(self) -> tuple[str, ...]:
        """Return the partitions of all topics but internal ones."""
        return tuple(itertools.filterfalse(is_internal, self._of))

    def of(self, partition: str) -> Assignment | None:
        return self._of.get(partition)

    def replicas_of(self, partition: str) -> tuple[int, ...]:
        assignment = self._of.get(partition)
        return () if assignment is None else assignment.replicas

    def owned_by(self, broker: int) -> tuple[str, ...]:
        """Return the partitions that are assigned to a broker."""
        return tuple(name for name in self.partition_names() if broker in self._of[name].replicas)

    def take(self, partition: str, assignment: Assignment) -> None:
        """Update the assignment of a partition, which may be new."""
        with self._lock:
            if self._of.get(partition) != assignment:
                # Replace the dictionary, because other threads iterate over it.
                self._of = {**self._of, partition: assignment}
                self._report(ReplicasAssigned, partition, *assignment)

    def update_from_broker(
        self, replicas: Mapping[str, tuple[int, ...]], moving: Mapping[str, Assignment]
    ) -> None:
        """Update assignments from a broker's *replicas* and a later list of reassignments.

        During a reassignment, a broker lists both the old and the new replicas. It may still do so
        after the end of the reassignment.
        """
        for partition, current in replicas.items():
            before = self._of.get(partition)
            if partition in moving:
                self.take(partition, moving[partition])
            elif before is None or not (before.adding or before.removing) or current != before.replicas:
                self.take(partition, Assignment(current))
