"""The invariants of groups: what their coordinators take from whom."""

from collections.abc import Callable
from typing import Final

from harrow.cluster_model import events
from harrow.cluster_model.invariants import catalogue
from harrow.cluster_model.invariants.checks import Checks


class CommitsOfPresentGeneration:
    """Where a group is, nobody says who has missed a rebalance."""

    def __init__(self, checks: Checks) -> None:
        self._broken_at = checks.broken_at
        checks.trace.subscribe(events.OffsetsCommitted, self._committed)

    def _committed(
        self,
        _at_us: int,
        broker: int,
        group: str,
        member: str,
        generation: int,
        present: int,
        offsets: tuple[tuple[str, int], ...],
    ) -> None:
        # Who is in no generation assigns itself partitions, or commits in a transaction.
        if 0 <= generation < present:
            partition, offset = offsets[0]
            details = (
                f"{member} of group {group} committed in generation {generation}, when it was in {present}"
            )
            self._broken_at(
                catalogue.COMMITS_OF_PRESENT_GENERATION, broker, partition, present, offset, details
            )


GROUP_CHECKS: Final[dict[str, Callable[[Checks], object]]] = {
    catalogue.COMMITS_OF_PRESENT_GENERATION: CommitsOfPresentGeneration,
}
