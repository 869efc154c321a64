"""Encodes a consumer group's state as records (KIP-848, ``GroupCoordinatorRecordHelpers.java``).

One record has the group's epoch, another the epoch of its target assignment. Each member has a
record for its subscription, one for its part of the target and one for its current assignment. A
heartbeat therefore writes only what it has changed. The first word of a record's key is the kind of
the record; *rest* is the rest of the key: the group, or the member and the group.
"""

from collections.abc import Callable
from typing import Any, Final

from harrow.cluster_model.coordinators.coordinator_log import CoordinatorRecord
from harrow.cluster_model.coordinators.groups.consumer_group import (
    ConsumerGroup,
    ConsumerGroupMember,
    CurrentAssignment,
    Subscriber,
)

_GROUP: Final = "consumer-group"
_TARGET: Final = "consumer-target"
_MEMBER: Final = "consumer-member"
_MEMBER_TARGET: Final = "consumer-member-target"
_CURRENT: Final = "consumer-current"


def epoch_record(group: str, consumers: ConsumerGroup) -> CoordinatorRecord:
    """Return the record of a group's epoch and topics, with the topics' numbers of partitions.

    Kafka has two records for these: ``ConsumerGroupMetadata`` and
    ``ConsumerGroupPartitionMetadata``.
    """
    return CoordinatorRecord(f"{_GROUP} {group}", {"epoch": consumers.epoch, "topics": consumers.topics})


def target_record(group: str, consumers: ConsumerGroup) -> CoordinatorRecord:
    """Return the record of the target epoch (``ConsumerGroupTargetAssignmentMetadata``)."""
    value = {"epoch": consumers.target_epoch, "at": consumers.target_computed_us}
    return CoordinatorRecord(f"{_TARGET} {group}", value)


def member_record(group: str, member: ConsumerGroupMember) -> CoordinatorRecord:
    """Return the record of a member's subscription (``ConsumerGroupMemberMetadata``)."""
    return CoordinatorRecord(f"{_MEMBER} {member.id} {group}", member.subscriber._asdict())


def member_target_record(group: str, member: str, partitions: tuple[str, ...]) -> CoordinatorRecord:
    """Return the record of a member's part of the target assignment.

    Modelled on ``ConsumerGroupTargetAssignmentMember``.
    """
    return CoordinatorRecord(f"{_MEMBER_TARGET} {member} {group}", {"partitions": list(partitions)})


def current_record(group: str, member: ConsumerGroupMember) -> CoordinatorRecord:
    """Return the record of a member's current assignment.

    Modelled on ``ConsumerGroupCurrentMemberAssignment``.
    """
    current = member.current
    value = {**current._asdict(), "assigned": dict(current.assigned), "revoking": dict(current.revoking)}
    return CoordinatorRecord(f"{_CURRENT} {member.id} {group}", value)


def member_tombstones(group: str, member: str) -> tuple[CoordinatorRecord, ...]:
    """Return tombstones for all records of a member."""
    return tuple(
        CoordinatorRecord(f"{kind} {member} {group}", None) for kind in (_CURRENT, _MEMBER_TARGET, _MEMBER)
    )


def consumer_group_tombstones(group: str) -> tuple[CoordinatorRecord, ...]:
    """Return tombstones for the state of a group without members. Its offsets stay."""
    return CoordinatorRecord(f"{_TARGET} {group}", None), CoordinatorRecord(f"{_GROUP} {group}", None)


def is_of_consumer_group(kind: str) -> bool:
    """Return whether this kind of record is part of the state of a KIP-848 group."""
    return kind in _REPLAYS


def group_of(kind: str, rest: str) -> str:
    """Return the group from the key of a record."""
    return rest if kind in (_GROUP, _TARGET) else rest.partition(" ")[2]


def replay(consumers: ConsumerGroup, kind: str, rest: str, value: Any) -> None:
    """Apply a record to the state of a group."""
    _REPLAYS[kind](consumers, rest.partition(" ")[0], value)


def _member(consumers: ConsumerGroup, member_id: str) -> ConsumerGroupMember:
    """Return a member, which is added if it is missing.

    After compaction, the record of its assignment may come before the record of its subscription.
    """
    if member_id not in consumers.members:
        consumers.put(ConsumerGroupMember(member_id, Subscriber()))
    return consumers.members[member_id]


def _replay_group(consumers: ConsumerGroup, _: str, value: Any) -> None:
    if value is None:
        consumers.epoch, consumers.topics = 0, {}
    else:
        consumers.epoch, consumers.topics = value["epoch"], dict(value["topics"])


def _replay_target(consumers: ConsumerGroup, _: str, value: Any) -> None:
    if value is None:
        consumers.target_epoch, consumers.target_computed_us = 0, None
    else:
        consumers.target_epoch, consumers.target_computed_us = value["epoch"], value["at"]


def _replay_member(consumers: ConsumerGroup, member_id: str, value: Any) -> None:
    if value is None:
        consumers.remove(member_id)
        return
    member = _member(consumers, member_id)
    member.subscriber = Subscriber(**{**value, "topics": tuple(value["topics"])})
    consumers.put(member)


def _replay_member_target(consumers: ConsumerGroup, member_id: str, value: Any) -> None:
    if value is None:
        consumers.target.pop(member_id, None)
    else:
        consumers.target[member_id] = tuple(value["partitions"])


def _replay_current(consumers: ConsumerGroup, member_id: str, value: Any) -> None:
    if value is not None:
        consumers.set_current(_member(consumers, member_id), CurrentAssignment(**value))
    elif member_id in consumers.members:
        consumers.set_current(consumers.members[member_id], CurrentAssignment())


_REPLAYS: Final[dict[str, Callable[[ConsumerGroup, str, Any], None]]] = {
    _GROUP: _replay_group,
    _TARGET: _replay_target,
    _MEMBER: _replay_member,
    _MEMBER_TARGET: _replay_member_target,
    _CURRENT: _replay_current,
}
