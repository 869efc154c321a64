"""Declares the switches of consumer groups: members, generations, committed offsets."""

from functools import partial
from typing import Final

from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.release import guards
from harrow.cluster_model.release.subjects import GROUPS, STATIC_MEMBERS, TRANSACTIONS
from harrow.cluster_model.release.switch import NEVER, Mutant, Repair, switch

WHILE_COMPLETING: Final = "while_completing"
WITH_OTHER_PROTOCOL: Final = "with_other_protocol"
"""Values of `static_rejoin_rebalances`, which explains them. `NEVER` is another one."""

_switch: Final = partial(switch, subject=GROUPS)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSwitches:
    """Each field is a switch. Its default is the value that the default release has."""

    member_id_required: bool = _switch(
        "A consumer without a member id is given one first, and becomes a member when it joins with it. "
        "Before, each attempt added another member, and if the answer was lost, that member was never used.",
        "KIP-394, GroupCoordinator.doNewMemberJoinGroup",
        meaning="a consumer gets a member id before it joins a group (KIP-394)",
        since="2.2",
        is_repair=False,
    )
    static_membership: bool = _switch(
        "A member with a group.instance.id keeps its partitions while it restarts, until its session "
        "expires. If two members have the same id, the older one is fenced.",
        "KIP-345, GroupCoordinator.updateStaticMemberAndRebalance",
        subject=STATIC_MEMBERS,
        meaning="static members (KIP-345)",
        since="2.3",
        is_repair=False,
    )
    static_rejoin_rebalances: str = _switch(
        "When a static member that comes back makes its group rebalance: never, even if the leader then "
        "assigns partitions to its old member id and none to it; while the leader assigns; or then, and "
        "also if the group would choose another assignor.",
        "KAFKA-9801, KAFKA-10284, GroupCoordinator.updateStaticMemberAndRebalance",
        subject=STATIC_MEMBERS,
        meaning="a static member that comes back during a rebalance joins again (KAFKA-9801)",
        latest=WITH_OTHER_PROTOCOL,
        choices=(NEVER, WHILE_COMPLETING, WITH_OTHER_PROTOCOL),
        former_values=(("2.5", NEVER), ("2.6.1", WHILE_COMPLETING)),
        is_repair=False,
        guards=("unconsumed",),
    )
    coordinator_exception_answered: bool = _switch(
        "A request that makes a group coordinator fail is answered with UNKNOWN_SERVER_ERROR. One such "
        "request is a join of a member that has been given its id and sends a group.instance.id with it. "
        "Before, it got no answer; neither did the leader of a group to which a static member came back "
        "without its assignor.",
        "GroupCoordinator.doJoinGroup, MemberMetadata.metadata, JoinGroupRequest.getErrorResponse, "
        "SyncGroupRequest.getErrorResponse",
        meaning="a request that makes a coordinator fail is answered",
        since="2.5",
        is_repair=False,
    )
    unknown_instance_ids_refused: bool = _switch(
        "Every request with an unknown group.instance.id is refused with UNKNOWN_MEMBER_ID. Before, only a "
        "join was.",
        "GroupCoordinator.validateCurrentMember (5dae3648abd)",
        subject=STATIC_MEMBERS,
        meaning="an unknown group.instance.id is refused",
        since="3.0",
        is_repair=False,
        is_read_in_campaign=False,
    )
    heartbeats_accepted_while_syncing: bool = _switch(
        "A member that waits for its partitions may send heartbeats. Before, they were answered with "
        "REBALANCE_IN_PROGRESS.",
        "KAFKA-10134, GroupCoordinator.handleHeartbeat (CompletingRebalance)",
        meaning="heartbeats count while a group's leader assigns",
        since="2.6.1",
        is_repair=False,
        is_read_in_campaign=False,
    )
    static_leader_skips_assignment: bool = _switch(
        "A static leader that comes back is told that it leads and that nothing needs to be assigned. "
        "Before, it was told that its old member id led, so no member of the group looked for new "
        "partitions.",
        "KIP-814, KAFKA-13435, JoinGroupResponse.SkipAssignment",
        subject=STATIC_MEMBERS,
        meaning=(
            "a static leader that comes back still leads its group, and looks for new partitions (KIP-814)"
        ),
        since="3.2",
        guards=("unconsumed",),
        repair=Repair(
            "KIP-814",
            "a static leader that comes back still leads its group, and looks for new partitions "
            "(KAFKA-13435)",
        ),
    )
    pending_syncs_expire: bool = _switch(
        "A member that has joined but does not sync is removed after the rebalance timeout. Before, the "
        "others waited as long as it sent heartbeats.",
        "KAFKA-12890, GroupCoordinator.onExpirePendingSync",
        meaning="a member that does not sync is removed (KAFKA-12890)",
        since="2.8",
        is_repair=False,
        guards=("unconsumed",),
    )
    generations_fence_commits: bool = _switch(
        "A group coordinator refuses commits of non-members and of other generations.",
        "GroupCoordinator.validateOffsetCommit",
        meaning="a group accepts commits only from members of its current generation",
        guards=(*guards.GROUPS, *guards.COMMITS, "commits-of-present-generation"),
        mutant=Mutant(
            "old-generation-commit-accepted",
            "A group coordinator accepts commits of former members. A consumer that was declared dead sets "
            "the group back, or forward past records that its successor has not processed.",
            noticed_by=("commits-of-present-generation", "offset-regression"),
        ),
    )
    consumer_group_protocol: bool = _switch(
        "Brokers coordinate groups with group.protocol=consumer, where they assign the partitions, as with "
        "group.version=1. Before, that was off by default.",
        "KIP-848, GroupVersion, ConsumerGroupHeartbeat",
        meaning="the coordinator assigns partitions to groups (KIP-848)",
        since="4.0",
        is_repair=False,
    )
    group_epoch_starts_at_one: bool = _switch(
        "With KIP-848 a new group and its empty assignment have epoch 1, and the first member gets epoch 2. "
        "Before, both began at 0, and the first member got epoch 1.",
        "KAFKA-20268, ModernGroup",
        meaning="the first member of a group has epoch 2 (KAFKA-20268)",
        since="4.3",
        is_repair=False,
    )
    assignment_follows_subscription: bool = _switch(
        "With KIP-848 a member gives up partitions of a topic with the heartbeat that unsubscribes from it. "
        "Before, with the next target assignment.",
        "KAFKA-19431, CurrentAssignmentBuilder.updateCurrentAssignment",
        meaning="a member's assignment follows its subscription at once (KAFKA-19431)",
        since="4.2",
        is_repair=False,
    )
    assignor_ties_broken_by_java_hash: bool = _switch(
        "If two assignors get the same number of votes in a group, the one that comes first in a Java hash "
        "table wins: range before roundrobin. Before, in a Scala hash table: roundrobin before range.",
        "GroupMetadata.selectProtocol, ClassicGroup.selectProtocol",
        meaning="a tie between assignors goes to range, not to roundrobin",
        since="4.0",
        is_repair=False,
    )
    partitions_revoked_before_reassignment: bool = _switch(
        "With KIP-848 a member gets a partition only after its former owner has confirmed its revocation, "
        "or has left.",
        "KIP-848, CurrentAssignmentBuilder.computeNextAssignment (currentPartitionEpoch)",
        meaning="a partition is revoked before another member gets it (KIP-848)",
        guards=("one-owner-per-partition",),
        mutant=Mutant(
            "partition-given-before-revoked",
            "With group.protocol=consumer a member gets a partition that another member has not given up "
            "yet, so both read it and overwrite each other's commits.",
            source="KIP-848, CurrentAssignmentBuilder.computeNextAssignment",
            noticed_by=("one-owner-per-partition",),
            kafka="4.3",
        ),
    )
    member_epochs_fence_commits: bool = _switch(
        "With KIP-848 a group coordinator refuses commits of non-members and those with a stale member "
        "epoch.",
        "KIP-848, ConsumerGroup.validateOffsetCommit",
        meaning="a commit with a stale member epoch is refused (KIP-848)",
        guards=("offset-regression",),
        mutant=Mutant(
            "stale-epoch-commit-accepted",
            "With group.protocol=consumer a group accepts commits of former members, and of members that "
            "have since been given other partitions. A consumer that was declared dead sets the group back, "
            "or forward past records that its successor has not processed.",
            kafka="4.3",
        ),
    )
    assignment_epochs_fence_commits: bool = _switch(
        "With KIP-848 a commit with an older member epoch is accepted for partitions that the member was "
        "assigned in that epoch or before, and still owns. Before, it was refused while the answer with the "
        "new epoch was in flight.",
        "KIP-1251 (KAFKA-20066), ConsumerGroup.createAssignmentEpochValidator",
        meaning="a commit is fenced by the epoch in which its partition was assigned (KIP-1251)",
        since="4.3",
        is_repair=False,
    )
    fenced_member_rejoins_at_once: bool = _switch(
        "With KIP-848 a fenced member joins again at once, in epoch 0. Before, the coordinator still had it "
        "in another epoch, and fenced it again until its session expired.",
        "KAFKA-19233, GroupMetadataManager.throwIfConsumerGroupMemberEpochIsInvalid",
        meaning="a fenced member may join again (KAFKA-19233)",
        since="4.2",
        is_repair=False,
    )
    assignor_change_triggers_assignment: bool = _switch(
        "With KIP-848 the group epoch rises when the members' preferred assignor changes, which triggers an "
        "assignment. Before, the new assignor was used only after the next change of members or topics.",
        "KAFKA-20434, GroupMetadataManager.hasPreferredServerAssignorChanged",
        meaning="a group assigns when its members prefer another assignor (KAFKA-20434)",
        since="4.4",
        is_repair=False,
    )
    emptied_group_assigns_at_once: bool = _switch(
        "With KIP-848 the first member of a group that was empty gets its partitions at once. Before, it "
        "waited until group.consumer.assignment.interval.ms had passed since the group's last assignment.",
        "KAFKA-20442, GroupMetadataManager.consumerGroupFenceMembers",
        meaning="a group that was empty assigns at once (KAFKA-20442)",
        since="4.4",
        is_repair=False,
    )
    static_member_rejoins_full_group: bool = _switch(
        "With KIP-848 a static member that has left temporarily may come back to a group with "
        "group.consumer.max.size members, because its place still counts. Before, it was refused with "
        "GROUP_MAX_SIZE_REACHED, and its consumer failed.",
        "KAFKA-20601, GroupMetadataManager.throwIfConsumerGroupIsFull",
        meaning="a static member may come back to a full group (KAFKA-20601)",
        since="4.4",
        is_repair=False,
        is_read_in_campaign=False,
    )
    previous_instance_id_released: bool = _switch(
        "With KIP-848 a member that changes its group.instance.id gives up the old one. Before, no consumer "
        "could join with the old id: it was refused with UNRELEASED_INSTANCE_ID, and with UNKNOWN_MEMBER_ID "
        "after the member had left.",
        "ConsumerGroup.updateStaticMember",
        meaning="a member that changes its group.instance.id gives up the old one",
        since="4.4",
        is_repair=False,
    )
    group_responses_wait_for_writes: bool = _switch(
        "A group coordinator answers a heartbeat, a leave or a fetch of stable offsets only after every "
        "record that it has written to that partition, and on which the answer may depend, is committed. "
        "Before, it answered from memory, even after it had been replaced without noticing.",
        "KIP-848, CoordinatorRuntime.CoordinatorWriteEvent, GroupCoordinatorService.fetchOffsets",
        meaning="a group coordinator answers after its writes are committed (KIP-848)",
        since="4.0",
        is_repair=False,
        guards=guards.COMMITS,
    )
    group_id_not_found_error: bool = _switch(
        "A commit of a member for an unknown group is refused with GROUP_ID_NOT_FOUND, in a transaction "
        "with ILLEGAL_GENERATION. Before, the error was that of a wrong generation; in a transaction the "
        "group was created, and the error was that of a non-member.",
        "KIP-848, OffsetMetadataManager.validateOffsetCommit, validateTransactionalOffsetCommit",
        meaning="a commit for an unknown group is refused as such",
        since="4.0",
        is_repair=False,
        is_read_in_campaign=False,
    )
    specific_transactional_commit_errors: bool = _switch(
        "A transactional commit for an unknown group is refused with GROUP_ID_NOT_FOUND, and one with a "
        "stale member epoch with STALE_MEMBER_EPOCH, if the producer sends TxnOffsetCommit 6. Before, both "
        "got ILLEGAL_GENERATION. The producer aborts the transaction in each case.",
        "KIP-1319 (KAFKA-20444), OffsetMetadataManager.validateTransactionalOffsetCommit",
        subject=TRANSACTIONS,
        meaning="a transactional commit is refused with the same error as a plain one (KIP-1319)",
        since="4.4",
        is_repair=False,
    )
    offsets_kept_while_subscribed: bool = _switch(
        "Offsets expire offsets.retention.minutes after their group became empty. In a group with members, "
        "only offsets of topics that none of them reads expire, that long after their commit. Before, all "
        "offsets expired that long after their commit.",
        "KIP-211, GroupMetadata.removeExpiredOffsets",
        meaning="offsets of a group with members do not expire (KIP-211)",
        since="2.1",
        is_repair=False,
        is_read_in_campaign=False,
    )
    stable_offset_fetch: bool = _switch(
        "A consumer that fetches committed offsets waits for pending commits, including those of "
        "transactions (UNSTABLE_OFFSET_COMMIT). Before, it started from the previous commit.",
        "KIP-447, GroupMetadataManager.getOffsets (requireStable)",
        meaning="a fetch of committed offsets waits for open transactions (KIP-447)",
        since="2.5",
        is_repair=False,
        guards=guards.GROUPS,
    )
