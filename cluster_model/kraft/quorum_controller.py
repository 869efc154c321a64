"""The controller of KRaft (``QuorumController.java``): of the quorum the leader is active, the others stand by.

The active one decides by its image, which runs ahead of what is committed, and answers once its records are. When it is no
longer leader, its image is made anew of what is committed.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeVar

from harrow.cluster_model import errors
from harrow.cluster_model.controller.assignment import assign_partitions, refusal_of_partitions
from harrow.cluster_model.controller.control_plane import (
    ADMIN,
    CREATE_PARTITIONS_API,
    REASSIGNMENT,
    REASSIGNMENT_API,
)
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
    Elected,
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
from harrow.cluster_model.protocol import (
    AlterPartition,
    AlterPartitionRequest,
    AlterPartitionResponse,
    ReplicaAssignment,
)
from harrow.cluster_model.release.profiles import Behaviours
from harrow.cluster_model.settings import BrokerConfig, TopicConfig
from harrow.cluster_model.sim.connection import Connection, Exchange, Handlers, Q, register
from harrow.cluster_model.sim.host import Host
from harrow.cluster_model.sim.message import Body

R = TypeVar("R", bound=Body)
Handled = tuple[tuple[MetadataRecord, ...], R]
"""The records that a request makes, and its answer once they are committed."""


class QuorumController:
    """One life of a controller."""

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
        # What is answered when the high watermark has reached an offset, in their order.
        self._waiting: list[tuple[int, Callable[[bool], None]]] = []
        self._handlers: Handlers = {}
        register(self._handlers, protocol.BrokerRegistrationRequest, self._handle_registration)
        register(self._handlers, protocol.BrokerHeartbeatRequest, self._handle_heartbeat)
        register(self._handlers, AlterPartitionRequest, self._handle_alter_partition)
        register(self._handlers, protocol.AllocateProducerIdsRequest, self._handle_allocate_producer_ids)
        self._snapshots = SnapshotGenerator(node, host, log, config, self._committed_image)
        self.raft = RaftClient(node, host, voters, log, quorum_config, self)

    @property
    def is_active(self) -> bool:
        """Whether it takes itself for the active controller."""
        return self._active_epoch >= 0

    @property
    def image(self) -> ClusterImage:
        """What it goes by."""
        return self._image

    def start(self) -> None:
        self._snapshots.start()
        self.raft.start()

    def shutdown(self, on_ended: Callable[[], None]) -> None:
        """Stop in good order, which as the leader of the quorum means to wait for a successor (``ControllerServer.shutdown``)."""
        self.raft.shutdown(on_ended)

    # Requests

    def receive_request(self, exchange: Exchange[Body]) -> None:
        self._handlers.get(type(exchange.request), self.raft.handle)(exchange)

    def connection_closed(self, connection: Connection) -> None:
        """The broker that asked is gone; its request is carried out all the same."""

    def _handle_registration(self, exchange: Exchange[protocol.BrokerRegistrationRequest]) -> None:
        self._carry_out(exchange, self._register, protocol.BrokerRegistrationResponse(errors.NOT_CONTROLLER))

    def _handle_heartbeat(self, exchange: Exchange[protocol.BrokerHeartbeatRequest]) -> None:
        self._carry_out(exchange, self._heartbeat, protocol.BrokerHeartbeatResponse(errors.NOT_CONTROLLER))

    def _handle_alter_partition(self, exchange: Exchange[AlterPartitionRequest]) -> None:
        self._carry_out(exchange, self._alter_partitions, AlterPartitionResponse(errors.NOT_CONTROLLER, {}))

    def _handle_allocate_producer_ids(self, exchange: Exchange[protocol.AllocateProducerIdsRequest]) -> None:
        refusal = protocol.AllocateProducerIdsResponse(errors.NOT_CONTROLLER)
        self._carry_out(exchange, self._allocate_producer_ids, refusal)

    def _carry_out(self, exchange: Exchange[Q], handle: Callable[[Q], Handled[R]], refusal: R) -> None:
        """Answer once the records that a request makes are committed; refuse it while another node is the active controller."""

        def respond(answer: R) -> None:
            self._host.send_response(exchange.connection, exchange.correlation_id, answer)

        if not self.is_active:
            respond(refusal)
            return
        records, answer = handle(exchange.request)
        self._write(records, lambda done: respond(answer if done else refusal))

    def _write(self, records: tuple[MetadataRecord, ...], on_done: Callable[[bool], None]) -> None:
        """Append records and take them over; call back when they are committed, or will never be by this controller.

        Without any, what was read may itself be uncommitted, so that it waits for that (``appendReadEvent`` reads what is
        committed, ``appendWriteEvent`` waits).
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

    def committed(self, high_watermark: int) -> None:
        """Take over what others have written, and answer what has waited for this."""
        if self.is_active:
            self._on_committed(self.node, self._log, high_watermark)
            while self._waiting and self._waiting[0][0] <= high_watermark:
                self._waiting.pop(0)[1](True)
        else:
            self._replay(high_watermark)
            if self.raft.has_committed_own_epoch:
                self._claim()
        self._snapshots.committed(high_watermark if self.is_active else self._image.next_offset)

    def truncated(self, offset: int) -> None:
        """Nothing that was applied is gone: a follower applies only what is committed."""

    def leader_changed(self) -> None:
        if self.is_active:
            self._renounce()

    def snapshot_fetched(self, leader: int, log_end: int, snapshot: MetadataSnapshot) -> None:
        self._host.emit(MetadataSnapshotFetched, self.node, leader, log_end, *snapshot.id)

    def _replay(self, end_offset: int) -> None:
        self._image = self._log.replayed(self._image, end_offset)

    def _committed_image(self) -> ClusterImage:
        """Return what is committed amounts to, ahead of which an active controller is (``MetadataLoader``)."""
        if not self.is_active or not self._switches.snapshot_of_committed_metadata:
            return self._image
        return self._log.replayed(ClusterImage(), self.raft.high_watermark)

    def _claim(self) -> None:
        """Everything before its epoch is committed: become active, and give every broker a whole session."""
        self._replay(self._log.end_offset)
        self._active_epoch = self.raft.epoch
        self._on_active(self.node, self._active_epoch)
        self._on_committed(self.node, self._log, self.raft.high_watermark)
        self._heartbeats = BrokerHeartbeats(self._config.broker_session_timeout_us)
        for broker, known in self._image.brokers.items():
            if not known.fenced:
                self._heartbeats.touch(broker, self._host.clock.now_us)
        self._watch_sessions(self._active_epoch)
        if self._config.auto_leader_rebalance:
            self._host.set_timer(
                self._config.leader_imbalance_check_interval_us, self._balance, self._active_epoch
            )

    def _renounce(self) -> None:
        """Be no longer active: forget what was not committed, and tell those who wait for it."""
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
    ) -> Handled[protocol.BrokerRegistrationResponse]:
        """Register a broker, unless one of its id has a session (``ClusterControlManager.registerBroker``)."""
        known = self._image.brokers.get(request.broker)
        now_us = self._host.clock.now_us
        if known is not None and known.incarnation == request.incarnation:
            return self._register_again(request, known)
        if known is not None and self._has_session(request.broker, known, now_us):
            self._tell_refused(request.api, request.broker, errors.DUPLICATE_BROKER_REGISTRATION)
            return (), protocol.BrokerRegistrationResponse(errors.DUPLICATE_BROKER_REGISTRATION)
        records: list[MetadataRecord] = []
        if known is not None and not known.fenced:
            records += self._fence(request.broker, expired=True)
        if (
            known is not None
            and self._switches.eligible_leader_replicas
            and request.previous_broker_epoch != known.broker_epoch
        ):
            # It has not stopped in good order, so it may have lost what it had (KIP-966).
            records = [
                *records[:1],
                *self._without(request.broker, has_lost_records=self._switches.unclean_shutdown_leaves_elr),
            ]
        self._heartbeats.is_new(request.broker)
        broker_epoch = self._image.next_offset + len(records)
        records.append(RegisterBrokerRecord(request.broker, request.incarnation))
        return tuple(records), protocol.BrokerRegistrationResponse(errors.NONE, broker_epoch)

    def _tell_refused(self, api: str, broker: int, error: str, partition: str = "") -> None:
        self._host.publish(ControllerRequestRefused, self.node, api, broker, partition, error)

    def _register_again(
        self, request: protocol.BrokerRegistrationRequest, known: BrokerRegistration
    ) -> Handled[protocol.BrokerRegistrationResponse]:
        """Register a process that is registered; the record begins anew what is known of it (``ClusterControlManager.replay``)."""
        self._heartbeats.forget(request.broker)
        if not self._switches.repeated_registration_kept:
            record = RegisterBrokerRecord(request.broker, request.incarnation)
            return (record,), protocol.BrokerRegistrationResponse(errors.NONE, self._image.next_offset)
        if not known.fenced:
            # Neither what it has heard of is known, nor that it stops.
            self._heartbeats.touch(request.broker, self._host.clock.now_us)
        return (), protocol.BrokerRegistrationResponse(errors.NONE, known.broker_epoch)

    def _has_session(self, broker: int, known: BrokerRegistration, now_us: int) -> bool:
        if self._switches.fenced_broker_keeps_session:
            return self._heartbeats.had_contact(broker, now_us)
        return not known.fenced and self._heartbeats.has_session(broker, now_us)

    def _heartbeat(
        self, request: protocol.BrokerHeartbeatRequest
    ) -> Handled[protocol.BrokerHeartbeatResponse]:
        """After ``BrokerHeartbeatManager.calculateNextBrokerState``."""
        broker = request.broker
        known = self._image.brokers.get(broker)
        if known is None:
            return (), protocol.BrokerHeartbeatResponse(errors.BROKER_ID_NOT_REGISTERED)
        if known.broker_epoch != request.broker_epoch:
            self._tell_refused(request.api, broker, errors.STALE_BROKER_EPOCH)
            return (), protocol.BrokerHeartbeatResponse(errors.STALE_BROKER_EPOCH)
        is_caught_up = request.metadata_offset >= known.broker_epoch
        # Once it stops, nothing that it asks for takes it back.
        is_stopping = not known.fenced and self._heartbeats.shutdown_offset(broker) is not None
        want_shut_down = request.want_shut_down or is_stopping
        want_fence = request.want_fence and not is_stopping
        should_shut_down = want_shut_down and (
            known.fenced or want_fence or self._may_shut_down(broker, request.metadata_offset)
        )
        # First, because no broker is to be elected that cannot serve, and taken over before the broker's own state changes:
        # a partition of both must not be changed twice from what it was before.
        self._write(self._take_offline(broker, request.offline), lambda _: None)
        records: tuple[MetadataRecord, ...] = ()
        is_fenced = known.fenced
        if known.fenced:
            if is_caught_up and not request.want_fence and not request.want_shut_down:
                records, is_fenced = self._unfence(broker), False
            elif should_shut_down:
                # Up to 3.7.0 one that has registered once more is fenced, and in ISRs still.
                records = self._without(broker)
        elif want_fence or should_shut_down:
            records, is_fenced = self._fence(broker, expired=False), True
        elif want_shut_down and not is_stopping:
            # Again where a controller before this one had begun: what all had to hear of died with it.
            records = self._begin_shutdown(broker)
        offset = None if is_fenced else request.metadata_offset
        if known.fenced and not is_fenced and self._switches.unfenced_broker_heard_anew:
            # The record resets what is known of it (``ClusterControlManager.replayRegistrationChange``): it counts with its next heartbeat.
            offset = NO_OFFSET
        self._heartbeats.touch(broker, self._host.clock.now_us, offset)
        answer = protocol.BrokerHeartbeatResponse(errors.NONE, is_caught_up, is_fenced, should_shut_down)
        return records, answer

    def _take_offline(self, broker: int, partitions: frozenset[str]) -> tuple[MetadataRecord, ...]:
        """Take replicas out of the ISRs that are in log directories which have failed (``handleDirectoriesOffline``, KIP-858)."""
        known = self._image.brokers[broker]
        if partitions == known.offline:
            return ()
        news = tuple(
            name
            for name in self._image.with_in_isr(broker)
            if name in partitions and name not in known.offline
        )
        change = BrokerRegistrationChangeRecord(
            *(broker, known.broker_epoch, known.fenced, known.in_controlled_shutdown),
            offline=tuple(sorted(partitions)),
        )
        return change, *self._changes(news, "log directory failure", gone=broker)

    def _others_are_active(self, broker: int) -> bool:
        return any(known.is_active for other, known in self._image.brokers.items() if other != broker)

    def _may_shut_down(self, broker: int, metadata_offset: int) -> bool:
        """Return whether a broker leads nothing any more and all others have heard so, or there are no others."""
        if not self._others_are_active(broker):
            return True
        since = self._heartbeats.shutdown_offset(broker)
        if since is None or self._image.leads(broker):
            # If it leads nothing when it first asks, no other broker has to hear of anything.
            return since is None and not self._image.leads(broker)
        return self._heartbeats.lowest_offset(broker, metadata_offset) >= since

    def _unfence(self, broker: int) -> tuple[MetadataRecord, ...]:
        """Let a broker lead and join ISRs again; it leads what no other broker could."""
        known = self._image.brokers[broker]
        # That it was stopping stays until it registers anew: the record changes nothing of it (``BrokerRegistration.cloneWith``).
        change = BrokerRegistrationChangeRecord(
            broker, known.broker_epoch, False, known.in_controlled_shutdown
        )
        return (
            change,
            *self._changes(tuple(self._image.leaderless), "broker startup", also_acceptable=broker),
        )

    def _begin_shutdown(self, broker: int) -> tuple[MetadataRecord, ...]:
        """Move a broker's leaderships away, and take it out of the ISRs."""
        known = self._image.brokers[broker]
        self._host.emit(ControlledShutdownBegun, self.node, broker)
        change = BrokerRegistrationChangeRecord(broker, known.broker_epoch, False, True)
        records = (change, *self._without(broker, reason="controlled shutdown"))
        self._heartbeats.begin_shutdown(broker, self._image.next_offset + len(records) - 1)
        return records

    def _fence(self, broker: int, *, expired: bool) -> tuple[MetadataRecord, ...]:
        """Fence a broker: it leaves the ISRs and leads nothing (``ReplicationControlManager.handleBrokerFenced``)."""
        known = self._image.brokers[broker]
        self._heartbeats.forget(broker)
        change = BrokerRegistrationChangeRecord(
            broker, known.broker_epoch, True, known.in_controlled_shutdown, expired
        )
        return (change, *self._without(broker))

    def expire_session(self, broker: int) -> None:
        """Take a broker for dead."""
        known = self._image.brokers.get(broker)
        if self.is_active and known is not None and not known.fenced:
            self._write(self._fence(broker, expired=True), lambda _: None)

    def _watch_sessions(self, epoch: int) -> None:
        """Fence the brokers that have not been heard of for ``broker.session.timeout.ms``, one after the other."""
        if epoch != self._active_epoch:
            return
        now_us = self._host.clock.now_us
        for broker in self._heartbeats.stale(now_us):
            self._write(self._fence(broker, expired=True), lambda _: None)
        self._host.set_timer(self._heartbeats.next_expiry_us(now_us) - now_us, self._watch_sessions, epoch)

    # Partitions

    def _without(
        self, broker: int, reason: str = "broker failure", *, has_lost_records: bool = False
    ) -> tuple[MetadataRecord, ...]:
        """Return the partitions without a broker in their ISRs, with other leaders where it led."""
        return self._changes(
            self._image.with_in_isr(broker), reason, gone=broker, has_lost_records=has_lost_records
        )

    def _changes(
        self,
        partitions: tuple[str, ...],
        reason: str,
        *,
        gone: int | None = None,
        also_acceptable: int | None = None,
        has_lost_records: bool = False,
        election: Election | None = None,
    ) -> tuple[MetadataRecord, ...]:
        """Return what becomes of partitions (``ReplicationControlManager.generateLeaderAndIsrUpdates``)."""

        def is_acceptable(partition: str, replica: int) -> bool:
            if replica == also_acceptable:
                return partition not in self._image.brokers[replica].offline
            return replica != gone and self._image.may_lead(partition, replica)

        records = []
        for name in partitions:
            known = self._image.partitions[name]
            rules = LeaderRules(
                is_acceptable=partial(is_acceptable, name),
                election=election or self._election(name),
                elr_min_isr=self._elr_min_isr(name),
                raises_epoch=self._switches.election_raises_leader_epoch,
            )
            isr = tuple(member for member in known.isr if member != gone)
            lost = () if gone is None or not has_lost_records else (gone,)
            changed = changed_partition(known, rules, isr, lost)
            if changed is not None:
                records.append(self._decided(known, *changed, reason))
        return tuple(records)

    def _decided(
        self, known: PartitionRecord, changed: PartitionRecord, elected: Elected, reason: str
    ) -> PartitionRecord:
        if (changed.leader, changed.leader_epoch) != (known.leader, known.leader_epoch):
            name, epoch = changed.partition, changed.leader_epoch
            is_unclean = elected is not Elected.CLEAN
            self._host.publish(ElectionDecided, self.node, name, epoch, is_unclean, reason)
            if elected is Elected.LAST_KNOWN:
                self._host.publish(LastKnownLeaderChosen, self.node, name, epoch)
        return changed

    def _election(self, partition: str) -> Election:
        enabled = (
            self._switches.kraft_elects_uncleanly
            and self._topic_config(_topic_of(partition)).unclean_leader_election
        )
        return (
            Election.UNCLEAN
            if enabled or not self._behaviours.replication.unclean_election_only_if_enabled
            else Election.ONLINE
        )

    def _elr_min_isr(self, partition: str) -> int | None:
        """Return below which size an ISR leaves an ELR, None without ELRs: no more than the topic's first partition has replicas.

        After ``ReplicationControlManager.getTopicEffectiveMinIsr``.
        """
        if not self._switches.eligible_leader_replicas:
            return None
        topic = _topic_of(partition)
        first = self._image.partitions.get(f"{topic}-0", self._image.partitions[partition])
        return min(self._topic_config(topic).min_insync_replicas, len(first.replicas))

    def create_topic(self, topic: str, assignment: tuple[tuple[int, ...], ...]) -> bool:
        """Create a topic if every partition can have a leader; return whether that was done."""
        if not all(any(map(self._image.is_active, replicas)) for replicas in assignment):
            return False
        records = tuple(self._new_partition(f"{topic}-{n}", r) for n, r in enumerate(assignment))
        self._write(records, lambda _: None)
        return True

    def create_partitions(
        self, topic: str, total: int, racks: Mapping[int, str], on_done: Callable[[bool], None]
    ) -> None:
        """Give a topic more partitions (``ReplicationControlManager.createPartitions``); *on_done* hears whether that is committed."""
        known = self._image.partitions
        existing = 0
        while f"{topic}-{existing}" in known:
            existing += 1
        first = known[f"{topic}-0"].replicas if existing else ()
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
        """Return a partition that is created; those of its replicas are in its ISR that are active, the first of which leads."""
        isr = tuple(replica for replica in replicas if self._image.is_active(replica))
        self._host.publish(ElectionDecided, self.node, name, 0, False, "topic creation")
        return PartitionRecord(name, replicas, isr[0], 0, isr, 0)

    def elect_preferred_leaders(self) -> None:
        """Move leaderships to preferred replicas, where those may lead (ElectLeaders, KIP-460)."""
        wanted = tuple(
            name for name, known in self._image.partitions.items() if known.leader != known.replicas[0]
        )
        records = self._changes(wanted, "preferred leader", election=Election.PREFERRED)
        self._write(records, lambda _: None)

    def alter_partition_reassignment(self, partition: str, target: tuple[int, ...] | None) -> None:
        """Give a partition other replicas, or with None those that it had before (``alterPartitionReassignment``)."""
        known = self._image.partitions.get(partition)
        error = errors.UNKNOWN_TOPIC_OR_PARTITION if known is None else self._refusal(known, target)
        if known is None or error != errors.NONE:
            self._host.emit(RequestRejected, self.node, REASSIGNMENT_API, partition, ADMIN, error)
            return
        isr = known.isr
        if target is None:
            assignment = ReplicaAssignment(known.assignment.origin)
            isr = self._isr_without_added(known) or assignment.replicas[:1]
        else:
            assignment = reassignment(known, target)
        rules = LeaderRules(
            is_acceptable=partial(self._image.may_lead, partition),
            election=self._election(partition),
            elr_min_isr=self._elr_min_isr(partition),
        )
        changed = changed_partition(known, rules, isr, assignment=assignment)
        if changed is not None:
            self._write((self._decided(known, *changed, REASSIGNMENT),), lambda _: None)

    def _refusal(self, known: PartitionRecord, target: tuple[int, ...] | None) -> str:
        """Return why a partition is not reassigned (``validateManualPartitionAssignment``, ``cancelPartitionReassignment``)."""
        if target is not None:
            is_valid = (
                target and len(set(target)) == len(target) and self._image.brokers.keys() >= set(target)
            )
            return errors.NONE if is_valid else errors.INVALID_REPLICA_ASSIGNMENT
        if not known.assignment.is_being_reassigned:
            return errors.NO_REASSIGNMENT_IN_PROGRESS
        # Were only added replicas in the ISR, one of the others would have to lead uncleanly (PartitionReassignmentRevert.java).
        may_lead = self._isr_without_added(known) or self._election(known.partition) is Election.UNCLEAN
        return errors.NONE if may_lead else errors.INVALID_REPLICA_ASSIGNMENT

    def _isr_without_added(self, known: PartitionRecord) -> tuple[int, ...]:
        return tuple(member for member in known.isr if member not in known.adding)

    def _balance(self, epoch: int) -> None:
        """After ``ReplicationControlManager.maybeBalancePartitionLeaders``."""
        if epoch == self._active_epoch:
            self.elect_preferred_leaders()
            self._host.set_timer(self._config.leader_imbalance_check_interval_us, self._balance, epoch)

    def _alter_partitions(self, request: AlterPartitionRequest) -> Handled[AlterPartitionResponse]:
        """Write the ISRs that a leader wants, where it may have them (``ReplicationControlManager.alterPartition``)."""
        broker = self._image.brokers.get(request.broker)
        if broker is None or broker.broker_epoch != request.broker_epoch:
            self._tell_refused(request.api, request.broker, errors.STALE_BROKER_EPOCH)
            return (), AlterPartitionResponse(errors.STALE_BROKER_EPOCH, {})
        records: list[MetadataRecord] = []
        answers: dict[str, tuple[str, int]] = {}
        for name, wanted in request.partitions.items():
            known = self._image.partitions[name]
            error = self._alteration_error(request.broker, known, wanted)
            partition_epoch = known.partition_epoch
            if error == errors.NONE:
                rules = LeaderRules(
                    is_acceptable=partial(self._image.may_lead, name),
                    election=Election.ONLINE,
                    elr_min_isr=self._elr_min_isr(name),
                    raises_epoch=self._switches.election_raises_leader_epoch,
                )
                isr = tuple(member for member, _ in wanted.isr)
                changed = changed_partition(known, rules, isr, altered_by=request.broker)
                if changed is not None:
                    reason = "broker failure" if known.replicas == changed[0].replicas else REASSIGNMENT
                    records.append(self._decided(known, *changed, reason))
                    partition_epoch = changed[0].partition_epoch
                    if changed[0].leader_epoch != known.leader_epoch:
                        error = errors.FENCED_LEADER_EPOCH
            else:
                self._tell_refused(request.api, request.broker, error, name)
            answers[name] = (error, partition_epoch)
        return tuple(records), AlterPartitionResponse(errors.NONE, answers)

    def _alteration_error(self, broker: int, known: PartitionRecord, wanted: AlterPartition) -> str:
        if wanted.leader_epoch > known.leader_epoch or wanted.partition_epoch > known.partition_epoch:
            return errors.NOT_CONTROLLER
        members = {member for member, _ in wanted.isr}
        if self._switches.alter_partition_fenced:
            if wanted.leader_epoch < known.leader_epoch:
                return errors.FENCED_LEADER_EPOCH
            if broker != known.leader:
                return errors.INVALID_REQUEST
            if wanted.partition_epoch < known.partition_epoch:
                return errors.INVALID_UPDATE_VERSION
            if broker not in members:
                return errors.INVALID_REQUEST
        if not members <= set(known.replicas):
            return errors.INVALID_REQUEST
        if not all(self._is_eligible(member, epoch) for member, epoch in wanted.isr):
            return errors.INELIGIBLE_REPLICA
        return errors.NONE

    def _is_eligible(self, replica: int, broker_epoch: int) -> bool:
        """Return whether a replica may be in an ISR: active, and still the broker that the leader means (KIP-841, KIP-903)."""
        known = self._image.brokers.get(replica)
        if known is None or not known.is_active:
            return False
        return (
            broker_epoch in (-1, known.broker_epoch) or not self._behaviours.replication.replica_epoch_checked
        )

    # Producer ids

    def _allocate_producer_ids(
        self, request: protocol.AllocateProducerIdsRequest
    ) -> Handled[protocol.AllocateProducerIdsResponse]:
        known = self._image.brokers.get(request.broker)
        if known is None or known.broker_epoch != request.broker_epoch:
            return (), protocol.AllocateProducerIdsResponse(errors.STALE_BROKER_EPOCH)
        first = self._image.next_producer_id
        next_id = first + protocol.PRODUCER_IDS_BLOCK if self._switches.producer_ids_given_once else first
        return (ProducerIdsRecord(next_id),), protocol.AllocateProducerIdsResponse(errors.NONE, first)


def _topic_of(partition: str) -> str:
    return partition.rpartition("-")[0]
