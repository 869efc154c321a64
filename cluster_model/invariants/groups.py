"""Checks the invariants of groups: which commits and partition owners a coordinator accepts."""

from collections.abc import Callable
from typing import Final

from harrow.cluster_model import events
from harrow.cluster_model.coordinators.groups.group import DEAD
from harrow.cluster_model.invariants import catalogue
from harrow.cluster_model.invariants.checks import Checks


class CommitsOfPresentGeneration:
    """A coordinator accepts no commit from a member that missed a rebalance."""

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
        current: int,
        offsets: tuple[tuple[str, int], ...],
    ) -> None:
        # A consumer without a generation assigns its own partitions or commits in a transaction.
        if 0 <= generation < current:
            partition, offset = offsets[0]
            details = f"{member} of group {group} committed in generation {generation}, when the group was in {current}"
            self._broken_at(
                catalogue.COMMITS_OF_PRESENT_GENERATION, broker, partition, current, offset, details
            )


class OneOwnerPerPartition:
    """A coordinator assigns no partition that another member of the group owns.

    Each coordinator is checked by itself: one that was replaced without knowing it reaches no
    member.
    """

    def __init__(self, checks: Checks) -> None:
        self._broken_at = checks.broken_at
        # The partitions that each member owns, by broker and group.
        self._owned: dict[tuple[int, str], dict[str, tuple[str, ...]]] = {}
        checks.trace.subscribe(events.MemberReconciled, self._reconciled)
        checks.trace.subscribe(events.GroupStateChanged, self._state_changed)
        checks.trace.subscribe(events.BrokerStopped, self._on_broker_stopped)

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

    def _on_broker_stopped(self, _at_us: int, broker: int, _cause: str) -> None:
        self._owned = {key: owned for key, owned in self._owned.items() if key[0] != broker}


GROUP_CHECKS: Final[dict[str, Callable[[Checks], object]]] = {
    catalogue.COMMITS_OF_PRESENT_GENERATION: CommitsOfPresentGeneration,
    catalogue.ONE_OWNER_PER_PARTITION: OneOwnerPerPartition,
}
