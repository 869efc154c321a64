"""Implements the controller on ZooKeeper (``KafkaController.scala``).

Every broker has a controller, and the owner of ``/controller`` is active. A controller processes
one event after the other. The processing of an event is a generator, which yields ZooKeeper
operations and continues with their results. So the code has the same order as Kafka's, and a pause,
a newer controller or an expired session can interrupt it in the same places.
"""

from collections import deque
from collections.abc import Callable, Collection, Generator, Iterable
from typing import Any, Final

from harrow.cluster_model import errors
from harrow.cluster_model.controller.administration import AdministrationRequest
from harrow.cluster_model.controller.control_plane import (
    BROKER_FAILURE,
    BROKER_STARTUP,
    CONTROLLED_SHUTDOWN,
    CONTROLLER_FAILOVER,
    LOG_DIRECTORY_FAILURE,
    PREFERRED_LEADER,
)
from harrow.cluster_model.controller.new_topics import ConfiguredTopics
from harrow.cluster_model.events import (
    BrokerChangeProcessed,
    ControlledShutdownBegun,
    ControllerElected,
    ControllerRequestRefused,
    ControllerResigned,
    FailoverCompleted,
)
from harrow.cluster_model.protocol import (
    NO_EPOCH,
    AlterPartitionRequest,
    AlterPartitionResponse,
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    ControlRequest,
    ControlResponse,
    LeaderAndIsr,
    LeaderAndIsrRequest,
)
from harrow.cluster_model.release.profiles import Behaviours
from harrow.cluster_model.settings import BrokerConfig, TopicConfig
from harrow.cluster_model.sim.host import Host
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND
from harrow.cluster_model.zookeeper.controller.administration import ControllerAdministration
from harrow.cluster_model.zookeeper.controller.controller_channel import (
    ControllerChannelManager,
    RequestBatch,
)
from harrow.cluster_model.zookeeper.controller.controller_context import ControllerContext
from harrow.cluster_model.zookeeper.controller.partition_reassignment import PartitionReassignments
from harrow.cluster_model.zookeeper.controller.partition_state_machine import (
    PREFERRED,
    ControllerMoved,
    Operations,
    PartitionStateMachine,
    Processing,
    StateChangeFailed,
    Submission,
)
from harrow.cluster_model.zookeeper.service import protocol as zk
from harrow.cluster_model.zookeeper.service.client import ZooKeeperClient

ShutdownCallback = Callable[[ControlledShutdownResponse], None]
AlterPartitionCallback = Callable[[AlterPartitionResponse], None]

FIRST_REBALANCE_CHECK_US: Final = 5 * US_PER_SECOND

_Notifications = tuple[tuple[str, ...], tuple[zk.ZooKeeperResult, ...]]
"""The names of notification znodes, and the results of reading them."""


class KafkaController:
    """The controller module of one broker."""

    def __init__(
        self,
        broker: int,
        host: Host,
        config: BrokerConfig,
        topic_config: Callable[[str], TopicConfig],
        behaviours: Behaviours,
        zookeeper: ZooKeeperClient,
        topics: ConfiguredTopics,
    ) -> None:
        self._broker = broker
        self._host = host
        self._config = config
        self._topic_config = topic_config
        self._behaviours = behaviours
        self._switches = behaviours.zookeeper
        self._zookeeper = zookeeper
        self._topics = topics
        self._channels = ControllerChannelManager(host, broker, config.controller_socket_timeout_us)
        self._channels.on_answered = self._handle_control_response
        self._begin_term(0, 0)
        self._events: deque[Callable[[], Processing]] = deque()
        self._processing: Processing | None = None
        # The callbacks of the current controlled shutdown, and of shutdowns in the queue.
        self._current_shutdown: ShutdownCallback | None = None
        self._queued_shutdowns: list[ShutdownCallback] = []
        self._event_number = 0
        self._is_shut_down = False
        self.is_active = False

    # Events

    def broker_registered(self) -> None:
        """Take part in the election of a controller."""
        self._enqueue(self._process_controller_change)

    def session_expired(self) -> None:
        """Forget all events, and resign if this controller is active."""
        self._clear_events()
        self._abort()
        self._resign()

    def controlled_shutdown(self, request: ControlledShutdownRequest, on_handled: ShutdownCallback) -> None:
        """Queue a broker's request to move its leaderships."""
        self._queued_shutdowns.append(on_handled)
        self._enqueue(lambda: self._process_controlled_shutdown(request, on_handled))

    def shutdown(self) -> None:
        """Resign and process no more events, because the broker stops."""
        self._is_shut_down = True
        self._clear_events()
        self._abort()
        self._resign()

    def _clear_events(self) -> None:
        """Drop the queued events. Later releases answer queued shutdowns with an error."""
        self._events.clear()
        waiting, self._queued_shutdowns = self._queued_shutdowns, []
        for on_handled in waiting if self._switches.shutdown_request_preempted else ():
            on_handled(ControlledShutdownResponse(errors.STALE_CONTROLLER_EPOCH))

    def watch_fired(self, event: zk.WatchEvent) -> None:
        """Queue the processing that the event of a watch requires."""
        if event.path == zk.CONTROLLER:
            self._enqueue(self._process_controller_change)
        elif event.path == zk.BROKER_IDS:
            self._enqueue(self._process_broker_change)
        elif event.path == zk.BROKER_TOPICS:
            self._enqueue(self._process_topic_change)
        elif event.path == zk.ISR_CHANGE_NOTIFICATION:
            self._enqueue(self._process_isr_change_notification)
        elif event.path == zk.PREFERRED_REPLICA_ELECTION:
            self._enqueue(self._process_preferred_replica_election)
        elif event.path == zk.LOG_DIR_EVENT_NOTIFICATION:
            self._enqueue(self._process_log_dir_event_notification)
        elif zk.is_topic_path(event.path):
            topic = zk.topic_of(event.path)
            self._enqueue(lambda: self._process_partition_modifications(topic))
        elif zk.is_state_path(event.path):
            partition = zk.partition_of(event.path)
            self._enqueue(lambda: self._process_reassignment_isr_change(partition))

    def _enqueue(self, event: Callable[[], Processing]) -> None:
        if self._is_shut_down:
            return
        self._events.append(event)
        if self._processing is None:
            self._process_next()

    def _process_next(self) -> None:
        while self._processing is None and self._events:
            self._processing = self._events.popleft()()
            self._advance(None)

    def _advance(self, response: zk.ZooKeeperResponse | None, *, has_moved: bool = False) -> None:
        """Run the event's processing up to the next ZooKeeper operations."""
        assert self._processing is not None
        try:
            if response is None:
                submission = next(self._processing)
            elif has_moved:
                submission = self._processing.throw(ControllerMoved())
            else:
                submission = self._processing.send(response)
        except (StopIteration, StateChangeFailed):
            self._processing = None
            return
        except ControllerMoved:
            self._processing = None
            self._fail_shutdown()
            self._resign()
            return
        number = self._event_number
        guard = None
        if submission.guarded and self._switches.controller_writes_fenced:
            guard = zk.Check(zk.CONTROLLER_EPOCH, self._context.epoch_zk_version)

        def on_response(answer: zk.ZooKeeperResponse) -> None:
            # Another number means that the event has been aborted.
            if number == self._event_number and answer.error != zk.SESSION_EXPIRED:
                has_moved = guard is not None and answer.error == zk.BAD_VERSION
                self._advance(answer, has_moved=has_moved)
                self._process_next()

        self._zookeeper.submit(submission.operations, on_response, atomic=submission.atomic, guard=guard)

    def _abort(self) -> None:
        self._event_number += 1
        if self._processing is not None:
            self._processing.close()
            self._processing = None
            self._fail_shutdown()

    # Elections of controllers

    def _process_controller_change(self) -> Processing:
        """Resign or stand for election after a change of ``/controller``."""
        response = yield Submission((zk.GetData(zk.CONTROLLER, watch=True),))
        controller = response.results[0]
        if controller.error == zk.OK:
            if controller.data != self._broker:
                self._resign()
            return
        self._resign()
        response = yield Submission((zk.GetData(zk.CONTROLLER_EPOCH),))
        epoch, version = int(response.results[0].data) + 1, response.results[0].version
        register = (
            zk.Create(zk.CONTROLLER, self._broker, ephemeral=True),
            zk.SetData(zk.CONTROLLER_EPOCH, epoch, version),
        )
        response = yield Submission(register, atomic=True)
        if response.error != zk.OK and not any(map(self._zookeeper.owns, response.results)):
            return
        self._begin_term(epoch, version + 1)
        self.is_active = True
        self._host.emit(ControllerElected, self._broker, epoch)
        try:
            yield from self._on_controller_failover()
        except StateChangeFailed:
            # Only a newer controller can cause this failure (``KafkaController.elect``,
            # ``triggerControllerMove``).
            raise ControllerMoved from None

    def _begin_term(self, epoch: int, epoch_zk_version: int) -> None:
        """Start with an empty cache, which has only the controller epoch."""
        self._context = ControllerContext()
        self._context.epoch = epoch
        self._context.epoch_zk_version = epoch_zk_version
        self._partitions = PartitionStateMachine(
            self._broker,
            self._host,
            self._context,
            self._channels,
            self._topic_config,
            self._behaviours.replication,
        )
        self._reassignments = PartitionReassignments(
            self._broker,
            self._host,
            self._context,
            self._channels,
            self._partitions,
            watches_isrs=not self._switches.isr_altered_by_controller,
        )
        self._administration = ControllerAdministration(
            self._broker,
            self._host,
            self._context,
            self._channels,
            self._partitions,
            self._reassignments,
            self._topics,
            self._config,
        )

    def _resign(self) -> None:
        if not self.is_active:
            return
        self.is_active = False
        self._channels.close()
        self._host.emit(ControllerResigned, self._broker, self._context.epoch)

    def _on_controller_failover(self) -> Processing:
        """Read all metadata, send it to all brokers, and resume the former controller's work."""
        context = self._context
        response = yield Submission(
            (
                zk.GetChildren(zk.BROKER_IDS, watch=True),
                zk.GetChildren(zk.BROKER_TOPICS, watch=True),
                zk.GetChildren(zk.ISR_CHANGE_NOTIFICATION, watch=True),
                zk.GetData(zk.PREFERRED_REPLICA_ELECTION, watch=True),
                zk.GetChildren(zk.LOG_DIR_EVENT_NOTIFICATION, watch=True),
            )
        )
        brokers, topics, isr_changes, preferred, log_dirs = response.results
        if isr_changes.children:
            yield Submission(_delete_all(zk.ISR_CHANGE_NOTIFICATION, isr_changes.children), guarded=True)
        if log_dirs.children:
            # All brokers get their complete state below, and answer which replicas are offline.
            yield Submission(_delete_all(zk.LOG_DIR_EVENT_NOTIFICATION, log_dirs.children), guarded=True)
        live = yield from self._read_brokers(brokers.children)
        for broker, epoch in live.items():
            context.live_brokers[broker] = epoch
            self._channels.add_broker(broker, epoch)
        yield from self._read_topics(topics.children)
        yield from self._partitions.read_states(list(context.assignments))
        self._batch().send_update_metadata(context.live(), {}, context.live())
        self._send_state_to(context.live())
        dead = context.dead_brokers()
        if self._switches.failover_removes_dead_replicas:
            for broker in dead:
                yield from self._partitions.remove_from_isrs(broker)
        context.mark_offline_partitions(context.live_brokers)
        yield from self._partitions.trigger_online_partitions(CONTROLLER_FAILOVER)
        self._host.publish(FailoverCompleted, self._broker, context.epoch, tuple(dead), context.leadership)
        yield from self._reassignments.resume(lambda _: True)
        if preferred.error == zk.OK:
            yield from self._process_preferred_replica_election()
        if self._config.auto_leader_rebalance:
            self._host.set_timer(FIRST_REBALANCE_CHECK_US, self._check_leader_imbalance, context.epoch)

    def _read_brokers(
        self, ids: Iterable[str]
    ) -> Generator[Submission, zk.ZooKeeperResponse, dict[int, int]]:
        """Return the live brokers and their epochs (the czxid of their registration)."""
        brokers = sorted(int(name) for name in ids)
        response = yield Submission(tuple(zk.GetData(zk.broker_path(broker)) for broker in brokers))
        registrations = zip(brokers, response.results, strict=True)
        return {broker: result.czxid for broker, result in registrations if result.error == zk.OK}

    def _read_topics(self, topics: Iterable[str]) -> Processing:
        names = list(topics)
        reads = tuple(zk.GetData(zk.topic_path(topic), watch=True) for topic in names)
        response = yield Submission(reads)
        for topic, result in zip(names, response.results, strict=True):
            if result.error == zk.OK:  # Otherwise the topic has been deleted.
                self._context.add_topic(topic, result.data)

    # Changes of brokers and topics

    def _process_broker_change(self) -> Processing:
        """Compare ``/brokers/ids`` with the cache.

        Before KIP-380 the restart of a broker between two comparisons goes unnoticed (KAFKA-1120).
        Since then the broker's new epoch shows the restart.
        """
        if not self.is_active:
            return
        context = self._context
        response = yield Submission((zk.GetChildren(zk.BROKER_IDS, watch=True),))
        current = yield from self._read_brokers(response.results[0].children)
        new = [b for b in current if b not in context.live_brokers]
        dead = [b for b in context.live_brokers if b not in current]
        restarted = []
        if self._switches.control_requests_carry_broker_epoch:
            restarted = [b for b in current if current[b] > context.live_brokers.get(b, current[b])]
        for broker in (*dead, *restarted):
            self._channels.remove_broker(broker)
        for broker in (*new, *restarted):
            self._channels.add_broker(broker, current[broker])
        if new:
            context.live_brokers.update({broker: current[broker] for broker in new})
            yield from self._on_broker_startup(new)
        if restarted:
            context.remove_live_brokers(restarted)
            yield from self._on_broker_failure(restarted)
            context.live_brokers.update({broker: current[broker] for broker in restarted})
            yield from self._on_broker_startup(restarted)
        if dead:
            context.remove_live_brokers(dead)
            yield from self._on_broker_failure(dead)
        self._host.publish(BrokerChangeProcessed, self._broker, context.epoch, current, context.live_brokers)

    def _on_broker_startup(self, brokers: list[int]) -> Processing:
        """Send new brokers their state, elect missing leaders, and resume reassignments."""
        context = self._context
        existing = [broker for broker in context.live() if broker not in brokers]
        batch = self._batch()
        batch.send_update_metadata(existing, {}, context.live())
        batch.send_update_metadata(brokers, context.states(context.leadership), context.live())
        self._send_state_to(brokers)
        yield from self._partitions.trigger_online_partitions(BROKER_STARTUP)
        if context.partitions_being_reassigned:
            yield from self._reassignments.resume(
                lambda assignment: not set(brokers).isdisjoint(assignment.target)
            )

    def _on_broker_failure(self, brokers: list[int]) -> Processing:
        """Replace the dead brokers as leaders, then remove them from the ISRs."""
        context = self._context
        any_offline = context.mark_offline_partitions(self._online_brokers())
        yield from self._partitions.trigger_online_partitions(BROKER_FAILURE)
        for broker in brokers:
            yield from self._partitions.remove_from_isrs(broker)
        if not any_offline:
            self._batch().send_update_metadata(context.live(), {}, context.live())

    # Controlled shutdown of brokers

    def _process_controlled_shutdown(
        self, request: ControlledShutdownRequest, on_handled: ShutdownCallback
    ) -> Processing:
        """Move a broker's leaderships to others where possible, and answer with the remaining ones.

        The broker stops fetching the partitions that it follows, and leaves their ISRs
        (``KafkaController.doControlledShutdown``, ``shutdownBroker`` before 0.11). It is not
        elected again until it has restarted.
        """
        self._queued_shutdowns.remove(on_handled)
        context, broker = self._context, request.broker
        error = self._shutdown_error(request)
        if error != errors.NONE:
            on_handled(ControlledShutdownResponse(error))
            return
        self._current_shutdown = on_handled
        self._host.emit(ControlledShutdownBegun, self._broker, broker)
        context.shutting_down.add(broker)
        led, followed = context.replicated_partitions(broker)
        yield from self._partitions.elect_leaders(led, CONTROLLED_SHUTDOWN, CONTROLLED_SHUTDOWN)
        yield from self._partitions.remove_from_isrs(broker, followed)
        self._current_shutdown = None
        on_handled(ControlledShutdownResponse(errors.NONE, tuple(context.replicated_partitions(broker)[0])))

    def _shutdown_error(self, request: ControlledShutdownRequest) -> str:
        """Return why a broker's leaderships are not moved.

        Since KIP-380 the response to an unknown broker is an unexpected error, because the
        controller first looks up the broker's epoch.
        """
        if not self.is_active:
            return errors.STALE_CONTROLLER_EPOCH
        current_epoch = self._context.live_brokers.get(request.broker)
        if current_epoch is None:
            looks_up_epoch = request.broker_epoch != NO_EPOCH
            return errors.UNKNOWN_SERVER_ERROR if looks_up_epoch else errors.BROKER_NOT_AVAILABLE
        return errors.STALE_BROKER_EPOCH if NO_EPOCH < request.broker_epoch < current_epoch else errors.NONE

    def _fail_shutdown(self) -> None:
        """Answer an interrupted controlled shutdown, so that the broker retries it."""
        on_handled, self._current_shutdown = self._current_shutdown, None
        if on_handled is not None:
            on_handled(ControlledShutdownResponse(errors.STALE_CONTROLLER_EPOCH))

    def _process_topic_change(self) -> Processing:
        """Elect leaders for new topics."""
        if not self.is_active:
            return
        response = yield Submission((zk.GetChildren(zk.BROKER_TOPICS, watch=True),))
        new = [topic for topic in response.results[0].children if topic not in self._context.topics]
        yield from self._read_topics(new)
        yield from self._create_partitions(new)

    def _process_partition_modifications(self, topic: str) -> Processing:
        """Elect leaders for new partitions after a write to a topic's znode.

        The controller itself may have written the znode.
        """
        if not self.is_active:
            return
        yield from self._read_topics((topic,))
        yield from self._create_partitions((topic,))

    def _create_partitions(self, topics: Iterable[str]) -> Processing:
        """Elect leaders for the new partitions of some topics (``onNewPartitionCreation``)."""
        context = self._context
        names = (f"{topic}-{number}" for topic in topics for number in range(context.topics.get(topic, 0)))
        new = [name for name in names if name not in context.leadership]
        if new:
            yield from self._partitions.initialize_leader_and_isr(new)

    def _process_isr_change_notification(self) -> Processing:
        """Send all brokers the ISRs that leaders have changed and announced."""
        if not self.is_active:
            return
        path = zk.ISR_CHANGE_NOTIFICATION
        notifications, results = yield from self._read_notifications(path)
        if not notifications:
            return
        changed = list(dict.fromkeys(p for result in results for p in result.data or ()))
        yield from self._partitions.read_states(changed)
        context = self._context
        states = context.states(changed)
        self._batch().send_update_metadata(context.live(), states, context.live())
        yield Submission(_delete_all(path, notifications), guarded=True)

    def _read_notifications(self, path: str) -> Generator[Submission, zk.ZooKeeperResponse, _Notifications]:
        """Watch a path, and return its sequential znodes with the results of reading them."""
        response = yield Submission((zk.GetChildren(path, watch=True),))
        children = response.results[0].children
        if not children:
            return (), ()
        response = yield Submission(tuple(zk.GetData(f"{path}/{child}") for child in children))
        return children, response.results

    # Failures of log directories

    def _process_log_dir_event_notification(self) -> Processing:
        """Ask brokers with failed log directories which replicas are offline (KIP-112).

        The question is a LeaderAndIsr request with the replicas that the brokers already have.
        """
        if not self.is_active:
            return
        path = zk.LOG_DIR_EVENT_NOTIFICATION
        notifications, results = yield from self._read_notifications(path)
        if not notifications:
            return
        affected = dict.fromkeys(result.data for result in results if result.error == zk.OK)
        self._send_state_to(broker for broker in affected if broker in self._context.live_brokers)
        yield Submission(_delete_all(path, notifications), guarded=True)

    def _handle_control_response(
        self, broker: int, request: ControlRequest, response: ControlResponse
    ) -> None:
        if isinstance(request, LeaderAndIsrRequest) and response.error == errors.NONE:
            offline = self._context.offline_replicas.get(broker, {})
            if response.offline or any(name in offline for name in request.partition_states):
                requested = tuple(request.partition_states)
                self._enqueue(
                    lambda: self._process_leader_and_isr_response(broker, requested, response.offline)
                )

    def _process_leader_and_isr_response(
        self, broker: int, requested: tuple[str, ...], offline: tuple[str, ...]
    ) -> Processing:
        """Mark a broker's offline replicas, and elect other leaders where the broker led them.

        Modelled on ``onReplicasBecomeOffline``.
        """
        context = self._context
        if not self.is_active or broker not in context.live_brokers:
            return
        before = context.offline_replicas.get(broker, {})
        new = [name for name in offline if name not in before]
        unchanged = {name: None for name in before if name not in requested}
        context.offline_replicas[broker] = {**unchanged, **dict.fromkeys(offline)}
        if not new:
            return
        any_offline = context.mark_offline_partitions(self._online_brokers())
        yield from self._partitions.trigger_online_partitions(LOG_DIRECTORY_FAILURE)
        yield from self._partitions.remove_from_isrs(broker, new)
        if not any_offline:
            self._batch().send_update_metadata(context.live(), {}, context.live())

    # ISR changes by leaders

    def alter_partitions(self, request: AlterPartitionRequest, on_handled: AlterPartitionCallback) -> None:
        """Queue a leader's request to change ISRs (KIP-497, from 2.7 on)."""
        self._enqueue(lambda: self._process_alter_partition(request, on_handled))

    def _process_alter_partition(
        self, request: AlterPartitionRequest, on_handled: AlterPartitionCallback
    ) -> Processing:
        """Write a request's valid ISRs, answer, and update brokers (``processAlterPartition``).

        A request that is dropped from the queue or interrupted gets no answer, and the leader
        retries it after its timeout.
        """
        context = self._context
        error = errors.NONE if self.is_active else errors.NOT_CONTROLLER
        if error == errors.NONE and context.live_brokers.get(request.broker) != request.broker_epoch:
            error = errors.STALE_BROKER_EPOCH
        if error != errors.NONE:
            self._host.publish(ControllerRequestRefused, self._broker, request.api, request.broker, "", error)
            on_handled(AlterPartitionResponse(error, {}))
            return
        answers: dict[str, tuple[str, int]] = {}
        accepted: dict[str, LeaderAndIsr] = {}
        for partition, requested in request.partitions.items():
            state = LeaderAndIsr(
                request.broker,
                requested.leader_epoch,
                tuple(member for member, _ in requested.isr),
                requested.partition_epoch,
            )
            answer = self._answer_without_write(partition, state)
            if answer is None:
                accepted[partition] = state
            else:
                answers[partition] = answer
        try:
            written, refused = yield from self._write_isrs(accepted)
        except ControllerMoved:
            on_handled(AlterPartitionResponse(errors.UNKNOWN_SERVER_ERROR, {}))
            return
        answers |= {
            partition: (errors.NONE, context.leadership[partition].partition_epoch) for partition in written
        }
        answers |= dict.fromkeys(refused, (errors.INVALID_UPDATE_VERSION, -1))
        for partition, (error, _) in answers.items():
            if error != errors.NONE:
                self._host.publish(
                    ControllerRequestRefused, self._broker, request.api, request.broker, partition, error
                )
        yield from self._partitions.read_states(written)
        self._batch().send_update_metadata(context.live(), context.states(request.partitions), context.live())
        on_handled(AlterPartitionResponse(errors.NONE, answers))
        for partition in request.partitions:
            if answers[partition][0] == errors.NONE and partition in context.partitions_being_reassigned:
                yield from self._reassignments.complete(partition)

    def _write_isrs(
        self, requested: dict[str, LeaderAndIsr]
    ) -> Generator[Submission, zk.ZooKeeperResponse, tuple[list[str], list[str]]]:
        """Write the ISRs that leaders request. Return the written and the refused partitions.

        A write is also refused if it took effect before and only its response was lost. Up to 2.6
        leaders wrote their ISRs, and recognized their own writes by the content of the znode
        (``ReplicationUtils.checkLeaderAndIsrZkData``). Controllers do not compare the content: the
        leader gets INVALID_UPDATE_VERSION, and waits for metadata that never comes.
        """
        written, refused = yield from self._partitions.write_states(requested)
        if not refused or not self._switches.repeated_isr_write_recognised:
            return written, refused
        yield from self._partitions.read_states(refused)
        for partition in refused:
            actual, state = self._context.leadership[partition], requested[partition]
            if actual.in_partition_epoch(state.partition_epoch) == state:
                written.append(partition)
        return written, [partition for partition in refused if partition not in written]

    def _answer_without_write(self, partition: str, requested: LeaderAndIsr) -> tuple[str, int] | None:
        """Return the answer to a leader if no write is needed, None if its ISR must be written."""
        current = self._context.leadership.get(partition)
        error: str | None = None
        if current is None:
            error = errors.UNKNOWN_TOPIC_OR_PARTITION
        elif (
            requested.partition_epoch > current.partition_epoch
            or requested.leader_epoch > current.leader_epoch
        ):
            # The leader has newer metadata, probably from a newer controller.
            error = errors.NOT_CONTROLLER
        elif requested.leader_epoch < current.leader_epoch:
            error = errors.FENCED_LEADER_EPOCH
        elif (requested.leader, requested.isr) == (current.leader, current.isr):
            # The answer to an earlier attempt was lost.
            return errors.NONE, current.partition_epoch
        elif requested.partition_epoch < current.partition_epoch:
            error = errors.INVALID_UPDATE_VERSION
        elif self._behaviours.replication.isr_expansion_checks_registration and not (
            self._context.can_lead().issuperset(requested.isr)
        ):
            error = errors.INELIGIBLE_REPLICA
        return None if error is None else (error, -1)

    # Reassignments

    def alter_partition_reassignment(self, partition: str, target: tuple[int, ...] | None) -> None:
        """Queue an administrator's request to move a partition to the *target* replicas.

        A *target* of None cancels the partition's reassignment.
        """
        self._enqueue(lambda: self._process_reassignment(partition, target))

    def _process_reassignment(self, partition: str, target: tuple[int, ...] | None) -> Processing:
        if self.is_active:
            yield from self._reassignments.alter(partition, target)

    def _process_reassignment_isr_change(self, partition: str) -> Processing:
        """Complete a reassignment if the partition's new state allows it."""
        if self.is_active:
            yield from self._reassignments.complete(partition)

    # Administrators

    def administer(self, request: AdministrationRequest, on_handled: Callable[[Any], None]) -> None:
        """Handle an administrator's request if this controller is active."""
        if not self.is_active:
            on_handled(request.refused(errors.NOT_CONTROLLER))
            return
        self._enqueue(lambda: self._process_administration(request, on_handled))

    def _process_administration(
        self, request: AdministrationRequest, on_handled: Callable[[Any], None]
    ) -> Processing:
        """Handle a request. Answer NOT_CONTROLLER if this controller resigns meanwhile."""
        answer: Any = request.refused(errors.NOT_CONTROLLER)
        try:
            if self.is_active:
                answer = yield from self._administration.handle(request)
        finally:
            on_handled(answer)

    # Preferred leaders

    def _process_preferred_replica_election(self) -> Processing:
        """Elect preferred leaders as an administrator has requested."""
        if not self.is_active:
            return
        path = zk.PREFERRED_REPLICA_ELECTION
        response = yield Submission((zk.GetData(path, watch=True),))
        if response.results[0].error != zk.OK:
            return
        requested = response.results[0].data or tuple(self._context.assignments)
        partitions = [p for p in requested if p in self._context.leadership]
        yield from self._partitions.elect_leaders(partitions, PREFERRED, PREFERRED_LEADER)
        yield Submission((zk.Delete(path),), guarded=True)

    def _check_leader_imbalance(self, controller_epoch: int) -> None:
        if self.is_active and self._context.epoch == controller_epoch:
            self._enqueue(self._process_leader_imbalance)
            interval_us = self._config.leader_imbalance_check_interval_us
            self._host.set_timer(interval_us, self._check_leader_imbalance, controller_epoch)

    def _process_leader_imbalance(self) -> Processing:
        """Elect preferred leaders that are live and have lost too many of their partitions."""
        if not self.is_active:
            return
        partitions = self._context.imbalanced_partitions(self._config.leader_imbalance_percentage)
        if partitions:
            yield from self._partitions.elect_leaders(partitions, PREFERRED, PREFERRED_LEADER)

    # Helpers

    def _online_brokers(self) -> Collection[int]:
        """Return the brokers whose partitions stay online when another broker fails."""
        context = self._context
        return (
            context.can_lead()
            if self._switches.shutting_down_leader_counts_as_offline
            else context.live_brokers
        )

    def _batch(self) -> RequestBatch:
        return RequestBatch(self._broker, self._context.epoch, self._channels)

    def _send_state_to(self, brokers: Iterable[int]) -> None:
        """Send brokers the current state of their replicas."""
        context = self._context
        batch = self._batch()
        for broker in brokers:
            for partition, replicas in context.assignments.items():
                if broker in replicas and partition in context.leadership:
                    batch.add_leader_and_isr((broker,), partition, context.state(partition))
        batch.send(context.live())


def _delete_all(path: str, children: Iterable[str]) -> Operations:
    return tuple(zk.Delete(f"{path}/{child}") for child in children)
