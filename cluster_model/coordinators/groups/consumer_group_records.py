"""What the coordinator of a consumer group (KIP-848) writes, and what an elected one makes of it (``GroupCoordinatorRecordHelpers.java``).

There is a record for the group's epoch, one for the epoch of its target assignment, and for each member one with what it says of
itself, one with its part of the target, and one with what it owns. So a heartbeat writes what it has changed.
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
    """Return the group's epoch, with the topics whose partitions it has last seen (``ConsumerGroupMetadata``, ``…PartitionMetadata``)."""
    return CoordinatorRecord(f"{_GROUP} {group}", {"epoch": consumers.epoch, "topics": consumers.topics})


def target_record(group: str, consumers: ConsumerGroup) -> CoordinatorRecord:
    """Return the epoch of the target assignment (``ConsumerGroupTargetAssignmentMetadata``)."""
    value = {"epoch": consumers.target_epoch, "at": consumers.target_made_us}
    return CoordinatorRecord(f"{_TARGET} {group}", value)


def member_record(group: str, member: ConsumerGroupMember) -> CoordinatorRecord:
    """Return what a member says of itself (``ConsumerGroupMemberMetadata``)."""
    return CoordinatorRecord(f"{_MEMBER} {member.id} {group}", member.subscriber._asdict())


def member_target_record(group: str, member: str, partitions: tuple[str, ...]) -> CoordinatorRecord:
    """Return what a member is to own (``ConsumerGroupTargetAssignmentMember``)."""
    return CoordinatorRecord(f"{_MEMBER_TARGET} {member} {group}", {"partitions": list(partitions)})


def current_record(group: str, member: ConsumerGroupMember) -> CoordinatorRecord:
    """Return what a member owns (``ConsumerGroupCurrentMemberAssignment``)."""
    current = member.current
    value = {**current._asdict(), "assigned": dict(current.assigned), "revoking": dict(current.revoking)}
    return CoordinatorRecord(f"{_CURRENT} {member.id} {group}", value)


def member_tombstones(group: str, member: str) -> tuple[CoordinatorRecord, ...]:
    """Return what says that a member is gone."""
    return tuple(
        CoordinatorRecord(f"{kind} {member} {group}", None) for kind in (_CURRENT, _MEMBER_TARGET, _MEMBER)
    )


def consumer_group_tombstones(group: str) -> tuple[CoordinatorRecord, ...]:
    """Return what says that a group without members is gone, its offsets apart."""
    return CoordinatorRecord(f"{_TARGET} {group}", None), CoordinatorRecord(f"{_GROUP} {group}", None)


def is_of_consumer_group(kind: str) -> bool:
    """Return whether the first word of a key is one of these."""
    return kind in _REPLAYS


def group_of(kind: str, rest: str) -> str:
    """Return the group that a record is about."""
    return rest if kind in (_GROUP, _TARGET) else rest.partition(" ")[2]


def replay(consumers: ConsumerGroup, kind: str, rest: str, value: Any) -> None:
    """Have a group be what a record says."""
    _REPLAYS[kind](consumers, rest.partition(" ")[0], value)


def _known(consumers: ConsumerGroup, member_id: str) -> ConsumerGroupMember:
    """Return a member; compaction may have left what it owns before what it says of itself."""
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
        consumers.target_epoch, consumers.target_made_us = 0, None
    else:
        consumers.target_epoch, consumers.target_made_us = value["epoch"], value["at"]


def _replay_member(consumers: ConsumerGroup, member_id: str, value: Any) -> None:
    if value is None:
        consumers.remove(member_id)
        return
    member = _known(consumers, member_id)
    member.subscriber = Subscriber(**{**value, "topics": tuple(value["topics"])})
    consumers.put(member)


def _replay_member_target(consumers: ConsumerGroup, member_id: str, value: Any) -> None:
    if value is None:
        consumers.target.pop(member_id, None)
    else:
        consumers.target[member_id] = tuple(value["partitions"])


def _replay_current(consumers: ConsumerGroup, member_id: str, value: Any) -> None:
    if value is not None:
        consumers.move(_known(consumers, member_id), CurrentAssignment(**value))
    elif member_id in consumers.members:
        consumers.move(consumers.members[member_id], CurrentAssignment())


_REPLAYS: Final[dict[str, Callable[[ConsumerGroup, str, Any], None]]] = {
    _GROUP: _replay_group,
    _TARGET: _replay_target,
    _MEMBER: _replay_member,
    _MEMBER_TARGET: _replay_member_target,
    _CURRENT: _replay_current,
}
