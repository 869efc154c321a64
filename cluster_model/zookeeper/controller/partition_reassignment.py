"""Reassigns partitions on the controller (KIP-455, ``KafkaController.onPartitionReassignment``).

Methods that process a controller event yield ZooKeeper operations and continue with their results
(see `kafka_controller`). Kafka's description of the algorithm has the steps A1 to B6.
"""

from collections.abc import Callable, Generator

from harrow.cluster_model import errors
from harrow.cluster_model.controller.control_plane import ADMIN, REASSIGNMENT, REASSIGNMENT_API
from harrow.cluster_model.events import RequestRejected
from harrow.cluster_model.protocol import ReplicaAssignment
from harrow.cluster_model.sim.host import Host
from harrow.cluster_model.zookeeper.controller.controller_channel import (
    ControllerChannelManager,
    RequestBatch,
)
from harrow.cluster_model.zookeeper.controller.controller_context import ControllerContext
from harrow.cluster_model.zookeeper.controller.partition_state_machine import (
    PartitionStateMachine,
    Processing,
    Submission,
)
from harrow.cluster_model.zookeeper.service import protocol as zk


class PartitionReassignments:
    """The reassignments of one controller's term."""

    def __init__(
        self,
        broker: int,
        host: Host,
        context: ControllerContext,
        channels: ControllerChannelManager,
        partitions: PartitionStateMachine,
        *,
        watches_isrs: bool,
    ) -> None:
        self._broker = broker
        self._host = host
        self._context = context
        self._channels = channels
        self._partitions = partitions
        # The controller watches ISRs only if leaders write them. Otherwise it writes each ISR
        # itself (``isAlterPartitionEnabled``).
        self._watches_isrs = watches_isrs

    def alter(self, partition: str, target: tuple[int, ...] | None) -> Processing:
        """Reassign a partition to *target*, or cancel its reassignment if *target* is None.

        The new reassignment replaces an earlier one.
        """
        context = self._context
        error = self.refusal(partition, target)
        if error != errors.NONE:
            self._host.emit(RequestRejected, self._broker, REASSIGNMENT_API, partition, ADMIN, error)
            return
        current = context.assignment(partition)
        yield from self._reassign(
            partition, current.reassigned_to(current.origin if target is None else target)
        )

    def refusal(self, partition: str, target: tuple[int, ...] | None) -> str:
        """Return why a partition cannot be reassigned, or `errors.NONE`.

        Brokers of new replicas must be live. Modelled on ``replicasAreValid``.
        """
        context = self._context
        if partition not in context.leadership:
            return errors.UNKNOWN_TOPIC_OR_PARTITION
        current = context.assignment(partition)
        if target is None:
            return errors.NONE if current.is_being_reassigned else errors.NO_REASSIGNMENT_IN_PROGRESS
        adding = current.reassigned_to(target).adding
        is_valid = target and len(set(target)) == len(target) and context.can_lead().issuperset(adding)
        return errors.NONE if is_valid else errors.INVALID_REPLICA_ASSIGNMENT

    def resume(self, concerns: Callable[[ReplicaAssignment], bool]) -> Processing:
        """Continue the reassignments for which *concerns* returns True.

        A new controller continues all of them. When a broker returns, the controller continues
        those whose target has the broker.
        """
        context = self._context
        for partition in tuple(context.partitions_being_reassigned):
            assignment = context.assignment(partition)
            if concerns(assignment) and partition in context.leadership:
                yield from self._reassign(partition, assignment)

    def complete(self, partition: str) -> Processing:
        """Complete a partition's reassignment if all target replicas have joined the ISR."""
        context = self._context
        if partition in context.partitions_being_reassigned:
            assignment = context.assignment(partition)
            is_complete = yield from self._is_complete(partition, assignment)
            if is_complete:
                yield from self._reassign(partition, assignment)

    def _reassign(self, partition: str, assignment: ReplicaAssignment) -> Processing:
        context = self._context
        yield from self._take_over(partition, assignment)
        is_complete = yield from self._is_complete(partition, assignment)
        if not is_complete:
            # A1: all old and new replicas get the assignment. A2: new replicas start to fetch.
            yield from self._partitions.raise_leader_epoch(partition)
            return
        # B2: from now on this controller's cache has only the target replicas.
        context.assign(partition, ReplicaAssignment(assignment.target))
        leader = context.leadership[partition].leader
        # B3: elect another leader if the current one is removed. The next steps follow even if
        # none can be elected.
        if leader in assignment.target and context.is_online(leader, partition, context.can_lead()):
            yield from self._partitions.raise_leader_epoch(partition)
        else:
            yield from self._partitions.elect_leaders([partition], REASSIGNMENT, REASSIGNMENT)
        # B4, B5: the other replicas leave the ISR and are deleted.
        yield from self._stop(partition, assignment.removing)
        # B6: if this controller ends before this write, the next one starts over with the
        # assignment in ZooKeeper.
        yield Submission(self._assignment_write(partition), guarded=True)
        context.partitions_being_reassigned.pop(partition, None)
        self._batch().send_update_metadata(context.live(), context.states([partition]), context.live())

    def _take_over(self, partition: str, assignment: ReplicaAssignment) -> Processing:
        """Write the assignment, and stop replicas of an unfinished reassignment that it replaces.

        Modelled on ``updateCurrentReassignment``.
        """
        context = self._context
        current = context.assignment(partition)
        if current != assignment:
            context.assign(partition, assignment)
            yield Submission(self._assignment_write(partition), guarded=True)
            yield from self._stop(
                partition, tuple(b for b in current.replicas if b not in assignment.replicas)
            )
        if partition not in context.partitions_being_reassigned:
            context.partitions_being_reassigned[partition] = None

    def _is_complete(
        self, partition: str, assignment: ReplicaAssignment
    ) -> Generator[Submission, zk.ZooKeeperResponse, bool]:
        """Return whether the ISR has all target replicas. If leaders write ISRs, watch the ISR."""
        if not assignment.is_being_reassigned:
            return True
        response = yield Submission((zk.GetData(zk.state_path(partition), watch=self._watches_isrs),))
        state = response.results[0]
        return state.error == zk.OK and set(assignment.target) <= set(state.data.isr)

    def _stop(self, partition: str, replicas: tuple[int, ...]) -> Processing:
        """Remove replicas from the ISR and delete them.

        Modelled on ``stopRemovedReplicasOfReassignedPartition``. No replica is deleted before all
        of them have left the ISR. A replica that could not leave the ISR is not deleted, because
        only offline replicas may be deleted (``ReplicaDeletionStarted.validPreviousStates``).
        """
        deletable = []
        for replica in replicas:
            removed = yield from self._partitions.remove_from_isrs(replica, [partition])
            deletable += [replica] if removed else []
        batch = self._batch()
        for replica in deletable:
            batch.add_deletion(replica, partition)
        batch.send(self._context.live())

    def _assignment_write(self, partition: str) -> tuple[zk.ZooKeeperOperation, ...]:
        """Return the write of a topic's assignment (``updateReplicaAssignmentForPartition``)."""
        topic = partition.rpartition("-")[0]
        return (zk.SetData(zk.topic_path(topic), self._context.topic_assignment(topic)),)

    def _batch(self) -> RequestBatch:
        return RequestBatch(self._broker, self._context.epoch, self._channels)
