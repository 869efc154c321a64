"""Translates writes of znodes into trace events: registrations, elections and ISR changes.

The broker that requests a write may die, or miss the response, before it knows the result. Its
successor then uses the state in ZooKeeper. So a change happens at the moment of the write. But the
servers know nothing about partitions, so this module derives the events from their writes.
"""

from collections.abc import Callable
from typing import Final

from harrow.cluster_model import events
from harrow.cluster_model.protocol import ReplicaAssignment
from harrow.cluster_model.topic_settings import Settings
from harrow.cluster_model.trace import Trace
from harrow.cluster_model.zookeeper.quorum.ensemble import ZooKeeperEnsemble
from harrow.cluster_model.zookeeper.service import protocol as zk

_SETTINGS: Final = f"{zk.CONFIG_TOPICS}/"


class StateChanges:
    """Emits events for the changes of znodes that mean something to Kafka.

    These are the znodes of registrations, the controller, assignments, and leaders with their ISRs.
    """

    def __init__(
        self, trace: Trace, zookeeper: ZooKeeperEnsemble, on_settings: Callable[[str, Settings], None]
    ) -> None:
        self._on_settings = on_settings
        self._trace = trace
        self._zookeeper = zookeeper
        self._decisions: dict[tuple[int, str, int], tuple[bool, str]] = {}
        trace.subscribe(events.ElectionDecided, self._record_decision)
        trace.subscribe(events.ZnodeCreated, self._on_created)
        trace.subscribe(events.ZnodeWritten, self._on_znode_written)
        trace.subscribe(events.ZnodeDeleted, self._on_deleted)

    def _record_decision(
        self, controller: int, partition: str, leader_epoch: int, unclean: bool, reason: str
    ) -> None:
        self._decisions[controller, partition, leader_epoch] = (unclean, reason)

    def _on_created(self, client: str, path: str, czxid: int) -> None:
        broker = zk.broker_of(client)
        if path.startswith(_SETTINGS):
            self._settings_written(path, self._zookeeper.tree.data(path))
        if path == zk.broker_path(broker):
            self._trace.emit(events.BrokerRegistered, broker, czxid)

    def _settings_written(self, path: str, data: object) -> None:
        """Let brokers follow the settings of a topic.

        In Kafka they watch ``/config/changes``, and so learn of the change a moment later.
        """
        if isinstance(data, tuple):
            self._on_settings(path.rpartition("/")[2], dict(data))

    def _on_deleted(self, path: str) -> None:
        if path == zk.CONTROLLER:
            self._trace.emit(events.ControllerChanged, events.NO_CONTROLLER, self._controller_epoch())

    def _controller_epoch(self) -> int:
        epoch = self._zookeeper.tree.data(zk.CONTROLLER_EPOCH)
        assert isinstance(epoch, int)
        return epoch

    def _on_znode_written(self, client: str, path: str, before: object, data: object, version: int) -> None:
        if isinstance(before, tuple) and isinstance(data, tuple) and path.startswith(zk.BROKER_TOPICS):
            self._on_assignment(path.rpartition("/")[2], before, data)
        if path.startswith(_SETTINGS):
            self._settings_written(path, data)
        if client == zk.NO_CLIENT:
            return  # Only brokers write the other znodes.
        if path == zk.CONTROLLER_EPOCH:
            # Written together with /controller, by the new controller.
            self._trace.emit(events.ControllerChanged, zk.broker_of(client), self._controller_epoch())
        if not isinstance(before, zk.TopicPartitionState) or not isinstance(data, zk.TopicPartitionState):
            return
        broker, partition = zk.broker_of(client), zk.partition_of(path)
        # This event comes before the one for the write, because it may permit that the write
        # breaks an invariant.
        self._emit_election_or_isr(broker, partition, before, data)
        states = (before.leader_and_isr(version - 1), data.leader_and_isr(version))
        self._trace.publish(
            events.PartitionStateWritten,
            broker,
            partition,
            *states,
            data.controller_epoch,
            self._controller_epoch(),
        )

    def _on_assignment(
        self, topic: str, before: tuple[ReplicaAssignment, ...], data: tuple[ReplicaAssignment, ...]
    ) -> None:
        for number, assignment in enumerate(data):
            if before[number : number + 1] != (assignment,):
                self._trace.emit(
                    events.ReplicasAssigned,
                    f"{topic}-{number}",
                    assignment.replicas,
                    assignment.adding,
                    assignment.removing,
                )

    def _emit_election_or_isr(
        self, broker: int, partition: str, before: zk.TopicPartitionState, state: zk.TopicPartitionState
    ) -> None:
        if state.leader_epoch <= before.leader_epoch:
            # A write by a leader, or by a controller on behalf of a leader, keeps the leader
            # epoch. Other writes by controllers raise it.
            self._trace.emit(events.IsrWritten, state.leader, partition, state.leader_epoch, state.isr)
            return
        decision = self._decisions.pop((broker, partition, state.leader_epoch), None)
        leadership = (broker, partition, state.leader, state.leader_epoch, state.isr)
        if decision is None:
            self._trace.emit(events.IsrReduced, *leadership)
        else:
            self._trace.emit(events.LeaderElected, *leadership, *decision)
