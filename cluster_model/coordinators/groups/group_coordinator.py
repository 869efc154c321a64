"""Coordinates the consumer groups of one broker.

Modelled on ``GroupCoordinator.scala`` and ``GroupMetadataManager.scala``. A coordinator has the
groups in the partitions of ``__consumer_offsets`` that its broker leads. Each group is a state
machine, driven by the requests of its members and by expired sessions. Each stable generation and
each commit must survive the broker, so the coordinator writes it to the log before it answers.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

from harrow.cluster_model import errors
from harrow.cluster_model.broker.metadata_cache import MetadataCache
from harrow.cluster_model.broker.replica_manager import ReplicaManager
from harrow.cluster_model.coordinators.coordinator_log import NO_EPOCH, CoordinatorLog, CoordinatorRecord
from harrow.cluster_model.coordinators.groups.consumer_group import ConsumerGroup
from harrow.cluster_model.coordinators.groups.consumer_group_manager import ConsumerGroupManager
from harrow.cluster_model.coordinators.groups.consumer_group_records import consumer_group_tombstones
from harrow.cluster_model.coordinators.groups.group import (
    COMPLETING_REBALANCE,
    DEAD,
    EMPTY,
    PREPARING_REBALANCE,
    STABLE,
    CommittedOffset,
    Group,
    Member,
)
from harrow.cluster_model.coordinators.groups.group_administration import GroupAdministration
from harrow.cluster_model.coordinators.groups.group_records import (
    group_record,
    group_tombstone,
    groups_in,
    offset_record,
    offset_tombstone,
)
from harrow.cluster_model.coordinators.internal_topics import (
    java_hash_place,
    partition_for,
    scala_hash_place,
)
from harrow.cluster_model.coordinators.protocol import (
    JOIN_EPOCH,
    NO_GENERATION,
    NO_INSTANCE,
    NO_MEMBER,
    NO_OFFSET_COMMITTED,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    SyncGroupRequest,
    SyncGroupResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from harrow.cluster_model.events import (
    GroupAssigned,
    GroupStateChanged,
    MemberExpired,
    OffsetsCommitted,
    OffsetsDeleted,
    OffsetsExpired,
    RequestRejected,
    StaticMemberReplaced,
)
from harrow.cluster_model.log.record_batch import NO_PRODUCER_ID
from harrow.cluster_model.release.groups import WITH_OTHER_PROTOCOL, GroupSwitches
from harrow.cluster_model.release.switch import NEVER
from harrow.cluster_model.settings import BrokerConfig
from harrow.cluster_model.sim.connection import Exchange, Handlers, Respond, register
from harrow.cluster_model.sim.host import Host
from harrow.cluster_model.sim.message import Body
from harrow.cluster_model.sim.periodic_task import PeriodicTask
from harrow.cluster_model.topology import CONSUMER_OFFSETS

_NOT_COORDINATING: Final = frozenset({errors.NOT_LEADER_FOR_PARTITION, errors.KAFKA_STORAGE_ERROR})
_NOT_AVAILABLE: Final = frozenset(
    {
        errors.UNKNOWN_TOPIC_OR_PARTITION,
        errors.NOT_ENOUGH_REPLICAS,
        errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    }
)
_ID_END: Final = 1 << 32
"""Member ids end with a random number that is smaller than this."""


def _is_empty(group: Group) -> bool:
    """Return whether a group with the classic protocol has no members and no pending members."""
    return group.state == EMPTY and not (group.members or group.pending_members)


def _error_of_append(error: str) -> str:
    """Return the error that a client gets after a failed append.

    See ``GroupMetadataManager.storeOffsets``.
    """
    if error in _NOT_AVAILABLE:
        return errors.COORDINATOR_NOT_AVAILABLE
    if error == errors.NETWORK_EXCEPTION:
        # It is unknown whether the transaction has the partition, so the client must retry.
        return errors.COORDINATOR_LOAD_IN_PROGRESS
    return errors.NOT_COORDINATOR if error in _NOT_COORDINATING else error


def _error_of_wait(error: str) -> str:
    """Return the error that a client gets if earlier writes were not committed in time.

    See ``GroupCoordinatorService.handleOperationException``.
    """
    return errors.COORDINATOR_NOT_AVAILABLE if error == errors.REQUEST_TIMED_OUT else _error_of_append(error)


class GroupCoordinator:
    """Coordinates the groups whose partitions this broker leads.

    *respond* answers a request. A group without members and offsets has no timers.
    """

    def __init__(
        self,
        broker: int,
        host: Host,
        config: BrokerConfig,
        switches: GroupSwitches,
        replicas: ReplicaManager,
        respond: Respond,
        metadata: MetadataCache,
    ) -> None:
        self._broker = broker
        self._host = host
        self._config = config
        self._switches = switches
        self._respond = respond
        self._replicas = replicas
        self._log = CoordinatorLog(CONSUMER_OFFSETS, host, replicas)
        self._leader_epochs: dict[int, int] = {}
        self._loading: dict[int, None] = {}
        self._groups: dict[str, Group] = {}
        self._expiry = PeriodicTask(host, config.offsets_retention_check_interval_us, self._expire_offsets)
        self._expiry.start()
        self._consumer_groups = ConsumerGroupManager(
            *(broker, host, config, switches, metadata),
            self._append,
            self._when_stored,
            self._still_coordinates,
            self._reload,
        )
        self.handlers: Handlers = {}
        register(self.handlers, JoinGroupRequest, self._handle_join)
        register(self.handlers, SyncGroupRequest, self._handle_sync)
        register(self.handlers, HeartbeatRequest, self._handle_heartbeat)
        register(self.handlers, LeaveGroupRequest, self._handle_leave)
        register(self.handlers, ConsumerGroupHeartbeatRequest, self._handle_consumer_group_heartbeat)
        register(self.handlers, OffsetCommitRequest, self._handle_offset_commit)
        register(self.handlers, OffsetFetchRequest, self._handle_offset_fetch)
        register(self.handlers, TxnOffsetCommitRequest, self._handle_txn_offset_commit)
        GroupAdministration(
            *(self._groups, metadata, self._partition_error, lambda: bool(self._loading)),
            self._delete_offsets,
            respond,
            config.consumer_group_assignors[0],
        ).register(self.handlers)

    # Elections

    def on_election(self, partition: int, leader_epoch: int) -> None:
        """Load the groups of a partition, unless they are loaded.

        Clients are not served until the groups are loaded. In Kafka another thread loads them.
        """
        is_new = partition not in self._leader_epochs
        self._leader_epochs[partition] = leader_epoch
        if is_new and next(self._log.batches(partition), None) is not None:
            self._loading[partition] = None
            self._host.set_timer(0, self._load, partition)

    def _load(self, partition: int) -> None:
        if partition not in self._loading:
            return
        del self._loading[partition]
        for group in groups_in(partition, self._log.batches(partition), self._switches).values():
            self._groups[group.id] = group
            if group.offsets:
                self._expiry.request()
            if group.consumers is not None:
                self._consumer_groups.on_load(group, group.consumers, "loaded")
                continue
            for member in group.members.values():
                self._restart_session(group, member)
            self._report(group, "loaded")

    def _reload(self, group: Group) -> None:
        """Restore a group's members from the log after a write that did not reach the log."""
        reason = "a write has failed"
        if group.consumers is not None:
            self._consumer_groups.on_unload(group, group.consumers, reason)
        batches = self._log.batches(group.partition)
        stored = groups_in(group.partition, batches, self._switches).get(group.id)
        group.consumers = None if stored is None else stored.consumers
        if group.consumers is None:
            group.state = EMPTY
        else:
            self._consumer_groups.on_load(group, group.consumers, reason)

    def on_resignation(self, partition: int) -> None:
        """Forget the groups of a partition (``onGroupUnloaded``).

        Waiting members get NOT_COORDINATOR, and look for the new coordinator.
        """
        self._leader_epochs.pop(partition, None)
        self._loading.pop(partition, None)
        for group in [group for group in self._groups.values() if group.partition == partition]:
            del self._groups[group.id]
            group.state = DEAD
            if group.consumers is not None:
                self._consumer_groups.on_unload(group, group.consumers, "another broker coordinates it")
            for member in group.members.values():
                self._answer_join(member, JoinGroupResponse(errors.NOT_COORDINATOR, member=member.id))
                self._answer_sync(member, SyncGroupResponse(errors.NOT_COORDINATOR))

    def on_partitions_deleted(self, partitions: Collection[str]) -> None:
        """Delete the offsets of deleted partitions (``GroupCoordinator.onPartitionsDeleted``)."""
        for group in self._groups.values() if partitions else ():
            names = [name for name in partitions if name in group.offsets or group.is_unstable(name)]
            for pending in group.pending_offsets.values():
                for name in names:
                    pending.pop(name, None)
            if names:
                self._delete_offsets(group, names, (), lambda _: None)

    def transaction_completed(self, partition: int, producer_id: int, *, committed: bool) -> None:
        """Apply or drop the offsets of a completed transaction (``handleTxnCompletion``)."""
        for group in self._groups.values():
            if group.partition == partition and producer_id in group.pending_offsets:
                commits = group.end_transaction(producer_id, committed=committed)
                if commits:
                    self._expiry.request()
                    offsets = tuple((name, commit.offset) for name, commit in commits.items())
                    self._host.emit(
                        OffsetsCommitted,
                        *(self._broker, group.id, NO_MEMBER, NO_GENERATION, group.generation, offsets),
                    )

    def _partition_error(self, group: str) -> str:
        """Return the error if this broker does not coordinate a group."""
        partition = partition_for(group, self._config.offsets_topic_partitions)
        if partition in self._loading:
            return errors.COORDINATOR_LOAD_IN_PROGRESS
        return errors.NONE if partition in self._leader_epochs else errors.NOT_COORDINATOR

    def _new_group(self, name: str) -> Group:
        group = self._groups[name] = Group(name, partition_for(name, self._config.offsets_topic_partitions))
        group.empty_since_us = self._host.clock.now_us
        return group

    def _report_rejection(self, exchange: Exchange[Body], error: str) -> None:
        if error != errors.NONE:
            request = exchange.request
            self._host.emit(
                RequestRejected, self._broker, request.api, "", exchange.connection.client.name, error
            )

    def _report(self, group: Group, reason: str) -> None:
        members = tuple(group.members)
        self._host.emit(
            GroupStateChanged, self._broker, group.id, group.state, group.generation, members, reason
        )

    # Joining

    def _handle_join(self, exchange: Exchange[JoinGroupRequest]) -> None:
        request = exchange.request

        def answer(response: JoinGroupResponse) -> None:
            if response.error != errors.MEMBER_ID_REQUIRED:
                self._report_rejection(exchange, response.error)
            self._respond(exchange, response)

        error = self._partition_error(request.group)
        config = self._config
        if error == errors.NONE and not (
            config.group_min_session_timeout_us
            <= request.session_timeout_us
            <= config.group_max_session_timeout_us
        ):
            error = errors.INVALID_SESSION_TIMEOUT
        group = self._groups.get(request.group)
        if error == errors.NONE and group is None and request.member != NO_MEMBER:
            error = errors.UNKNOWN_MEMBER_ID
        if error != errors.NONE:
            answer(JoinGroupResponse(error, member=request.member))
            return
        if group is None:
            group = self._new_group(request.group)
        if not self._accepts_classic(group) or not group.supports(request.protocol_type, request.protocols):
            answer(JoinGroupResponse(errors.INCONSISTENT_GROUP_PROTOCOL, member=request.member))
            return
        if request.member == NO_MEMBER:
            self._join_new(group, request, exchange.connection.client.name, answer)
        else:
            self._join_current(group, request, exchange.connection.client.name, answer)

    def _join_new(
        self,
        group: Group,
        request: JoinGroupRequest,
        client: str,
        answer: Callable[[JoinGroupResponse], None],
    ) -> None:
        """Add a new member at once, or give it an id with which it must join again (KIP-394)."""
        prefix = client if request.instance == NO_INSTANCE else request.instance
        member_id = f"{prefix}-{self._host.choices.network.below(_ID_END):08x}"
        if request.instance != NO_INSTANCE and request.instance in group.static_members:
            self._replace_static(group, request, member_id, answer)
        elif (
            request.instance == NO_INSTANCE and request.repeats_with_id and self._switches.member_id_required
        ):
            group.pending_members[member_id] = None
            self._host.set_timer(request.session_timeout_us, self._expire_pending, (group, member_id))
            answer(JoinGroupResponse(errors.MEMBER_ID_REQUIRED, member=member_id))
        else:
            self._add_member(group, request, member_id, client, answer)

    def _expire_pending(self, task: tuple[Group, str]) -> None:
        group, member_id = task
        if self._still_coordinates(group) and member_id in group.pending_members:
            del group.pending_members[member_id]
            self._try_complete_join(group)

    def _add_member(
        self,
        group: Group,
        request: JoinGroupRequest,
        member_id: str,
        client: str,
        answer: Callable[[JoinGroupResponse], None],
    ) -> None:
        member = Member(
            member_id,
            request.instance,
            client,
            request.session_timeout_us,
            request.rebalance_timeout_us,
            request.protocols,
            on_join=answer,
        )
        group.add(member, request.protocol_type)
        group.has_new_members = True
        self._prepare_rebalance(group, f"{client} joins")

    def _join_current(
        self,
        group: Group,
        request: JoinGroupRequest,
        client: str,
        answer: Callable[[JoinGroupResponse], None],
    ) -> None:
        """Handle a join with a member id (``doCurrentMemberJoinGroup``)."""
        if request.member in group.pending_members:
            if request.instance == NO_INSTANCE:
                self._add_member(group, request, request.member, client, answer)
            elif self._switches.coordinator_exception_answered:
                # Kafka throws an IllegalStateException here. Without the switch it does not answer.
                answer(JoinGroupResponse(errors.UNKNOWN_SERVER_ERROR))
            return
        error = self._member_error(group, request.member, request.instance, joins=True)
        if error != errors.NONE:
            answer(JoinGroupResponse(error, member=request.member))
            return
        member = group.members[request.member]
        has_same_protocols = member.protocols == request.protocols
        leads_stable_group = group.state == STABLE and member.id == group.leader
        if group.state == PREPARING_REBALANCE or not has_same_protocols or leads_stable_group:
            member.protocols = request.protocols
            member.session_timeout_us = request.session_timeout_us
            member.rebalance_timeout_us = request.rebalance_timeout_us
            member.on_join = answer
            if group.state == PREPARING_REBALANCE:
                self._try_complete_join(group)
            else:
                self._prepare_rebalance(group, f"{member.client} joins again")
        elif group.state in (COMPLETING_REBALANCE, STABLE):
            # The member has missed its answer, or joins without a reason. The generation continues.
            if member.id == group.leader and self._fails_without_assignor(group):
                return
            self._restart_session(group, member)
            answer(self._join_response(group, member))
        else:
            answer(JoinGroupResponse(errors.UNKNOWN_MEMBER_ID, member=request.member))

    def _replace_static(
        self,
        group: Group,
        request: JoinGroupRequest,
        member_id: str,
        answer: Callable[[JoinGroupResponse], None],
    ) -> None:
        """Replace a static member that has come back, and fence its former session.

        In a stable group the member gets the same partitions again, and no other member notices
        (``updateStaticMemberAndRebalance``).
        """
        member = group.members[group.static_members[request.instance]]
        fenced = errors.FENCED_INSTANCE_ID
        self._answer_join(member, JoinGroupResponse(fenced, member=member.id))
        self._answer_sync(member, SyncGroupResponse(fenced))
        was_leader, leader = group.leader == member.id, group.leader
        group.replace_static(member, member_id)
        self._host.publish(StaticMemberReplaced, self._broker, group.id, request.instance, member_id)
        member.session_timeout_us = request.session_timeout_us
        member.rebalance_timeout_us = request.rebalance_timeout_us
        self._restart_session(group, member)
        member.protocols = request.protocols
        if self._generation_continues(group):
            # A leader that cannot skip the assignment would assign again. So the response names the
            # former member id as the leader.
            if self._switches.static_leader_skips_assignment:
                response = self._join_response(group, member)
                response.skip_assignment = was_leader
            else:
                response = JoinGroupResponse(errors.NONE, group.generation, group.protocol, leader, member.id)
            if self._switches.static_rejoin_rebalances == WITH_OTHER_PROTOCOL:
                self._store(group, lambda error: answer(self._or_error(response, error)))
            else:
                answer(response)
        else:
            member.on_join = answer
            if group.state == PREPARING_REBALANCE:
                self._try_complete_join(group)
            else:
                self._prepare_rebalance(group, f"{member.client} comes back")

    def _generation_continues(self, group: Group) -> bool:
        """Return whether a generation continues after a static member has come back."""
        rebalances = self._switches.static_rejoin_rebalances
        if group.state == STABLE:
            return rebalances != WITH_OTHER_PROTOCOL or group.protocol == self._selected_protocol(group)
        return group.state == COMPLETING_REBALANCE and rebalances == NEVER

    def _selected_protocol(self, group: Group) -> str:
        by_java = self._switches.assignor_ties_broken_by_java_hash
        return group.selected_protocol(java_hash_place if by_java else scala_hash_place)

    @staticmethod
    def _or_error(response: JoinGroupResponse, error: str) -> JoinGroupResponse:
        if error == errors.NONE:
            return response
        return JoinGroupResponse(_error_of_append(error), member=response.member)

    def _member_error(self, group: Group, member: str, instance: str, *, joins: bool = False) -> str:
        """Return the error if the sender is not a current member (``validateCurrentMember``)."""
        if instance != NO_INSTANCE and self._switches.static_membership:
            current = group.static_members.get(instance)
            if current is None:
                if joins or self._switches.unknown_instance_ids_refused:
                    return errors.UNKNOWN_MEMBER_ID
            elif current != member:
                return errors.FENCED_INSTANCE_ID
        return errors.NONE if member in group.members else errors.UNKNOWN_MEMBER_ID

    def _still_coordinates(self, group: Group) -> bool:
        return self._groups.get(group.id) is group

    # Rebalances

    def _maybe_rebalance(self, group: Group, reason: str) -> None:
        if group.state in (STABLE, COMPLETING_REBALANCE, EMPTY):
            self._prepare_rebalance(group, reason)
        elif group.state == PREPARING_REBALANCE:
            self._try_complete_join(group)

    def _prepare_rebalance(self, group: Group, reason: str) -> None:
        """Begin a rebalance, and wait until all members have joined again or until its timeout.

        Modelled on ``prepareRebalance``, ``DelayedJoin`` and ``InitialDelayedJoin``. An empty group
        instead waits for a delay, possibly 0, during which more members may start (KIP-134). It
        does not wait for pending members.
        """
        if group.state == PREPARING_REBALANCE:
            self._try_complete_join(group)
            return
        if group.state == COMPLETING_REBALANCE:
            self._fail_syncs(group, errors.REBALANCE_IN_PROGRESS)
        was_empty = group.state == EMPTY
        group.state = PREPARING_REBALANCE
        group.rebalances += 1
        self._report(group, reason)
        timeout_us = group.rebalance_timeout_us()
        if was_empty:
            delay_us = self._config.group_initial_rebalance_delay_us
            group.initial_wait_us = max(timeout_us - delay_us, 0)
            group.has_new_members = False
            self._host.set_timer(delay_us, self._end_initial_delay, (group, group.rebalances))
            return
        self._try_complete_join(group)
        if group.state == PREPARING_REBALANCE:
            self._host.set_timer(timeout_us, self._expire_join, (group, group.rebalances))

    def _end_initial_delay(self, task: tuple[Group, int]) -> None:
        group, rebalance = task
        if not self._is_current(group, rebalance):
            return
        remaining_us = group.initial_wait_us
        assert remaining_us is not None, "the end of a wait that has not begun"
        if group.has_new_members and remaining_us:
            delay_us = min(self._config.group_initial_rebalance_delay_us, remaining_us)
            group.has_new_members = False
            group.initial_wait_us = remaining_us - delay_us
            self._host.set_timer(delay_us, self._end_initial_delay, task)
        else:
            group.initial_wait_us = None
            self._complete_join(group)

    def _is_current(self, group: Group, rebalance: int) -> bool:
        return (
            self._still_coordinates(group)
            and group.rebalances == rebalance
            and group.state == PREPARING_REBALANCE
        )

    def _try_complete_join(self, group: Group) -> None:
        is_delayed = group.initial_wait_us is not None
        if group.state == PREPARING_REBALANCE and not is_delayed and group.have_all_joined():
            self._complete_join(group)

    def _expire_join(self, task: tuple[Group, int]) -> None:
        group, rebalance = task
        if self._is_current(group, rebalance):
            self._complete_join(group)

    def _complete_join(self, group: Group) -> None:
        """Begin a generation with the members that have joined (``onCompleteJoin``).

        A static member that has not joined stays until its session expires.
        """
        for member in [member for member in group.members.values() if member.on_join is None]:
            if member.instance == NO_INSTANCE or not self._switches.static_membership:
                group.remove(member)
        group.has_new_members = False
        joined = [member for member in group.members.values() if member.on_join is not None]
        if group.members and not joined:
            self._host.set_timer(group.rebalance_timeout_us(), self._expire_join, (group, group.rebalances))
            return
        group.elect_joined_leader()
        group.generation += 1
        if not group.members:
            self._become_empty(group)
            return
        group.protocol = self._selected_protocol(group)
        group.state = COMPLETING_REBALANCE
        group.pending_sync = dict.fromkeys(group.members)
        self._report(group, f"{group.members[group.leader].client} leads")
        if self._switches.pending_syncs_expire:
            self._host.set_timer(group.rebalance_timeout_us(), self._expire_sync, (group, group.generation))
        for member in list(group.members.values()):
            if member.on_join is not None:
                response = self._join_response(group, member)
                self._answer_join(member, response)
            self._restart_session(group, member)

    def _become_empty(self, group: Group) -> None:
        group.state, group.protocol = EMPTY, ""
        group.empty_since_us = self._host.clock.now_us
        self._report(group, "no members are left")
        self._store(group, lambda _: None)
        self._expiry.request()

    def _join_response(self, group: Group, member: Member) -> JoinGroupResponse:
        leads = member.id == group.leader
        return JoinGroupResponse(
            errors.NONE,
            group.generation,
            group.protocol,
            group.leader,
            member.id,
            tuple(group.member_subscriptions()) if leads else (),
        )

    def _expire_sync(self, task: tuple[Group, int]) -> None:
        """Remove members that do not sync, so that the others do not wait forever (KAFKA-12890)."""
        group, generation = task
        if (
            not self._still_coordinates(group)
            or group.generation != generation
            or group.state not in (COMPLETING_REBALANCE, STABLE)
        ):
            return
        late = [group.members[name] for name in group.pending_sync if name in group.members]
        for member in late:
            self._remove(group, member)
        if late:
            self._maybe_rebalance(group, f"{late[0].client} does not sync")

    @staticmethod
    def _answer_join(member: Member, response: JoinGroupResponse) -> None:
        if member.on_join is not None:
            answer, member.on_join = member.on_join, None
            answer(response)

    @staticmethod
    def _answer_sync(member: Member, response: SyncGroupResponse) -> None:
        if member.on_sync is not None:
            answer, member.on_sync = member.on_sync, None
            answer(response)

    def _fail_syncs(self, group: Group, error: str) -> None:
        for member in list(group.members.values()):
            member.partitions = ()
            if member.on_sync is not None:
                self._answer_sync(member, SyncGroupResponse(error))
                self._restart_session(group, member)

    # Partitions of members

    def _handle_sync(self, exchange: Exchange[SyncGroupRequest]) -> None:
        request = exchange.request

        def answer(response: SyncGroupResponse) -> None:
            self._report_rejection(exchange, response.error)
            self._respond(exchange, response)

        error = self._partition_error(request.group)
        if error == errors.COORDINATOR_LOAD_IN_PROGRESS:
            # The incomplete generation was only in memory, so members must join again
            # (``handleSyncGroup``).
            error = errors.REBALANCE_IN_PROGRESS
        group = self._groups.get(request.group)
        if error == errors.NONE:
            error = self._generation_error(group, request.member, request.instance, request.generation)
        if error == errors.NONE and group is not None:
            has_type = request.protocol_type in (None, group.protocol_type)
            if not has_type or request.protocol not in (None, group.protocol):
                error = errors.INCONSISTENT_GROUP_PROTOCOL
            elif group.state == PREPARING_REBALANCE:
                error = errors.REBALANCE_IN_PROGRESS
        if error != errors.NONE or group is None:
            answer(SyncGroupResponse(error))
            return
        member = group.members[request.member]
        group.pending_sync.pop(member.id, None)
        if group.state == STABLE:
            self._restart_session(group, member)
            answer(SyncGroupResponse(errors.NONE, member.partitions))
            return
        member.on_sync = answer
        if member.id == group.leader and not self._fails_without_assignor(group):
            self._store_assignment(group, request.assignments)

    def _fails_without_assignor(self, group: Group) -> bool:
        """Return whether the coordinator fails because a member lacks the group's assignor.

        The coordinator fails when it answers the leader or writes the generation.
        """
        return not self._switches.coordinator_exception_answered and any(
            all(name != group.protocol for name, _ in member.protocols) for member in group.members.values()
        )

    def _store_assignment(self, group: Group, assignments: Mapping[str, tuple[str, ...]]) -> None:
        generation = group.generation

        def on_stored(error: str) -> None:
            if not self._still_coordinates(group) or (group.state, group.generation) != (
                COMPLETING_REBALANCE,
                generation,
            ):
                return
            if error == errors.NONE:
                self._become_stable(group)
            else:
                is_late = error == errors.REQUEST_TIMED_OUT
                self._fail_syncs(group, errors.REBALANCE_IN_PROGRESS if is_late else _error_of_append(error))
                self._maybe_rebalance(group, "its assignment was not stored")

        for member in group.members.values():
            member.partitions = assignments.get(member.id, ())
        self._store(group, on_stored)

    def _become_stable(self, group: Group) -> None:
        group.state = STABLE
        self._report(group, "its members have their assignments")
        assigned = tuple((member.id, member.partitions) for member in group.members.values())
        self._host.emit(GroupAssigned, self._broker, group.id, group.generation, assigned)
        for member in list(group.members.values()):
            self._restart_session(group, member)
            self._answer_sync(member, SyncGroupResponse(errors.NONE, member.partitions))

    def _store(self, group: Group, on_complete: Callable[[str], None]) -> None:
        self._append(group, (group_record(group, self._host.clock.now_us),), on_complete)

    def _append(
        self,
        group: Group,
        records: Iterable[CoordinatorRecord],
        on_complete: Callable[[str], None],
        *,
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = NO_EPOCH,
    ) -> None:
        self._log.append(
            group.partition,
            tuple(records),
            self._config.offsets_commit_timeout_us,
            on_complete,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
        )

    def _delete_offsets(
        self,
        group: Group,
        partitions: Iterable[str],
        records: Iterable[CoordinatorRecord],
        on_complete: Callable[[str], None],
    ) -> None:
        """Append tombstones and *records*, and delete the offsets when these are stored.

        The event does not wait for success, because a tombstone may reach the log despite an error.
        """
        deleted = tuple(partitions)

        def on_stored(error: str) -> None:
            if error == errors.NONE or self._takes_effect_despite(error):
                for name in deleted:
                    group.offsets.pop(name, None)
            if deleted:
                self._host.emit(OffsetsDeleted, self._broker, group.id, deleted)
            on_complete(_error_of_append(error))

        tombstones = [offset_tombstone(group.id, name) for name in deleted]
        self._append(group, (*tombstones, *records), on_stored)

    def _when_stored(self, group: Group, answer: Callable[[str], None]) -> None:
        """Call *answer* once all earlier writes to the group's partition are committed.

        After a timeout *answer* gets an error. Before KIP-848 *answer* is called at once.
        """
        if self._switches.group_responses_wait_for_writes:
            self._log.when_committed(group.partition, self._config.offsets_commit_timeout_us, answer)
        else:
            answer(errors.NONE)

    def _takes_effect_despite(self, error: str) -> bool:
        """Return whether a commit takes effect although its write ended with an error.

        Since 4.0 it does after a timeout: the commit is in memory, and later answers wait for the
        log.
        """
        return error == errors.REQUEST_TIMED_OUT and self._switches.group_responses_wait_for_writes

    def _answer_when_stored(self, group: Group, result: str, answer: Callable[[str], None]) -> None:
        """Answer with *result* once the earlier writes on which it may depend are committed."""
        self._when_stored(
            group, lambda error: answer(result if error == errors.NONE else _error_of_wait(error))
        )

    # The protocol of KIP-848

    def _handle_consumer_group_heartbeat(self, exchange: Exchange[ConsumerGroupHeartbeatRequest]) -> None:
        request = exchange.request

        def answer(response: ConsumerGroupHeartbeatResponse) -> None:
            self._report_rejection(exchange, response.error)
            self._respond(exchange, response)

        error = self._consumer_groups.request_error(request)
        if error == errors.NONE:
            error = self._partition_error(request.group)
        if error != errors.NONE:
            answer(ConsumerGroupHeartbeatResponse(error))
            return
        consumers = self._consumers_of(request)
        if consumers is None:
            answer(ConsumerGroupHeartbeatResponse(errors.GROUP_ID_NOT_FOUND))
        else:
            group = self._groups[request.group]
            self._consumer_groups.heartbeat(
                group, consumers, request, exchange.connection.client.name, answer
            )

    def _consumers_of(self, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroup | None:
        """Return the members of a group with the protocol of KIP-848, None for a classic group.

        An empty group adopts the protocol of its first member (``getOrMaybeCreateConsumerGroup``).
        """
        group = self._groups.get(request.group)
        if request.epoch == JOIN_EPOCH and (group is None or (group.consumers is None and _is_empty(group))):
            if group is None:
                group = self._new_group(request.group)
            elif group.generation:
                self._append(group, (group_tombstone(group),), lambda _: None)
                group.generation = 0
            first_epoch = int(self._switches.group_epoch_starts_at_one)
            releases = self._switches.previous_instance_id_released
            group.consumers = ConsumerGroup(releases, epoch=first_epoch, target_epoch=first_epoch)
        return None if group is None else group.consumers

    def _accepts_classic(self, group: Group) -> bool:
        """Return whether members with the classic protocol can join a group.

        If the group is empty and has the protocol of KIP-848, delete its state so that they can
        (``maybeDeleteEmptyConsumerGroup``).
        """
        if group.consumers is None:
            return True
        if group.consumers.members:
            return False
        group.consumers = None
        self._append(group, consumer_group_tombstones(group.id), lambda _: None)
        return True

    # Sessions

    def _handle_heartbeat(self, exchange: Exchange[HeartbeatRequest]) -> None:
        request = exchange.request

        def answer(error: str) -> None:
            self._report_rejection(exchange, error)
            self._respond(exchange, HeartbeatResponse(error))

        error = self._partition_error(request.group)
        group = self._groups.get(request.group)
        if error == errors.COORDINATOR_LOAD_IN_PROGRESS:
            # Sessions are suspended while groups are loaded.
            answer(errors.NONE)
            return
        if error == errors.NONE:
            error = self._generation_error(group, request.member, request.instance, request.generation)
        if error != errors.NONE or group is None:
            answer(error)
            return
        is_completing = group.state == COMPLETING_REBALANCE
        if is_completing and not self._switches.heartbeats_accepted_while_syncing:
            answer(errors.REBALANCE_IN_PROGRESS)
            return
        self._restart_session(group, group.members[request.member])
        self._answer_when_stored(
            group, errors.REBALANCE_IN_PROGRESS if group.state == PREPARING_REBALANCE else errors.NONE, answer
        )

    def _generation_error(self, group: Group | None, member: str, instance: str, generation: int) -> str:
        if group is None or group.state in (EMPTY, DEAD):
            return errors.UNKNOWN_MEMBER_ID
        error = self._member_error(group, member, instance)
        if error == errors.NONE and generation != group.generation:
            return errors.ILLEGAL_GENERATION
        return error

    def _restart_session(self, group: Group, member: Member) -> None:
        """Restart the session of a member."""
        member.deadline_us = self._host.clock.now_us + member.session_timeout_us
        self._watch_session(group, member)

    def _watch_session(self, group: Group, member: Member) -> None:
        if not member.is_watched:
            member.is_watched = True
            wait_us = member.deadline_us - self._host.clock.now_us
            self._host.set_timer(wait_us, self._check_session, (group, member))

    def _check_session(self, task: tuple[Group, Member]) -> None:
        """Remove a member whose session has expired, unless it waits for an answer."""
        group, member = task
        member.is_watched = False
        if (
            not self._still_coordinates(group)
            or group.members.get(member.id) is not member
            or member.awaits_answer()
        ):
            return
        if self._host.clock.now_us < member.deadline_us:
            self._watch_session(group, member)
        else:
            self._host.publish(MemberExpired, self._broker, group.id, member.id)
            self._remove(group, member)
            self._maybe_rebalance(group, f"the session of {member.client} has expired")

    def _remove(self, group: Group, member: Member) -> None:
        """Remove a member, and answer its pending join.

        A pending sync gets no answer (``removeMemberAndUpdateGroup``).
        """
        group.remove(member)
        self._answer_join(member, JoinGroupResponse(errors.UNKNOWN_MEMBER_ID))

    def _handle_leave(self, exchange: Exchange[LeaveGroupRequest]) -> None:
        request = exchange.request
        error = self._partition_error(request.group)
        group = self._groups.get(request.group)
        if error == errors.NONE and group is None:
            error = errors.UNKNOWN_MEMBER_ID
        if error == errors.NONE and group is not None:
            error = self._leave(group, request)

        def answer(error: str) -> None:
            self._report_rejection(exchange, error)
            self._respond(exchange, LeaveGroupResponse(error))

        if error != errors.NONE or group is None:
            answer(error)
        else:
            self._answer_when_stored(group, error, answer)

    def _leave(self, group: Group, request: LeaveGroupRequest) -> str:
        """Remove a member that leaves, or return an error if there is no such member.

        An administrator names a static member only by its instance id (KIP-345).
        """
        name = request.member
        if name == NO_MEMBER and request.instance in group.static_members:
            name = group.static_members[request.instance]
        if name in group.pending_members:
            if request.instance != NO_INSTANCE and not self._switches.unknown_instance_ids_refused:
                # The coordinator looks up the instance id first. If the id is unknown, the
                # coordinator fails, as in a join.
                is_static = request.instance in group.static_members
                return errors.FENCED_INSTANCE_ID if is_static else errors.UNKNOWN_SERVER_ERROR
            del group.pending_members[name]
            self._try_complete_join(group)
            return errors.NONE
        error = self._member_error(group, name, request.instance)
        if error == errors.NONE:
            member = group.members[name]
            self._remove(group, member)
            self._maybe_rebalance(group, f"{member.client} leaves")
        return error

    # Offsets

    def _handle_offset_commit(self, exchange: Exchange[OffsetCommitRequest]) -> None:
        request = exchange.request
        error = self._partition_error(request.group)
        group = self._groups.get(request.group)
        if error == errors.NONE:
            if group is not None:
                error = self._commit_error(group, request)
            elif request.generation == NO_GENERATION:
                group = self._new_group(request.group)
            elif self._switches.group_id_not_found_error:
                error = errors.GROUP_ID_NOT_FOUND
            else:
                error = errors.ILLEGAL_GENERATION
        if error != errors.NONE or group is None:
            self._report_rejection(exchange, error)
            self._respond(exchange, OffsetCommitResponse(dict.fromkeys(request.offsets, error)))
            return
        member = group.members.get(request.member)
        if member is not None:
            self._restart_session(group, member)

        def on_stored(error: str) -> None:
            self._report_rejection(exchange, error)
            self._respond(exchange, OffsetCommitResponse(dict.fromkeys(request.offsets, error)))

        self._store_offsets(group, request.member, request.generation, request.offsets, on_stored)

    def _commit_error(self, group: Group, request: OffsetCommitRequest) -> str:
        """Return why a commit is refused (``validateOffsetCommit``)."""
        if group.consumers is not None:
            return self._consumer_groups.commit_error(group.consumers, request)
        no_member = request.generation == NO_GENERATION and group.state == EMPTY
        if no_member or not self._switches.generations_fence_commits:
            return errors.NONE
        error = self._member_error(group, request.member, request.instance)
        if error != errors.NONE:
            return error
        if request.generation != group.generation:
            return errors.ILLEGAL_GENERATION
        return errors.REBALANCE_IN_PROGRESS if group.state == COMPLETING_REBALANCE else errors.NONE

    def _store_offsets(
        self,
        group: Group,
        member: str,
        generation: int,
        offsets: Mapping[str, int],
        on_complete: Callable[[str], None],
    ) -> None:
        now_us = self._host.clock.now_us
        committed, generation_now = self._with_positions(group, offsets), group.generation
        for name in offsets:
            group.in_flight[name] = group.in_flight.get(name, 0) + 1

        def on_stored(error: str) -> None:
            for name in offsets:
                group.in_flight[name] -= 1
                if not group.in_flight[name]:
                    del group.in_flight[name]
                if error == errors.NONE or self._takes_effect_despite(error):
                    group.apply_offset(name, committed[name])
            if error == errors.NONE and self._still_coordinates(group):
                pairs = tuple(offsets.items())
                self._host.emit(
                    OffsetsCommitted, self._broker, group.id, member, generation, generation_now, pairs
                )
                self._expiry.request()
            on_complete(_error_of_append(error))

        records = (offset_record(group.id, name, offset, now_us) for name, offset in offsets.items())
        self._append(group, records, on_stored)

    def _with_positions(self, group: Group, offsets: Mapping[str, int]) -> dict[str, CommittedOffset]:
        """Return offsets as commits. Their positions are in the order of the log."""
        now_us = self._host.clock.now_us
        commits = {}
        for name, offset in offsets.items():
            commits[name] = CommittedOffset(offset, now_us, group.next_position)
            group.next_position += 1
        return commits

    def _handle_txn_offset_commit(self, exchange: Exchange[TxnOffsetCommitRequest]) -> None:
        """Store offsets that take effect with the transaction's marker.

        See ``doTxnCommitOffsets`` and KIP-447.
        """
        request = exchange.request

        def answer(error: str) -> None:
            self._report_rejection(exchange, error)
            self._respond(exchange, TxnOffsetCommitResponse(dict.fromkeys(request.offsets, error)))

        error = self._partition_error(request.group)
        if error != errors.NONE:
            answer(error)
            return
        if request.group not in self._groups and not self._switches.group_id_not_found_error:
            self._new_group(request.group)
        partition = (
            f"{CONSUMER_OFFSETS}-{partition_for(request.group, self._config.offsets_topic_partitions)}"
        )

        def on_verified(outcome: dict[str, str]) -> None:
            self._finish_txn_commit(request, outcome.get(partition, errors.NONE), answer)

        self._replicas.verify_transaction(
            *(request.transactional_id, request.producer_id, request.producer_epoch),
            (partition,),
            on_verified,
            adds=request.adds_partitions,
        )

    def _finish_txn_commit(
        self, request: TxnOffsetCommitRequest, error: str, answer: Callable[[str], None]
    ) -> None:
        """Store the offsets, unless the transaction lacks the group's partition (KIP-890)."""
        if error == errors.NONE:
            error = self._partition_error(request.group)
        if error != errors.NONE:
            answer(_error_of_append(error))
            return
        group = self._groups.get(request.group)
        if group is None and request.generation != NO_GENERATION and self._switches.group_id_not_found_error:
            is_specific = self._gets_specific_errors(request)
            answer(errors.GROUP_ID_NOT_FOUND if is_specific else errors.ILLEGAL_GENERATION)
            return
        if group is None:
            group = self._new_group(request.group)
        error = self._txn_commit_error(group, request)
        if error != errors.NONE and self._switches.generations_fence_commits:
            answer(error)
        else:
            self._store_pending(group, request, answer)

    def _gets_specific_errors(self, request: TxnOffsetCommitRequest) -> bool:
        return self._switches.specific_transactional_commit_errors and request.knows_group_errors

    def _txn_commit_error(self, group: Group, request: TxnOffsetCommitRequest) -> str:
        """Return why a transaction cannot commit offsets as this member (``validateOffsetCommit``).

        A request without a member is always accepted.
        """
        names_member = request.generation != NO_GENERATION or request.member != NO_MEMBER
        if names_member and group.consumers is not None:
            error = self._consumer_groups.commit_error(group.consumers, request)
            is_specific = self._gets_specific_errors(request)
            return (
                errors.ILLEGAL_GENERATION if error == errors.STALE_MEMBER_EPOCH and not is_specific else error
            )
        if not names_member or (request.generation == NO_GENERATION and group.state == EMPTY):
            return errors.NONE
        error = self._member_error(group, request.member, request.instance)
        if error == errors.NONE and request.generation != group.generation:
            return errors.ILLEGAL_GENERATION
        return error

    def _store_pending(
        self, group: Group, request: TxnOffsetCommitRequest, answer: Callable[[str], None]
    ) -> None:
        now_us = self._host.clock.now_us
        committed = self._with_positions(group, request.offsets)
        pending = group.pending_offsets.setdefault(request.producer_id, {})
        pending.update(committed)

        def on_stored(error: str) -> None:
            if error != errors.NONE and not self._takes_effect_despite(error):
                pending = group.pending_offsets.get(request.producer_id, {})
                for name, offset in committed.items():
                    if pending.get(name) is offset:
                        del pending[name]
                if not pending:
                    group.pending_offsets.pop(request.producer_id, None)
            answer(_error_of_append(error))

        records = (offset_record(group.id, name, offset, now_us) for name, offset in request.offsets.items())
        self._append(
            group,
            records,
            on_stored,
            producer_id=request.producer_id,
            producer_epoch=request.producer_epoch,
        )

    def _handle_offset_fetch(self, exchange: Exchange[OffsetFetchRequest]) -> None:
        request = exchange.request
        error = self._partition_error(request.group)
        group = self._groups.get(request.group)
        if error == errors.NONE and group is not None and group.consumers is not None:
            error = self._consumer_groups.fetch_error(group.consumers, request)
        if error == errors.NONE and group is not None and request.require_stable:
            # Any error makes the client look for the coordinator again
            # (``handleOffsetFetchException``).
            self._when_stored(
                group,
                lambda error: self._answer_offset_fetch(
                    exchange, errors.NONE if error == errors.NONE else errors.NOT_COORDINATOR
                ),
            )
        else:
            self._answer_offset_fetch(exchange, error)

    def _answer_offset_fetch(self, exchange: Exchange[OffsetFetchRequest], error: str) -> None:
        request = exchange.request
        if error != errors.NONE:
            self._report_rejection(exchange, error)
            failed = dict.fromkeys(request.partitions or (), (error, NO_OFFSET_COMMITTED))
            self._respond(exchange, OffsetFetchResponse(failed, error))
            return
        group = self._groups.get(request.group)
        names: Iterable[str] = () if group is None else group.offsets
        if request.partitions is not None:
            names = request.partitions
        offsets = {}
        for name in names:
            committed = None if group is None else group.offsets.get(name)
            if group is not None and request.require_stable and self._is_unstable(group, name):
                offsets[name] = (errors.UNSTABLE_OFFSET_COMMIT, NO_OFFSET_COMMITTED)
            else:
                offsets[name] = (
                    errors.NONE,
                    NO_OFFSET_COMMITTED if committed is None else committed.offset,
                )
        self._respond(exchange, OffsetFetchResponse(offsets))

    def _is_unstable(self, group: Group, name: str) -> bool:
        """Return whether the committed offset of a partition may be about to change.

        An open transaction may change it. Before KIP-848 an unreplicated commit may change it, too.
        """
        responses_wait = self._switches.group_responses_wait_for_writes
        return group.is_pending(name) if responses_wait else group.is_unstable(name)

    def _expire_offsets(self) -> bool:
        """Remove old offsets and idle groups. Return whether any offsets are left.

        See ``cleanupGroupMetadata``.
        """
        now_us = self._host.clock.now_us
        for group in list(self._groups.values()):
            expired = self._expired_offsets(group, now_us)
            for name in expired:
                del group.offsets[name]
            records = [offset_tombstone(group.id, name) for name in expired]
            if group.is_idle():
                group.state = DEAD
                del self._groups[group.id]
                records.append(group_tombstone(group))
                if group.consumers is not None:
                    records += consumer_group_tombstones(group.id)
            if records:
                self._append(group, records, lambda _: None)
            if expired:
                self._host.emit(OffsetsExpired, self._broker, group.id, tuple(expired.items()))
        return any(group.offsets for group in self._groups.values())

    def _expired_offsets(self, group: Group, now_us: int) -> dict[str, int]:
        """Return the expired offsets of a group.

        In a classic group whose members have all left, all offsets expire when the group has been
        empty for long enough, regardless of their age. In other groups an offset expires when it is
        old enough. These are groups with members, groups that never had members, and groups whose
        coordinator assigns. But an offset does not expire while a member subscribes to its topic,
        or while a classic group rebalances. Before KIP-211 only the age of an offset counted. See
        ``GroupMetadata.removeExpiredOffsets``, ``ClassicGroup.offsetExpirationCondition`` and
        ``OffsetMetadataManager.cleanupExpiredOffsets``.
        """
        retention_us = self._config.offsets_retention_us
        subscribed: dict[str, None] = {}
        counts_from_commit = True
        if self._switches.offsets_kept_while_subscribed:
            if group.consumers is not None:
                subscribed = group.consumers.subscribed_topics()
            elif group.state == STABLE:
                subscribed = group.subscribed_topics()
            elif group.state != EMPTY:
                return {}
            counts_from_commit = group.consumers is not None or group.state != EMPTY or not group.generation
        return {
            name: commit.offset
            for name, commit in group.offsets.items()
            if now_us - (commit.committed_us if counts_from_commit else group.empty_since_us) >= retention_us
            and name.rpartition("-")[0] not in subscribed
            and not group.is_unstable(name)
        }
