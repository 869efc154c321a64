"""The next step of a member towards what it is to own (``CurrentAssignmentBuilder.java``).

A member gives up first and gets later. While it has something to give up it stays in its epoch, and says with a heartbeat that it owns
that no more; then it is in the target's epoch and owns what of that is free. What others have still to give up it gets with a later
heartbeat of its own.
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
    subscribes_anew: bool = False,
    follows_subscription: bool = False,
) -> CurrentAssignment:
    """Return what a member owns after a heartbeat, which has said that it owns *owned*, None where it has not said.

    *target* is what it is to own by the group's target assignment.
    *waits_for_owners* is whether a partition is given out only when no member owns it. Off is a mutant. Where an assignment
    *follows_subscription* a member has nothing of a topic that it does not subscribe to, though the target assignment says so still.
    """
    current = member.current
    is_enforced = follows_subscription and subscribes_anew
    is_waiting = current.state == UNREVOKED_PARTITIONS and _still_owns(owned, current.revoking)
    if is_waiting or member.is_reconciled_to(group.target_epoch):
        return _subscribed_part(member, owned) if is_enforced else current
    if follows_subscription:
        target = tuple(name for name in target if _is_subscribed(member, name))
    kept = {name: epoch for name, epoch in current.assigned.items() if name in target}
    revoking = {name: epoch for name, epoch in current.assigned.items() if name not in target}
    if revoking and _still_owns(owned, revoking):
        return current.in_epoch(current.epoch)._replace(
            state=UNREVOKED_PARTITIONS, assigned=kept, revoking=revoking
        )
    added = [
        name
        for name in target
        if name not in kept and not (waits_for_owners and group.is_owned_by_other(name, member))
    ]
    is_complete = len(kept) + len(added) == len(target)
    return current.in_epoch(group.target_epoch)._replace(
        state=MEMBER_STABLE if is_complete else UNRELEASED_PARTITIONS,
        assigned={**kept, **dict.fromkeys(added, group.target_epoch)},
        revoking={},
    )


def _subscribed_part(member: ConsumerGroupMember, owned: Collection[str] | None) -> CurrentAssignment:
    """Return what a member has that is to stay as it is, without what it does not subscribe to any more (``updateCurrentAssignment``)."""
    current = member.current
    kept = {name: epoch for name, epoch in current.assigned.items() if _is_subscribed(member, name)}
    if len(kept) == len(current.assigned):
        return current
    dropped = {name: epoch for name, epoch in current.assigned.items() if name not in kept}
    revoking = {**current.revoking, **dropped}
    shrunk = current.in_epoch(current.epoch)._replace(assigned=kept)
    if not _still_owns(owned, revoking):
        return shrunk
    return shrunk._replace(state=UNREVOKED_PARTITIONS, revoking=revoking)


def _is_subscribed(member: ConsumerGroupMember, partition: str) -> bool:
    return partition.rpartition("-")[0] in member.subscriber.topics


def _still_owns(owned: Collection[str] | None, revoking: Collection[str]) -> bool:
    """Return whether a member owns what it is to give up, as far as it has said."""
    return owned is None or any(name in revoking for name in owned)
