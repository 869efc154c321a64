"""Connects a broker to KRaft: registers it, sends heartbeats, follows the metadata log.

Modelled on ``BrokerLifecycleManager.scala``, ``BrokerServer.scala`` and
``BrokerMetadataPublisher.scala``.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import Enum, unique
from typing import Any, Final

from harrow.cluster_model import errors
from harrow.cluster_model.controller.administration import (
    AdministrationRequest,
    CreateTopicsRequest,
    NewTopic,
)
from harrow.cluster_model.controller.alter_partition_manager import DefaultAlterPartitionManager
from harrow.cluster_model.controller.control_plane import LifecycleListener, MetadataDelta
from harrow.cluster_model.controller.node_to_controller_channel import NodeToControllerChannel
from harrow.cluster_model.events import CleanShutdownNoted, MetadataSnapshotFetched, RegistrationLearned
from harrow.cluster_model.kraft import protocol as kraft
from harrow.cluster_model.kraft.cluster_image import ClusterImage
from harrow.cluster_model.kraft.metadata_log import MetadataLog, MetadataSnapshot
from harrow.cluster_model.kraft.raft import QuorumConfig, RaftClient
from harrow.cluster_model.kraft.records import (
    MetadataRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicSettingsRecord,
)
from harrow.cluster_model.kraft.snapshot_generator import SnapshotGenerator
from harrow.cluster_model.protocol import (
    NO_EPOCH,
    AlterPartitionRequest,
    AlterPartitionResponse,
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    InitProducerIdResponse,
    LeaderAndIsr,
    LeaderAndIsrPartitionState,
)
from harrow.cluster_model.settings import BrokerConfig
from harrow.cluster_model.sim.host import Host
from harrow.cluster_model.sim.virtual_time import US_PER_MS

_RESEND_BACKOFF_US: Final = 100 * US_PER_MS
"""The wait after a first failure.

It doubles up to ``broker.session.timeout.ms``, with 2 % jitter.
"""
_STARTING_INTERVAL_US: Final = 10 * US_PER_MS
"""The heartbeat interval of a broker that still catches up with metadata, to start soon."""
_FIRST_SHUTDOWN_INTERVAL_US: Final = 50 * US_PER_MS
_PRODUCER_IDS_RETRY_US: Final = 50 * US_PER_MS

ProducerIdCallback = Callable[[InitProducerIdResponse], None]


@unique
class BrokerPhase(Enum):
    """The phases of a broker's process. Modelled on ``BrokerPhase.java``."""

    STARTING = "starting"
    RECOVERY = "recovery"
    RUNNING = "running"
    PENDING_CONTROLLED_SHUTDOWN = "pending controlled shutdown"
    SHUTTING_DOWN = "shutting down"


class KRaftBrokerLifecycle:
    """What connects one incarnation of a broker to the quorum."""

    def __init__(
        self,
        broker: int,
        host: Host,
        config: BrokerConfig,
        voters: tuple[int, ...],
        log: MetadataLog,
        quorum_config: QuorumConfig,
        listener: LifecycleListener,
        is_active_controller: Callable[[], bool],
        stop_controller: Callable[[Callable[[], None]], None] | None = None,
        *,
        reports_log_dirs: bool = True,
    ) -> None:
        self._broker = broker
        self._host = host
        self._config = config
        self._log = log
        self._listener = listener
        self._is_active_controller = is_active_controller
        self._stop_controller = stop_controller
        self._reports_log_dirs = reports_log_dirs
        self._incarnation = host.clock.now_us
        self._state = BrokerPhase.STARTING
        self._broker_epoch = NO_EPOCH
        self._image = ClusterImage()
        self._has_published = False
        self._on_shutdown: Callable[[], None] | None = None
        self._gives_up_us: int | None = None
        self._communication_due_us = 0
        self._communication_in_flight = False
        self._next_is_immediate = False
        self._failed_attempts = 0
        self._got_shutdown_response = False
        self._offline: frozenset[str] = frozenset()
        self._snapshots = SnapshotGenerator(broker, host, log, config, lambda: self._image)
        self._raft = RaftClient(kraft.observer_id(broker), host, voters, log, quorum_config, self)
        timeout_us = config.controller_socket_timeout_us
        self._channel = NodeToControllerChannel(
            host, kraft.server_name, kraft.CONTROLLER_LISTENER, timeout_us, lambda: self._raft.leader
        )
        self._heartbeats = NodeToControllerChannel(
            host,
            kraft.server_name,
            kraft.CONTROLLER_LISTENER,
            timeout_us,
            lambda: self._raft.leader,
            config.broker_session_timeout_us // 2,
        )
        self.alter_partition_manager = DefaultAlterPartitionManager(
            broker, host, self._channel, lambda: self._broker_epoch
        )
        # The channel for requests of administrators, once there is one.
        self._forwarding: NodeToControllerChannel | None = None
        self._producer_ids = range(0)
        self._waiting_for_ids: list[ProducerIdCallback] = []

    @property
    def is_active_controller(self) -> bool:
        return self._is_active_controller()

    @property
    def broker_epoch(self) -> int:
        """The broker epoch of this incarnation; `NO_EPOCH` before it has registered."""
        return self._broker_epoch

    @property
    def exit_us(self) -> int | None:
        """When the broker will exit if it has not registered by then; None after registration."""
        return self._gives_up_us

    # Registration and heartbeats

    def start(self) -> None:
        """Follow the metadata log, and start to register."""
        self._snapshots.start()
        self._raft.start()
        timeout_us = self._config.initial_registration_timeout_us
        self._gives_up_us = self._host.clock.now_us + timeout_us
        self._host.set_timer(timeout_us, self._give_up)
        self._communicate()

    def _give_up(self, _: None) -> None:
        """End the process if it could not register for too long (``RegistrationTimeoutEvent``)."""
        if self._gives_up_us is not None:
            self._host.halt()

    def _communicate(self) -> None:
        """Send a heartbeat, or a registration if the broker is not registered.

        If a request is in flight, wait for its answer first.
        """
        if self._communication_in_flight:
            self._next_is_immediate = True
        elif self._state is BrokerPhase.SHUTTING_DOWN:
            return
        elif self._broker_epoch == NO_EPOCH:
            self._communication_in_flight = True
            # Each log directory has a clean shutdown file with the broker epoch. The shutdown was
            # clean only if all directories have it (``readBrokerEpochFromCleanShutdownFiles``).
            was_clean = not self._listener.has_failed_log_dirs()
            request = kraft.BrokerRegistrationRequest(
                self._broker, self._incarnation, self._log.clean_shutdown_epoch if was_clean else NO_EPOCH
            )
            self._heartbeats.send(request, self._handle_registration)
        else:
            self._send_heartbeat()

    def _schedule_communication(self, delay_us: int) -> None:
        """Call `_communicate` after a delay, instead of at the time that was scheduled before."""
        if self._next_is_immediate:
            delay_us, self._next_is_immediate = 0, False
        self._communication_due_us = self._host.clock.now_us + delay_us
        if delay_us:
            self._host.set_timer(delay_us, self._communication_due, self._communication_due_us)
        else:
            self._communicate()

    def _communication_due(self, due_us: int) -> None:
        if due_us == self._communication_due_us:
            self._communicate()

    def _schedule_after_failure(self) -> None:
        """Retry after a backoff.

        Modelled on ``ExponentialBackoff``, whose jitter keeps brokers from retrying at the same
        time.
        """
        backoff_us = min(
            _RESEND_BACKOFF_US << min(self._failed_attempts, 30), self._config.broker_session_timeout_us
        )
        self._failed_attempts += 1
        self._next_is_immediate = False
        jitter = 980 + self._host.choices.network.below(41)
        self._schedule_communication(max(backoff_us * jitter // 1000, 1))

    def _handle_registration(self, response: kraft.BrokerRegistrationResponse | None) -> None:
        """Start to send heartbeats.

        Retry if an earlier incarnation's session still blocks registration.
        """
        self._communication_in_flight = False
        if response is None or response.error != errors.NONE:
            self._schedule_after_failure()
            return
        self._failed_attempts = 0
        self._gives_up_us = None
        self._broker_epoch = response.broker_epoch
        self._log.clean_shutdown_epoch = NO_EPOCH
        self._schedule_communication(0)

    def _send_heartbeat(self) -> None:
        self._communication_in_flight = True
        request = kraft.BrokerHeartbeatRequest(
            self._broker,
            self._broker_epoch,
            self._image.next_offset - 1,
            want_fence=self._state is BrokerPhase.STARTING,
            want_shut_down=self._state is BrokerPhase.PENDING_CONTROLLED_SHUTDOWN,
            offline=self._offline,
        )
        self._heartbeats.send(request, self._heartbeat_answered)

    def _heartbeat_answered(self, response: kraft.BrokerHeartbeatResponse | None) -> None:
        """Advance the broker's phase.

        Modelled on ``BrokerLifecycleManager.BrokerHeartbeatResponseEvent``.
        """
        self._communication_in_flight = False
        if response is None or response.error != errors.NONE:
            self._schedule_after_failure()
            return
        self._failed_attempts = 0
        interval_us = self._config.broker_heartbeat_interval_us
        if self._state is BrokerPhase.STARTING:
            if response.is_caught_up:
                self._become_ready()
                self._schedule_communication(0)
                return
            interval_us = _STARTING_INTERVAL_US
        elif self._state is BrokerPhase.RECOVERY:
            if not response.is_fenced:
                self._state = BrokerPhase.RUNNING
                self._listener.on_unfencing()
        elif self._state is BrokerPhase.PENDING_CONTROLLED_SHUTDOWN:
            if response.should_shut_down:
                self._shut_down()
                return
            if not self._got_shutdown_response:
                # If there are few leaderships to move, the broker may soon stop.
                interval_us = _FIRST_SHUTDOWN_INTERVAL_US
            self._got_shutdown_response = True
        self._schedule_communication(interval_us)

    def _become_ready(self) -> None:
        """Open the logs, accept requests and ask to be unfenced, as the metadata is up to date."""
        self._state = BrokerPhase.RECOVERY
        self._host.publish(RegistrationLearned, self._broker, self._broker_epoch)
        image = self._image
        self._publish(tuple(image.partitions), tuple(image.topic_settings), tuple(image.removed_topics))
        self._has_published = True
        self._listener.on_registration(self._broker_epoch)

    def propagate_log_dir_failure(self, partitions: tuple[str, ...]) -> None:
        """Report offline replicas, with a heartbeat now and with all later heartbeats.

        Before KIP-858 the controller does not learn of failed log directories.
        """
        if not self._reports_log_dirs:
            return
        self._offline |= frozenset(partitions)
        if self._broker_epoch != NO_EPOCH:
            self._schedule_communication(0)

    # Metadata

    def on_commit(self, high_watermark: int) -> None:
        """Apply committed records, and publish what changes to the broker.

        A snapshot publishes only its differences from the previous image
        (``MetadataLoader.handleLoadSnapshot``).
        """
        previous_image, start_offset = self._image, self._image.next_offset
        image = self._image = self._log.replay(self._image, high_watermark)
        if self._has_published:
            if image is previous_image:
                self._publish_changes([r for _, r in self._log.read(start_offset, high_watermark)])
            else:
                changed = tuple(
                    name
                    for name, record in image.partitions.items()
                    if _differs(previous_image.partitions.get(name), record)
                )
                self._publish(changed, tuple(image.topic_settings), tuple(image.removed_topics))
        self._snapshots.on_commit(image.next_offset)

    def on_truncation(self, offset: int) -> None:
        """Do nothing, because truncated records were never applied."""

    def on_leader_change(self) -> None:
        """Do nothing, because each request goes to the leader that is known when it is sent."""

    def on_snapshot(self, leader: int, log_end: int, snapshot: MetadataSnapshot) -> None:
        self._host.emit(MetadataSnapshotFetched, self._broker, leader, log_end, *snapshot.id)

    def _publish_changes(self, records: list[MetadataRecord]) -> None:
        changed = dict.fromkeys([r.partition for r in records if isinstance(r, PartitionRecord)])
        configured = dict.fromkeys([r.topic for r in records if isinstance(r, TopicSettingsRecord)])
        removed = tuple([r.topic for r in records if isinstance(r, RemoveTopicRecord)])
        if removed:
            changed = {name: None for name in changed if name in self._image.partitions}
            configured = {name: None for name in configured if name in self._image.topic_settings}
        self._publish(tuple(changed), tuple(configured), removed)

    def _publish(
        self, partitions: Iterable[str], configured: Iterable[str] = (), removed: Iterable[str] = ()
    ) -> None:
        """Publish the state of partitions, the settings of topics, and which topics are deleted."""
        image = self._image
        states = {name: _state_of(image.partitions[name]) for name in partitions}
        self._listener.on_metadata_update(
            MetadataDelta(
                *(self._broker_epoch, image.unfenced_brokers(), image.active(), states),
                topic_settings={topic: image.topic_settings[topic] for topic in configured},
                deleted=tuple([name for topic in removed for name in image.removed_partitions(topic)]),
            )
        )

    # Producer ids

    def generate_producer_id(self, on_generated: ProducerIdCallback) -> None:
        """Call back with the next id of the broker's block.

        Get a new block from the controller first if the block is used up.
        """
        if self._producer_ids:
            first, self._producer_ids = self._producer_ids[0], self._producer_ids[1:]
            on_generated(InitProducerIdResponse(errors.NONE, first, 0))
            return
        self._waiting_for_ids.append(on_generated)
        if len(self._waiting_for_ids) == 1:
            self._request_ids()

    def _request_ids(self) -> None:
        request = kraft.AllocateProducerIdsRequest(self._broker, self._broker_epoch)
        self._channel.send(request, self._ids_allocated)

    def _ids_allocated(self, response: kraft.AllocateProducerIdsResponse) -> None:
        if response.error != errors.NONE:
            self._host.set_timer(_PRODUCER_IDS_RETRY_US, lambda _: self._request_ids())
            return
        self._producer_ids = range(response.first, response.first + kraft.PRODUCER_IDS_BLOCK)
        waiting, self._waiting_for_ids = self._waiting_for_ids, []
        for on_generated in waiting:
            self.generate_producer_id(on_generated)

    # Stopping

    def request_controlled_shutdown(self, on_ended: Callable[[], None]) -> None:
        """Ask in heartbeats to be allowed to stop. Stop when allowed, or after five minutes."""
        self._on_shutdown = on_ended
        self._state = BrokerPhase.PENDING_CONTROLLED_SHUTDOWN
        self._host.set_timer(kraft.CONTROLLED_SHUTDOWN_MAX_US, lambda _: self._shut_down())
        self._schedule_communication(0)

    def _shut_down(self) -> None:
        on_ended, self._on_shutdown = self._on_shutdown, None
        if on_ended is not None:
            self._state = BrokerPhase.SHUTTING_DOWN
            on_ended()

    def handle_controlled_shutdown(
        self,
        request: ControlledShutdownRequest,
        on_handled: Callable[[ControlledShutdownResponse], None],
    ) -> None:
        """Refuse, because in KRaft brokers request a controlled shutdown in heartbeats."""
        on_handled(ControlledShutdownResponse(errors.NOT_CONTROLLER))

    def handle_alter_partition(
        self,
        request: AlterPartitionRequest,
        on_handled: Callable[[AlterPartitionResponse], None],
    ) -> None:
        """Refuse, because only controllers handle AlterPartition."""
        on_handled(AlterPartitionResponse(errors.NOT_CONTROLLER, {}))

    def create_topics(
        self,
        topics: tuple[NewTopic, ...],
        on_answer: Callable[[Mapping[str, str]], None],
        on_end: Callable[[], None],
    ) -> None:
        """Forward the creation to the active controller. The client asks again until it is done."""
        on_answer({topic.name: errors.UNKNOWN_TOPIC_OR_PARTITION for topic in topics})
        self.administer(CreateTopicsRequest(topics), lambda _: on_end())

    def administer(self, request: AdministrationRequest, on_handled: Callable[[Any], None]) -> None:
        """Forward a request to the active controller (KIP-590, ``ForwardingManagerImpl``).

        The client gets REQUEST_TIMED_OUT if no controller has answered in time.
        """
        if self._forwarding is None:
            timeout_us = self._config.request_timeout_us
            self._forwarding = NodeToControllerChannel(
                *(self._host, kraft.server_name, kraft.CONTROLLER_LISTENER, timeout_us),
                lambda: self._raft.leader,
                timeout_us,
            )
        self._forwarding.send(
            request,
            lambda answer: on_handled(
                request.refused(errors.REQUEST_TIMED_OUT) if answer is None else answer
            ),
        )

    def close(self, on_closed: Callable[[], None]) -> None:
        """Write the broker epoch to disk, to prove a clean shutdown at the next registration.

        A broker that has not opened its logs keeps the proof of its earlier incarnation
        (``LogManager.shutdown``, loadLogsCompletedFlags). A broker with a failed log directory
        cannot write the proof.
        """
        self._state = BrokerPhase.SHUTTING_DOWN
        if self._has_published and not self._listener.has_failed_log_dirs():
            self._log.clean_shutdown_epoch = self._broker_epoch
            self._host.publish(CleanShutdownNoted, self._broker)
        self._raft.close()
        self._channel.close()
        self._heartbeats.close()
        if self._forwarding is not None:
            self._forwarding.close()
        if self._stop_controller is None:
            on_closed()
        else:
            # A controller in the same process stops after the broker
            # (``KafkaRaftServer.shutdown``).
            self._stop_controller(on_closed)


def _differs(previous: PartitionRecord | None, record: PartitionRecord) -> bool:
    """Return whether a snapshot changes a partition (``TopicDelta.localChanges``)."""
    return previous is None or previous.partition_epoch != record.partition_epoch


def _state_of(record: PartitionRecord) -> LeaderAndIsrPartitionState:
    state = LeaderAndIsr(record.leader, record.leader_epoch, record.isr, record.partition_epoch)
    return LeaderAndIsrPartitionState(NO_EPOCH, state, record.replicas)
