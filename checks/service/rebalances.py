"""How long groups rebalanced: from the moment that their coordinator prepares a generation to that in which it is stable.

Where the coordinator assigns (KIP-848) that is Assigning, or Reconciling where the assignment is there at once.
"""

from collections.abc import Iterator
from typing import Final

from harrow.checks.index import Index
from harrow.cluster_model.coordinators.groups.consumer_group import ASSIGNING, RECONCILING
from harrow.cluster_model.coordinators.groups.group import PREPARING_REBALANCE, STABLE
from harrow.cluster_model.events import GroupStateChanged

_UNDER_WAY: Final = frozenset({PREPARING_REBALANCE, ASSIGNING, RECONCILING})


def rebalance_times(index: Index) -> Iterator[int]:
    """Yield the lengths of rebalances. One that is prepared anew before it has ended goes on; a group that is left empty has none."""
    since_us: dict[str, int] = {}
    for _, event in index.events(GroupStateChanged):
        if event.state in _UNDER_WAY:
            since_us.setdefault(event.group, event.at_us)
        elif event.state == STABLE:
            if event.group in since_us:
                yield event.at_us - since_us.pop(event.group)
        elif not event.members:
            since_us.pop(event.group, None)
