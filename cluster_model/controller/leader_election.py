"""Elects leaders of partitions (``Election.scala``, ``PartitionStateMachine.scala``).

Candidates are tried in the order of the assignment, which is not the order of the ISR or of LEOs.
"""

from harrow.cluster_model.protocol import LeaderAndIsr


def elect_for_offline(
    current: LeaderAndIsr, assignment: tuple[int, ...], live_brokers: frozenset[int], *, unclean: bool
) -> LeaderAndIsr | None:
    """Return the new state of a partition that has no leader; None if no replica may lead.

    The first live replica in the ISR leads. If there is none and *unclean* is true, the first live
    replica leads and becomes the whole ISR.
    """
    live = [broker for broker in assignment if broker in live_brokers]
    for broker in live:
        if broker in current.isr:
            isr = tuple(member for member in current.isr if member in live_brokers)
            return LeaderAndIsr(broker, current.leader_epoch + 1, isr, current.partition_epoch)
    if unclean and live:
        return LeaderAndIsr(live[0], current.leader_epoch + 1, (live[0],), current.partition_epoch)
    return None


def elect_for_controlled_shutdown(
    current: LeaderAndIsr,
    assignment: tuple[int, ...],
    live_brokers: frozenset[int],
    shutting_down: frozenset[int],
) -> LeaderAndIsr | None:
    """Return the state without brokers that shut down; None if no other ISR member can lead.

    Modelled on ``controlledShutdownPartitionLeaderElection`` (before 1.1
    ``ControlledShutdownLeaderSelector``). The election is never unclean: a leader that no replica
    can replace leads until it stops.
    """
    isr = tuple(member for member in current.isr if member not in shutting_down)
    for broker in assignment:
        if broker in live_brokers and broker in isr:
            return LeaderAndIsr(broker, current.leader_epoch + 1, isr, current.partition_epoch)
    return None


def elect_preferred(
    current: LeaderAndIsr,
    assignment: tuple[int, ...],
    live_brokers: frozenset[int],
    *,
    from_isr: bool = True,
    re_elects: bool = False,
) -> LeaderAndIsr | None:
    """Return the state led by the preferred replica; None unless it is live and in the ISR.

    Without *from_isr*, a known flaw, it may be outside the ISR. With *re_elects* it is elected even
    if it already leads.
    """
    preferred = assignment[0]
    is_eligible = preferred in current.isr or not from_isr
    if preferred in live_brokers and is_eligible and (re_elects or preferred != current.leader):
        return LeaderAndIsr(preferred, current.leader_epoch + 1, current.isr, current.partition_epoch)
    return None


def elect_for_reassignment(
    current: LeaderAndIsr, target: tuple[int, ...], live_brokers: frozenset[int]
) -> LeaderAndIsr | None:
    """Return the state led by a target replica of a reassignment; None if none of them may lead.

    The ISR stays the same (``reassignPartitionLeaderElection``). Removed replicas leave it later.
    """
    for broker in target:
        if broker in live_brokers and broker in current.isr:
            return LeaderAndIsr(broker, current.leader_epoch + 1, current.isr, current.partition_epoch)
    return None


def without_replica(current: LeaderAndIsr, broker: int) -> LeaderAndIsr:
    """Return the state without a replica that is offline.

    The last member stays in the ISR, so that it can lead again. If the replica was the leader, the
    partition has no leader now.
    """
    leader = -1 if current.leader == broker else current.leader
    isr = current.isr if len(current.isr) == 1 else tuple(m for m in current.isr if m != broker)
    return LeaderAndIsr(leader, current.leader_epoch + 1, isr, current.partition_epoch)
