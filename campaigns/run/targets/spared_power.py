"""Whether a broker can lose its power without the last copies of a committed record."""

from collections.abc import Callable

from harrow.campaigns.run.targets.target import RunObserver


def can_spare(
    observer: RunObserver, partition: str, broker: int, end_of_log: Callable[[int], int], enough: int
) -> bool:
    """Return whether, without a broker's copy, *enough* replicas that can lead have every committed record of a partition.

    Only members of the ISR are elected, or of the ELR where it is empty. Committed is what any running replica takes for committed; where none runs that is
    unknown, so nothing is risked. *end_of_log* tells the LEO of a replica, also of one whose broker is down.
    """
    running = [observer.replica(partition, replica) for replica in observer.replicas_of(partition)]
    committed = max((replica.hw for replica in running if replica is not None), default=None)
    if committed is None:
        return False
    electable = observer.electable(partition)
    return sum(end_of_log(replica) >= committed for replica in electable if replica != broker) >= enough
