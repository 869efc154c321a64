"""Which brokers have the replicas of each partition, as the control plane of a real cluster has told last."""

import itertools
import threading
from collections.abc import Mapping, Sequence

from harrow.cluster_model.events import ReplicasAssigned
from harrow.cluster_model.topology import is_internal
from harrow.live_cluster.links.requests_seen import Report
from harrow.live_cluster.wire.administration import Assignment


class AssignmentsSeen:
    """The partitions that there are, with those that topics get while a campaign runs. Any thread may ask, and the watches tell."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._lock = threading.Lock()
        self._of: dict[str, Assignment] = {}
        self.may_move = False
        """Whether partitions may be given other replicas: only then is it worth asking for reassignments."""

    def begin(self, topics: Mapping[str, Sequence[Sequence[int]]]) -> None:
        """Take note of the replicas that topics are created with, partition by partition."""
        for topic, partitions in topics.items():
            for number, replicas in enumerate(partitions):
                self._of[f"{topic}-{number}"] = Assignment(tuple(replicas))

    def partition_names(self) -> tuple[str, ...]:
        """Return the partitions that clients have: those of internal topics are left out."""
        return tuple(itertools.filterfalse(is_internal, self._of))

    def of(self, partition: str) -> Assignment | None:
        """Return the assignment of a partition, None while there is no such partition."""
        return self._of.get(partition)

    def replicas_of(self, partition: str) -> tuple[int, ...]:
        """Return the brokers that a partition is assigned to, none while there is no such partition."""
        assignment = self._of.get(partition)
        return () if assignment is None else assignment.replicas

    def owned_by(self, broker: int) -> tuple[str, ...]:
        """Return those that a broker is to have replicas of."""
        return tuple(name for name in self.partition_names() if broker in self._of[name].replicas)

    def take(self, partition: str, assignment: Assignment) -> None:
        """Take over what the control plane says of a partition, which may be a new one."""
        with self._lock:
            if self._of.get(partition) != assignment:
                # A copy: others go through what there was.
                self._of = {**self._of, partition: assignment}
                self._report(ReplicasAssigned, partition, *assignment)

    def take_told(self, replicas: Mapping[str, tuple[int, ...]], moving: Mapping[str, Assignment]) -> None:
        """Take over the *replicas* that a broker tells, and the reassignments that the controller says are under way, asked after it.

        What a broker tells during a reassignment are the replicas that come and those that go. It may still tell that when the
        reassignment is over.
        """
        for partition, told in replicas.items():
            before = self._of.get(partition)
            if partition in moving:
                self.take(partition, moving[partition])
            elif before is None or not (before.adding or before.removing) or told != before.replicas:
                self.take(partition, Assignment(told))
