"""Caches brokers, assignments and leaders for the controller (``ControllerContext.scala``)."""

from collections.abc import Collection, Iterable
from dataclasses import field

from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.protocol import LeaderAndIsr, LeaderAndIsrPartitionState, ReplicaAssignment


@dataclass(slots=True, eq=False)
class ControllerContext:
    """The cache of one controller's term.

    Brokers in controlled shutdown are live and get all requests, but are not elected leaders
    (``liveOrShuttingDownBrokerIds`` and ``liveBrokerIds``).
    """

    epoch: int = 0
    epoch_zk_version: int = 0
    live_brokers: dict[int, int] = field(default_factory=dict)
    """The broker epochs of live brokers, by broker id."""
    shutting_down: set[int] = field(default_factory=set)
    topics: dict[str, int] = field(default_factory=dict)
    """The number of partitions of each topic."""
    assignments: dict[str, tuple[int, ...]] = field(default_factory=dict)
    changing_assignments: dict[str, ReplicaAssignment] = field(default_factory=dict)
    """The assignments with replicas to add or remove."""
    partitions_being_reassigned: dict[str, None] = field(default_factory=dict)
    """The partitions whose reassignment is not complete (``partitionsBeingReassigned``)."""
    leadership: dict[str, LeaderAndIsr] = field(default_factory=dict)
    offline_partitions: set[str] = field(default_factory=set)
    offline_replicas: dict[int, dict[str, None]] = field(default_factory=dict)
    """The partitions in failed log directories by live broker (``replicasOnOfflineDirs``)."""

    def live(self) -> tuple[int, ...]:
        """Return the live brokers' ids, sorted."""
        return tuple(sorted(self.live_brokers))

    def can_lead(self, partition: str | None = None) -> frozenset[int]:
        """Return the live brokers that can lead, or those that can lead *partition*.

        A broker cannot lead a partition whose log directory has failed there.
        """
        eligible = frozenset(self.live_brokers.keys() - self.shutting_down)
        if partition is None or not self.offline_replicas:
            return eligible
        return frozenset(b for b in eligible if partition not in self.offline_replicas.get(b, ()))

    def is_online(self, broker: int, partition: str, online: Collection[int]) -> bool:
        """Return whether a broker in *online* has a partition's log (``isReplicaOnline``)."""
        return broker in online and partition not in self.offline_replicas.get(broker, ())

    def dead_brokers(self) -> tuple[int, ...]:
        """Return the dead brokers that have replicas, sorted."""
        assigned = {broker for replicas in self.assignments.values() for broker in replicas}
        return tuple(sorted(assigned - self.live_brokers.keys()))

    def add_topic(self, topic: str, assignment: tuple[ReplicaAssignment, ...]) -> None:
        """Add the assignments of a topic's new partitions."""
        for number in range(self.topics.get(topic, 0), len(assignment)):
            partition = f"{topic}-{number}"
            self.assign(partition, assignment[number])
            if assignment[number].is_being_reassigned:
                self.partitions_being_reassigned[partition] = None
        self.topics[topic] = len(assignment)

    def remove_topic(self, topic: str, partitions: Iterable[str]) -> None:
        """Forget a deleted topic and its partitions."""
        self.topics.pop(topic, None)
        for partition in partitions:
            self.assignments.pop(partition, None)
            self.changing_assignments.pop(partition, None)
            self.partitions_being_reassigned.pop(partition, None)
            self.leadership.pop(partition, None)
            self.offline_partitions.discard(partition)
            for offline in self.offline_replicas.values():
                offline.pop(partition, None)

    def assign(self, partition: str, assignment: ReplicaAssignment) -> None:
        """Set a partition's replicas (``updatePartitionFullReplicaAssignment``)."""
        self.assignments[partition] = assignment.replicas
        self.changing_assignments.pop(partition, None)
        if assignment.is_being_reassigned:
            self.changing_assignments[partition] = assignment

    def assignment(self, partition: str) -> ReplicaAssignment:
        """Return a partition's replicas (``partitionFullReplicaAssignment``)."""
        return self.changing_assignments.get(partition) or ReplicaAssignment(self.assignments[partition])

    def topic_assignment(self, topic: str) -> tuple[ReplicaAssignment, ...]:
        """Return the assignments of a topic's partitions."""
        return tuple(self.assignment(f"{topic}-{number}") for number in range(self.topics[topic]))

    def remove_live_brokers(self, brokers: Iterable[int]) -> None:
        """Remove brokers that have ended."""
        for broker in brokers:
            self.live_brokers.pop(broker, None)
            self.shutting_down.discard(broker)
            self.offline_replicas.pop(broker, None)

    def mark_offline_partitions(self, online: Collection[int]) -> bool:
        """Mark partitions whose leader is not online. Return whether any mark is new."""
        newly_offline = {
            partition
            for partition, state in self.leadership.items()
            if partition not in self.offline_partitions
            and not self.is_online(state.leader, partition, online)
        }
        self.offline_partitions |= newly_offline
        return bool(newly_offline)

    def state(self, partition: str) -> LeaderAndIsrPartitionState:
        """Return a partition's state for control requests."""
        return LeaderAndIsrPartitionState(self.epoch, self.leadership[partition], self.assignments[partition])

    def states(self, partitions: Iterable[str]) -> dict[str, LeaderAndIsrPartitionState]:
        """Return the states of several partitions."""
        return {partition: self.state(partition) for partition in partitions if partition in self.leadership}

    def imbalanced_partitions(self, percentage: int) -> list[str]:
        """Return the partitions that preferred leaders have lost to other brokers.

        Only live preferred leaders count that have lost more than *percentage* of their partitions.
        """
        preferred: dict[int, list[str]] = {}
        for partition, replicas in self.assignments.items():
            preferred.setdefault(replicas[0], []).append(partition)
        imbalanced = []
        for broker, partitions in preferred.items():
            lost = [p for p in partitions if p in self.leadership and self.leadership[p].leader != broker]
            if broker in self.can_lead() and len(lost) * 100 > percentage * len(partitions):
                imbalanced += lost
        return imbalanced

    def replicated_partitions(self, broker: int) -> tuple[list[str], list[str]]:
        """Return the partitions with several replicas that a broker leads, and those it follows."""
        led: list[str] = []
        followed: list[str] = []
        for partition, replicas in self.assignments.items():
            if broker in replicas and len(replicas) > 1 and partition in self.leadership:
                (led if self.leadership[partition].leader == broker else followed).append(partition)
        return led, followed
