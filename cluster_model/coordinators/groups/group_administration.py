"""Describes, lists and deletes groups for administrators (``GroupCoordinator.scala``)."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, Protocol

from harrow.cluster_model import errors
from harrow.cluster_model.broker.metadata_cache import MetadataCache
from harrow.cluster_model.coordinators.coordinator_log import CoordinatorRecord
from harrow.cluster_model.coordinators.groups.consumer_group import ConsumerGroup
from harrow.cluster_model.coordinators.groups.consumer_group_records import consumer_group_tombstones
from harrow.cluster_model.coordinators.groups.group import DEAD, EMPTY, STABLE, Group, Member
from harrow.cluster_model.coordinators.groups.group_records import group_tombstone
from harrow.cluster_model.coordinators.protocol import (
    CONSUMER_TYPE,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribedConsumer,
    DescribedConsumerGroup,
    DescribedGroup,
    DescribedMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    Subscription,
)
from harrow.cluster_model.sim.connection import Exchange, Handlers, Respond, register

_CLASSIC_GROUP, _CONSUMER_GROUP = "Classic", "Consumer"
"""The types of groups that a list names (``Group.GroupType``)."""
_NO_SUBSCRIPTION: Final = Subscription(())


class DeleteOffsets(Protocol):
    """Appends tombstones for offsets of a group, and other records, to the log of its partition."""

    def __call__(
        self,
        group: Group,
        partitions: Iterable[str],
        records: Iterable[CoordinatorRecord],
        on_complete: Callable[[str], None],
        /,
    ) -> None:
        """Delete, and call *on_complete* with the error for a client."""


class GroupAdministration:
    """The requests of administrators about the groups that a broker coordinates.

    *partition_error* returns the error if the broker does not coordinate a group, and *is_loading*
    whether it still loads groups. Members that prefer no assignor get *default_assignor*.
    """

    def __init__(
        self,
        groups: dict[str, Group],
        metadata: MetadataCache,
        partition_error: Callable[[str], str],
        is_loading: Callable[[], bool],
        delete_offsets: DeleteOffsets,
        respond: Respond,
        default_assignor: str,
    ) -> None:
        self._groups = groups
        self._metadata = metadata
        self._partition_error = partition_error
        self._is_loading = is_loading
        self._delete_offsets = delete_offsets
        self._respond = respond
        self._default_assignor = default_assignor

    def register(self, handlers: Handlers) -> None:
        register(handlers, DescribeGroupsRequest, self._handle_describe)
        register(handlers, ConsumerGroupDescribeRequest, self._handle_describe_consumers)
        register(handlers, ListGroupsRequest, self._handle_list)
        register(handlers, DeleteGroupsRequest, self._handle_delete)
        register(handlers, OffsetDeleteRequest, self._handle_offset_delete)

    # Descriptions

    def _handle_describe(self, exchange: Exchange[DescribeGroupsRequest]) -> None:
        described = tuple([self._described(name) for name in exchange.request.groups])
        self._respond(exchange, DescribeGroupsResponse(described))

    def _described(self, name: str) -> DescribedGroup:
        """Describe a group. An unknown one and one of KIP-848 are dead."""
        error = self._partition_error(name)
        group = self._groups.get(name)
        if error != errors.NONE:
            return DescribedGroup(name, error)
        if group is None or group.consumers is not None:
            return DescribedGroup(name, errors.GROUP_ID_NOT_FOUND, DEAD)
        is_stable = group.state == STABLE
        members = tuple([_described_member(group, each) for each in group.members.values()])
        kind = _protocol_type(group)
        return DescribedGroup(name, error, group.state, kind, group.protocol if is_stable else "", members)

    def _handle_describe_consumers(self, exchange: Exchange[ConsumerGroupDescribeRequest]) -> None:
        described = tuple([self._described_consumers(name) for name in exchange.request.groups])
        self._respond(exchange, ConsumerGroupDescribeResponse(described))

    def _described_consumers(self, name: str) -> DescribedConsumerGroup:
        """Describe a group with the protocol of KIP-848 (``consumerGroupDescribe``)."""
        error = self._partition_error(name)
        group = self._groups.get(name)
        consumers = None if group is None else group.consumers
        if error == errors.NONE and consumers is None:
            error = errors.GROUP_ID_NOT_FOUND
        if error != errors.NONE or consumers is None:
            return DescribedConsumerGroup(name, error)
        members = tuple([_described_consumer(consumers, each) for each in consumers.members])
        assignor = consumers.preferred_assignor() or self._default_assignor
        return DescribedConsumerGroup(
            *(name, error, consumers.state, consumers.epoch, consumers.target_epoch, assignor, members)
        )

    def _handle_list(self, exchange: Exchange[ListGroupsRequest]) -> None:
        """List the groups in some states and of some types (KIP-518, KIP-848)."""
        request = exchange.request
        states, types = _lower(request.states), _lower(request.types)
        listed = [_listed(group) for group in self._groups.values() if group.state != DEAD]
        groups = tuple(
            [
                each
                for each in listed
                if (not states or each.state.lower() in states) and (not types or each.type.lower() in types)
            ]
        )
        error = errors.COORDINATOR_LOAD_IN_PROGRESS if self._is_loading() else errors.NONE
        self._respond(exchange, ListGroupsResponse(error, groups))

    # Deletion

    def _handle_delete(self, exchange: Exchange[DeleteGroupsRequest]) -> None:
        """Delete groups without members (KIP-229), and answer when their tombstones are stored."""
        outcome: dict[str, str] = {}
        names = dict.fromkeys(exchange.request.groups)

        def on_deleted(name: str, error: str) -> None:
            outcome[name] = error
            if len(outcome) == len(names):
                self._respond(exchange, DeleteGroupsResponse({each: outcome[each] for each in names}))

        for name in names:
            self._delete(name, on_deleted)
        if not names:
            self._respond(exchange, DeleteGroupsResponse({}))

    def _delete(self, name: str, on_deleted: Callable[[str, str], None]) -> None:
        error = self._partition_error(name)
        group = self._groups.get(name)
        if error == errors.NONE and group is None:
            error = errors.GROUP_ID_NOT_FOUND
        elif error == errors.NONE and group is not None and not _is_empty(group):
            error = errors.NON_EMPTY_GROUP
        if error != errors.NONE or group is None:
            on_deleted(name, error)
            return
        state = group.state
        del self._groups[name]
        group.state = DEAD
        records = [group_tombstone(group)]
        if group.consumers is not None:
            records += consumer_group_tombstones(name)

        def on_stored(stored: str) -> None:
            if stored != errors.NONE and self._partition_error(name) == errors.NONE:
                self._restore(group, state)
            on_deleted(name, stored)

        self._delete_offsets(group, tuple(group.offsets), records, on_stored)

    def _restore(self, group: Group, state: str) -> None:
        """Restore a group whose tombstones could not be stored.

        If a member has joined in between, the new group gets the offsets.
        """
        group.state = state
        restored = self._groups.setdefault(group.id, group)
        for partition, offset in group.offsets.items():
            restored.offsets.setdefault(partition, offset)

    def _handle_offset_delete(self, exchange: Exchange[OffsetDeleteRequest]) -> None:
        """Delete the offsets of partitions to whose topics no member subscribes (KIP-496)."""
        request = exchange.request
        error = self._partition_error(request.group)
        group = self._groups.get(request.group)
        if error == errors.NONE and group is None:
            error = errors.GROUP_ID_NOT_FOUND
        if error != errors.NONE or group is None:
            self._respond(exchange, OffsetDeleteResponse(error, {}))
            return
        outcome = {name: self._offset_error(group, name) for name in request.partitions}
        deleted = [name for name in outcome if outcome[name] == errors.NONE and name in group.offsets]

        def on_stored(stored: str) -> None:
            if stored == errors.NONE:
                self._respond(exchange, OffsetDeleteResponse(errors.NONE, outcome))
            else:
                self._respond(exchange, OffsetDeleteResponse(stored, {}))

        if deleted:
            self._delete_offsets(group, deleted, (), on_stored)
        else:
            on_stored(errors.NONE)

    def _offset_error(self, group: Group, partition: str) -> str:
        if self._metadata.leader_and_epoch(partition) is None:
            return errors.UNKNOWN_TOPIC_OR_PARTITION
        topics = group.subscribed_topics() if group.consumers is None else group.consumers.subscribed_topics()
        is_subscribed = partition.rpartition("-")[0] in topics
        return errors.GROUP_SUBSCRIBED_TO_TOPIC if is_subscribed else errors.NONE


def _is_empty(group: Group) -> bool:
    if group.consumers is not None:
        return not group.consumers.members
    return group.state == EMPTY and not (group.members or group.pending_members)


def _protocol_type(group: Group) -> str:
    """Return the protocol type. A group that never had members has none."""
    return group.protocol_type if group.generation or group.members else ""


def _listed(group: Group) -> ListedGroup:
    if group.consumers is not None:
        return ListedGroup(group.id, CONSUMER_TYPE, group.consumers.state, _CONSUMER_GROUP)
    return ListedGroup(group.id, _protocol_type(group), group.state, _CLASSIC_GROUP)


def _described_member(group: Group, member: Member) -> DescribedMember:
    """Describe a member. Only a stable group has subscriptions and assignments."""
    if group.state != STABLE:
        return DescribedMember(member.id, member.instance, member.client, _NO_SUBSCRIPTION, ())
    subscription = member.subscription(group.protocol)
    return DescribedMember(member.id, member.instance, member.client, subscription, member.partitions)


def _described_consumer(consumers: ConsumerGroup, name: str) -> DescribedConsumer:
    member = consumers.members[name]
    subscriber, current = member.subscriber, member.current
    return DescribedConsumer(
        *(name, subscriber.instance, current.epoch, subscriber.client, subscriber.topics),
        *(tuple(current.assigned), consumers.target.get(name, ())),
    )


def _lower(words: Iterable[str]) -> Mapping[str, None]:
    return {word.lower(): None for word in words}
