"""Elects leaders and removes replicas from ISRs, by writing the state znodes of partitions.

Modelled on ``PartitionStateMachine.scala`` and ``ReplicaStateMachine.scala``. The methods process
controller events: they yield ZooKeeper operations and continue with their results (see
`kafka_controller`).
"""

from collections.abc import Callable, Generator
from dataclasses import field
from typing import Final, final

from harrow.cluster_model.controller.control_plane import CONTROLLED_SHUTDOWN, REASSIGNMENT, TOPIC_CREATION
from harrow.cluster_model.controller.leader_election import (
    elect_for_controlled_shutdown,
    elect_for_offline,
    elect_for_reassignment,
    elect_preferred,
    without_replica,
)
from harrow.cluster_model.events import ElectionDecided, LeaderElected
from harrow.cluster_model.lazy_dataclass import dataclass, replace
from harrow.cluster_model.protocol import LeaderAndIsr
from harrow.cluster_model.release.replication import ReplicationSwitches
from harrow.cluster_model.settings import TopicConfig
from harrow.cluster_model.sim.host import Host
from harrow.cluster_model.zookeeper.controller.controller_channel import (
    ControllerChannelManager,
    RequestBatch,
)
from harrow.cluster_model.zookeeper.controller.controller_context import ControllerContext
from harrow.cluster_model.zookeeper.service import protocol as zk

OFFLINE: Final = "offline"
PREFERRED: Final = "preferred"
UNCLEAN: Final = "unclean"
"""The kinds of elections, with different rules (``PartitionLeaderElectionStrategy``).

`CONTROLLED_SHUTDOWN` and `REASSIGNMENT` are further kinds.
"""

Operations = tuple[zk.ZooKeeperOperation, ...]


@final
@dataclass(slots=True, eq=False)
class Submission:
    """Operations for ZooKeeper during the processing of an event.

    If they are ``atomic``, all of them happen or none. If they are ``guarded``, they fail once
    another controller has been elected.
    """

    operations: Operations
    atomic: bool = field(default=False, kw_only=True)
    guarded: bool = field(default=False, kw_only=True)


Processing = Generator[Submission, zk.ZooKeeperResponse, None]
"""Yields submissions to ZooKeeper, and receives the responses."""


class ControllerMoved(Exception):
    """Another controller has been elected, so the guard of a write did not hold.

    The processing that waits for the write raises it, as ``KafkaZkClient`` does
    (``retryRequestsUntilConnected``).
    """


class StateChangeFailed(Exception):
    """Ends the processing of an event.

    A partition's znode is missing, or a newer controller has written the znode.
    """


class PartitionStateMachine:
    """Elects leaders and changes ISRs during one controller's term."""

    def __init__(
        self,
        broker: int,
        host: Host,
        context: ControllerContext,
        channels: ControllerChannelManager,
        topic_config: Callable[[str], TopicConfig],
        switches: ReplicationSwitches,
    ) -> None:
        self._broker = broker
        self._host = host
        self._context = context
        self._channels = channels
        self._topic_config = topic_config
        self._switches = switches

    def read_states(self, partitions: list[str]) -> Processing:
        """Read the partitions' znodes into the cache of leaders and ISRs."""
        response = yield Submission(tuple(zk.GetData(zk.state_path(p)) for p in partitions))
        for partition, result in zip(partitions, response.results, strict=True):
            if result.error == zk.OK:
                self._context.leadership[partition] = result.data.leader_and_isr(result.version)

    def trigger_online_partitions(self, reason: str) -> Processing:
        """Elect leaders for all new partitions and all partitions without a leader."""
        context = self._context
        new = [p for p in context.assignments if p not in context.leadership]
        if new:
            yield from self.initialize_leader_and_isr(new)
        offline = [p for p in context.assignments if p in context.offline_partitions]
        if offline:
            yield from self.elect_leaders(offline, OFFLINE, reason)

    def initialize_leader_and_isr(self, partitions: list[str]) -> Processing:
        """Create new partitions. The live replicas form the ISR, and the first of them leads."""
        context = self._context
        initial: dict[str, LeaderAndIsr] = {}
        for partition in partitions:
            eligible = context.can_lead(partition)
            live = tuple([broker for broker in context.assignments[partition] if broker in eligible])
            if live:
                initial[partition] = LeaderAndIsr(live[0], 0, live, 0)
        creates = tuple(zk.Create(zk.state_path(p), self._znode(state)) for p, state in initial.items())
        response = yield Submission(creates, guarded=True)
        batch = self._batch()
        for (partition, state), result in zip(initial.items(), response.results, strict=True):
            if result.error == zk.OK:
                context.leadership[partition] = state
                self._host.emit(
                    LeaderElected,
                    self._broker,
                    partition,
                    state.leader,
                    state.leader_epoch,
                    state.isr,
                    False,
                    TOPIC_CREATION,
                )
                batch.add_leader_and_isr(state.isr, partition, context.state(partition))
        batch.send(context.live())

    def elect_leaders(self, partitions: list[str], strategy: str, reason: str) -> Processing:
        """Elect leaders and write them conditionally. Retry where another write came first."""
        context = self._context
        batch = self._batch()
        remaining = partitions
        while remaining:
            current = yield from self._read_current(remaining)
            elected: dict[str, LeaderAndIsr] = {}
            for partition, state in current.items():
                winner = self._elect(partition, state, strategy)
                if winner is not None:
                    elected[partition] = winner
                    unclean = winner.leader not in state.isr
                    self._host.publish(
                        ElectionDecided, self._broker, partition, winner.leader_epoch, unclean, reason
                    )
            written, remaining = yield from self.write_states(elected)
            for partition in written:
                context.offline_partitions.discard(partition)
                # Brokers in controlled shutdown do not get the results of elections for offline
                # partitions. They get the results of other elections.
                receivers = context.can_lead() if strategy == OFFLINE else context.live_brokers
                replicas = [b for b in context.assignments[partition] if b in receivers]
                batch.add_leader_and_isr(replicas, partition, context.state(partition))
        batch.send(context.live())

    def _elect(self, partition: str, current: LeaderAndIsr, strategy: str) -> LeaderAndIsr | None:
        context = self._context
        live = context.can_lead(partition)
        assignment = context.assignments[partition]
        if strategy == CONTROLLED_SHUTDOWN:
            return elect_for_controlled_shutdown(
                current, assignment, live | context.shutting_down, frozenset(context.shutting_down)
            )
        if strategy == REASSIGNMENT:
            return elect_for_reassignment(current, assignment, live)
        if strategy == PREFERRED:
            from_isr = self._switches.preferred_leader_must_be_in_isr
            re_elects = self._switches.preferred_leader_reelected
            return elect_preferred(current, assignment, live, from_isr=from_isr, re_elects=re_elects)
        if strategy == UNCLEAN:
            return elect_for_offline(current, assignment, live, unclean=True)
        unclean = (
            self._topic_config(partition.rsplit("-", 1)[0]).unclean_leader_election
            or not self._switches.unclean_election_only_if_enabled
        )
        return elect_for_offline(current, assignment, live, unclean=unclean)

    def raise_leader_epoch(self, partition: str) -> Processing:
        """Send a partition's replicas their new assignment, in a new leader epoch.

        Modelled on ``updateLeaderEpochAndSendRequest``.
        """
        context = self._context
        batch = self._batch()
        remaining = [partition]
        while remaining:
            current = yield from self._read_current(remaining)
            if partition not in current:
                raise StateChangeFailed
            raised = {p: replace(state, leader_epoch=state.leader_epoch + 1) for p, state in current.items()}
            for state in raised.values():
                self._host.publish(
                    ElectionDecided, self._broker, partition, state.leader_epoch, False, REASSIGNMENT
                )
            written, remaining = yield from self.write_states(raised)
            if written:
                batch.add_leader_and_isr(context.assignments[partition], partition, context.state(partition))
        batch.send(context.live())

    def remove_from_isrs(
        self, broker: int, partitions: list[str] | None = None
    ) -> Generator[Submission, zk.ZooKeeperResponse, list[str]]:
        """Remove a broker that is dead or shuts down from the ISRs of all or some partitions.

        Return the partitions whose ISR does not have the broker any more. If a newer controller
        has written a partition's znode, the partition is neither changed nor returned.
        """
        context = self._context
        batch = self._batch()
        removed: list[str] = []
        remaining = partitions
        if remaining is None:
            remaining = [p for p, replicas in context.assignments.items() if broker in replicas]
        for partition in remaining:
            batch.add_stop_replica(broker, partition)
        while remaining:
            current = yield from self._read_current(remaining)
            reduced = {p: without_replica(s, broker) for p, s in current.items() if broker in s.isr}
            written, remaining = yield from self.write_states(reduced)
            for partition, state in current.items():
                if partition not in reduced:
                    context.leadership[partition] = state
                if partition in written or partition not in reduced:
                    removed.append(partition)
                    others = [b for b in context.assignments[partition] if b != broker]
                    batch.add_leader_and_isr(others, partition, context.state(partition))
        batch.send(context.live())
        return removed

    def _read_current(
        self, partitions: list[str]
    ) -> Generator[Submission, zk.ZooKeeperResponse, dict[str, LeaderAndIsr]]:
        """Return the states in the znodes, except those that a newer controller has written."""
        response = yield Submission(tuple(zk.GetData(zk.state_path(p)) for p in partitions))
        return {
            partition: result.data.leader_and_isr(result.version)
            for partition, result in zip(partitions, response.results, strict=True)
            if result.error == zk.OK and result.data.controller_epoch <= self._context.epoch
        }

    def write_states(
        self, states: dict[str, LeaderAndIsr]
    ) -> Generator[Submission, zk.ZooKeeperResponse, tuple[list[str], list[str]]]:
        """Write states conditionally.

        Return the partitions that were written, and those whose znodes others had changed.
        """
        if not states:
            return [], []
        writes = tuple(
            zk.SetData(zk.state_path(partition), self._znode(state), state.partition_epoch)
            for partition, state in states.items()
        )
        response = yield Submission(writes, guarded=True)
        written, changed_by_others = [], []
        for (partition, state), result in zip(states.items(), response.results, strict=True):
            if result.error == zk.OK:
                written.append(partition)
                self._context.leadership[partition] = state.in_partition_epoch(result.version)
            elif result.error == zk.BAD_VERSION:
                changed_by_others.append(partition)
        return written, changed_by_others

    def _znode(self, state: LeaderAndIsr) -> zk.TopicPartitionState:
        return zk.TopicPartitionState(state.leader, state.leader_epoch, state.isr, self._context.epoch)

    def _batch(self) -> RequestBatch:
        return RequestBatch(self._broker, self._context.epoch, self._channels)
