"""What coordinators write of groups, and how those stand that rebalance, of which nothing is written."""

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
from harrow.live_cluster.links.requests_seen import Report
from harrow.live_cluster.names import SAME, Names
from harrow.live_cluster.watches.activity import Activity
from harrow.live_cluster.watches.internal_topic_watch import InternalTopicWatch
from harrow.live_cluster.wire.connection import BrokerConnection, ConnectionLostError, only
from harrow.live_cluster.wire.coordinator_messages import GroupRecord, group_records

_NO_GENERATION: Final = -1
_REBALANCING: Final = (PREPARING_REBALANCE, COMPLETING_REBALANCE)


class GroupWatch(InternalTopicWatch):
    """Reports the states of groups, and what they commit.

    A generation is written when it is stable. That a group prepares it, and its leader assigns, a coordinator is asked for, again and
    again; what was over between two looks must have been, and is reported with what came of it. Why a group rebalances no request tells.
    """

    def __init__(
        self,
        groups: list[str],
        connections: Mapping[int, BrokerConnection],
        report: Report,
        activity: Activity,
        names: Names = SAME,
    ) -> None:
        super().__init__(CONSUMER_OFFSETS, connections, activity, names)
        self._groups = groups
        self._report = report
        self._states: dict[str, tuple[str, int]] = {}
        # What transactions have committed that have not ended, by partition and producer id.
        self._pending: dict[tuple[str, int], list[GroupRecord]] = {}

    def _look(self) -> None:
        super()._look()
        for group in self._groups:
            self._look_at(group)

    def _look_at(self, group: str) -> None:
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
            told = only(answer.groups, "groups")
        except ConnectionLostError:
            return
        if not told.error_code and told.group_state in _REBALANCING:
            _, generation = self._states.get(group, (EMPTY, 0))
            # Who completes a rebalance has begun the next generation.
            stable = generation + (told.group_state == COMPLETING_REBALANCE)
            self._change(coordinator, group, str(told.group_state), stable, ())

    def take(self, coordinator: int, partition: str, batch: Any) -> None:
        if batch.is_control_batch:
            committed = self._pending.pop((partition, batch.producer_id), [])
            if next(iter(batch)).commit and committed:
                self._commit(coordinator, committed, _NO_GENERATION, self._present(committed))
            return
        records = list(group_records(batch))
        commits = [record for record in records if record.partition is not None]
        if batch.is_transactional:
            self._pending.setdefault((partition, batch.producer_id), []).extend(commits)
            return
        for record in records:
            if record.generation is not None and record.group in self._groups:
                self._begin(coordinator, record)
        if commits:
            # Which generation the member said is not written; what was taken was of the present one.
            present = self._present(commits)
            self._commit(coordinator, commits, present, present)

    def _present(self, commits: list[GroupRecord]) -> int:
        _, generation = self._states.get(commits[0].group, (EMPTY, _NO_GENERATION))
        return generation

    def _begin(self, coordinator: int, record: GroupRecord) -> None:
        """Take note of a generation: before it was stable its members joined, and its leader assigned."""
        assert record.generation is not None
        state = STABLE if record.members else EMPTY
        _, known = self._states.get(record.group, (EMPTY, 0))
        if record.generation > known:
            if self._states.get(record.group, (EMPTY, 0))[0] not in _REBALANCING:
                self._change(coordinator, record.group, PREPARING_REBALANCE, known, ())
            if record.members:
                self._change(
                    coordinator, record.group, COMPLETING_REBALANCE, record.generation, record.members
                )
        self._change(coordinator, record.group, state, record.generation, record.members)

    def _change(
        self, coordinator: int, group: str, state: str, generation: int, members: tuple[str, ...]
    ) -> None:
        known, of = self._states.get(group, (EMPTY, 0))
        if (known, of) == (state, generation) or (state == COMPLETING_REBALANCE and of > generation):
            return
        # A generation that is told of before it is written is not the group's yet.
        self._states[group] = state, generation if state in (STABLE, EMPTY) else of
        if known != state or state not in _REBALANCING:
            self._report(GroupStateChanged, coordinator, group, state, generation, members, "")

    def _commit(self, coordinator: int, commits: list[GroupRecord], generation: int, present: int) -> None:
        offsets = tuple(
            (self._names.own_partition(record.partition), record.offset)
            for record in commits
            if record.partition is not None
        )
        if offsets:
            self._report(OffsetsCommitted, coordinator, commits[0].group, "", generation, present, offsets)
