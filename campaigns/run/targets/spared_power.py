"""Which brokers can lead a partition with everything that is committed, and which ones without it."""

from collections.abc import Callable
from typing import Final

from harrow.campaigns.run.targets.target import CommittedCopies, RunObserver
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND

HELD_BACK_MAX_US: Final = 60 * US_PER_SECOND
"""How long a broker that has lost records stays down at most until it is out of the ISR: there may be nobody to take it out."""


def copies_of(
    observer: RunObserver,
    partition: str,
    *,
    end_of_log: Callable[[int], int],
    high_watermark_before: Callable[[int], int | None],
    enough: int,
) -> CommittedCopies:
    """Return what the brokers have that can be elected for a partition.

    Committed is what any replica took for committed, whether its broker still runs or not: a leader that has died may have been the only
    one to know. *end_of_log* tells up to where a replica's log is intact, *high_watermark_before* the last high watermark of a process
    that has ended, None where nothing tells. As long as no high watermark is known, no copy counts as whole.
    """
    replicas = observer.replicas_of(partition)
    views = {replica: observer.replica(partition, replica) for replica in replicas}
    known = (high_watermark_before(replica) if view is None else view.hw for replica, view in views.items())
    committed = max((offset for offset in known if offset is not None), default=None)
    electable = frozenset(observer.electable(partition))
    whole = frozenset(
        replica for replica in electable if committed is not None and end_of_log(replica) >= committed
    )
    return CommittedCopies(whole, electable - whole, enough)
