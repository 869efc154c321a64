"""What the controller knows: live brokers, assignments, leaders and ISRs (``ControllerContext.scala``)."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from harrow.cluster_model.protocol import LeaderAndIsr, LeaderAndIsrPartitionState


@dataclass(slots=True, eq=False)
class ControllerContext:
    """The cache of one controller's term of office.

    Brokers in controlled shutdown are live, and told everything, but lead nothing that they do not lead already
    (``liveOrShuttingDownBrokerIds`` and ``liveBrokerIds``).
    """

    epoch: int = 0
    epoch_zk_version: int = 0
    live_brokers: dict[int, int] = field(default_factory=dict)
    shutting_down: set[int] = field(default_factory=set)
    topics: dict[str, None] = field(default_factory=dict)
    assignments: dict[str, tuple[int, ...]] = field(default_factory=dict)
    leadership: dict[str, LeaderAndIsr] = field(default_factory=dict)
    offline_partitions: set[str] = field(default_factory=set)
    offline_replicas: dict[int, dict[str, None]] = field(default_factory=dict)
    """The partitions of each live broker whose log directory has failed there (``replicasOnOfflineDirs``)."""

    def live(self) -> tuple[int, ...]:
        """Return the live brokers' ids, sorted."""
        return tuple(sorted(self.live_brokers))

    def can_lead(self, partition: str | None = None) -> frozenset[int]:
        """Return the live brokers that are not shutting down, of a *partition* those that have its log."""
        found = frozenset(self.live_brokers.keys() - self.shutting_down)
        if partition is None or not self.offline_replicas:
            return found
        return frozenset(b for b in found if partition not in self.offline_replicas.get(b, ()))

    def is_online(self, broker: int, partition: str, online: Collection[int]) -> bool:
        """Return whether a broker is one of those that are *online*, and has a partition's log (``isReplicaOnline``)."""
        return broker in online and partition not in self.offline_replicas.get(broker, ())

    def dead_brokers(self) -> tuple[int, ...]:
        """Return the brokers that have replicas and are not alive, sorted."""
        assigned = {broker for replicas in self.assignments.values() for broker in replicas}
        return tuple(sorted(assigned - self.live_brokers.keys()))

    def add_topic(self, topic: str, assignment: tuple[tuple[int, ...], ...]) -> None:
        """Note the replicas of a topic's partitions."""
        self.topics[topic] = None
        for number, replicas in enumerate(assignment):
            self.assignments[f"{topic}-{number}"] = replicas

    def remove_live_brokers(self, brokers: Iterable[int]) -> None:
        """Note that brokers are gone."""
        for broker in brokers:
            self.live_brokers.pop(broker, None)
            self.shutting_down.discard(broker)
            self.offline_replicas.pop(broker, None)

    def mark_offline_partitions(self, online: Collection[int]) -> bool:
        """Mark the partitions whose leader is not online; return whether there are new ones."""
        newly = {
            partition
            for partition, state in self.leadership.items()
            if partition not in self.offline_partitions
            and not self.is_online(state.leader, partition, online)
        }
        self.offline_partitions |= newly
        return bool(newly)

    def state(self, partition: str) -> LeaderAndIsrPartitionState:
        """Return a partition's state as control requests have it."""
        return LeaderAndIsrPartitionState(self.epoch, self.leadership[partition], self.assignments[partition])

    def states(self, partitions: Iterable[str]) -> dict[str, LeaderAndIsrPartitionState]:
        """Return the states of several partitions."""
        return {partition: self.state(partition) for partition in partitions if partition in self.leadership}

    def imbalanced_partitions(self, percentage: int) -> list[str]:
        """Return partitions to move back to preferred leaders that have lost more than *percentage*."""
        preferred: dict[int, list[str]] = {}
        for partition, replicas in self.assignments.items():
            preferred.setdefault(replicas[0], []).append(partition)
        found = []
        for broker, partitions in preferred.items():
            lost = [p for p in partitions if p in self.leadership and self.leadership[p].leader != broker]
            if broker in self.can_lead() and len(lost) * 100 > percentage * len(partitions):
                found += lost
        return found

    def replicated(self, broker: int) -> tuple[list[str], list[str]]:
        """Return the partitions with other replicas that a broker leads, and those that it follows."""
        led: list[str] = []
        followed: list[str] = []
        for partition, replicas in self.assignments.items():
            if broker in replicas and len(replicas) > 1 and partition in self.leadership:
                (led if self.leadership[partition].leader == broker else followed).append(partition)
        return led, followed
