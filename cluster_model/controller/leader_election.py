"""The election algorithms for leaders (``Election.scala``, ``PartitionStateMachine.scala``).

Replicas are asked in the order of the assignment, not of the ISR and not of their LEO.
"""

from harrow.cluster_model.protocol import LeaderAndIsr


def elect_for_offline(
    current: LeaderAndIsr, assignment: tuple[int, ...], live_brokers: frozenset[int], *, unclean: bool
) -> LeaderAndIsr | None:
    """Return the new state of a partition whose leader is gone; None when no replica may lead it.

    The first live replica that is in the ISR. With *unclean*, and no such replica, the
    first live one, which then is the whole ISR.
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

    After ``controlledShutdownPartitionLeaderElection``, ``ControlledShutdownLeaderSelector`` before
    1.1. It is never unclean: a leader that no replica can replace goes on leading until it has
    stopped.
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
    once_more: bool = False,
) -> LeaderAndIsr | None:
    """Return the state with the preferred replica as leader; None unless it is live and in the ISR.

    Without *from_isr* one outside the ISR will do (a mutant). One that leads already is elected
    *once more*, or is not.
    """
    preferred = assignment[0]
    is_eligible = preferred in current.isr or not from_isr
    if preferred in live_brokers and is_eligible and (once_more or preferred != current.leader):
        return LeaderAndIsr(preferred, current.leader_epoch + 1, current.isr, current.partition_epoch)
    return None


def elect_for_reassignment(
    current: LeaderAndIsr, target: tuple[int, ...], live_brokers: frozenset[int]
) -> LeaderAndIsr | None:
    """Return the state led by a target replica of a reassignment; None if the ISR has no live one.

    The ISR stays as it is (``reassignPartitionLeaderElection``): replicas that are to go leave it
    afterwards.
    """
    for broker in target:
        if broker in live_brokers and broker in current.isr:
            return LeaderAndIsr(broker, current.leader_epoch + 1, current.isr, current.partition_epoch)
    return None


def without_replica(current: LeaderAndIsr, broker: int) -> LeaderAndIsr:
    """Return the state without a replica that has gone offline.

    The last member stays in the ISR, so that it can lead again; a leader that is gone is
    replaced by none.
    """
    leader = -1 if current.leader == broker else current.leader
    isr = current.isr if len(current.isr) == 1 else tuple(m for m in current.isr if m != broker)
    return LeaderAndIsr(leader, current.leader_epoch + 1, isr, current.partition_epoch)
