"""Checks the invariants of groups: which commits and which owners a coordinator accepts."""

from collections.abc import Callable
from typing import Final

from harrow.cluster_model import events
from harrow.cluster_model.coordinators.groups.group import DEAD
from harrow.cluster_model.invariants import catalogue
from harrow.cluster_model.invariants.checks import Checks


class CommitsOfPresentGeneration:
    """A coordinator accepts no commit from a member that missed a rebalance."""

    def __init__(self, checks: Checks) -> None:
        self._report_broker_breach = checks.report_broker_breach
        checks.trace.subscribe(events.OffsetsCommitted, self._on_commit)

    def _on_commit(
        self,
        broker: int,
        group: str,
        member: str,
        generation: int,
        current: int,
        offsets: tuple[tuple[str, int], ...],
    ) -> None:
        # A consumer that assigns partitions to itself, or commits in a transaction, sends no
        # generation.
        if 0 <= generation < current:
            partition, offset = offsets[0]
            details = f"{member} of group {group} committed in generation {generation}, when the group was in {current}"
            self._report_broker_breach(
                catalogue.COMMITS_OF_PRESENT_GENERATION, broker, partition, current, offset, details
            )


class OneOwnerPerPartition:
    """A coordinator assigns no partition that another member of the group owns.

    Each coordinator is checked by itself. A coordinator that was replaced without noticing may
    assign partitions again, but no member learns of that.
    """

    def __init__(self, checks: Checks) -> None:
        self._report_broker_breach = checks.report_broker_breach
        # The partitions that each member owns, by broker and group.
        self._owned_partitions: dict[tuple[int, str], dict[str, tuple[str, ...]]] = {}
        checks.trace.subscribe(events.MemberReconciled, self._on_reconciliation)
        checks.trace.subscribe(events.GroupStateChanged, self._on_group_state)
        checks.trace.subscribe(events.BrokerStopped, self._on_broker_stopped)

    def _on_reconciliation(
        self,
        broker: int,
        group: str,
        member: str,
        epoch: int,
        _state: str,
        assigned: tuple[str, ...],
        revoking: tuple[str, ...],
    ) -> None:
        owned = self._owned_partitions.setdefault((broker, group), {})
        for other, partitions in owned.items():
            for partition in assigned:
                if other != member and partition in partitions:
                    details = f"{member} of group {group} got it in epoch {epoch} while {other} owned it"
                    self._report_broker_breach(
                        catalogue.ONE_OWNER_PER_PARTITION, broker, partition, epoch, -1, details
                    )
        owned[member] = (*assigned, *revoking)

    def _on_group_state(self, broker: int, group: str, state: str, *_: object) -> None:
        if state == DEAD:
            self._owned_partitions.pop((broker, group), None)

    def _on_broker_stopped(self, broker: int, _cause: str) -> None:
        self._owned_partitions = {
            key: owned for key, owned in self._owned_partitions.items() if key[0] != broker
        }


GROUP_CHECKS: Final[dict[str, Callable[[Checks], object]]] = {
    catalogue.COMMITS_OF_PRESENT_GENERATION: CommitsOfPresentGeneration,
    catalogue.ONE_OWNER_PER_PARTITION: OneOwnerPerPartition,
}
