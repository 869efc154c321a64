"""How a partition changes: the leader, the ISR and the eligible leader replicas (``PartitionChangeBuilder.java``)."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from enum import Enum, unique

from harrow.cluster_model.kraft.records import PartitionRecord
from harrow.cluster_model.protocol import ReplicaAssignment

NO_LEADER = -1


@unique
class Election(Enum):
    """Who may be elected: the preferred replica if it may lead, any member of the ISR or ELR, or any replica."""

    PREFERRED = "preferred"
    ONLINE = "online"
    UNCLEAN = "unclean"


@unique
class Elected(Enum):
    """Who has been elected: a replica that is eligible, if any is; else, uncleanly, the last known leader or any other replica."""

    CLEAN = "clean"
    LAST_KNOWN = "last known"
    UNCLEAN = "unclean"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderRules:
    """What elections of a partition go by. ``elr_min_isr`` is the ``min.insync.replicas`` that counts where there are ELRs (KIP-966).

    ``raises_epoch`` says that another leader has another leader epoch.
    """

    is_acceptable: Callable[[int], bool]
    election: Election
    elr_min_isr: int | None
    raises_epoch: bool = True


def changed_partition(
    known: PartitionRecord,
    rules: LeaderRules,
    isr: tuple[int, ...],
    unclean_shutdown: Collection[int] = (),
    altered_by: int = -1,
    assignment: ReplicaAssignment | None = None,
) -> tuple[PartitionRecord, Elected] | None:
    """Return a partition with this ISR and the leader that it gets now, and how that is elected; None for no change.

    With an *assignment* it gets other replicas, or begins to. A reassignment is complete with the ISR that has all target replicas.

    Without ELRs the last member stays in the ISR, so that it can lead again. *unclean_shutdown* are replicas that may have
    lost what they had.
    """
    assigned = known
    if assignment is not None:
        assigned = replace(
            known,
            replicas=assignment.replicas,
            adding=assignment.adding,
            removing=assignment.removing,
        )
    assigned, isr = _completed(assigned, isr)
    elr = _eligible(assigned, rules, isr, unclean_shutdown)
    if not isr and rules.elr_min_isr is None:
        isr = known.isr
    # Who led when the ISR became empty (maybeUpdateLastKnownLeader).
    last_known = known.leader if known.isr and not isr else known.last_known_leader
    leader, elected = _elect(replace(assigned, isr=isr, elr=elr, last_known_leader=last_known), rules)
    if leader in elr:
        isr, elr = (leader,), tuple(member for member in elr if member != leader)
    elif elected is not Elected.CLEAN:
        # Who was eligible may lack what the new leader commits from now on (``maybeUpdateRecordElr``).
        isr, elr = (leader,), ()
    # Who still leads is told by a new epoch that replicas have gone (``triggerLeaderEpochBumpForReplicaReassignmentIfNeeded``).
    is_new_epoch = leader != known.leader or not set(known.replicas) <= set(assigned.replicas)
    is_new_epoch = is_new_epoch and rules.raises_epoch
    changed = replace(
        assigned,
        leader=leader,
        leader_epoch=known.leader_epoch + is_new_epoch,
        isr=isr,
        elr=elr,
        last_known_leader=-1 if leader >= 0 else last_known,
        altered_by=altered_by,
    )
    if changed == replace(known, altered_by=altered_by):
        return None
    return replace(changed, partition_epoch=known.partition_epoch + 1), elected


def _completed(known: PartitionRecord, isr: tuple[int, ...]) -> tuple[PartitionRecord, tuple[int, ...]]:
    """Return a partition and its ISR after its reassignment, if that is complete (``maybeCompleteReassignment``).

    All target replicas are in the ISR then, and those that are to go leave it in the same record.
    """
    target = known.assignment.target
    if not known.assignment.is_being_reassigned or not target or not set(target) <= set(isr):
        return known, isr
    reassigned = replace(known, replicas=target, adding=(), removing=())
    return reassigned, tuple(member for member in isr if member in target)


def reassignment(known: PartitionRecord, target: tuple[int, ...]) -> ReplicaAssignment:
    """Return the replicas of a partition that is to get others (``PartitionReassignmentReplicas.java``).

    What is there now counts, with what a reassignment before this one has added.
    """
    removing = tuple(sorted(set(known.replicas) - set(target)))
    adding = tuple(sorted(set(target) - set(known.replicas)))
    return ReplicaAssignment((*target, *removing), adding or known.adding, removing or known.removing)


def recovery_sets(known: PartitionRecord, is_sound: Callable[[int], bool]) -> tuple[tuple[int, ...], ...]:
    """Return sets of brokers of which one each has to come back, so that a partition with ELRs gets a leader.

    One in the ISR or ELR suffices if it *is sound*: it still runs, or has stopped in good order. Any other is no longer eligible
    once it registers again, and is waited for until then. When none is left, the last leader leads.
    """
    elr = tuple(member for member in known.elr if member in known.replicas)
    for members in (known.isr, elr):
        sound = tuple(filter(is_sound, members))
        if sound:
            return (sound,)
    eligible = (*known.isr, *elr)
    if eligible:
        return tuple((member,) for member in eligible)
    return ((known.last_known_leader,) if known.last_known_leader >= 0 else (),)


def _eligible(
    known: PartitionRecord, rules: LeaderRules, isr: tuple[int, ...], unclean_shutdown: Collection[int]
) -> tuple[int, ...]:
    """Return the ELR that goes with an ISR (``maybePopulateTargetElr``): a replica that a reassignment takes away stays in it."""
    if rules.elr_min_isr is None or len(isr) >= rules.elr_min_isr:
        return ()
    return tuple(
        member
        for member in dict.fromkeys((*known.elr, *known.isr))
        if member not in isr and member not in unclean_shutdown
    )


def _elect(partition: PartitionRecord, rules: LeaderRules) -> tuple[int, Elected]:
    def may_lead(replica: int) -> bool:
        return replica in partition.electable and rules.is_acceptable(replica)

    if rules.election is Election.PREFERRED and may_lead(partition.replicas[0]):
        return partition.replicas[0], Elected.CLEAN
    if may_lead(partition.leader):
        return partition.leader, Elected.CLEAN
    for replica in partition.replicas:
        if may_lead(replica):
            return replica, Elected.CLEAN
    last = partition.last_known_leader
    if last >= 0 and not partition.isr and not partition.elr and rules.is_acceptable(last):
        # Balanced recovery: no replica is eligible, so the last leader is the best that there is.
        return last, Elected.LAST_KNOWN
    if rules.election is Election.UNCLEAN:
        for replica in partition.replicas:
            if rules.is_acceptable(replica):
                return replica, Elected.UNCLEAN
    return NO_LEADER, Elected.CLEAN
