"""Coordinates groups with the protocol of KIP-848.

Modelled on ``GroupMetadataManager.consumerGroupHeartbeat``. Members communicate only by heartbeats.
A heartbeat may raise the group epoch, may trigger the computation of the target assignment, and
moves its sender one step towards its part of the target. The coordinator then writes the changes,
and responds once they are committed.
"""

from collections.abc import Callable, Iterable
from typing import Final

from harrow.cluster_model import errors
from harrow.cluster_model.broker.metadata_cache import MetadataCache
from harrow.cluster_model.coordinators.coordinator_log import CoordinatorRecord
from harrow.cluster_model.coordinators.groups.consumer_group import (
    UNREVOKED_PARTITIONS,
    ConsumerGroup,
    ConsumerGroupMember,
    CurrentAssignment,
    Subscriber,
)
from harrow.cluster_model.coordinators.groups.consumer_group_records import (
    current_record,
    epoch_record,
    member_record,
    member_target_record,
    member_tombstones,
    target_record,
)
from harrow.cluster_model.coordinators.groups.current_assignment import next_assignment
from harrow.cluster_model.coordinators.groups.group import DEAD, Group
from harrow.cluster_model.coordinators.groups.server_assignors import SERVER_ASSIGNORS, MemberSpec
from harrow.cluster_model.coordinators.protocol import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    LEAVE_STATIC_EPOCH,
    NO_GENERATION,
    NO_INSTANCE,
    NO_MEMBER,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    OffsetCommitRequest,
    OffsetFetchRequest,
    TxnOffsetCommitRequest,
)
from harrow.cluster_model.events import (
    GroupStateChanged,
    MemberExpired,
    MemberReconciled,
    StaticMemberReplaced,
    TargetAssigned,
)
from harrow.cluster_model.release.groups import GroupSwitches
from harrow.cluster_model.settings import BrokerConfig
from harrow.cluster_model.sim.host import Host

_NOT_APPENDED: Final = frozenset({errors.NOT_ENOUGH_REPLICAS, errors.UNKNOWN_TOPIC_OR_PARTITION})
"""Errors after which a write is not in the log, although this broker still leads the partition."""
_NOT_AVAILABLE: Final = frozenset(
    {
        *_NOT_APPENDED,
        *(errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND, errors.REQUEST_TIMED_OUT),
    }
)

Answer = Callable[[ConsumerGroupHeartbeatResponse], None]
AppendRecords = Callable[[Group, Iterable[CoordinatorRecord], Callable[[str], None]], None]
WhenCommitted = Callable[[Group, Callable[[str], None]], None]


def _error_of_append(error: str) -> str:
    """Return the error that a member gets for a failed write.

    See ``GroupCoordinatorService.handleOperationException``.
    """
    if error in _NOT_AVAILABLE:
        return errors.COORDINATOR_NOT_AVAILABLE
    if error in (errors.NOT_LEADER_FOR_PARTITION, errors.KAFKA_STORAGE_ERROR):
        return errors.NOT_COORDINATOR
    return error


class ConsumerGroupManager:
    """Manages the groups of one broker that have the protocol of KIP-848.

    *append* writes the records of a group, *when_stored* waits until earlier writes are committed,
    *still_coordinates* returns whether this broker still coordinates a group, and *reload* restores
    a group from its log.
    """

    def __init__(
        self,
        broker: int,
        host: Host,
        config: BrokerConfig,
        switches: GroupSwitches,
        metadata: MetadataCache,
        append: AppendRecords,
        when_stored: WhenCommitted,
        still_coordinates: Callable[[Group], bool],
        reload: Callable[[Group], None],
    ) -> None:
        self._broker = broker
        self._host = host
        self._config = config
        self._switches = switches
        self._metadata = metadata
        self._append = append
        self._when_stored = when_stored
        self._still_coordinates = still_coordinates
        self._reload = reload

    # Requests

    def request_error(self, request: ConsumerGroupHeartbeatRequest) -> str:
        """Return the error of a heartbeat that is invalid in every state of its group.

        See ``throwIfConsumerGroupHeartbeatRequestIsInvalid``.
        """
        if not self._switches.consumer_group_protocol:
            return errors.UNSUPPORTED_VERSION
        is_valid = request.member != NO_MEMBER
        if request.epoch == JOIN_EPOCH:
            is_valid = (
                is_valid
                and request.rebalance_timeout_us is not None
                and request.owned == ()
                and bool(request.topics)
            )
        elif request.epoch == LEAVE_STATIC_EPOCH:
            is_valid = is_valid and request.instance != NO_INSTANCE
        elif request.epoch < LEAVE_EPOCH:
            is_valid = False
        if not is_valid:
            return errors.INVALID_REQUEST
        if request.assignor is not None and request.assignor not in self._config.consumer_group_assignors:
            return errors.UNSUPPORTED_ASSIGNOR
        return errors.NONE

    def heartbeat(
        self,
        group: Group,
        consumers: ConsumerGroup,
        request: ConsumerGroupHeartbeatRequest,
        client: str,
        answer: Answer,
    ) -> None:
        """Handle a member's heartbeat, and answer when the changes are stored."""
        if request.epoch in (LEAVE_EPOCH, LEAVE_STATIC_EPOCH):
            self._leave(group, consumers, request, answer)
            return
        if self._is_full(consumers, request):
            answer(ConsumerGroupHeartbeatResponse(errors.GROUP_MAX_SIZE_REACHED))
            return
        sender = consumers.members.get(request.member)
        error, member, records = self._member_of(group, consumers, request)
        if error != errors.NONE or member is None:
            answer(ConsumerGroupHeartbeatResponse(error))
            return
        # If the sender was a member and now replaces a static member, the partitions that it owned
        # become free after this heartbeat.
        abandoned = sender.current.owns() if sender is not None and sender is not member else ()
        consumers.hold(abandoned)
        before = self._summary(consumers)
        # Kafka looks up a static member's target by its instance id, which the group may not know
        # yet (`ConsumerGroup.targetAssignment`).
        has_target = request.instance == NO_INSTANCE or consumers.static_member(request.instance) is not None
        has_new_subscription = self._update_member(group, consumers, member, request, client, records)
        if consumers.epoch > consumers.target_epoch and self._may_assign(consumers):
            self._compute_target(group, consumers, records)
            has_target = True
        owned_before = member.current.assigned
        target = consumers.target.get(member.id, ()) if has_target else ()
        self._reconcile(
            group,
            consumers,
            member,
            request.owned,
            target,
            records,
            has_new_subscription=has_new_subscription,
        )
        consumers.release(abandoned)
        self._restart_session(group, member)
        self._report(
            group,
            consumers,
            before,
            f"{client} joins" if request.epoch == JOIN_EPOCH else f"{client} is heard of",
        )
        response = ConsumerGroupHeartbeatResponse(
            errors.NONE, member.id, member.current.epoch, self._config.consumer_group_heartbeat_interval_us
        )
        assigned = member.current.assigned
        if request.is_full() or assigned.keys() != owned_before.keys():
            response.assignment = tuple(sorted(assigned, key=_by_number))
        self._store(group, consumers, records, response, answer)

    def commit_error(
        self, consumers: ConsumerGroup, request: OffsetCommitRequest | TxnOffsetCommitRequest
    ) -> str:
        """Return why a commit is refused (``ConsumerGroup.validateOffsetCommit``).

        Since 4.3 a commit with an older epoch is accepted for partitions that the member was
        assigned in that epoch or before, and has owned since.
        """
        if request.generation < 0 and not consumers.members:
            return errors.NONE
        if not self._switches.member_epochs_fence_commits:
            return errors.NONE
        member = consumers.members.get(request.member)
        if member is None:
            return errors.UNKNOWN_MEMBER_ID
        current, epoch = member.current, request.generation
        is_accepted = epoch == current.epoch
        if not is_accepted and self._switches.assignment_epochs_fence_commits and epoch < current.epoch:
            epochs = {**current.revoking, **current.assigned}
            is_accepted = all(name in epochs and epochs[name] <= epoch for name in request.offsets)
        return errors.NONE if is_accepted else errors.STALE_MEMBER_EPOCH

    @staticmethod
    def fetch_error(consumers: ConsumerGroup, request: OffsetFetchRequest) -> str:
        """Return why an offset fetch is refused (``ConsumerGroup.validateOffsetFetch``)."""
        if request.member == NO_MEMBER and request.epoch == NO_GENERATION:
            return errors.NONE
        member = consumers.members.get(request.member)
        if member is None:
            return errors.UNKNOWN_MEMBER_ID
        return errors.NONE if request.epoch == member.current.epoch else errors.STALE_MEMBER_EPOCH

    # Members

    def _is_full(self, consumers: ConsumerGroup, request: ConsumerGroupHeartbeatRequest) -> bool:
        """Return whether a group is too full for a new member (``throwIfConsumerGroupIsFull``)."""
        if (
            len(consumers.members) < self._config.consumer_group_max_size
            or request.member in consumers.members
        ):
            return False
        is_static_member = request.instance in consumers.static_members
        return not (is_static_member and self._switches.static_member_rejoins_full_group)

    def _member_of(
        self, group: Group, consumers: ConsumerGroup, request: ConsumerGroupHeartbeatRequest
    ) -> tuple[str, ConsumerGroupMember | None, list[CoordinatorRecord]]:
        """Return an error, the member that sent a heartbeat, and records to write.

        A new member is not added to the group yet. There are records if the member replaces a
        static member.
        """
        sender = consumers.members.get(request.member)
        if request.instance == NO_INSTANCE:
            if sender is None and request.epoch != JOIN_EPOCH:
                return errors.UNKNOWN_MEMBER_ID, None, []
            member = sender or ConsumerGroupMember(request.member, Subscriber())
            return self._epoch_error(member, request), member, []
        static = consumers.static_member(request.instance)
        if request.epoch != JOIN_EPOCH:
            error = self._static_error(static, request)
            if static is None or error != errors.NONE:
                return error, None, []
            return self._epoch_error(static, request), static, []
        if consumers.is_orphaned(request.instance):
            return errors.UNKNOWN_MEMBER_ID, None, []
        if static is None:
            return errors.NONE, sender or ConsumerGroupMember(request.member, Subscriber()), []
        if static.current.epoch != LEAVE_STATIC_EPOCH:
            # The former member with this instance id has not left, and may be alive.
            return errors.UNRELEASED_INSTANCE_ID, None, []
        return errors.NONE, *self._replace(group, consumers, static, request.member)

    @staticmethod
    def _static_error(static: ConsumerGroupMember | None, request: ConsumerGroupHeartbeatRequest) -> str:
        if static is None:
            return errors.UNKNOWN_MEMBER_ID
        return errors.NONE if static.id == request.member else errors.FENCED_INSTANCE_ID

    def _epoch_error(self, member: ConsumerGroupMember, request: ConsumerGroupHeartbeatRequest) -> str:
        """Return the error that fences a member (``throwIfConsumerGroupMemberEpochIsInvalid``).

        A member that has missed the response with its new epoch is accepted if it owns only
        partitions that are assigned to it.
        """
        current, epoch = member.current, request.epoch
        if epoch == current.epoch:
            return errors.NONE
        if epoch == JOIN_EPOCH and self._switches.fenced_member_rejoins_at_once:
            return errors.NONE
        missed_answer = epoch < current.epoch and epoch == current.previous_epoch
        owns_assigned = request.owned is not None and all(name in current.assigned for name in request.owned)
        return errors.NONE if missed_answer and owns_assigned else errors.FENCED_MEMBER_EPOCH

    def _replace(
        self, group: Group, consumers: ConsumerGroup, static: ConsumerGroupMember, member_id: str
    ) -> tuple[ConsumerGroupMember, list[CoordinatorRecord]]:
        """Replace a static member that left for a while and has come back (``replaceMember``)."""
        target = consumers.target.get(static.id, ())
        current = static.current
        self._host.publish(
            StaticMemberReplaced, self._broker, group.id, static.subscriber.instance, member_id
        )
        consumers.remove(static.id)
        self._report_removed(group, static)
        member = ConsumerGroupMember(member_id, static.subscriber)
        consumers.put(member)
        consumers.set_current(member, current._replace(epoch=JOIN_EPOCH, previous_epoch=JOIN_EPOCH))
        consumers.target[member_id] = target
        return member, [
            *member_tombstones(group.id, static.id),
            member_record(group.id, member),
            member_target_record(group.id, member_id, target),
            current_record(group.id, member),
        ]

    def _update_member(
        self,
        group: Group,
        consumers: ConsumerGroup,
        member: ConsumerGroupMember,
        request: ConsumerGroupHeartbeatRequest,
        client: str,
        records: list[CoordinatorRecord],
    ) -> bool:
        """Update the properties of a member, and return whether its topics have changed.

        The group epoch rises if the member's topics have changed, if a topic of the group has
        another number of partitions, or if the members now prefer another assignor.
        """
        before, preferred = member.subscriber, self._assignor(consumers)
        timeout_us, topics = request.rebalance_timeout_us, request.topics
        member.subscriber = Subscriber(
            request.instance or before.instance,
            client,
            before.rebalance_timeout_us if timeout_us is None else timeout_us,
            before.topics if topics is None else tuple(sorted(topics)),
            before.assignor if request.assignor is None else request.assignor,
        )
        is_new = member.id not in consumers.members
        if is_new or member.subscriber != before:
            consumers.put(member)
            records.append(member_record(group.id, member))
        has_new_topics = member.subscriber.topics != before.topics
        bumps_epoch = has_new_topics or (
            self._switches.assignor_change_triggers_assignment and self._assignor(consumers) != preferred
        )
        if bumps_epoch or consumers.partition_count != len(self._metadata.partitions):
            self._refresh_topics(group, consumers, records, bumps_epoch=bumps_epoch)
        return has_new_topics

    def _assignor(self, consumers: ConsumerGroup) -> str:
        """Return the assignor that most members prefer, or by default the broker's first one."""
        return consumers.preferred_assignor() or self._config.consumer_group_assignors[0]

    def _refresh_topics(
        self, group: Group, consumers: ConsumerGroup, records: list[CoordinatorRecord], *, bumps_epoch: bool
    ) -> None:
        """Update the topics and their numbers of partitions, and raise the group epoch if needed.

        See ``computeSubscriptionMetadata``.
        """
        consumers.partition_count = len(self._metadata.partitions)
        counts = dict.fromkeys(sorted(consumers.subscribed_topics()), 0)
        for name in self._metadata.partitions:
            topic = name.rpartition("-")[0]
            if topic in counts:
                counts[topic] += 1
        topics = {topic: count for topic, count in counts.items() if count}
        if bumps_epoch or topics != consumers.topics:
            consumers.topics = topics
            consumers.epoch += 1
            records.append(epoch_record(group.id, consumers))

    def _leave(
        self,
        group: Group,
        consumers: ConsumerGroup,
        request: ConsumerGroupHeartbeatRequest,
        answer: Answer,
    ) -> None:
        """Remove a member that leaves (``consumerGroupLeave``).

        A static member that leaves temporarily stays in the group and keeps its assignment.
        """
        member = consumers.members.get(request.member)
        error = errors.NONE if member is not None else errors.UNKNOWN_MEMBER_ID
        if request.instance != NO_INSTANCE:
            member = consumers.static_member(request.instance)
            error = self._static_error(member, request)
        if member is None or error != errors.NONE:
            answer(ConsumerGroupHeartbeatResponse(error))
            return
        response = ConsumerGroupHeartbeatResponse(errors.NONE, member.id, request.epoch)
        records: list[CoordinatorRecord] = []
        if request.epoch == LEAVE_STATIC_EPOCH:
            before = self._summary(consumers)
            away = member.current._replace(epoch=LEAVE_STATIC_EPOCH, revoking={})
            self._set_current(group, consumers, member, away, records)
            self._report(group, consumers, before, f"{member.subscriber.client} leaves for a while")
        else:
            self._remove(group, consumers, member, f"{member.subscriber.client} leaves", records)
        self._store(group, consumers, records, response, answer)

    def _remove(
        self,
        group: Group,
        consumers: ConsumerGroup,
        member: ConsumerGroupMember,
        reason: str,
        records: list[CoordinatorRecord],
    ) -> None:
        """Remove a member (``consumerGroupFenceMember``).

        The next heartbeat computes the target assignment without this member.
        """
        before = self._summary(consumers)
        consumers.remove(member.id)
        records += member_tombstones(group.id, member.id)
        self._report_removed(group, member)
        self._refresh_topics(group, consumers, records, bumps_epoch=True)
        if not consumers.members and self._switches.emptied_group_assigns_at_once:
            consumers.target_epoch, consumers.target_computed_us = consumers.epoch, None
            records.append(target_record(group.id, consumers))
        self._report(group, consumers, before, reason)

    def _fence(
        self, group: Group, consumers: ConsumerGroup, member: ConsumerGroupMember, reason: str
    ) -> None:
        """Remove a member that has not sent a heartbeat, or not revoked its partitions, in time."""
        records: list[CoordinatorRecord] = []
        self._remove(group, consumers, member, reason, records)
        unsent = ConsumerGroupHeartbeatResponse(errors.NONE)
        self._store(group, consumers, records, unsent, lambda _: None)

    # Assignments

    def _may_assign(self, consumers: ConsumerGroup) -> bool:
        """Return whether the last target assignment is old enough for a new one (KIP-1263).

        See ``canComputeNextTargetAssignment``.
        """
        interval_us = self._config.consumer_group_assignment_interval_us
        computed_us = consumers.target_computed_us
        return not interval_us or computed_us is None or self._host.clock.now_us >= computed_us + interval_us

    def _compute_target(
        self, group: Group, consumers: ConsumerGroup, records: list[CoordinatorRecord]
    ) -> None:
        """Compute the target assignment with the group's assignor (``TargetAssignmentBuilder``)."""
        assignor = self._assignor(consumers)
        members = {
            member.id: MemberSpec(
                member.subscriber.instance,
                member.subscriber.topics,
                consumers.target.get(member.id, ()),
            )
            for member in consumers.members.values()
        }
        target = SERVER_ASSIGNORS[assignor](members, consumers.topics)
        for member_id, partitions in target.items():
            if consumers.target.get(member_id) != partitions:
                records.append(member_target_record(group.id, member_id, partitions))
        consumers.target = target
        consumers.target_epoch = consumers.epoch
        consumers.target_computed_us = self._host.clock.now_us
        records.append(target_record(group.id, consumers))
        assigned = tuple(target.items())
        self._host.emit(TargetAssigned, self._broker, group.id, consumers.target_epoch, assignor, assigned)

    def _reconcile(
        self,
        group: Group,
        consumers: ConsumerGroup,
        member: ConsumerGroupMember,
        owned: tuple[str, ...] | None,
        target: tuple[str, ...],
        records: list[CoordinatorRecord],
        *,
        has_new_subscription: bool,
    ) -> None:
        current = next_assignment(
            consumers,
            member,
            owned,
            target,
            waits_for_owners=self._switches.partitions_revoked_before_reassignment,
            has_new_subscription=has_new_subscription,
            follows_subscription=self._switches.assignment_follows_subscription,
        )
        if current == member.current:
            return
        self._set_current(group, consumers, member, current, records)
        self._watch_revocation(group, member)

    def _set_current(
        self,
        group: Group,
        consumers: ConsumerGroup,
        member: ConsumerGroupMember,
        current: CurrentAssignment,
        records: list[CoordinatorRecord],
    ) -> None:
        former = member.current
        consumers.set_current(member, current)
        records.append(current_record(group.id, member))
        if current != former._replace(previous_epoch=current.previous_epoch):
            self._report_member(group, member)

    def _watch_revocation(self, group: Group, member: ConsumerGroupMember) -> None:
        """Give a member that must revoke partitions a deadline: its rebalance timeout.

        See ``scheduleConsumerGroupRebalanceTimeout``.
        """
        member.reconciliations += 1
        if member.current.state == UNREVOKED_PARTITIONS:
            task = group, member, member.reconciliations
            self._host.set_timer(member.subscriber.rebalance_timeout_us, self._expire_revocation, task)

    def _expire_revocation(self, task: tuple[Group, ConsumerGroupMember, int]) -> None:
        group, member, reconciliation = task
        consumers = group.consumers
        if (
            consumers is not None
            and self._is_member(group, consumers, member)
            and member.reconciliations == reconciliation
        ):
            reason = f"{member.subscriber.client} has not revoked its partitions in time"
            self._fence(group, consumers, member, reason)

    # Sessions

    def _restart_session(self, group: Group, member: ConsumerGroupMember) -> None:
        """Restart the session of a member."""
        member.deadline_us = self._host.clock.now_us + self._config.consumer_group_session_timeout_us
        self._watch_session(group, member)

    def _watch_session(self, group: Group, member: ConsumerGroupMember) -> None:
        if not member.is_watched:
            member.is_watched = True
            wait_us = member.deadline_us - self._host.clock.now_us
            self._host.set_timer(wait_us, self._check_session, (group, member))

    def _check_session(self, task: tuple[Group, ConsumerGroupMember]) -> None:
        group, member = task
        member.is_watched = False
        consumers = group.consumers
        if consumers is None or not self._is_member(group, consumers, member):
            return
        if self._host.clock.now_us < member.deadline_us:
            self._watch_session(group, member)
        else:
            reason = f"the session of {member.subscriber.client} has expired"
            self._host.publish(MemberExpired, self._broker, group.id, member.id)
            self._fence(group, consumers, member, reason)

    def _is_member(self, group: Group, consumers: ConsumerGroup, member: ConsumerGroupMember) -> bool:
        return self._still_coordinates(group) and consumers.members.get(member.id) is member

    def on_load(self, group: Group, consumers: ConsumerGroup, reason: str) -> None:
        """Start the sessions of a group loaded from the log (``GroupMetadataManager.onLoaded``)."""
        group.state = consumers.state
        for member in consumers.members.values():
            self._report_member(group, member)
            self._restart_session(group, member)
            self._watch_revocation(group, member)
        self._report(group, consumers, ("", 0, ()), reason)

    def on_unload(self, group: Group, consumers: ConsumerGroup, reason: str) -> None:
        """Report a group as dead here, because this broker no longer has its current members."""
        self._host.emit(GroupStateChanged, self._broker, group.id, DEAD, consumers.epoch, (), reason)

    # Records and events

    def _store(
        self,
        group: Group,
        consumers: ConsumerGroup,
        records: list[CoordinatorRecord],
        response: ConsumerGroupHeartbeatResponse,
        answer: Answer,
    ) -> None:
        """Write the records of changes, and answer once they and all earlier ones are committed.

        The group in memory already has the changes. If the records do not reach the log, the group
        is reloaded, which also undoes changes that were made after these (``CoordinatorRuntime``,
        ``revertLastWrittenOffset``).
        """
        if not records:
            self._when_stored(group, lambda error: answer(_or_error(response, _error_of_append(error))))
            return

        def on_stored(error: str) -> None:
            answer(_or_error(response, _error_of_append(error)))
            if error in _NOT_APPENDED and self._still_coordinates(group) and group.consumers is consumers:
                self._reload(group)

        self._append(group, records, on_stored)

    @staticmethod
    def _summary(consumers: ConsumerGroup) -> tuple[str, int, tuple[str, ...]]:
        return consumers.state, consumers.epoch, tuple(consumers.members)

    def _report(
        self,
        group: Group,
        consumers: ConsumerGroup,
        before: tuple[str, int, tuple[str, ...]],
        reason: str,
    ) -> None:
        """Emit an event if the group's state, epoch or members differ from *before*."""
        summary = self._summary(consumers)
        if summary != before:
            group.state, epoch, members = summary
            self._host.emit(GroupStateChanged, self._broker, group.id, group.state, epoch, members, reason)

    def _report_removed(self, group: Group, member: ConsumerGroupMember) -> None:
        self._host.emit(MemberReconciled, self._broker, group.id, member.id, LEAVE_EPOCH, "", (), ())

    def _report_member(self, group: Group, member: ConsumerGroupMember) -> None:
        current = member.current
        self._host.emit(
            MemberReconciled,
            self._broker,
            group.id,
            member.id,
            current.epoch,
            current.state,
            tuple(current.assigned),
            tuple(current.revoking),
        )


def _or_error(response: ConsumerGroupHeartbeatResponse, error: str) -> ConsumerGroupHeartbeatResponse:
    return response if error == errors.NONE else ConsumerGroupHeartbeatResponse(error)


def _by_number(partition: str) -> tuple[str, int]:
    topic, _, number = partition.rpartition("-")
    return topic, int(number)
