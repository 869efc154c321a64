"""How long groups rebalanced: from the moment that their coordinator prepares a generation to that in which it is stable."""

from collections.abc import Iterator

from harrow.checks.index import Index
from harrow.cluster_model.coordinators.groups.group import PREPARING_REBALANCE, STABLE
from harrow.cluster_model.events import GroupStateChanged


def rebalance_times(index: Index) -> Iterator[int]:
    """Yield the lengths of rebalances. One that is prepared anew before it has ended goes on; a group that is left empty has none."""
    since_us: dict[str, int] = {}
    for _, event in index.events(GroupStateChanged):
        if event.state == PREPARING_REBALANCE:
            since_us.setdefault(event.group, event.at_us)
        elif event.state == STABLE:
            if event.group in since_us:
                yield event.at_us - since_us.pop(event.group)
        elif not event.members:
            since_us.pop(event.group, None)
