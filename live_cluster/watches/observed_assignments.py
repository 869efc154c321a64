"""Stores the last observed assignment of each partition of a real cluster."""

import itertools
import threading
from collections.abc import Mapping, Sequence

from harrow.cluster_model.events import ReplicasAssigned
from harrow.cluster_model.topology import is_internal
from harrow.live_cluster.links.observed_requests import Report
from harrow.live_cluster.wire.administration import Assignment


class ObservedAssignments:
    """The assignments of all partitions, including new ones.

    Watches update them. Any thread may read them.
    """

    def __init__(self, report: Report) -> None:
        self._report = report
        self._lock = threading.Lock()
        self._assignments: dict[str, Assignment] = {}
        self.may_move = False
        """Whether the campaign reassigns partitions; otherwise watches need not ask for
        reassignments."""

    def set_initial(self, topics: Mapping[str, Sequence[Sequence[int]]]) -> None:
        """Set the initial replicas of topics, by partition."""
        for topic, partitions in topics.items():
            for number, replicas in enumerate(partitions):
                self._assignments[f"{topic}-{number}"] = Assignment(tuple(replicas))

    def partition_names(self) -> tuple[str, ...]:
        """Return the partitions of all topics except internal ones."""
        return tuple(itertools.filterfalse(is_internal, self._assignments))

    def of(self, partition: str) -> Assignment | None:
        return self._assignments.get(partition)

    def replicas_of(self, partition: str) -> tuple[int, ...]:
        assignment = self._assignments.get(partition)
        return () if assignment is None else assignment.replicas

    def owned_by(self, broker: int) -> tuple[str, ...]:
        """Return the partitions that are assigned to a broker."""
        return tuple(name for name in self.partition_names() if broker in self._assignments[name].replicas)

    def update(self, partition: str, assignment: Assignment) -> None:
        """Update the assignment of a partition, which may be new."""
        with self._lock:
            if self._assignments.get(partition) != assignment:
                # Replace the dictionary, because other threads iterate over it.
                self._assignments = {**self._assignments, partition: assignment}
                self._report(ReplicasAssigned, partition, *assignment)

    def update_from_broker(
        self, replicas: Mapping[str, tuple[int, ...]], moving: Mapping[str, Assignment]
    ) -> None:
        """Update assignments from a broker's *replicas* and a later list of reassignments.

        During a reassignment, a broker lists both the old and the new replicas. It may still do so
        after the end of the reassignment.
        """
        for partition, current in replicas.items():
            before = self._assignments.get(partition)
            if partition in moving:
                self.update(partition, moving[partition])
            elif before is None or not (before.adding or before.removing) or current != before.replicas:
                self.update(partition, Assignment(current))
