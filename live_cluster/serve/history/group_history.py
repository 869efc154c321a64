"""Turns what the groups of real clients do into history: assignments, commits, positions.

A client is known by its ``client.id``. The connections over which it fetches belong to its group if
it has only one. A group whose positions somebody chose, by a seek or by a commit without being a
member, is not judged: records may be passed over on purpose.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from harrow.checks.evidence import ConsumerSettings
from harrow.cluster_model import errors
from harrow.cluster_model.clients.consumer import EARLIEST, LATEST
from harrow.cluster_model.coordinators.protocol import (
    LEAVE_EPOCH,
    LEAVE_STATIC_EPOCH,
    NO_GENERATION,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    EndTxnRequest,
    LeaveGroupRequest,
    LeaveGroupResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    SyncGroupRequest,
    SyncGroupResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from harrow.cluster_model.events import GroupOffsetFound, PartitionsAssigned
from harrow.cluster_model.history import FAIL, INFO, INVOKE, OK, History
from harrow.cluster_model.protocol import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    ListOffsetsRequest,
    ListOffsetsResponse,
)
from harrow.cluster_model.trace import Clock
from harrow.live_cluster.serve.contents.wire_contents import partition_names

_RESETS: Final = {EARLIEST_TIMESTAMP: EARLIEST, LATEST_TIMESTAMP: LATEST}

Emit = Callable[..., None]
"""Adds an event of a client to the trace (`Host.emit`)."""


class _GroupMember(NamedTuple):
    """A client in a group."""

    client: str
    group: str


class GroupHistory:
    """The groups of all clients."""

    def __init__(self, history: History, clock: Clock, has_partition: Callable[[str], bool]) -> None:
        self._history = history
        self._clock = clock
        self._has_partition = has_partition
        self._processes: dict[_GroupMember, int] = {}
        self._groups: dict[str, dict[str, None]] = {}
        self._resets: dict[str, dict[str, None]] = {}
        self._positioned: dict[str, None] = {}
        self._fetching: dict[str, None] = {}
        self._committed_in: dict[str, dict[str, None]] = {}
        # By group and partition: the end of what its clients have fetched.
        self._reached: dict[tuple[str, str], int] = {}
        # By client and partition: the committed offset that the client was told last.
        self._found: dict[tuple[str, str], int] = {}
        # By client and partition: where the partition begins or ends, as the client was told.
        self._looked_up: dict[tuple[str, str], dict[int, None]] = {}
        # By producer id and epoch: the commits of its open transaction.
        self._in_transactions: dict[tuple[int, int], list[tuple[int, Mapping[str, int]]]] = {}
        self._commits_sent: dict[tuple[int, int], None] = {}
        # The commits without an answer, by the identity of their requests.
        self._open: dict[int, tuple[object, int, Mapping[str, int]]] = {}

    def request(self, client: str, request: object) -> None:
        """Record a request that arrives."""
        if isinstance(request, OffsetCommitRequest | TxnOffsetCommitRequest):
            process = self._process(client, request.group)
            self._note_position(request)
            self._committed_in.setdefault(request.group, {}).update(dict.fromkeys(request.offsets))
            self._commit(process, request.offsets.items(), INVOKE)
            self._open[id(request)] = request, process, request.offsets
        elif isinstance(request, OffsetFetchRequest):
            # A consumer that assigns itself partitions is no member, but reads for the group.
            self._groups.setdefault(client, {})[request.group] = None
        elif isinstance(request, ListOffsetsRequest):
            for partition in request.partitions:
                timestamp = request.timestamps.get(partition, request.timestamp)
                if timestamp in _RESETS:
                    self._resets.setdefault(client, {})[_RESETS[timestamp]] = None
        elif isinstance(request, EndTxnRequest) and request.committed:
            self._commits_sent[request.producer_id, request.producer_epoch] = None

    def answer(self, client: str, request: object, answer: object, emit: Emit) -> None:
        """Record an answer that the client gets; *emit* adds the client's events to the trace."""
        self._open.pop(id(request), None)
        self._answer_with_offsets(client, request, answer, emit)
        self._answer_to_member(client, request, answer, emit)

    def _answer_with_offsets(self, client: str, request: object, answer: object, emit: Emit) -> None:
        if isinstance(request, OffsetCommitRequest) and isinstance(answer, OffsetCommitResponse):
            self._committed(self._process(client, request.group), request.offsets, answer.partitions)
        elif isinstance(request, TxnOffsetCommitRequest) and isinstance(answer, TxnOffsetCommitResponse):
            self._committed_in_transaction(client, request, answer)
        elif isinstance(request, OffsetFetchRequest) and isinstance(answer, OffsetFetchResponse):
            for partition, (error, offset) in answer.partitions.items():
                if error == errors.NONE:
                    self._found[client, partition] = offset
                    emit(GroupOffsetFound, client, partition, offset)
        elif isinstance(request, ListOffsetsRequest) and isinstance(answer, ListOffsetsResponse):
            for partition, (error, offset) in answer.partitions.items():
                timestamp = request.timestamps.get(partition, request.timestamp)
                if error == errors.NONE and timestamp in _RESETS:
                    self._looked_up.setdefault((client, partition), {})[offset] = None

    def _answer_to_member(self, client: str, request: object, answer: object, emit: Emit) -> None:
        if isinstance(request, SyncGroupRequest) and isinstance(answer, SyncGroupResponse):
            if answer.error == errors.NONE:
                self._assign(client, request.group, request.generation, answer.partitions, emit)
        elif isinstance(request, LeaveGroupRequest) and isinstance(answer, LeaveGroupResponse):
            self._leave(client, request.group)
        elif (
            isinstance(request, ConsumerGroupHeartbeatRequest)
            and isinstance(answer, ConsumerGroupHeartbeatResponse)
            and answer.error == errors.NONE
        ):
            if request.epoch in (LEAVE_EPOCH, LEAVE_STATIC_EPOCH):
                self._leave(client, request.group)
            elif answer.assignment is not None:
                self._assign(client, request.group, answer.epoch, answer.assignment, emit)

    def fetched(self, client: str, partition: str, begin: int, end: int) -> None:
        """Note which records of a partition a client has fetched."""
        self._fetching[client] = None
        group = self.group_of(client)
        reached = self._reached.get((group, partition))
        is_reset = reached is None and begin in self._looked_up.get((client, partition), ())
        if begin > (reached or 0) and begin != self._found.get((client, partition)) and not is_reset:
            self._positioned[group] = None
        self._reached[group, partition] = max(reached or 0, end)

    def end_transaction(self, request: EndTxnRequest) -> None:
        """Record that the offsets of a transaction are committed, or not."""
        key = request.producer_id, request.producer_epoch
        self._commits_sent.pop(key, None)
        for process, offsets in self._in_transactions.pop(key, ()):
            self._commit(process, offsets.items(), OK if request.committed else FAIL)

    def close(self) -> None:
        """Record that the outcomes that are still open stay unknown."""
        for _, process, offsets in self._open.values():
            self._commit(process, offsets.items(), INFO)
        self._open.clear()
        for key, commits in self._in_transactions.items():
            for process, offsets in commits:
                self._commit(process, offsets.items(), INFO if key in self._commits_sent else FAIL)
        self._in_transactions.clear()

    def group_of(self, client: str) -> str:
        """Return the group of a client; empty if it has none or several."""
        groups = self._groups.get(client, {})
        return next(iter(groups)) if len(groups) == 1 else ""

    def judged_group_of(self, client: str) -> str:
        """Return the group of a client; empty if it cannot be judged."""
        group = self.group_of(client)
        return group if group and self._is_judged(group) else ""

    def _is_judged(self, group: str) -> bool:
        """Return whether it is known what a group has read, and nobody chose its positions."""
        shared = any(
            len(groups) > 1 and group in groups and client in self._fetching
            for client, groups in self._groups.items()
        )
        read = all((group, partition) in self._reached for partition in self._committed_in.get(group, ()))
        return read and not shared and group not in self._positioned

    def offset_reset_of(self, group: str) -> str:
        """Return the ``auto.offset.reset`` of a group, as far as its clients show it.

        A client looks up the offset with which it begins. If no client did, or one looked up the
        end of a partition, the group may begin anywhere, as with ``latest``.
        """
        resets = {
            reset
            for client, groups in self._groups.items()
            if group in groups
            for reset in self._resets.get(client, ())
        }
        return EARLIEST if resets == {EARLIEST} else LATEST

    def consumers(self) -> dict[int, ConsumerSettings]:
        """Return the settings of the processes that commit for groups."""
        return {
            process: self.settings_of(member.client, read_committed=False)
            for member, process in self._processes.items()
        }

    def settings_of(self, client: str, *, read_committed: bool) -> ConsumerSettings:
        group = self.judged_group_of(client)
        return ConsumerSettings(
            name=client,
            read_committed=read_committed,
            group=group,
            offset_reset=self.offset_reset_of(group) if group else "",
        )

    def _process(self, client: str, group: str) -> int:
        member = _GroupMember(client, group)
        if member not in self._processes:
            self._processes[member] = self._history.new_process(client)
            self._groups.setdefault(client, {})[group] = None
        return self._processes[member]

    def _note_position(self, request: OffsetCommitRequest | TxnOffsetCommitRequest) -> None:
        """Note a commit that nobody has read up to, if it is from no member."""
        if isinstance(request, OffsetCommitRequest) and request.generation == NO_GENERATION:
            for partition, offset in request.offsets.items():
                if offset > self._reached.get((request.group, partition), 0):
                    self._positioned[request.group] = None

    def _commit(self, process: int, offsets: Iterable[tuple[str, int]], kind: str, error: str = "") -> None:
        self._history.record_commit(process, offsets, self._clock.now_us, kind, error or None)

    def _committed(self, process: int, offsets: Mapping[str, int], outcome: Mapping[str, str]) -> None:
        accepted = [(name, offsets[name]) for name, error in outcome.items() if error == errors.NONE]
        if accepted:
            self._commit(process, accepted, OK)
        for name, error in outcome.items():
            if error != errors.NONE:
                self._commit(process, [(name, offsets[name])], FAIL, error)

    def _committed_in_transaction(
        self, client: str, request: TxnOffsetCommitRequest, answer: TxnOffsetCommitResponse
    ) -> None:
        process = self._process(client, request.group)
        refused = {name: error for name, error in answer.partitions.items() if error != errors.NONE}
        self._committed(process, request.offsets, refused)
        accepted = {name: offset for name, offset in request.offsets.items() if name not in refused}
        key = request.producer_id, request.producer_epoch
        self._in_transactions.setdefault(key, []).append((process, accepted))

    def _assign(self, client: str, group: str, generation: int, names: Iterable[str], emit: Emit) -> None:
        process = self._process(client, group)
        partitions = tuple(filter(self._has_partition, partition_names(names)))
        emit(PartitionsAssigned, client, group, generation, partitions)
        self._history.record_assignment(process, partitions, self._clock.now_us)

    def _leave(self, client: str, group: str) -> None:
        self._history.record_assignment(self._process(client, group), (), self._clock.now_us)
