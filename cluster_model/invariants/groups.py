"""The invariants of groups: what their coordinators take from whom, and give to whom."""

from collections.abc import Callable
from typing import Final

from harrow.cluster_model import events
from harrow.cluster_model.coordinators.groups.group import DEAD
from harrow.cluster_model.invariants import catalogue
from harrow.cluster_model.invariants.checks import Checks


class CommitsOfPresentGeneration:
    """Where a group is, no broker says who has missed a rebalance."""

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


class OneOwnerPerPartition:
    """A coordinator gives no member a partition that another member of the group owns.

    Looked at for each coordinator by itself: one that has been succeeded, and does not know it yet, tells no member anything.
    """

    def __init__(self, checks: Checks) -> None:
        self._broken_at = checks.broken_at
        # By broker and group what each member owns.
        self._owned: dict[tuple[int, str], dict[str, tuple[str, ...]]] = {}
        checks.trace.subscribe(events.MemberReconciled, self._reconciled)
        checks.trace.subscribe(events.GroupStateChanged, self._state_changed)
        checks.trace.subscribe(events.BrokerStopped, self._stopped)

    def _reconciled(
        self,
        _at_us: int,
        broker: int,
        group: str,
        member: str,
        epoch: int,
        _state: str,
        assigned: tuple[str, ...],
        revoking: tuple[str, ...],
    ) -> None:
        owned = self._owned.setdefault((broker, group), {})
        for other, partitions in owned.items():
            for partition in assigned:
                if other != member and partition in partitions:
                    details = f"{member} of group {group} got it in epoch {epoch} while {other} owned it"
                    self._broken_at(catalogue.ONE_OWNER_PER_PARTITION, broker, partition, epoch, -1, details)
        owned[member] = (*assigned, *revoking)

    def _state_changed(self, _at_us: int, broker: int, group: str, state: str, *_: object) -> None:
        if state == DEAD:
            self._owned.pop((broker, group), None)

    def _stopped(self, _at_us: int, broker: int, _cause: str) -> None:
        self._owned = {key: owned for key, owned in self._owned.items() if key[0] != broker}


GROUP_CHECKS: Final[dict[str, Callable[[Checks], object]]] = {
    catalogue.COMMITS_OF_PRESENT_GENERATION: CommitsOfPresentGeneration,
    catalogue.ONE_OWNER_PER_PARTITION: OneOwnerPerPartition,
}
