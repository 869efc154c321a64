"""The controller on ZooKeeper (``KafkaController.scala``).

Every broker has one; the one whose broker owns ``/controller`` is active. Events are
processed one at a time. The processing of an event is a generator: it yields the
ZooKeeper operations that it waits for and goes on with their results, so it reads
top down like the original, and can be interrupted (paused, fenced, expired) exactly
where the original can.
"""

from collections import deque
from collections.abc import Callable, Collection, Generator, Iterable
from typing import Final

from harrow.cluster_model import errors
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
from harrow.cluster_model.zookeeper.controller.controller_channel import (
    ControllerChannelManager,
    RequestBatch,
)
from harrow.cluster_model.zookeeper.controller.controller_context import ControllerContext
from harrow.cluster_model.zookeeper.controller.partition_reassignment import PartitionReassignments
from harrow.cluster_model.zookeeper.controller.partition_state_machine import (
    CONTROLLED_SHUTDOWN,
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

OnHandled = Callable[[ControlledShutdownResponse], None]
OnAltered = Callable[[AlterPartitionResponse], None]

FIRST_REBALANCE_CHECK_US: Final = 5 * US_PER_SECOND

_Notifications = tuple[tuple[str, ...], tuple[zk.ZooKeeperResult, ...]]


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
    ) -> None:
        self._broker = broker
        self._host = host
        self._config = config
        self._topic_config = topic_config
        self._behaviours = behaviours
        self._switches = behaviours.zookeeper
        self._zookeeper = zookeeper
        self._channels = ControllerChannelManager(host, broker, config.controller_socket_timeout_us)
        self._channels.on_answered = self._control_answered
        self._begin_term(0, 0)
        self._events: deque[Callable[[], Processing]] = deque()
        self._processing: Processing | None = None
        # Who waits for the outcome of the event that is processed, and of those in the queue.
        self._shutdown_begun: OnHandled | None = None
        self._shutdowns_queued: list[OnHandled] = []
        self._turn = 0
        self._is_shut_down = False
        self.is_active = False

    # Events

    def broker_registered(self) -> None:
        """Take part in the election."""
        self._put(self._process_controller_change)

    def session_expired(self) -> None:
        """Forget all events; an active controller resigns."""
        self._clear_events()
        self._abort()
        self._resign()

    def controlled_shutdown(self, request: ControlledShutdownRequest, on_handled: OnHandled) -> None:
        """A broker asks to be relieved of its leaderships."""
        self._shutdowns_queued.append(on_handled)
        self._put(lambda: self._process_controlled_shutdown(request, on_handled))

    def shutdown(self) -> None:
        """The broker stops: resign, and process nothing more."""
        self._is_shut_down = True
        self._clear_events()
        self._abort()
        self._resign()

    def _clear_events(self) -> None:
        """Drop the events that wait, and tell the brokers behind them if the release does so."""
        self._events.clear()
        waiting, self._shutdowns_queued = self._shutdowns_queued, []
        for on_handled in waiting if self._switches.shutdown_request_preempted else ():
            on_handled(ControlledShutdownResponse(errors.STALE_CONTROLLER_EPOCH))

    def watch_fired(self, event: zk.WatchEvent) -> None:
        """Something that is watched has changed."""
        if event.path == zk.CONTROLLER:
            self._put(self._process_controller_change)
        elif event.path == zk.BROKER_IDS:
            self._put(self._process_broker_change)
        elif event.path == zk.BROKER_TOPICS:
            self._put(self._process_topic_change)
        elif event.path == zk.ISR_CHANGE_NOTIFICATION:
            self._put(self._process_isr_change_notification)
        elif event.path == zk.PREFERRED_REPLICA_ELECTION:
            self._put(self._process_preferred_replica_election)
        elif event.path == zk.LOG_DIR_EVENT_NOTIFICATION:
            self._put(self._process_log_dir_event_notification)
        elif zk.is_topic_path(event.path):
            topic = zk.topic_of(event.path)
            self._put(lambda: self._process_partition_modifications(topic))
        elif zk.is_state_path(event.path):
            partition = zk.partition_of(event.path)
            self._put(lambda: self._process_reassignment_isr_change(partition))

    def _put(self, event: Callable[[], Processing]) -> None:
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
        turn = self._turn
        guard = None
        if submission.guarded and self._switches.controller_writes_fenced:
            guard = zk.Check(zk.CONTROLLER_EPOCH, self._context.epoch_zk_version)

        def answered(answer: zk.ZooKeeperResponse) -> None:
            # After the session's expiry this event is history.
            if turn == self._turn and answer.error != zk.SESSION_EXPIRED:
                has_moved = guard is not None and answer.error == zk.BAD_VERSION
                self._advance(answer, has_moved=has_moved)
                self._process_next()

        self._zookeeper.submit(submission.operations, answered, atomic=submission.atomic, guard=guard)

    def _abort(self) -> None:
        self._turn += 1
        if self._processing is not None:
            self._processing.close()
            self._processing = None
            self._fail_shutdown()

    # Becoming and ceasing to be the controller

    def _process_controller_change(self) -> Processing:
        """``/controller`` was created, changed or deleted: resign, or run for office."""
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
            # It has failed because there is a newer one (``KafkaController.elect``,
            # triggerControllerMove).
            raise ControllerMoved from None

    def _begin_term(self, epoch: int, epoch_zk_version: int) -> None:
        """Begin with nothing known but the controller epoch."""
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

    def _resign(self) -> None:
        if not self.is_active:
            return
        self.is_active = False
        self._channels.close()
        self._host.emit(ControllerResigned, self._broker, self._context.epoch)

    def _on_controller_failover(self) -> Processing:
        """Read everything, tell everybody, and go on where the former controller stopped."""
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
            # Everybody is told everything below, and answers what is offline.
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
        if self._switches.failover_takes_out_dead_replicas:
            for broker in dead:
                yield from self._partitions.remove_from_isrs(broker)
        context.mark_offline_partitions(context.live_brokers)
        yield from self._partitions.trigger_online_partitions("controller failover")
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
        numbers = sorted(int(name) for name in ids)
        response = yield Submission(tuple(zk.GetData(zk.broker_path(number)) for number in numbers))
        found = zip(numbers, response.results, strict=True)
        return {number: result.czxid for number, result in found if result.error == zk.OK}

    def _read_topics(self, topics: Iterable[str]) -> Processing:
        names = list(topics)
        reads = tuple(zk.GetData(zk.topic_path(topic), watch=True) for topic in names)
        response = yield Submission(reads)
        for topic, result in zip(names, response.results, strict=True):
            self._context.add_topic(topic, result.data)

    # Brokers and topics come and go

    def _process_broker_change(self) -> Processing:
        """Compare ``/brokers/ids`` with what is known.

        Before KIP-380 a broker that went and came back between two looks goes unnoticed
        (KAFKA-1120); since then its new epoch gives it away.
        """
        if not self.is_active:
            return
        context = self._context
        response = yield Submission((zk.GetChildren(zk.BROKER_IDS, watch=True),))
        current = yield from self._read_brokers(response.results[0].children)
        new = [b for b in current if b not in context.live_brokers]
        dead = [b for b in context.live_brokers if b not in current]
        bounced = []
        if self._switches.broker_epoch:
            bounced = [b for b in current if current[b] > context.live_brokers.get(b, current[b])]
        for broker in (*dead, *bounced):
            self._channels.remove_broker(broker)
        for broker in (*new, *bounced):
            self._channels.add_broker(broker, current[broker])
        if new:
            context.live_brokers.update({broker: current[broker] for broker in new})
            yield from self._on_broker_startup(new)
        if bounced:
            context.remove_live_brokers(bounced)
            yield from self._on_broker_failure(bounced)
            context.live_brokers.update({broker: current[broker] for broker in bounced})
            yield from self._on_broker_startup(bounced)
        if dead:
            context.remove_live_brokers(dead)
            yield from self._on_broker_failure(dead)
        self._host.publish(BrokerChangeProcessed, self._broker, context.epoch, current, context.live_brokers)

    def _on_broker_startup(self, brokers: list[int]) -> Processing:
        """Tell new brokers what they have, and elect leaders where that was impossible."""
        context = self._context
        existing = [broker for broker in context.live() if broker not in brokers]
        batch = self._batch()
        batch.send_update_metadata(existing, {}, context.live())
        batch.send_update_metadata(brokers, context.states(context.leadership), context.live())
        self._send_state_to(brokers)
        yield from self._partitions.trigger_online_partitions("broker startup")
        if context.reassigning:
            yield from self._reassignments.resume(
                lambda assignment: not set(brokers).isdisjoint(assignment.target)
            )

    def _on_broker_failure(self, brokers: list[int]) -> Processing:
        """Elect new leaders for what the dead brokers led, then take them out of the ISRs."""
        context = self._context
        led = context.mark_offline_partitions(self._online())
        yield from self._partitions.trigger_online_partitions("broker failure")
        for broker in brokers:
            yield from self._partitions.remove_from_isrs(broker)
        if not led:
            self._batch().send_update_metadata(context.live(), {}, context.live())

    # Brokers stop

    def _process_controlled_shutdown(
        self, request: ControlledShutdownRequest, on_handled: OnHandled
    ) -> Processing:
        """Move a broker's leaderships to others where possible, and answer with the remaining ones.

        What it follows it stops fetching, and leaves the ISR
        (``KafkaController.doControlledShutdown``, ``shutdownBroker`` before 0.11). From now on it
        is elected nowhere, until it has been gone.
        """
        self._shutdowns_queued.remove(on_handled)
        context, broker = self._context, request.broker
        error = self._shutdown_error(request)
        if error != errors.NONE:
            on_handled(ControlledShutdownResponse(error))
            return
        self._shutdown_begun = on_handled
        self._host.emit(ControlledShutdownBegun, self._broker, broker)
        context.shutting_down.add(broker)
        led, followed = context.replicated(broker)
        yield from self._partitions.elect_leaders(led, CONTROLLED_SHUTDOWN, CONTROLLED_SHUTDOWN)
        yield from self._partitions.remove_from_isrs(broker, followed)
        self._shutdown_begun = None
        on_handled(ControlledShutdownResponse(errors.NONE, tuple(context.replicated(broker)[0])))

    def _shutdown_error(self, request: ControlledShutdownRequest) -> str:
        """Return why a broker is not relieved.

        Since KIP-380 one that this controller does not know is an unforeseen error: its epoch is
        looked up first.
        """
        if not self.is_active:
            return errors.STALE_CONTROLLER_EPOCH
        known_epoch = self._context.live_brokers.get(request.broker)
        if known_epoch is None:
            is_looked_up = request.broker_epoch != NO_EPOCH
            return errors.UNKNOWN_SERVER_ERROR if is_looked_up else errors.BROKER_NOT_AVAILABLE
        return errors.STALE_BROKER_EPOCH if NO_EPOCH < request.broker_epoch < known_epoch else errors.NONE

    def _fail_shutdown(self) -> None:
        """A controlled shutdown was cut off: its broker has to ask again."""
        on_handled, self._shutdown_begun = self._shutdown_begun, None
        if on_handled is not None:
            on_handled(ControlledShutdownResponse(errors.STALE_CONTROLLER_EPOCH))

    def _process_topic_change(self) -> Processing:
        """Give new topics leaders."""
        if not self.is_active:
            return
        response = yield Submission((zk.GetChildren(zk.BROKER_TOPICS, watch=True),))
        new = [topic for topic in response.results[0].children if topic not in self._context.topics]
        yield from self._read_topics(new)
        yield from self._partitions.trigger_online_partitions("topic creation")

    def _process_partition_modifications(self, topic: str) -> Processing:
        """Elect leaders for new partitions after a write to a topic's znode.

        The controller itself may have written it.
        """
        if not self.is_active:
            return
        yield from self._read_topics((topic,))
        context = self._context
        names = (f"{topic}-{number}" for number in range(context.topics[topic]))
        new = [name for name in names if name not in context.leadership]
        if new:
            yield from self._partitions.initialize_leader_and_isr(new)

    def _process_isr_change_notification(self) -> Processing:
        """Leaders have changed ISRs: pass that on as metadata."""
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

    # Log directories fail

    def _process_log_dir_event_notification(self) -> Processing:
        """Ask brokers with failed log directories which replicas are offline (KIP-112).

        The question is a LeaderAndIsr with the replicas that they already have.
        """
        if not self.is_active:
            return
        path = zk.LOG_DIR_EVENT_NOTIFICATION
        notifications, results = yield from self._read_notifications(path)
        if not notifications:
            return
        told = (result.data for result in results if result.error == zk.OK)
        self._send_state_to(broker for broker in dict.fromkeys(told) if broker in self._context.live_brokers)
        yield Submission(_delete_all(path, notifications), guarded=True)

    def _control_answered(self, broker: int, request: ControlRequest, response: ControlResponse) -> None:
        if isinstance(request, LeaderAndIsrRequest) and response.error == errors.NONE:
            known = self._context.offline_replicas.get(broker, {})
            if response.offline or any(name in known for name in request.partition_states):
                asked = tuple(request.partition_states)
                self._put(lambda: self._process_leader_and_isr_response(broker, asked, response.offline))

    def _process_leader_and_isr_response(
        self, broker: int, asked: tuple[str, ...], offline: tuple[str, ...]
    ) -> Processing:
        """Mark a broker's offline replicas, and elect others that it led.

        After ``onReplicasBecomeOffline``.
        """
        context = self._context
        if not self.is_active or broker not in context.live_brokers:
            return
        known = context.offline_replicas.get(broker, {})
        new = [name for name in offline if name not in known]
        still = {name: None for name in known if name not in asked}
        context.offline_replicas[broker] = {**still, **dict.fromkeys(offline)}
        if not new:
            return
        led = context.mark_offline_partitions(self._online())
        yield from self._partitions.trigger_online_partitions("log directory failure")
        yield from self._partitions.remove_from_isrs(broker, new)
        if not led:
            self._batch().send_update_metadata(context.live(), {}, context.live())

    # Leaders want other ISRs

    def alter_partitions(self, request: AlterPartitionRequest, on_handled: OnAltered) -> None:
        """A leader wants other ISRs (KIP-497, from 2.7 on)."""
        self._put(lambda: self._process_alter_partition(request, on_handled))

    def _process_alter_partition(self, request: AlterPartitionRequest, on_handled: OnAltered) -> Processing:
        """Write a request's valid ISRs, answer, and update brokers (``processAlterPartition``).

        A request that is dropped from the queue, or cut off, is not answered: who has asked asks
        again after its timeout.
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
        for partition, wanted in request.partitions.items():
            state = LeaderAndIsr(
                request.broker,
                wanted.leader_epoch,
                tuple(member for member, _ in wanted.isr),
                wanted.partition_epoch,
            )
            answer = self._alteration(partition, state)
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
            if answers[partition][0] == errors.NONE and partition in context.reassigning:
                yield from self._reassignments.complete(partition)

    def _write_isrs(
        self, wanted: dict[str, LeaderAndIsr]
    ) -> Generator[Submission, zk.ZooKeeperResponse, tuple[list[str], list[str]]]:
        """Write the ISRs that leaders want; return the partitions written, and those refused.

        A write is refused, too, where the answer to an earlier attempt was lost. Up to 2.6 the
        leader, which wrote itself, compared what stood in the znode
        (``ReplicationUtils.checkLeaderAndIsrZkData``). Controllers do not: the leader gets
        INVALID_UPDATE_VERSION, and waits for metadata that nobody sends.
        """
        written, refused = yield from self._partitions.write_states(wanted)
        if not refused or not self._switches.repeated_isr_write_recognised:
            return written, refused
        yield from self._partitions.read_states(refused)
        for partition in refused:
            known, state = self._context.leadership[partition], wanted[partition]
            if (known.leader, known.leader_epoch, known.isr) == (state.leader, state.leader_epoch, state.isr):
                written.append(partition)
        return written, [partition for partition in refused if partition not in written]

    def _alteration(self, partition: str, wanted: LeaderAndIsr) -> tuple[str, int] | None:
        """Return the immediate answer to a leader; None if its ISR must be written first."""
        known = self._context.leadership.get(partition)
        error: str | None = None
        if known is None:
            error = errors.UNKNOWN_TOPIC_OR_PARTITION
        elif wanted.partition_epoch > known.partition_epoch or wanted.leader_epoch > known.leader_epoch:
            # Who knows more than this controller has probably heard of another one.
            error = errors.NOT_CONTROLLER
        elif wanted.leader_epoch < known.leader_epoch:
            error = errors.FENCED_LEADER_EPOCH
        elif (wanted.leader, wanted.isr) == (known.leader, known.isr):
            # The answer to an earlier attempt was lost.
            return errors.NONE, known.partition_epoch
        elif wanted.partition_epoch < known.partition_epoch:
            error = errors.INVALID_UPDATE_VERSION
        elif self._behaviours.replication.isr_expansion_checks_registration and not (
            self._context.can_lead().issuperset(wanted.isr)
        ):
            error = errors.INELIGIBLE_REPLICA
        return None if error is None else (error, -1)

    # Reassignments

    def alter_partition_reassignment(self, partition: str, target: tuple[int, ...] | None) -> None:
        """Queue an administrator's request for other replicas of a partition.

        None cancels its reassignment.
        """
        self._put(lambda: self._process_reassignment(partition, target))

    def _process_reassignment(self, partition: str, target: tuple[int, ...] | None) -> Processing:
        if self.is_active:
            yield from self._reassignments.alter(partition, target)

    def _process_reassignment_isr_change(self, partition: str) -> Processing:
        """The state of a partition that is being reassigned was written."""
        if self.is_active:
            yield from self._reassignments.complete(partition)

    # Preferred leaders

    def _process_preferred_replica_election(self) -> Processing:
        """An administrator asks for the preferred leaders."""
        if not self.is_active:
            return
        path = zk.PREFERRED_REPLICA_ELECTION
        response = yield Submission((zk.GetData(path, watch=True),))
        if response.results[0].error != zk.OK:
            return
        wanted = response.results[0].data or tuple(self._context.assignments)
        partitions = [p for p in wanted if p in self._context.leadership]
        yield from self._partitions.elect_leaders(partitions, PREFERRED, "preferred leader")
        yield Submission((zk.Delete(path),), guarded=True)

    def _check_leader_imbalance(self, controller_epoch: int) -> None:
        if self.is_active and self._context.epoch == controller_epoch:
            self._put(self._process_leader_imbalance)
            interval_us = self._config.leader_imbalance_check_interval_us
            self._host.set_timer(interval_us, self._check_leader_imbalance, controller_epoch)

    def _process_leader_imbalance(self) -> Processing:
        """Give live brokers back what they should lead, where too much of it is elsewhere."""
        if not self.is_active:
            return
        partitions = self._context.imbalanced_partitions(self._config.leader_imbalance_percentage)
        if partitions:
            yield from self._partitions.elect_leaders(partitions, PREFERRED, "preferred leader")

    # Small parts

    def _online(self) -> Collection[int]:
        """Return the brokers whose partitions are not offline when some broker fails."""
        context = self._context
        return context.can_lead() if self._switches.shutting_down_leader_is_offline else context.live_brokers

    def _batch(self) -> RequestBatch:
        return RequestBatch(self._broker, self._context.epoch, self._channels)

    def _send_state_to(self, brokers: Iterable[int]) -> None:
        """Tell brokers the current state of the replicas that they have."""
        context = self._context
        batch = self._batch()
        for broker in brokers:
            for partition, replicas in context.assignments.items():
                if broker in replicas and partition in context.leadership:
                    batch.add_leader_and_isr((broker,), partition, context.state(partition))
        batch.send(context.live())


def _delete_all(path: str, children: Iterable[str]) -> Operations:
    return tuple(zk.Delete(f"{path}/{child}") for child in children)
