"""Changes a partition's leader, ISR and eligible replicas (``PartitionChangeBuilder.java``)."""

from collections.abc import Callable, Collection
from enum import Enum, unique
from typing import Final

from harrow.cluster_model.kraft.records import PartitionRecord
from harrow.cluster_model.lazy_dataclass import dataclass, replace
from harrow.cluster_model.protocol import ReplicaAssignment

NO_LEADER: Final = -1


@unique
class Election(Enum):
    """Who may lead: the preferred replica first, any member of the ISR or ELR, or any replica."""

    PREFERRED = "preferred"
    ONLINE = "online"
    UNCLEAN = "unclean"


@unique
class ElectedLeader(Enum):
    """How a leader was elected: because it is eligible, as the last known leader, or uncleanly."""

    CLEAN = "clean"
    LAST_KNOWN = "last known"
    UNCLEAN = "unclean"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderRules:
    """The rules of a partition's elections.

    ``is_acceptable`` says whether a broker may lead now. ``elr_min_isr`` is the effective
    ``min.insync.replicas``, or None without ELRs (KIP-966). ``raises_epoch`` says that a new leader
    gets a new leader epoch.
    """

    is_acceptable: Callable[[int], bool]
    election: Election
    elr_min_isr: int | None
    raises_epoch: bool = True


def changed_partition(
    before: PartitionRecord,
    rules: LeaderRules,
    isr: tuple[int, ...],
    unclean_shutdown: Collection[int] = (),
    altered_by: int = -1,
    assignment: ReplicaAssignment | None = None,
) -> tuple[PartitionRecord, ElectedLeader] | None:
    """Return a partition with a new ISR and leader, and how it was elected; None for no change.

    *assignment* begins or cancels a reassignment. A reassignment is complete when the ISR has all
    target replicas.

    Without ELRs the last member stays in the ISR, so that it can lead again. The replicas in
    *unclean_shutdown* may have lost records, so they are not eligible.
    """
    assigned = before
    if assignment is not None:
        assigned = replace(
            before,
            replicas=assignment.replicas,
            adding=assignment.adding,
            removing=assignment.removing,
        )
    assigned, isr = _complete_reassignment(assigned, isr)
    elr = _eligible(assigned, rules, isr, unclean_shutdown)
    if not isr and rules.elr_min_isr is None:
        isr = before.isr
    # The leader when the ISR became empty (maybeUpdateLastKnownLeader).
    last_known = before.leader if before.isr and not isr else before.last_known_leader
    leader, elected = _elect(replace(assigned, isr=isr, elr=elr, last_known_leader=last_known), rules)
    if leader in elr:
        isr, elr = (leader,), tuple(member for member in elr if member != leader)
    elif elected is not ElectedLeader.CLEAN:
        # Formerly eligible replicas may lack the records that the new leader commits
        # (``maybeUpdateRecordElr``).
        isr, elr = (leader,), ()
    # If replicas are removed, the leader epoch rises even if the leader stays, so that the leader
    # learns of it (``triggerLeaderEpochBumpForReplicaReassignmentIfNeeded``).
    is_new_epoch = leader != before.leader or not set(before.replicas) <= set(assigned.replicas)
    is_new_epoch = is_new_epoch and rules.raises_epoch
    changed = replace(
        assigned,
        leader=leader,
        leader_epoch=before.leader_epoch + is_new_epoch,
        isr=isr,
        elr=elr,
        last_known_leader=-1 if leader >= 0 else last_known,
        altered_by=altered_by,
    )
    if changed == replace(before, altered_by=altered_by):
        return None
    return replace(changed, partition_epoch=before.partition_epoch + 1), elected


def _complete_reassignment(
    partition: PartitionRecord, isr: tuple[int, ...]
) -> tuple[PartitionRecord, tuple[int, ...]]:
    """Return a partition and its ISR, with the reassignment completed if possible.

    That is possible when all target replicas are in the ISR. The same record removes the other
    replicas (``maybeCompleteReassignment``).
    """
    target = partition.assignment.target
    if not partition.assignment.is_being_reassigned or not target or not set(target) <= set(isr):
        return partition, isr
    reassigned = replace(partition, replicas=target, adding=(), removing=())
    return reassigned, tuple(member for member in isr if member in target)


def reassignment(partition: PartitionRecord, target: tuple[int, ...]) -> ReplicaAssignment:
    """Return the assignment that starts a reassignment (``PartitionReassignmentReplicas.java``).

    The assignment still has the replicas that an earlier, unfinished reassignment was adding.
    """
    removing = tuple(sorted(set(partition.replicas) - set(target)))
    adding = tuple(sorted(set(target) - set(partition.replicas)))
    return ReplicaAssignment((*target, *removing), adding or partition.adding, removing or partition.removing)


def recovery_sets(
    partition: PartitionRecord, stays_eligible: Callable[[int], bool]
) -> tuple[tuple[int, ...], ...]:
    """Return sets of brokers of which one each must live before a partition with ELRs has a leader.

    A member of the ISR or ELR is enough if it *stays_eligible*, because it still runs or has shut
    down cleanly. Any other member loses its eligibility when it registers again, and the partition
    waits until it does. If no eligible member remains, the last leader leads.
    """
    elr = tuple(member for member in partition.elr if member in partition.replicas)
    for members in (partition.isr, elr):
        lasting = tuple(filter(stays_eligible, members))
        if lasting:
            return (lasting,)
    eligible = (*partition.isr, *elr)
    if eligible:
        return tuple((member,) for member in eligible)
    last = partition.last_known_leader
    return ((last,) if last >= 0 else (),)


def _eligible(
    partition: PartitionRecord, rules: LeaderRules, isr: tuple[int, ...], unclean_shutdown: Collection[int]
) -> tuple[int, ...]:
    """Return the ELR that goes with an ISR (``maybePopulateTargetElr``).

    A replica that a reassignment has removed stays in the ELR.
    """
    if rules.elr_min_isr is None or len(isr) >= rules.elr_min_isr:
        return ()
    return tuple(
        member
        for member in dict.fromkeys((*partition.elr, *partition.isr))
        if member not in isr and member not in unclean_shutdown
    )


def _elect(partition: PartitionRecord, rules: LeaderRules) -> tuple[int, ElectedLeader]:
    def may_lead(replica: int) -> bool:
        return replica in partition.electable and rules.is_acceptable(replica)

    if rules.election is Election.PREFERRED and may_lead(partition.replicas[0]):
        return partition.replicas[0], ElectedLeader.CLEAN
    if may_lead(partition.leader):
        return partition.leader, ElectedLeader.CLEAN
    for replica in partition.replicas:
        if may_lead(replica):
            return replica, ElectedLeader.CLEAN
    last = partition.last_known_leader
    if last >= 0 and not partition.isr and not partition.elr and rules.is_acceptable(last):
        # KIP-966 calls this balanced recovery: no replica is eligible, so the last leader is the
        # best choice.
        return last, ElectedLeader.LAST_KNOWN
    if rules.election is Election.UNCLEAN:
        for replica in partition.replicas:
            if rules.is_acceptable(replica):
                return replica, ElectedLeader.UNCLEAN
    return NO_LEADER, ElectedLeader.CLEAN
