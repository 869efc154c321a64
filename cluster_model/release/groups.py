"""Consumer groups: members, generations, committed offsets."""

from dataclasses import dataclass
from functools import partial
from typing import Final

from harrow.cluster_model.release import guards
from harrow.cluster_model.release.subjects import GROUPS, STATIC_MEMBERS, TRANSACTIONS
from harrow.cluster_model.release.switch import NEVER, Mutant, Repair, switch

WHILE_COMPLETING: Final = "while_completing"
WITH_OTHER_PROTOCOL: Final = "with_other_protocol"

_switch: Final = partial(switch, of=GROUPS)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSwitches:
    """The switches; their defaults are what the default release does."""

    member_id_required: bool = _switch(
        "A consumer that joins a group without a member id is given one first, and is a member when it joins with it. Before, each "
        "attempt made another member, which was never heard of again if its answer was lost.",
        "KIP-394, GroupCoordinator.doNewMemberJoinGroup",
        meaning="a consumer gets a member id before it joins a group (KIP-394)",
        before=(("2.2", False),),
        is_repair=False,
    )
    static_members_fenced: bool = _switch(
        "A member with a group.instance.id keeps its partitions while it restarts, for as long as its session lasts; of two with "
        "the same id the former is fenced.",
        "KIP-345, GroupCoordinator.updateStaticMemberAndRebalance",
        of=STATIC_MEMBERS,
        meaning="static members (KIP-345)",
        before=(("2.3", False),),
        is_repair=False,
    )
    static_rejoin_rebalances: str = _switch(
        "When a static member that comes back makes its group rebalance: never, also where the leader assigns to its former life and so "
        "nothing to it; while the leader assigns; then, and where the group would choose another assignor.",
        "KAFKA-9801, KAFKA-10284, GroupCoordinator.updateStaticMemberAndRebalance",
        of=STATIC_MEMBERS,
        choices=(NEVER, WHILE_COMPLETING, WITH_OTHER_PROTOCOL),
        meaning="a static member that comes back while its group rebalances joins again (KAFKA-9801)",
        before=(("2.5", NEVER), ("2.6.1", WHILE_COMPLETING)),
        latest=WITH_OTHER_PROTOCOL,
        is_repair=False,
        guards=("unconsumed",),
    )
    impossible_requests_answered: bool = _switch(
        "A request about a group on which its coordinator fails is told UNKNOWN_SERVER_ERROR: a join of a member that was given its id, and names a "
        "group.instance.id with it. Before, it got no answer; neither did the leader of a group to which a static member has come back "
        "without its assignor.",
        "GroupCoordinator.doJoinGroup, MemberMetadata.metadata, JoinGroupRequest.getErrorResponse, SyncGroupRequest.getErrorResponse",
        meaning="a request on which a coordinator fails is answered",
        before=(("2.5", False),),
        is_repair=False,
    )
    unknown_instances_refused: bool = _switch(
        "A member that names a group.instance.id which its group does not know is refused (UNKNOWN_MEMBER_ID), whatever it asks. "
        "Before, only when it joined.",
        "GroupCoordinator.validateCurrentMember (5dae3648abd)",
        of=STATIC_MEMBERS,
        meaning="a group.instance.id that is not known is refused",
        before=(("3.0", False),),
        is_repair=False,
        is_met=False,
    )
    heartbeats_while_syncing: bool = _switch(
        "A member that waits for its partitions may send heartbeats. Before, they were answered REBALANCE_IN_PROGRESS.",
        "KAFKA-10134, GroupCoordinator.handleHeartbeat (CompletingRebalance)",
        meaning="heartbeats count while the leader of a group assigns",
        before=(("2.6.1", False),),
        is_repair=False,
        is_met=False,
    )
    static_leader_skips_assignment: bool = _switch(
        "A static member that led its group and comes back is told that it leads, and that there is nothing to assign. Before, it was "
        "told that its former life led, and the group had no member that looked for new partitions.",
        "KIP-814, KAFKA-13435, JoinGroupResponse.SkipAssignment",
        of=STATIC_MEMBERS,
        meaning="a static leader that comes back goes on leading (KIP-814)",
        before=(("3.2", False),),
        guards=("unconsumed",),
        repair=Repair(
            name="KIP-814",
            since="3.2",
            text="a static member that led its group and comes back leads it again, and looks for new partitions (KAFKA-13435)",
        ),
    )
    syncs_expire: bool = _switch(
        "A member that has joined and does not ask for its partitions is removed after the rebalance timeout. Before, the others "
        "waited for as long as it sent heartbeats.",
        "KAFKA-12890, GroupCoordinator.onExpirePendingSync",
        meaning="a member that does not sync is removed (KAFKA-12890)",
        before=(("2.8", False),),
        is_repair=False,
        guards=("unconsumed",),
    )
    commits_fenced: bool = _switch(
        "The coordinator of a group refuses a commit of a consumer that is no member, or is of another generation. Off is a mutant.",
        "GroupCoordinator.validateOffsetCommit",
        meaning="a group takes commits of members of its present generation alone",
        guards=(*guards.GROUPS, *guards.COMMITS, "commits-of-present-generation"),
        mutant=Mutant(
            name="old-generation-commit-accepted",
            doc=(
                "The coordinator of a group takes commits of who is no member any more: one that was taken for dead sets the group "
                "back, or forward over what its successor has not processed."
            ),
            source="GroupCoordinator.validateOffsetCommit",
            noticed_by=("commits-of-present-generation", "offset-regression"),
        ),
    )
    consumer_group_protocol: bool = _switch(
        "Brokers coordinate groups with group.protocol=consumer, where they assign, as with group.version=1. Before, that was off by default.",
        "KIP-848, GroupVersion, ConsumerGroupHeartbeat",
        meaning="groups whose coordinator assigns (KIP-848)",
        before=(("4.0", False),),
        is_repair=False,
    )
    group_epochs_begin_at_one: bool = _switch(
        "With KIP-848 a new group and its assignment of nothing are of epoch 1, and the first member is in epoch 2. Before, all began at 0, "
        "and the first member was in epoch 1.",
        "KAFKA-20268, ModernGroup",
        meaning="the first member of a group is in epoch 2 (KAFKA-20268)",
        before=(("4.3", False),),
        is_repair=False,
    )
    assignment_follows_subscription: bool = _switch(
        "With KIP-848 a member gives up what it does not subscribe to any more with the heartbeat that says so. Before, with the next target "
        "assignment.",
        "KAFKA-19431, CurrentAssignmentBuilder.updateCurrentAssignment",
        meaning="what a member has follows its subscription at once (KAFKA-19431)",
        before=(("4.2", False),),
        is_repair=False,
    )
    tied_assignors_by_java_hash: bool = _switch(
        "Where as many members of a group vote for one assignor as for another, the group has that which comes first in a hash table of "
        "Java: range before roundrobin. Before, in one of Scala: roundrobin before range.",
        "GroupMetadata.selectProtocol, ClassicGroup.selectProtocol",
        meaning="a tie between assignors goes to range rather than roundrobin",
        before=(("4.0", False),),
        is_repair=False,
    )
    partitions_released_first: bool = _switch(
        "With KIP-848 a member is given a partition once no member owns it: its former owner has said that it has revoked it, or is gone. "
        "Off is a mutant.",
        "KIP-848, CurrentAssignmentBuilder.computeNextAssignment (currentPartitionEpoch)",
        meaning="a partition is revoked before another member gets it (KIP-848)",
        guards=("one-owner-per-partition",),
        mutant=Mutant(
            name="partition-given-before-revoked",
            kafka="4.3",
            doc=(
                "With group.protocol=consumer a member is given a partition that another one is still to give up: two read it, and "
                "commit over one another."
            ),
            source="KIP-848, CurrentAssignmentBuilder.computeNextAssignment",
            noticed_by=("one-owner-per-partition",),
        ),
    )
    member_epochs_fence_commits: bool = _switch(
        "With KIP-848 a group's coordinator refuses a commit of a consumer that is no member, or whose member epoch is stale. Off is a mutant.",
        "KIP-848, ConsumerGroup.validateOffsetCommit",
        meaning="a commit with a stale member epoch is refused (KIP-848)",
        guards=("offset-regression",),
        mutant=Mutant(
            name="stale-epoch-commit-accepted",
            kafka="4.3",
            doc=(
                "With group.protocol=consumer a group takes commits of who is no member any more, or was given something else since: one "
                "that was taken for dead sets the group back, or forward over what its successor has not processed."
            ),
            source="KIP-848, ConsumerGroup.validateOffsetCommit",
        ),
    )
    commits_by_assignment_epoch: bool = _switch(
        "With KIP-848 a commit in an older member epoch is taken of partitions that the member was given in that epoch or before, and owns "
        "still. Before, it was refused while the answer with the new epoch was under way.",
        "KIP-1251 (KAFKA-20066), ConsumerGroup.createAssignmentEpochValidator",
        meaning="a commit is fenced by the epoch in which the partition was assigned (KIP-1251)",
        before=(("4.3", False),),
        is_repair=False,
    )
    fenced_member_rejoins: bool = _switch(
        "With KIP-848 a member that was fenced joins again at once, in epoch 0. Before, it was fenced again until its session was over: its "
        "coordinator had it in another epoch.",
        "KAFKA-19233, GroupMetadataManager.throwIfConsumerGroupMemberEpochIsInvalid",
        meaning="a fenced member may join again (KAFKA-19233)",
        before=(("4.2", False),),
        is_repair=False,
    )
    assignor_change_assigns: bool = _switch(
        "With KIP-848 the group's epoch rises when the assignor that most members prefer changes, so that it assigns. Before, that assignor "
        "was used with the next change of members or topics.",
        "KAFKA-20434, GroupMetadataManager.hasPreferredServerAssignorChanged",
        meaning="a group assigns when its members prefer another assignor (KAFKA-20434)",
        before=(("4.4", False),),
        is_repair=False,
    )
    emptied_group_assigns_at_once: bool = _switch(
        "With KIP-848 the first member after a group was empty gets its partitions at once. Before, it waited until "
        "group.consumer.assignment.interval.ms had passed since the group's last assignment.",
        "KAFKA-20442, GroupMetadataManager.consumerGroupFenceMembers",
        meaning="a group that was empty assigns at once (KAFKA-20442)",
        before=(("4.4", False),),
        is_repair=False,
    )
    static_member_rejoins_full_group: bool = _switch(
        "With KIP-848 a static member that has left for a while may come back to a group that has group.consumer.max.size members: it takes a "
        "place that counts already. Before, it was refused (GROUP_MAX_SIZE_REACHED), and its consumer failed.",
        "KAFKA-20601, GroupMetadataManager.throwIfConsumerGroupIsFull",
        is_met=False,
        meaning="a static member may come back to a full group (KAFKA-20601)",
        before=(("4.4", False),),
        is_repair=False,
    )
    former_instance_released: bool = _switch(
        "With KIP-848 a member that takes another group.instance.id gives up its former one. Before, nobody could join under the former "
        "one: it was refused with UNRELEASED_INSTANCE_ID, and with UNKNOWN_MEMBER_ID once the member was gone.",
        "ConsumerGroup.updateStaticMember",
        meaning="a member that takes another group.instance.id gives up its former one",
        before=(("4.4", False),),
        is_repair=False,
    )
    group_answers_wait_for_writes: bool = _switch(
        "A group's coordinator answers a heartbeat, who leaves and who asks for stable offsets when all that it has written of their partition "
        "is committed, on which the answer may rest. Before, it answered from memory, also one that had been replaced and did not know it.",
        "KIP-848, CoordinatorRuntime.CoordinatorWriteEvent, GroupCoordinatorService.fetchOffsets",
        meaning="a group's coordinator answers when what it has written is committed (KIP-848)",
        before=(("4.0", False),),
        is_repair=False,
        guards=guards.COMMITS,
    )
    unknown_group_told: bool = _switch(
        "A member that commits for a group which its coordinator does not know is told so (GROUP_ID_NOT_FOUND, in a transaction "
        "ILLEGAL_GENERATION). Before, that its generation is over, in a transaction that it is no member of the group, which was made.",
        "KIP-848, OffsetMetadataManager.validateOffsetCommit, validateTransactionalOffsetCommit",
        meaning="a commit for a group that is not known is refused as such",
        before=(("4.0", False),),
        is_repair=False,
        is_met=False,
    )
    transactional_commit_errors_named: bool = _switch(
        "A transaction that commits for a group that the coordinator does not know gets GROUP_ID_NOT_FOUND, and with a stale member epoch "
        "STALE_MEMBER_EPOCH (TxnOffsetCommit 6). Before, both were ILLEGAL_GENERATION. The producer aborts the transaction either way.",
        "KIP-1319 (KAFKA-20444), OffsetMetadataManager.validateTransactionalOffsetCommit",
        of=TRANSACTIONS,
        meaning="a refused transactional commit has the same error as a plain one (KIP-1319)",
        before=(("4.4", False),),
        is_repair=False,
    )
    offsets_kept_while_read: bool = _switch(
        "Offsets expire offsets.retention.minutes after their group became empty, and of a group with members those of topics that none of "
        "them reads, so long after they were committed. Before, all of them did that.",
        "KIP-211, GroupMetadata.removeExpiredOffsets",
        meaning="offsets of a group with members do not expire (KIP-211)",
        before=(("2.1", False),),
        is_repair=False,
        is_met=False,
    )
    stable_offset_fetch: bool = _switch(
        "A consumer that asks where its group is waits for commits that are under way, of transactions too (UNSTABLE_OFFSET_COMMIT). "
        "Before, it began with what had been committed before.",
        "KIP-447, GroupMetadataManager.getOffsets (requireStable)",
        meaning="a consumer that asks for committed offsets waits for open transactions (KIP-447)",
        before=(("2.5", False),),
        is_repair=False,
        guards=guards.GROUPS,
    )
