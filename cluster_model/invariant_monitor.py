"""Watches the invariants of a cluster while it runs.

Actors say what they have changed, by the hooks of `InvariantMonitor`; each check looks at what
has changed, and at nothing else. A broken invariant is an event of the trace and no error: under
an old release or a mutant it is what the run is there to find.
"""

from collections.abc import Collection, Mapping

from cluster_model.control_invariants import CONTROL_CHECKS
from cluster_model.disk import Disk
from cluster_model.invariant_checks import Broken, Checks
from cluster_model.invariants import INVARIANTS
from cluster_model.log_invariants import LOG_CHECKS
from cluster_model.protocol import LeaderAndIsr
from cluster_model.replica_invariants import REPLICA_CHECKS
from cluster_model.replica_log import ReplicaLog
from cluster_model.watched_replica import Leader, WatchedPartition
from cluster_model.zookeeper_protocol import TopicPartitionState


class InvariantMonitor:
    """The invariants of one cluster that are watched, by name; of those that are not, nothing is done.

    The hooks are called when a change has been made.
    """

    __slots__ = ("_checks", "_disks", "_partitions", "_watches_replicas")

    def __init__(self, names: Collection[str], disks: Mapping[int, Disk], broken: Broken) -> None:
        self._disks = disks
        self._partitions: dict[str, WatchedPartition] = {}
        self._checks = Checks(broken)
        watched = {**LOG_CHECKS, **REPLICA_CHECKS, **CONTROL_CHECKS}
        for name in INVARIANTS:
            if name in names and name in watched:
                watched[name](self._checks)
        self._watches_replicas = self._checks.watch_replicas()

    # What happens to a log

    def log_opened(self, broker: int, partition: str, log: ReplicaLog) -> None:
        """A broker that has started has opened a log."""
        if self._watches_replicas:
            replica = self._partition(partition).replica(broker)
            replica.log = log
            replica.leader = None
            replica.latest_entry = None
            replica.hw = 0
            for check in self._checks.on_open:
                check(replica)
            replica.hw = log.high_watermark

    def appended(self, broker: int, partition: str) -> None:
        """A log has got a batch, of a producer or of a leader."""
        if self._checks.on_append:
            replica = self._partitions[partition].replicas[broker]
            for check in self._checks.on_append:
                check(replica)

    def high_watermark_set(self, broker: int, partition: str) -> None:
        """A leader or a follower has set its high watermark."""
        if self._watches_replicas:
            replica = self._partitions[partition].replicas[broker]
            for check in self._checks.on_high_watermark:
                check(replica)
            if replica.log is not None:
                replica.hw = replica.log.high_watermark

    def truncated(self, broker: int, partition: str) -> None:
        """A log has been cut back; its high watermark may have gone down with it."""
        if self._watches_replicas:
            replica = self._partitions[partition].replicas[broker]
            for check in self._checks.on_truncate:
                check(replica)
            if replica.log is not None:
                replica.hw = replica.log.high_watermark

    def checkpoint_written(self, broker: int, kind: str, offsets: Mapping[str, int]) -> None:
        """A broker has written a checkpoint of the logs that it has open."""
        if self._checks.on_checkpoint:
            for name, offset in offsets.items():
                replica = self._partition(name).replica(broker)
                for check in self._checks.on_checkpoint:
                    check(replica, kind, offset)

    def broker_stopped(self, broker: int) -> None:
        """A broker's process has ended: its logs are on its disk, nobody leads from there."""
        for partition in self._partitions.values():
            replica = partition.replicas.get(broker)
            if replica is not None:
                replica.log = None
                replica.leader = None
        for check in self._checks.on_stop:
            check(broker)

    # Leaders, ISRs, controllers

    def became_leader(self, leader: Leader) -> None:
        """A broker has become leader, or goes on as leader in a new epoch."""
        if self._watches_replicas:
            partition = self._partition(leader.name)
            replica = partition.replica(leader.broker)
            replica.leader = leader
            self._isr_is(partition, leader.leader_epoch, leader.isr)
            for check in self._checks.on_leader:
                check(replica, leader)

    def became_follower(self, broker: int, partition: str) -> None:
        """A broker follows a leader, or none."""
        if self._watches_replicas:
            self._partition(partition).replica(broker).leader = None

    def isr_changed(self, leader: Leader) -> None:
        """A leader has learned that an ISR of its making has been written."""
        if self._watches_replicas:
            self._isr_is(self._partition(leader.name), leader.leader_epoch, leader.isr)

    def partition_created(self, partition: str, leader_epoch: int, isr: tuple[int, ...]) -> None:
        """A controller has written the first leader epoch of a partition, with its ISR."""
        if self._watches_replicas:
            self._isr_is(self._partition(partition), leader_epoch, isr)

    def controller_elected(self, broker: int, controller_epoch: int) -> None:
        """A broker has become controller."""
        for check in self._checks.on_controller:
            check(broker, controller_epoch)

    # Who is obeyed, and what a controller knows

    def broker_registered(self, broker: int) -> None:
        """A broker's registration stands in ``/brokers/ids``, and the broker knows it."""
        for check in self._checks.on_registered:
            check(broker)

    def control_request_obeyed(self, broker: int, api: str, controller_epoch: int) -> None:
        """A broker does what a controller of this epoch says."""
        for check in self._checks.on_control_request:
            check(broker, api, controller_epoch)

    def leader_epoch_taken(self, broker: int, partition: str, leader_epoch: int) -> None:
        """A replica leads or follows in this leader epoch from now on."""
        for check in self._checks.on_leader_epoch:
            check(broker, partition, leader_epoch)

    def partition_state_written(
        self,
        broker: int,
        partition: str,
        before: TopicPartitionState,
        state: TopicPartitionState,
        present_epoch: int,
    ) -> None:
        """A broker, as leader or as controller, has written a znode; ``/controller_epoch`` has *present_epoch*.

        What a controller writes, a new leader epoch with its ISR, holds from now on: when the controller
        hears of it, if ever, leaders may have changed it long ago.
        """
        if self._watches_replicas and state.leader_epoch > before.leader_epoch:
            self._isr_is(self._partition(partition), state.leader_epoch, state.isr)
        for check in self._checks.on_state_written:
            check(broker, partition, before, state, present_epoch)

    def broker_change_processed(
        self, controller: int, controller_epoch: int, registered: Mapping[int, int], known: Mapping[int, int]
    ) -> None:
        """A controller has dealt with ``/brokers/ids``: the broker epochs there, and those that it goes by."""
        for check in self._checks.on_broker_change:
            check(controller, controller_epoch, registered, known)

    def failover_completed(
        self,
        controller: int,
        controller_epoch: int,
        dead: Collection[int],
        leadership: Mapping[str, LeaderAndIsr],
    ) -> None:
        """A new controller has taken over; these brokers were dead, this is how partitions are led."""
        for check in self._checks.on_failover:
            check(controller, controller_epoch, dead, leadership)

    # Small parts

    def _partition(self, name: str) -> WatchedPartition:
        partition = self._partitions.get(name)
        if partition is None:
            partition = self._partitions[name] = WatchedPartition(name, self._disks)
        return partition

    def _isr_is(self, partition: WatchedPartition, leader_epoch: int, isr: tuple[int, ...]) -> None:
        """Take over an ISR, unless a later leader epoch has one already."""
        if leader_epoch < partition.leader_epoch:
            return
        joined = [partition.replica(broker) for broker in isr if broker not in partition.isr]
        partition.leader_epoch = leader_epoch
        partition.isr = isr
        for check in self._checks.on_isr:
            check(partition, joined)
