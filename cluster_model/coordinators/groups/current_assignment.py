"""Moves a member towards its target assignment, step by step (``CurrentAssignmentBuilder.java``).

A member revokes partitions first and gets new ones later. While it has partitions to revoke, it
stays in its epoch, until one of its heartbeats confirms that it no longer owns them. Then it enters
the epoch of the target assignment, and gets its target partitions that no other member owns. With
later heartbeats it gets the others, once their owners have revoked them.
"""

from collections.abc import Collection

from harrow.cluster_model.coordinators.groups.consumer_group import (
    MEMBER_STABLE,
    UNRELEASED_PARTITIONS,
    UNREVOKED_PARTITIONS,
    ConsumerGroup,
    ConsumerGroupMember,
    CurrentAssignment,
)


def next_assignment(
    group: ConsumerGroup,
    member: ConsumerGroupMember,
    owned: Collection[str] | None,
    target: tuple[str, ...],
    *,
    waits_for_owners: bool,
    has_new_subscription: bool = False,
    follows_subscription: bool = False,
) -> CurrentAssignment:
    """Return a member's current assignment after its heartbeat.

    *owned* are the partitions that the member owns according to the heartbeat, or None if the
    heartbeat does not say. *target* is the member's part of the target assignment. With
    *waits_for_owners*, as in every release, the member gets a partition only when no other member
    owns it. *has_new_subscription* says whether the heartbeat has changed the
    member's topics. With *follows_subscription* the member has no partition of a topic to which it
    does not subscribe, even if the target still includes one.
    """
    current = member.current
    applies_subscription = follows_subscription and has_new_subscription
    is_waiting = current.state == UNREVOKED_PARTITIONS and _still_owns(owned, current.revoking)
    if is_waiting or member.is_reconciled_to(group.target_epoch):
        return _subscribed_part(member, owned) if applies_subscription else current
    if follows_subscription:
        target = tuple(name for name in target if _is_subscribed(member, name))
    retained = {name: epoch for name, epoch in current.assigned.items() if name in target}
    revoking = {name: epoch for name, epoch in current.assigned.items() if name not in target}
    if revoking and _still_owns(owned, revoking):
        return current.in_epoch(current.epoch)._replace(
            state=UNREVOKED_PARTITIONS, assigned=retained, revoking=revoking
        )
    added = [
        name
        for name in target
        if name not in retained and not (waits_for_owners and group.is_owned_by_other(name, member))
    ]
    is_complete = len(retained) + len(added) == len(target)
    return current.in_epoch(group.target_epoch)._replace(
        state=MEMBER_STABLE if is_complete else UNRELEASED_PARTITIONS,
        assigned={**retained, **dict.fromkeys(added, group.target_epoch)},
        revoking={},
    )


def _subscribed_part(member: ConsumerGroupMember, owned: Collection[str] | None) -> CurrentAssignment:
    """Return a member's unchanged assignment without topics that it has unsubscribed from.

    See ``updateCurrentAssignment``.
    """
    current = member.current
    retained = {name: epoch for name, epoch in current.assigned.items() if _is_subscribed(member, name)}
    if len(retained) == len(current.assigned):
        return current
    dropped = {name: epoch for name, epoch in current.assigned.items() if name not in retained}
    revoking = {**current.revoking, **dropped}
    shrunk = current.in_epoch(current.epoch)._replace(assigned=retained)
    if not _still_owns(owned, revoking):
        return shrunk
    return shrunk._replace(state=UNREVOKED_PARTITIONS, revoking=revoking)


def _is_subscribed(member: ConsumerGroupMember, partition: str) -> bool:
    return partition.rpartition("-")[0] in member.subscriber.topics


def _still_owns(owned: Collection[str] | None, revoking: Collection[str]) -> bool:
    """Return whether a member may still own partitions that it must revoke.

    A heartbeat that does not say what the member owns does not confirm a revocation.
    """
    return owned is None or any(name in revoking for name in owned)
