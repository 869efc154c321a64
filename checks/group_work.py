"""Collects what groups did with their partitions: polls, commits, and results."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from operator import itemgetter
from typing import Any, NamedTuple

from harrow.checks.evidence import ApplicationSettings, Evidence
from harrow.checks.history.index import HistoryIndex
from harrow.checks.history.records import ACKED, UNKNOWN, UNSURE, PartitionHistory, Transaction, Value
from harrow.checks.last_logs import LastLogs
from harrow.checks.transaction_fates import ABORTED, COMMITTED, TransactionPart, fate_of
from harrow.cluster_model.history import COMMIT, INVOKE, OK, POLL, STORE, columns_of, origin_of
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.topology import EXACTLY_ONCE


class MemberPoll(NamedTuple):
    """A member polled records of a partition, from the first to the last of these offsets."""

    at_us: int
    process: int
    first: int
    last: int


class MemberCommit(NamedTuple):
    """A member's commit of a position succeeded."""

    at_us: int
    process: int
    offset: int


@dataclass(frozen=True, slots=True)
class Effect:
    """A result of an input record. It was acknowledged or can be read, so it counts.

    ``row`` is the row of the result's send; a result that is stored outside of Kafka has none.
    """

    at_us: int
    process: int
    value: str
    row: int = UNKNOWN


@dataclass(slots=True)
class GroupPartition:
    """The polls and commits of a group's members in a partition, each in order.

    ``passed`` is the highest committed position, below which the group is done.
    """

    polls: list[MemberPoll] = field(default_factory=list)
    commits: list[MemberCommit] = field(default_factory=list)
    passed: int = 0

    def commit(self, commit: MemberCommit) -> None:
        self.commits.append(commit)
        self.passed = max(commit.offset, self.passed)

    def readers_of(self, offset: int) -> list[MemberPoll]:
        return [poll for poll in self.polls if poll.first <= offset <= poll.last]


class GroupWork:
    """The work of all groups by partition, and the results of applications by value.

    *logs* are the final logs of the last leaders. *offset_parts* are the commits of offsets in
    transactions (`harrow.checks.index.Index.offset_parts`).

    ``partitions`` has the polls and commits of each group by partition, ``applications`` the
    applications of each group, and ``effects`` their results, by group and by the value of the
    input record.
    """

    def __init__(
        self,
        evidence: Evidence,
        history: HistoryIndex,
        logs: LastLogs,
        offset_parts: Mapping[tuple[str, str, int], Sequence[tuple[int, TransactionPart]]],
    ) -> None:
        self._evidence = evidence
        self._history = history
        self._logs = logs
        self._offset_parts = offset_parts
        self._records: dict[str, dict[int, Value]] = {}
        self._copies: dict[str, dict[Value, int]] = {}
        self._offsets_sent: dict[int, list[tuple[int, Sequence[tuple[str, str, int]]]]] = {}
        self._committers: dict[int, int] = {}
        self.partitions: dict[str, dict[str, GroupPartition]] = {}
        self.applications: dict[str, list[ApplicationSettings]] = {}
        self.effects: dict[str, dict[str, list[Effect]]] = {}
        for application in evidence.applications:
            self.applications.setdefault(application.group, []).append(application)
            self.effects.setdefault(application.group, {})
        self._groups = {
            process: settings.group for process, settings in evidence.consumers.items() if settings.group
        }
        if self._groups:
            self._read_operations()
        self._read_sends()

    @property
    def groups(self) -> Sequence[str]:
        return tuple(dict.fromkeys(self._groups.values()))

    def reading_since(self, group: str, topic: str) -> int | None:
        """Return when a member first polled a topic or committed for it, None if none did."""
        first_us = (
            work[0].at_us
            for name, done in self.partitions.get(group, {}).items()
            if name.rpartition("-")[0] == topic
            for work in (done.polls, done.commits)
            if work
        )
        return min(first_us, default=None)

    def client(self, process: int) -> str:
        return self._evidence.process_names[process]

    def members(self, group: str) -> frozenset[str]:
        return frozenset(self.client(process) for process, name in self._groups.items() if name == group)

    def _partition_of(self, process: int, partition: str) -> GroupPartition:
        return self.partitions.setdefault(self._groups[process], {}).setdefault(partition, GroupPartition())

    def _read_operations(self) -> None:
        """Read the polls, commits and stores of members; other processes are ignored."""
        for application in self._evidence.applications:
            if application.delivery == EXACTLY_ONCE:
                self._committers |= zip(application.producers, application.consumers, strict=False)
        in_transactions = frozenset(self._committers.values())
        position = -1
        for _, processes, types, fs, values, times_us, _ in columns_of(self._evidence.operations):
            for process, type_, f, value, at_us in zip(processes, types, fs, values, times_us, strict=True):
                position += 1
                if process not in self._groups:
                    continue
                if f == COMMIT and process in in_transactions:
                    if type_ == INVOKE:
                        self._offsets_sent.setdefault(process, []).append((position, value))
                    else:
                        self._note_in_transaction(process, value, at_us, is_acked=type_ == OK)
                elif type_ == OK:
                    self._note(process, f, value, at_us)

    def _note(self, process: int, f: str, value: Sequence[Any], at_us: int) -> None:
        if f == POLL:
            for name, pairs in value[0][1].items():
                if pairs:
                    polled = MemberPoll(at_us, process, pairs[0][0], pairs[-1][0])
                    self._partition_of(process, name).polls.append(polled)
        elif f == COMMIT:
            for _, name, offset in value:
                self._partition_of(process, name).commit(MemberCommit(at_us, process, offset))
        elif f == STORE:
            self._note_stored(process, value, at_us)

    def offsets_of(self, transaction: Transaction) -> Iterator[tuple[int, tuple[str, str, int]]]:
        """Yield the commits of offsets in a transaction: time, group, partition and position.

        The application commits them after its first record, and before it ends the transaction.
        """
        process = self._committers.get(transaction.process, UNKNOWN)
        begin = self._history.records.invoked[transaction.sends[0][1]]
        sent = self._offsets_sent.get(process, ())
        for position, value in sent[bisect_left(sent, begin, key=itemgetter(0)) :]:
            if position > transaction.position:
                break
            for _, partition, offset in value:
                yield self._history.times_us[position], (self._groups[process], partition, offset)

    def _note_in_transaction(
        self, process: int, value: Sequence[tuple[str, str, int]], at_us: int, *, is_acked: bool
    ) -> None:
        """Add the commits of a transaction that took effect.

        The marker decides; only if the log has none, the answer to the application decides.
        """
        for _, name, offset in value:
            commits = self._offset_parts.get((self._groups[process], name, offset), ())
            fate = fate_of([part for _, part in commits])
            if fate == COMMITTED or (fate != ABORTED and is_acked):
                self._partition_of(process, name).commit(MemberCommit(at_us, process, offset))

    def _note_stored(
        self, process: int, value: Sequence[tuple[str, str, tuple[int, str]]], at_us: int
    ) -> None:
        for _, name, (offset, result) in value:
            self._partition_of(process, name).commit(MemberCommit(at_us, process, offset + 1))
            self._note_effect(self._groups[process], Effect(at_us, process, result))

    def _note_effect(self, group: str, effect: Effect) -> None:
        origin = origin_of(effect.value)
        if origin is not None:
            self.effects[group].setdefault(origin, []).append(effect)

    def _read_sends(self) -> None:
        history = self._history
        writers = {
            process: application
            for application in self._evidence.applications
            if application.target is not None
            for process in application.producers
        }
        for session in history.sessions if writers else ():
            application = writers.get(session.process)
            if application is not None:
                partition = history.partitions[session.partition]
                for row in session.rows:
                    if self.counts(partition, row):
                        at_us = history.times_us[history.records.invoked[row]]
                        value = str(history.records.values[row])
                        self._note_effect(application.group, Effect(at_us, session.process, value, row))

    def counts(self, partition: PartitionHistory, row: int) -> bool:
        """Return whether a sent record was certainly written, and not aborted.

        If the log has the record in a transaction with a marker, the marker decides. Any other
        record counts if it was acknowledged. It also counts if its outcome is unknown and a
        consumer has read it; a record of a transactional producer counts only if that consumer was
        read_committed.
        """
        records, history = self._history.records, self._history
        fate = self._logs.fate(partition.name, records.values[row])
        if fate in (COMMITTED, ABORTED):
            return fate == COMMITTED
        outcome = records.outcomes[row]
        if outcome != UNSURE:
            return outcome == ACKED
        polled_by = records.polled_by[row]
        if polled_by == UNKNOWN:
            return False
        sender = self._evidence.producers.get(history.processes[records.invoked[row]])
        if sender is None or not sender.transactional_id:
            return True
        reader = self._evidence.consumers.get(history.processes[polled_by])
        return reader is not None and reader.read_committed

    def records_of(self, partition: str) -> Mapping[int, Value]:
        """Return the committed records in a partition's last leader's log, by offset."""
        if partition not in self._records:
            history = self._history.partitions.get(partition)
            self._records[partition] = {
                offset: value
                for offset, value in enumerate(self._logs.values_of(partition))
                if value is not None and (history is None or self._is_committed(history, value))
            }
        return self._records[partition]

    def sources(self, group: str) -> list[str]:
        topics = {application.source for application in self.applications.get(group, ())}
        return [name for name in self._evidence.replicas if name.rpartition("-")[0] in topics]

    def copies(self, group: str) -> Mapping[Value, int]:
        """Return the number of copies of each input record that has several."""
        if group not in self._copies:
            counts = Counter(
                value for partition in self.sources(group) for value in self.records_of(partition).values()
            )
            self._copies[group] = {value: times for value, times in counts.items() if times > 1}
        return self._copies[group]

    def _is_committed(self, partition: PartitionHistory, value: Value) -> bool:
        first = partition.rows.get(value)
        if first is None:
            return True
        return any(self.counts(partition, row) for row in partition.sent_again.get(value, (first,)))
