"""Implements the KRaft controller (``QuorumController.java``).

The quorum's leader is active. The active controller decides by its image of the metadata, which
already includes records that are not committed yet. It answers a request when the records of the
request are committed. When it loses leadership, it rebuilds its image from committed records.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from harrow.cluster_model import errors
from harrow.cluster_model.controller import administration
from harrow.cluster_model.controller.administration import AdministrationRequest
from harrow.cluster_model.controller.assignment import assign_partitions, refusal_of_partitions
from harrow.cluster_model.controller.control_plane import (
    ADMIN,
    BROKER_FAILURE,
    BROKER_STARTUP,
    CONTROLLED_SHUTDOWN,
    CREATE_PARTITIONS_API,
    LOG_DIRECTORY_FAILURE,
    PREFERRED_LEADER,
    REASSIGNMENT,
    REASSIGNMENT_API,
    TOPIC_CREATION,
    UNCLEAN_BY_ADMINISTRATOR,
)
from harrow.cluster_model.controller.new_topics import ConfiguredTopics
from harrow.cluster_model.events import (
    ControlledShutdownBegun,
    ControllerRequestRefused,
    ElectionDecided,
    LastKnownLeaderChosen,
    MetadataSnapshotFetched,
    RequestRejected,
)
from harrow.cluster_model.kraft import protocol
from harrow.cluster_model.kraft.broker_heartbeats import NO_OFFSET, BrokerHeartbeats
from harrow.cluster_model.kraft.cluster_image import BrokerRegistration, ClusterImage
from harrow.cluster_model.kraft.metadata_log import MetadataLog, MetadataSnapshot
from harrow.cluster_model.kraft.partition_change import (
    ElectedLeader,
    Election,
    LeaderRules,
    changed_partition,
    reassignment,
)
from harrow.cluster_model.kraft.raft import QuorumConfig, RaftClient
from harrow.cluster_model.kraft.records import (
    BrokerRegistrationChangeRecord,
    MetadataRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
)
from harrow.cluster_model.kraft.snapshot_generator import SnapshotGenerator
from harrow.cluster_model.kraft.topic_control import TopicControl
from harrow.cluster_model.protocol import (
    AlterPartition,
    AlterPartitionRequest,
    AlterPartitionResponse,
    ReplicaAssignment,
)
from harrow.cluster_model.release.profiles import Behaviours
from harrow.cluster_model.settings import BrokerConfig, TopicConfig, reconfigured
from harrow.cluster_model.sim.connection import Connection, Exchange, Handlers, Q, ServerEndpoint, register
from harrow.cluster_model.sim.host import Host
from harrow.cluster_model.sim.message import Body
from harrow.cluster_model.topic_settings import ALL_BROKERS, effective_config

R = TypeVar("R", bound=Body)
A = TypeVar("A", bound=AdministrationRequest)
HandledRequest = tuple[tuple[MetadataRecord, ...], R]
"""The records that a request leads to, and its answer, which is sent when they are committed."""


class QuorumController(ServerEndpoint):
    """One incarnation of a controller, which is active or only applies the leader's records."""

    def __init__(
        self,
        node: int,
        host: Host,
        voters: tuple[int, ...],
        log: MetadataLog,
        config: BrokerConfig,
        quorum_config: QuorumConfig,
        topic_config: Callable[[str], TopicConfig],
        behaviours: Behaviours,
        on_active: Callable[[int, int], None],
        on_inactive: Callable[[int, int], None],
        on_committed: Callable[[int, MetadataLog, int], None],
        topics: ConfiguredTopics,
    ) -> None:
        self.node = node
        self._host = host
        self._config = config
        self._topic_config = topic_config
        self._behaviours = behaviours
        self._switches = behaviours.kraft
        self._on_active = on_active
        self._on_inactive = on_inactive
        self._on_committed = on_committed
        self._log = log
        self._image = ClusterImage()
        self._active_epoch = -1
        self._heartbeats = BrokerHeartbeats(config.broker_session_timeout_us)
        # Callbacks that wait until the high watermark reaches an offset, in order.
        self._waiting: list[tuple[int, Callable[[bool], None]]] = []
        self._handlers: Handlers = {}
        register(self._handlers, protocol.BrokerRegistrationRequest, self._handle_registration)
        register(self._handlers, protocol.BrokerHeartbeatRequest, self._handle_heartbeat)
        register(self._handlers, AlterPartitionRequest, self._handle_alter_partition)
        register(self._handlers, protocol.AllocateProducerIdsRequest, self._handle_allocate_producer_ids)
        control = self._topics = TopicControl(
            *(lambda: self._image, topics, config, self._new_partition),
            has_elr=behaviours.kraft.eligible_leader_replicas,
        )
        self._administers(administration.CreateTopicsRequest, control.create_topics)
        self._administers(administration.CreatePartitionsRequest, control.create_partitions)
        self._administers(administration.DeleteTopicsRequest, control.delete_topics)
        self._administers(administration.AlterTopicSettingsRequest, control.alter_settings)
        self._administers(administration.ElectLeadersRequest, self._elect_leaders)
        self._administers(administration.AlterPartitionReassignmentsRequest, self._alter_reassignments)
        self._administers(administration.ListPartitionReassignmentsRequest, self._list_reassignments)
        self._snapshots = SnapshotGenerator(node, host, log, config, self._committed_image)
        self.raft = RaftClient(node, host, voters, log, quorum_config, self)

    @property
    def is_active(self) -> bool:
        """Whether this node considers itself the active controller."""
        return self._active_epoch >= 0

    @property
    def image(self) -> ClusterImage:
        """The metadata on which the controller bases its decisions."""
        return self._image

    def start(self) -> None:
        self._snapshots.start()
        self.raft.start()

    def shutdown(self, on_ended: Callable[[], None]) -> None:
        """Shut down cleanly.

        A quorum leader first waits for a successor (``ControllerServer.shutdown``).
        """
        self.raft.shutdown(on_ended)

    # Requests

    def receive_request(self, exchange: Exchange[Body]) -> None:
        self._handlers.get(type(exchange.request), self.raft.handle)(exchange)

    def connection_closed(self, connection: Connection) -> None:
        """Do nothing, because requests of a closed connection are still processed."""

    def _handle_registration(self, exchange: Exchange[protocol.BrokerRegistrationRequest]) -> None:
        self._process(exchange, self._register, protocol.BrokerRegistrationResponse(errors.NOT_CONTROLLER))

    def _handle_heartbeat(self, exchange: Exchange[protocol.BrokerHeartbeatRequest]) -> None:
        self._process(exchange, self._heartbeat, protocol.BrokerHeartbeatResponse(errors.NOT_CONTROLLER))

    def _handle_alter_partition(self, exchange: Exchange[AlterPartitionRequest]) -> None:
        self._process(exchange, self._alter_partitions, AlterPartitionResponse(errors.NOT_CONTROLLER, {}))

    def _handle_allocate_producer_ids(self, exchange: Exchange[protocol.AllocateProducerIdsRequest]) -> None:
        refusal = protocol.AllocateProducerIdsResponse(errors.NOT_CONTROLLER)
        self._process(exchange, self._allocate_producer_ids, refusal)

    def _administers(self, kind: type[A], handle: Callable[[A], HandledRequest[Any]]) -> None:
        """Register the handler of a kind of requests that brokers forward."""
        register(
            self._handlers,
            kind,
            lambda exchange: self._process(exchange, handle, exchange.request.refused(errors.NOT_CONTROLLER)),
        )

    def _process(self, exchange: Exchange[Q], handle: Callable[[Q], HandledRequest[R]], refusal: R) -> None:
        """If active, process a request, and answer when the request's records are committed."""

        def respond(answer: R) -> None:
            self._host.send_response(exchange.connection, exchange.correlation_id, answer)

        if not self.is_active:
            respond(refusal)
            return
        records, answer = handle(exchange.request)
        self._write(records, lambda done: respond(answer if done else refusal))

    def _write(self, records: tuple[MetadataRecord, ...], on_done: Callable[[bool], None]) -> None:
        """Append and apply records, and call *on_done* with whether they were committed.

        They are not committed if this controller loses leadership first. A call without records
        waits, too, because the answer may depend on uncommitted records. (In Kafka,
        ``appendReadEvent`` reads committed state, and ``appendWriteEvent`` waits.)
        """
        for record in records:
            self._image.apply(record)
        if records:
            offset = self._image.next_offset
            self._waiting.append((offset, on_done))
            self.raft.append(records)
        elif self._log.end_offset > self.raft.high_watermark:
            self._waiting.append((self._log.end_offset, on_done))
        else:
            on_done(True)

    # The quorum

    def on_commit(self, high_watermark: int) -> None:
        """Answer waiting requests if active. Otherwise apply the leader's records."""
        if self.is_active:
            self._on_committed(self.node, self._log, high_watermark)
            while self._waiting and self._waiting[0][0] <= high_watermark:
                self._waiting.pop(0)[1](True)
        else:
            self._replay(high_watermark)
            if self.raft.has_committed_own_epoch:
                self._claim()
        self._snapshots.on_commit(high_watermark if self.is_active else self._image.next_offset)

    def on_truncation(self, offset: int) -> None:
        """Do nothing, because a follower applies only committed records."""

    def on_leader_change(self) -> None:
        if self.is_active:
            self._renounce()

    def on_snapshot(self, leader: int, log_end: int, snapshot: MetadataSnapshot) -> None:
        self._host.emit(MetadataSnapshotFetched, self.node, leader, log_end, *snapshot.id)

    def _replay(self, end_offset: int) -> None:
        self._image = self._log.replay(self._image, end_offset)

    def _committed_image(self) -> ClusterImage:
        """Return the committed state. The image of an active controller may be ahead of it."""
        if not self.is_active or not self._switches.snapshot_of_committed_metadata:
            return self._image
        return self._log.replay(ClusterImage(), self.raft.high_watermark)

    def _claim(self) -> None:
        """Become active, as earlier epochs are committed, and restart every broker's session."""
        self._replay(self._log.end_offset)
        self._active_epoch = self.raft.epoch
        self._on_active(self.node, self._active_epoch)
        self._on_committed(self.node, self._log, self.raft.high_watermark)
        self._heartbeats = BrokerHeartbeats(self._config.broker_session_timeout_us)
        for broker, registration in self._image.brokers.items():
            if not registration.fenced:
                self._heartbeats.touch(broker, self._host.clock.now_us)
        self._watch_sessions(self._active_epoch)
        if self._config.auto_leader_rebalance:
            self._host.set_timer(
                self._config.leader_imbalance_check_interval_us, self._balance, self._active_epoch
            )

    def _renounce(self) -> None:
        """Become inactive. Drop uncommitted records, and refuse requests that wait for them."""
        if not self.is_active:
            return
        epoch, self._active_epoch = self._active_epoch, -1
        waiting, self._waiting = self._waiting, []
        self._image = ClusterImage()
        self._replay(self.raft.high_watermark)
        for _, on_done in waiting:
            on_done(False)
        self._on_inactive(self.node, epoch)

    # Brokers

    def _register(
        self, request: protocol.BrokerRegistrationRequest
    ) -> HandledRequest[protocol.BrokerRegistrationResponse]:
        """Register a broker, unless another process with its id has a session.

        Modelled on ``ClusterControlManager.registerBroker``.
        """
        registration = self._image.brokers.get(request.broker)
        now_us = self._host.clock.now_us
        if registration is not None and registration.incarnation == request.incarnation:
            return self._register_again(request, registration)
        if registration is not None and self._has_session(request.broker, registration, now_us):
            self._publish_refusal(request.api, request.broker, errors.DUPLICATE_BROKER_REGISTRATION)
            return (), protocol.BrokerRegistrationResponse(errors.DUPLICATE_BROKER_REGISTRATION)
        records: list[MetadataRecord] = []
        if registration is not None and not registration.fenced:
            records += self._fence(request.broker, expired=True)
        if (
            registration is not None
            and self._switches.eligible_leader_replicas
            and request.previous_broker_epoch != registration.broker_epoch
        ):
            # After an unclean shutdown the broker may have lost records (KIP-966).
            records = [
                *records[:1],
                *self._changes_without(
                    request.broker, has_lost_records=self._switches.unclean_shutdown_removes_from_elr
                ),
            ]
        self._heartbeats.reset(request.broker)
        broker_epoch = self._image.next_offset + len(records)
        records.append(RegisterBrokerRecord(request.broker, request.incarnation))
        return tuple(records), protocol.BrokerRegistrationResponse(errors.NONE, broker_epoch)

    def _publish_refusal(self, api: str, broker: int, error: str, partition: str = "") -> None:
        self._host.publish(ControllerRequestRefused, self.node, api, broker, partition, error)

    def _register_again(
        self, request: protocol.BrokerRegistrationRequest, registration: BrokerRegistration
    ) -> HandledRequest[protocol.BrokerRegistrationResponse]:
        """Handle another registration of a process that has registered.

        In some releases this writes another record, which resets the broker's state
        (``ClusterControlManager.replay``).
        """
        self._heartbeats.forget(request.broker)
        if not self._switches.repeated_registration_keeps_epoch:
            record = RegisterBrokerRecord(request.broker, request.incarnation)
            return (record,), protocol.BrokerRegistrationResponse(errors.NONE, self._image.next_offset)
        if not registration.fenced:
            # This resets the broker's metadata offset and its controlled shutdown.
            self._heartbeats.touch(request.broker, self._host.clock.now_us)
        return (), protocol.BrokerRegistrationResponse(errors.NONE, registration.broker_epoch)

    def _has_session(self, broker: int, registration: BrokerRegistration, now_us: int) -> bool:
        if self._switches.fenced_broker_keeps_session:
            return self._heartbeats.had_contact(broker, now_us)
        return not registration.fenced and self._heartbeats.has_session(broker, now_us)

    def _heartbeat(
        self, request: protocol.BrokerHeartbeatRequest
    ) -> HandledRequest[protocol.BrokerHeartbeatResponse]:
        """Handle a heartbeat. Modelled on ``BrokerHeartbeatManager.calculateNextBrokerState``."""
        broker = request.broker
        registration = self._image.brokers.get(broker)
        if registration is None:
            return (), protocol.BrokerHeartbeatResponse(errors.BROKER_ID_NOT_REGISTERED)
        if registration.broker_epoch != request.broker_epoch:
            self._publish_refusal(request.api, broker, errors.STALE_BROKER_EPOCH)
            return (), protocol.BrokerHeartbeatResponse(errors.STALE_BROKER_EPOCH)
        is_caught_up = request.metadata_offset >= registration.broker_epoch
        # A controlled shutdown cannot be withdrawn.
        is_stopping = not registration.fenced and self._heartbeats.shutdown_offset(broker) is not None
        want_shut_down = request.want_shut_down or is_stopping
        want_fence = request.want_fence and not is_stopping
        should_shut_down = want_shut_down and (
            registration.fenced or want_fence or self._may_shut_down(broker, request.metadata_offset)
        )
        # This comes first, so that no replica in a failed directory is elected. It must be applied
        # before the broker's own state changes, because both may change the same partition.
        self._write(self._offline_replica_changes(broker, request.offline), lambda _: None)
        records: tuple[MetadataRecord, ...] = ()
        is_fenced = registration.fenced
        if registration.fenced:
            if is_caught_up and not request.want_fence and not request.want_shut_down:
                records, is_fenced = self._unfence(broker), False
            elif should_shut_down:
                # Up to 3.7.0, a broker that has registered twice is fenced but still in ISRs.
                records = self._changes_without(broker)
        elif want_fence or should_shut_down:
            records, is_fenced = self._fence(broker, expired=False), True
        elif want_shut_down and not is_stopping:
            # This also applies if an earlier controller had begun the shutdown, because the offset
            # that it noted is lost.
            records = self._begin_shutdown(broker)
        offset = None if is_fenced else request.metadata_offset
        if registration.fenced and not is_fenced and self._switches.unfencing_resets_broker_metadata_offset:
            # The record resets the broker's metadata offset until its next heartbeat
            # (``ClusterControlManager.replayRegistrationChange``).
            offset = NO_OFFSET
        self._heartbeats.touch(broker, self._host.clock.now_us, offset)
        answer = protocol.BrokerHeartbeatResponse(errors.NONE, is_caught_up, is_fenced, should_shut_down)
        return records, answer

    def _offline_replica_changes(self, broker: int, partitions: frozenset[str]) -> tuple[MetadataRecord, ...]:
        """Remove replicas in failed log directories from ISRs (KIP-858).

        Modelled on ``handleDirectoriesOffline``.
        """
        registration = self._image.brokers[broker]
        if partitions == registration.offline:
            return ()
        affected = tuple(
            name
            for name in self._image.with_in_isr(broker)
            if name in partitions and name not in registration.offline
        )
        change = BrokerRegistrationChangeRecord(
            *(broker, registration.broker_epoch, registration.fenced, registration.in_controlled_shutdown),
            offline=tuple(sorted(partitions)),
        )
        return change, *self._changes(affected, LOG_DIRECTORY_FAILURE, excluded=broker)

    def _others_are_active(self, broker: int) -> bool:
        return any(self._image.is_active(other) for other in self._image.brokers if other != broker)

    def _may_shut_down(self, broker: int, metadata_offset: int) -> bool:
        """Return whether a broker leads no partition, and all other live brokers know that."""
        if not self._others_are_active(broker):
            return True
        shutdown_offset = self._heartbeats.shutdown_offset(broker)
        if shutdown_offset is None or self._image.leads(broker):
            # If the broker leads nothing when it first asks, there is no change that other brokers
            # must learn of.
            return shutdown_offset is None and not self._image.leads(broker)
        return self._heartbeats.lowest_offset(broker, metadata_offset) >= shutdown_offset

    def _unfence(self, broker: int) -> tuple[MetadataRecord, ...]:
        """Let a broker lead and join ISRs again.

        It becomes the leader of partitions without a leader that it may lead.
        """
        registration = self._image.brokers[broker]
        # The record keeps a controlled shutdown, which lasts until the next registration
        # (``BrokerRegistration.cloneWith``).
        change = BrokerRegistrationChangeRecord(
            broker, registration.broker_epoch, False, registration.in_controlled_shutdown
        )
        return (
            change,
            *self._changes(tuple(self._image.leaderless), BROKER_STARTUP, also_acceptable=broker),
        )

    def _begin_shutdown(self, broker: int) -> tuple[MetadataRecord, ...]:
        """Move the leaderships of a broker that shuts down, and remove it from ISRs."""
        registration = self._image.brokers[broker]
        self._host.emit(ControlledShutdownBegun, self.node, broker)
        change = BrokerRegistrationChangeRecord(broker, registration.broker_epoch, False, True)
        records = (change, *self._changes_without(broker, reason=CONTROLLED_SHUTDOWN))
        self._heartbeats.begin_shutdown(broker, self._image.next_offset + len(records) - 1)
        return records

    def _fence(self, broker: int, *, expired: bool) -> tuple[MetadataRecord, ...]:
        """Fence a broker, so that it is in no ISR and leads nothing.

        Modelled on ``ReplicationControlManager.handleBrokerFenced``.
        """
        registration = self._image.brokers[broker]
        self._heartbeats.forget(broker)
        change = BrokerRegistrationChangeRecord(
            broker, registration.broker_epoch, True, registration.in_controlled_shutdown, expired
        )
        return (change, *self._changes_without(broker))

    def expire_session(self, broker: int) -> None:
        """End a broker's session, so that the broker is fenced."""
        registration = self._image.brokers.get(broker)
        if self.is_active and registration is not None and not registration.fenced:
            self._write(self._fence(broker, expired=True), lambda _: None)

    def _watch_sessions(self, epoch: int) -> None:
        """Fence, one by one, brokers that sent no heartbeat for ``broker.session.timeout.ms``."""
        if epoch != self._active_epoch:
            return
        now_us = self._host.clock.now_us
        for broker in self._heartbeats.expired_brokers(now_us):
            self._write(self._fence(broker, expired=True), lambda _: None)
        self._host.set_timer(self._heartbeats.next_expiry_us(now_us) - now_us, self._watch_sessions, epoch)

    # Partitions

    def _changes_without(
        self, broker: int, reason: str = BROKER_FAILURE, *, has_lost_records: bool = False
    ) -> tuple[MetadataRecord, ...]:
        """Return the changes that remove a broker from ISRs, and replace it where it leads."""
        return self._changes(
            self._image.with_in_isr(broker), reason, excluded=broker, has_lost_records=has_lost_records
        )

    def _changes(
        self,
        partitions: tuple[str, ...],
        reason: str,
        *,
        excluded: int | None = None,
        also_acceptable: int | None = None,
        has_lost_records: bool = False,
        election: Election | None = None,
    ) -> tuple[MetadataRecord, ...]:
        """Return the changes of these *partitions*, if any (``generateLeaderAndIsrUpdates``)."""

        def is_acceptable(partition: str, replica: int) -> bool:
            if replica == also_acceptable:
                return partition not in self._image.brokers[replica].offline
            return replica != excluded and self._image.may_lead(partition, replica)

        records = []
        for name in partitions:
            before = self._image.partitions[name]
            rules = LeaderRules(
                is_acceptable=partial(is_acceptable, name),
                election=election or self._election(name),
                elr_min_isr=self._elr_min_isr(name),
                raises_epoch=self._switches.election_raises_leader_epoch,
            )
            isr = tuple(member for member in before.isr if member != excluded)
            unclean_shutdown = () if excluded is None or not has_lost_records else (excluded,)
            changed = changed_partition(before, rules, isr, unclean_shutdown)
            if changed is not None:
                records.append(self._publish_decision(before, *changed, reason))
        return tuple(records)

    def _publish_decision(
        self, before: PartitionRecord, changed: PartitionRecord, elected: ElectedLeader, reason: str
    ) -> PartitionRecord:
        if (changed.leader, changed.leader_epoch) != (before.leader, before.leader_epoch):
            name, epoch = changed.partition, changed.leader_epoch
            is_unclean = elected is not ElectedLeader.CLEAN
            self._host.publish(ElectionDecided, self.node, name, epoch, is_unclean, reason)
            if elected is ElectedLeader.LAST_KNOWN:
                self._host.publish(LastKnownLeaderChosen, self.node, name, epoch)
        return changed

    def _election(self, partition: str) -> Election:
        enabled = (
            self._switches.kraft_allows_unclean_election
            and self._config_of(_topic_of(partition)).unclean_leader_election
        )
        return (
            Election.UNCLEAN
            if enabled or not self._behaviours.replication.unclean_election_only_if_enabled
            else Election.ONLINE
        )

    def _elr_min_isr(self, partition: str) -> int | None:
        """Return the ISR size below which a partition has an ELR; None in releases without ELRs.

        The size is ``min.insync.replicas``, but at most the replication factor of the topic's first
        partition (``ReplicationControlManager.getTopicEffectiveMinIsr``).
        """
        if not self._switches.eligible_leader_replicas:
            return None
        topic = _topic_of(partition)
        first = self._image.partitions.get(f"{topic}-0", self._image.partitions[partition])
        return min(self._config_of(topic).min_insync_replicas, len(first.replicas))

    def _config_of(self, topic: str) -> TopicConfig:
        """Return a topic's configuration, which depends on the settings of this node."""
        changed = self._image.topic_settings
        if topic not in changed and ALL_BROKERS not in changed:
            return self._topic_config(topic)
        config = reconfigured(self._config, changed.get(ALL_BROKERS, {}))
        return effective_config(self._topics.settings(topic), config)

    def create_topic(self, topic: str, assignment: tuple[tuple[int, ...], ...]) -> bool:
        """Create a topic if each of its partitions can have a leader.

        Return whether it was created.
        """
        if not all(any(map(self._image.is_active, replicas)) for replicas in assignment):
            return False
        records = tuple(self._new_partition(f"{topic}-{n}", r) for n, r in enumerate(assignment))
        self._write(records, lambda _: None)
        return True

    def create_partitions(
        self, topic: str, total: int, racks: Mapping[int, str], on_done: Callable[[bool], None]
    ) -> None:
        """Add partitions to a topic, and call *on_done* with whether they were committed.

        Modelled on ``ReplicationControlManager.createPartitions``.
        """
        partitions = self._image.partitions
        existing = 0
        while f"{topic}-{existing}" in partitions:
            existing += 1
        first = partitions[f"{topic}-0"].replicas if existing else ()
        live = sorted(self._image.active())
        error = refusal_of_partitions(live, first, existing, total)
        if error != errors.NONE:
            name = f"{topic}-{existing}"
            self._host.emit(RequestRejected, self.node, CREATE_PARTITIONS_API, name, ADMIN, error)
            return
        added = assign_partitions(live, racks, first, existing, total)
        self._write(
            tuple(self._new_partition(f"{topic}-{existing + n}", r) for n, r in enumerate(added)), on_done
        )

    def _new_partition(self, name: str, replicas: tuple[int, ...]) -> PartitionRecord:
        """Return a new partition. Its active replicas are the ISR, and the first of them leads."""
        isr = tuple(replica for replica in replicas if self._image.is_active(replica))
        self._host.publish(ElectionDecided, self.node, name, 0, False, TOPIC_CREATION)
        return PartitionRecord(name, replicas, isr[0], 0, isr, 0)

    def elect_preferred_leaders(self) -> None:
        """Move leaderships to those preferred replicas that may lead (ElectLeaders, KIP-460)."""
        partitions = tuple(
            name for name, record in self._image.partitions.items() if record.leader != record.replicas[0]
        )
        records = self._changes(partitions, PREFERRED_LEADER, election=Election.PREFERRED)
        self._write(records, lambda _: None)

    def _elect_leaders(
        self, request: administration.ElectLeadersRequest
    ) -> HandledRequest[administration.ElectLeadersResponse]:
        """Elect leaders as an administrator requests (``electLeaders``).

        A request for all partitions is not answered for those that need no election.
        """
        if request.election not in {administration.PREFERRED, administration.UNCLEAN}:
            return (), request.refused(errors.INVALID_REQUEST)
        records: list[MetadataRecord] = []
        answers: dict[str, administration.Outcome] = {}
        names = tuple(self._image.partitions) if request.partitions is None else request.partitions
        for name in names:
            error, changes = self._elected(name, request.election)
            records += changes
            if request.partitions is not None or error != errors.ELECTION_NOT_NEEDED:
                answers[name] = (error, "")
        return tuple(records), administration.ElectLeadersResponse(answers)

    def _elected(self, partition: str, election: int) -> tuple[str, tuple[MetadataRecord, ...]]:
        record = self._image.partitions.get(partition)
        if record is None:
            return errors.UNKNOWN_TOPIC_OR_PARTITION, ()
        is_preferred = election == administration.PREFERRED
        if (record.leader == record.replicas[0]) if is_preferred else (record.leader >= 0):
            return errors.ELECTION_NOT_NEEDED, ()
        kind = Election.PREFERRED if is_preferred else Election.UNCLEAN
        reason = PREFERRED_LEADER if is_preferred else UNCLEAN_BY_ADMINISTRATOR
        changes = self._changes((partition,), reason, election=kind)
        if changes:
            return errors.NONE, changes
        lacking = errors.PREFERRED_LEADER_NOT_AVAILABLE
        return lacking if is_preferred else errors.ELIGIBLE_LEADERS_NOT_AVAILABLE, ()

    def alter_partition_reassignment(self, partition: str, target: tuple[int, ...] | None) -> None:
        """Reassign a partition to *target*. With None, cancel its reassignment."""
        error, records = self._reassigned(partition, target)
        if error != errors.NONE:
            self._host.emit(RequestRejected, self.node, REASSIGNMENT_API, partition, ADMIN, error)
        elif records:
            self._write(records, lambda _: None)

    def _alter_reassignments(
        self, request: administration.AlterPartitionReassignmentsRequest
    ) -> HandledRequest[administration.AlterPartitionReassignmentsResponse]:
        """Carry out the valid reassignments of a request."""
        records: list[MetadataRecord] = []
        answers: dict[str, administration.Outcome] = {}
        for name, target in request.targets.items():
            error, changes = self._reassigned(name, target, may_change_factor=request.may_change_factor)
            records += changes
            answers[name] = (error, "")
        return tuple(records), administration.AlterPartitionReassignmentsResponse(answers)

    def _list_reassignments(
        self, request: administration.ListPartitionReassignmentsRequest
    ) -> HandledRequest[administration.ListPartitionReassignmentsResponse]:
        partitions = self._image.partitions
        names = tuple(partitions) if request.partitions is None else request.partitions
        assignments = {name: partitions[name].assignment for name in names if name in partitions}
        reassignments = {name: each for name, each in assignments.items() if each.is_being_reassigned}
        return (), administration.ListPartitionReassignmentsResponse(reassignments)

    def _reassigned(
        self, partition: str, target: tuple[int, ...] | None, *, may_change_factor: bool = True
    ) -> tuple[str, tuple[MetadataRecord, ...]]:
        """Return the error and the records of a reassignment or, with None, a cancellation."""
        record = self._image.partitions.get(partition)
        error = (
            errors.UNKNOWN_TOPIC_OR_PARTITION if record is None else self._reassignment_error(record, target)
        )
        if record is not None and error == errors.NONE and target is not None and not may_change_factor:
            # validatePartitionReplicationFactorUnchanged
            is_same = len(target) == len(record.assignment.origin)
            error = errors.NONE if is_same else errors.INVALID_REPLICATION_FACTOR
        if record is None or error != errors.NONE:
            return error, ()
        isr = record.isr
        if target is None:
            assignment = ReplicaAssignment(record.assignment.origin)
            isr = self._isr_without_added(record) or assignment.replicas[:1]
        else:
            assignment = reassignment(record, target)
        rules = LeaderRules(
            is_acceptable=partial(self._image.may_lead, partition),
            election=self._election(partition),
            elr_min_isr=self._elr_min_isr(partition),
        )
        changed = changed_partition(record, rules, isr, assignment=assignment)
        return error, () if changed is None else (self._publish_decision(record, *changed, REASSIGNMENT),)

    def _reassignment_error(self, partition: PartitionRecord, target: tuple[int, ...] | None) -> str:
        """Return the error of a reassignment or a cancellation; `errors.NONE` if it is valid.

        Modelled on ``validateManualPartitionAssignment`` and ``cancelPartitionReassignment``.
        """
        if target is not None:
            is_valid = (
                target and len(set(target)) == len(target) and self._image.brokers.keys() >= set(target)
            )
            return errors.NONE if is_valid else errors.INVALID_REPLICA_ASSIGNMENT
        if not partition.assignment.is_being_reassigned:
            return errors.NO_REASSIGNMENT_IN_PROGRESS
        # If only added replicas are in the ISR, an original replica would have to be elected
        # uncleanly (PartitionReassignmentRevert.java).
        may_lead = (
            self._isr_without_added(partition) or self._election(partition.partition) is Election.UNCLEAN
        )
        return errors.NONE if may_lead else errors.INVALID_REPLICA_ASSIGNMENT

    def _isr_without_added(self, partition: PartitionRecord) -> tuple[int, ...]:
        return tuple(member for member in partition.isr if member not in partition.adding)

    def _balance(self, epoch: int) -> None:
        """Elect preferred leaders periodically.

        Modelled on ``ReplicationControlManager.maybeBalancePartitionLeaders``.
        """
        if epoch == self._active_epoch:
            self.elect_preferred_leaders()
            self._host.set_timer(self._config.leader_imbalance_check_interval_us, self._balance, epoch)

    def _alter_partitions(self, request: AlterPartitionRequest) -> HandledRequest[AlterPartitionResponse]:
        """Write those ISRs of a request that are valid (``alterPartition``)."""
        broker = self._image.brokers.get(request.broker)
        if broker is None or broker.broker_epoch != request.broker_epoch:
            self._publish_refusal(request.api, request.broker, errors.STALE_BROKER_EPOCH)
            return (), AlterPartitionResponse(errors.STALE_BROKER_EPOCH, {})
        records: list[MetadataRecord] = []
        answers: dict[str, tuple[str, int]] = {}
        for name, alteration in request.partitions.items():
            partition = self._image.partitions.get(name)
            if partition is None:
                answers[name] = (errors.UNKNOWN_TOPIC_OR_PARTITION, -1)
                continue
            error = self._alteration_error(request.broker, partition, alteration)
            partition_epoch = partition.partition_epoch
            if error == errors.NONE:
                rules = LeaderRules(
                    is_acceptable=partial(self._image.may_lead, name),
                    election=Election.ONLINE,
                    elr_min_isr=self._elr_min_isr(name),
                    raises_epoch=self._switches.election_raises_leader_epoch,
                )
                isr = tuple(member for member, _ in alteration.isr)
                changed = changed_partition(partition, rules, isr, altered_by=request.broker)
                if changed is not None:
                    reason = BROKER_FAILURE if partition.replicas == changed[0].replicas else REASSIGNMENT
                    records.append(self._publish_decision(partition, *changed, reason))
                    partition_epoch = changed[0].partition_epoch
                    if changed[0].leader_epoch != partition.leader_epoch:
                        error = errors.FENCED_LEADER_EPOCH
            else:
                self._publish_refusal(request.api, request.broker, error, name)
            answers[name] = (error, partition_epoch)
        return tuple(records), AlterPartitionResponse(errors.NONE, answers)

    def _alteration_error(self, broker: int, partition: PartitionRecord, alteration: AlterPartition) -> str:
        if (
            alteration.leader_epoch > partition.leader_epoch
            or alteration.partition_epoch > partition.partition_epoch
        ):
            return errors.NOT_CONTROLLER
        members = {member for member, _ in alteration.isr}
        if self._switches.alter_partition_fenced:
            if alteration.leader_epoch < partition.leader_epoch:
                return errors.FENCED_LEADER_EPOCH
            if broker != partition.leader:
                return errors.INVALID_REQUEST
            if alteration.partition_epoch < partition.partition_epoch:
                return errors.INVALID_UPDATE_VERSION
            if broker not in members:
                return errors.INVALID_REQUEST
        if not members <= set(partition.replicas):
            return errors.INVALID_REQUEST
        if not all(self._is_eligible(member, epoch) for member, epoch in alteration.isr):
            return errors.INELIGIBLE_REPLICA
        return errors.NONE

    def _is_eligible(self, replica: int, broker_epoch: int) -> bool:
        """Return whether a replica may join an ISR.

        The broker must be active (KIP-841) and have the broker epoch that the leader knows
        (KIP-903).
        """
        registration = self._image.brokers.get(replica)
        if registration is None or not registration.is_active:
            return False
        return (
            broker_epoch in (-1, registration.broker_epoch)
            or not self._behaviours.replication.isr_expansion_checks_broker_epoch
        )

    # Producer ids

    def _allocate_producer_ids(
        self, request: protocol.AllocateProducerIdsRequest
    ) -> HandledRequest[protocol.AllocateProducerIdsResponse]:
        registration = self._image.brokers.get(request.broker)
        if registration is None or registration.broker_epoch != request.broker_epoch:
            return (), protocol.AllocateProducerIdsResponse(errors.STALE_BROKER_EPOCH)
        first = self._image.next_producer_id
        next_id = first + protocol.PRODUCER_IDS_BLOCK if self._switches.producer_ids_allocated_once else first
        return (ProducerIdsRecord(next_id),), protocol.AllocateProducerIdsResponse(errors.NONE, first)


def _topic_of(partition: str) -> str:
    return partition.rpartition("-")[0]
