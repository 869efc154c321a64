"""Observes groups, in the coordinators' log and with requests during rebalances."""

from collections.abc import Mapping
from typing import Any, Final

from kafka.protocol.admin import DescribeGroupsRequest

from harrow.cluster_model.coordinators.groups.group import (
    COMPLETING_REBALANCE,
    EMPTY,
    PREPARING_REBALANCE,
    STABLE,
)
from harrow.cluster_model.coordinators.internal_topics import partition_for
from harrow.cluster_model.events import GroupStateChanged, OffsetsCommitted
from harrow.cluster_model.topology import CONSUMER_OFFSETS
from harrow.live_cluster.links.observed_requests import Report
from harrow.live_cluster.names import SAME_NAMES, Names
from harrow.live_cluster.watches.activity import Activity
from harrow.live_cluster.watches.internal_topic_watch import InternalTopicWatch
from harrow.live_cluster.wire.connection import BrokerConnection, ConnectionLostError, only
from harrow.live_cluster.wire.coordinator_messages import GroupRecord, group_records

_NO_GENERATION: Final = -1
_REBALANCING: Final = (PREPARING_REBALANCE, COMPLETING_REBALANCE)


class GroupWatch(InternalTopicWatch):
    """Reports the states of groups, and their commits.

    A coordinator logs a generation only when it is stable, so the watch asks the coordinator for
    the states of a rebalance. If a poll has missed a state, the watch reports that state before the
    next one, because the group must have passed through it. The reason for a rebalance is unknown.
    """

    def __init__(
        self,
        groups: list[str],
        connections: Mapping[int, BrokerConnection],
        report: Report,
        activity: Activity,
        names: Names = SAME_NAMES,
    ) -> None:
        super().__init__(CONSUMER_OFFSETS, connections, activity, names)
        self._groups = groups
        self._report = report
        self._states: dict[str, tuple[str, int]] = {}
        # Commits in open transactions, by partition and producer id.
        self._pending: dict[tuple[str, int], list[GroupRecord]] = {}

    def _poll(self) -> None:
        super()._poll()
        for group in self._groups:
            self._poll_group(group)

    def _poll_group(self, group: str) -> None:
        partitions = len(self._leaders)
        if not partitions:
            return
        coordinator = self._leaders[f"{CONSUMER_OFFSETS}-{partition_for(group, partitions)}"]
        connection = self._connections.get(coordinator)
        if connection is None:
            return
        try:
            kind = DescribeGroupsRequest
            answer = connection.ask(kind[connection.version_of(kind, *range(6))](groups=[group]))
            description = only(answer.groups, "groups")
        except ConnectionLostError:
            return
        state = str(description.group_state)
        if not description.error_code and state in _REBALANCING:
            _, generation = self._states.get(group, (EMPTY, 0))
            # A group that completes a rebalance has begun the next generation.
            self._change(coordinator, group, state, generation + (state == COMPLETING_REBALANCE), ())

    def handle_batch(self, coordinator: int, partition: str, batch: Any) -> None:
        if batch.is_control_batch:
            committed = self._pending.pop((partition, batch.producer_id), [])
            if next(iter(batch)).commit and committed:
                self._commit(coordinator, committed, _NO_GENERATION, self._current_generation(committed))
            return
        records = list(group_records(batch))
        commits = [record for record in records if record.partition is not None]
        if batch.is_transactional:
            self._pending.setdefault((partition, batch.producer_id), []).extend(commits)
            return
        for record in records:
            if record.generation is not None and record.group in self._groups:
                self._report_generation(coordinator, record)
        if commits:
            # The log lacks the generation of a commit; only the current one is accepted.
            current_generation = self._current_generation(commits)
            self._commit(coordinator, commits, current_generation, current_generation)

    def _current_generation(self, commits: list[GroupRecord]) -> int:
        _, generation = self._states.get(commits[0].group, (EMPTY, _NO_GENERATION))
        return generation

    def _report_generation(self, coordinator: int, record: GroupRecord) -> None:
        """Report a generation, and the states of its rebalance that no poll has seen."""
        assert record.generation is not None
        state = STABLE if record.members else EMPTY
        state_before, generation = self._states.get(record.group, (EMPTY, 0))
        if record.generation > generation:
            if state_before not in _REBALANCING:
                self._change(coordinator, record.group, PREPARING_REBALANCE, generation, ())
            if record.members:
                self._change(
                    coordinator, record.group, COMPLETING_REBALANCE, record.generation, record.members
                )
        self._change(coordinator, record.group, state, record.generation, record.members)

    def _change(
        self, coordinator: int, group: str, state: str, generation: int, members: tuple[str, ...]
    ) -> None:
        before, last_generation = self._states.get(group, (EMPTY, 0))
        if (before, last_generation) == (state, generation) or (
            state == COMPLETING_REBALANCE and last_generation > generation
        ):
            return
        # The generation of a rebalance counts only when it is in the log.
        self._states[group] = state, generation if state in (STABLE, EMPTY) else last_generation
        if before != state or state not in _REBALANCING:
            self._report(GroupStateChanged, coordinator, group, state, generation, members, "")

    def _commit(
        self, coordinator: int, commits: list[GroupRecord], generation: int, current_generation: int
    ) -> None:
        offsets = tuple(
            (self._names.campaign_partition(record.partition), record.offset)
            for record in commits
            if record.partition is not None
        )
        if offsets:
            self._report(
                OffsetsCommitted, coordinator, commits[0].group, "", generation, current_generation, offsets
            )
