"""Indexes a history once for all rules: sends, polled records, and the jumps of consumers.

Operations are added one by one and not stored, so that a stream of many hours can be judged. Of a
poll, only the records are stored. If a consumer continues at the very next offset, nothing else is
stored. Otherwise it jumped, and the records before and after the jump are stored, because the
offsets that the partition has are known only at the end of the history.

The cost of an operation does not depend on the number of partitions and processes. The cost of a
poll depends on the partitions of the records that it returned, not on the assigned partitions.
"""

from array import array
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from itertools import chain
from operator import methodcaller
from typing import Any, Final, NamedTuple

from harrow.checks.history.records import (
    ACKED,
    FAILED,
    NEVER_SENT,
    OUTCOMES,
    PENDING,
    UNKNOWN,
    UNSURE,
    PartitionHistory,
    ProducerSession,
    Records,
    SendRecord,
    Transaction,
    Value,
    append_ints,
)
from harrow.checks.history.removed_records import RemovedRecords
from harrow.cluster_model.history import (
    ASSIGN,
    FAIL,
    INFO,
    INVOKE,
    OK,
    POLL,
    READING_OR_WRITING,
    SEND,
    SUBSCRIBE,
    TXN,
    Operation,
    columns_of,
)
from harrow.cluster_model.lazy_dataclass import dataclass

NO_PROCESS: Final = -1
"""The process number of operations that belong to no client."""

_NOTHING: Final[frozenset[str]] = frozenset()
_NO_REBALANCE: Final[Mapping[int, frozenset[str]]] = {}
_ASSIGNING: Final = frozenset({ASSIGN, SUBSCRIBE})
_PAIRS: Final = frozenset({tuple, list})
_NO_MICRO_OPERATION: Final[Sequence[Any]] = (None,)
_CHANGES_NOTHING: Final = frozenset({INVOKE, FAIL})
_WORDS: Final = {code: word for word, code in OUTCOMES.items()}

# Measured memory of the parts of a history in bytes: python -m tests.hostile.large_histories.
_BASE_BYTES: Final = 160 << 20
_POSITION_BYTES: Final = 28
_ROW_BYTES: Final = 320
_PARTITION_BYTES: Final = 2_400
_CLIENT_BYTES: Final = 500
_SESSION_BYTES: Final = 300
_TRANSACTION_BYTES: Final = 1_000
_SENT_TOGETHER_BYTES: Final = 800
_ENTRY_BYTES: Final = 250

_size_of: Final = methodcaller("__sizeof__")

_Pairs = Sequence[Sequence[Any]]
_Place = tuple[int, int, int]
"""Where a process is in a partition: the next offset, the row of the last record, and the position
of the operation that polled this record."""


def _value_of(written: Any) -> Value:
    """Return the value of a sent record, which may stand with its offset."""
    value: Value = written[1] if type(written) in _PAIRS else written
    return value


class OperationColumns(NamedTuple):
    """Operations of a history, column by column.

    The micro-operations in ``values`` are those of `harrow.cluster_model.history`, as lists or
    tuples. ``numbers`` are the indices that the history gives to the operations. ``rebalances`` has
    the partitions that a consumer lost or got during an operation, by the operation's place in the
    columns.
    """

    processes: Sequence[int]
    types: Sequence[str]
    fs: Sequence[str]
    values: Sequence[Any]
    times_us: Sequence[int]
    numbers: Sequence[int]
    rebalances: Mapping[int, frozenset[str]] = _NO_REBALANCE


@dataclass(slots=True, eq=False)
class _Client:
    """The state of a process.

    ``positions`` has its place in each partition that it has read. ``unnamed`` is true from an
    assignment to the next ok poll; until this poll, the index does not contain the assigned
    partitions. ``invoked`` is its last invocation, ``polled`` its last ok poll since its last
    assignment, ``polled_invoked`` the invocation of that poll.
    """

    positions: dict[str, _Place] = field(default_factory=dict)
    sessions: dict[str, ProducerSession] = field(default_factory=dict)
    assigned: dict[str, None] = field(default_factory=dict)
    subscribed: bool = False
    unnamed: bool = False
    invoked: int = UNKNOWN
    polled: int = UNKNOWN
    polled_invoked: int = UNKNOWN


class HistoryIndex:
    """The indexes of a history. Partitions are in the order in which the history first names them.

    ``processes``, ``times_us`` and ``numbers`` have an entry for each operation, by its position;
    ``numbers`` has the index that the history itself gives to the operation. If
    ``names_transactions_sends`` is true, the history calls a transaction without polls `send`, as
    Jepsen does. ``transactions`` are the transactions with sends, and ``transaction_of`` has them
    by the rows of their sends. ``passed_over`` counts the lines of processes that are not clients.
    ``removed`` describes the records of a reduced history that were left out, and is None for a
    whole history. ``polls_in_turn`` says whether an operation polled a partition at the position
    where an earlier operation of its process had left it, ``polls_together`` whether one operation
    polled several records of a partition that was not rebalanced. `finish` ends the history.
    """

    __slots__ = (
        *("_clients", "_entries", "_unnamed", "_values_bytes", "_values_counted"),
        *("names_transactions_sends", "numbers", "partitions"),
        *("passed_over", "polls_in_turn", "polls_together", "processes", "records", "removed"),
        *("sessions", "times_us", "transaction_of", "transactions"),
    )

    def __init__(
        self, operations: Sequence[Operation] = (), *, removed: RemovedRecords | None = None
    ) -> None:
        self.removed = removed
        self.partitions: dict[str, PartitionHistory] = {}
        self.records = Records()
        self.processes = array("q")
        self.times_us = array("q")
        self.numbers = array("q")
        self.sessions: list[ProducerSession] = []
        self.transactions: list[Transaction] = []
        self.transaction_of: dict[int, Transaction] = {}
        self.passed_over = 0
        self.names_transactions_sends = False
        self.polls_in_turn = removed is not None and removed.polls_in_turn
        self.polls_together = removed is not None and removed.polls_together
        self._clients: dict[int, _Client] = {}
        self._unnamed = 0
        self._entries = 0
        self._values_bytes = self._values_counted = 0
        for numbers, processes, types, fs, values, times_us, _ in columns_of(operations):
            self.add(OperationColumns(processes, types, fs, values, times_us, numbers))
        if operations:
            self.finish()

    def add(self, operations: OperationColumns) -> None:
        """Add the next operations."""
        begin = position = len(self.processes)
        processes, types, fs, values, times_us, numbers, rebalances = operations
        append_ints(self.processes, processes)
        append_ints(self.times_us, times_us)
        append_ints(self.numbers, numbers)
        for process, type_, f, value in zip(processes, types, fs, values, strict=True):
            if f in READING_OR_WRITING:
                rebalanced = rebalances.get(position - begin, _NOTHING) if rebalances else _NOTHING
                micro = value[0] if len(value) == 1 else _NO_MICRO_OPERATION
                function: str | None = micro[0]
                if function is not None and function == POLL:
                    self._add_poll(process, type_, micro, position, rebalanced)
                elif function is None or (f == TXN and type_ != INVOKE):
                    self.names_transactions_sends |= f == SEND and len(value) != 1
                    self._add_several(process, type_, value, position, rebalanced)
                elif type_ == INVOKE:
                    self._invoke(process, micro[1], _value_of(micro[2]), position)
                else:
                    self._complete(process, micro[1], micro[2], position, type_)
            elif f in _ASSIGNING and type_ not in _CHANGES_NOTHING:
                self._assign(process, value, subscribed=f == SUBSCRIBE)
            position += 1

    def pass_over(self, time_us: int, number: int) -> None:
        """Add an operation that belongs to no client."""
        self.passed_over += 1
        self.processes.append(NO_PROCESS)
        self.times_us.append(time_us)
        self.numbers.append(number)

    def next_number(self) -> int:
        """Return the number of the next operation, if the history does not number it."""
        return len(self.processes)

    def take_any_offset(self) -> None:
        self.records.take_any_offset()

    @property
    def sends_total(self) -> int:
        removed = self.removed.sent if self.removed is not None else 0
        return removed + sum(len(session.rows) for session in self.sessions)

    @property
    def acked_total(self) -> int:
        removed = self.removed.acked if self.removed is not None else 0
        return removed + sum(len(partition.acked) for partition in self.partitions.values())

    @property
    def polled_total(self) -> int:
        """Count polled records. A record that was polled repeatedly counts once."""
        removed = self.removed.polled if self.removed is not None else 0
        return removed + sum(len(partition.polled) for partition in self.partitions.values())

    @property
    def has_offsets(self) -> bool:
        """Whether acks or polls name the offset of any record."""
        if self.polled_total or (self.removed is not None and self.removed.acked):
            return True
        acked_at = self.records.acked_at
        return any(
            acked_at[row] != UNKNOWN for partition in self.partitions.values() for row in partition.acked
        )

    def memory_bytes(self) -> int:
        """Estimate how much memory this history takes, beyond the minimum, while it is judged."""
        values = self.records.values
        self._values_bytes += sum(map(_size_of, values[self._values_counted :]))
        self._values_counted = len(values)
        return (
            _BASE_BYTES
            + self._values_bytes
            + len(self.processes) * _POSITION_BYTES
            + len(values) * _ROW_BYTES
            + len(self.partitions) * _PARTITION_BYTES
            + len(self._clients) * _CLIENT_BYTES
            + len(self.sessions) * _SESSION_BYTES
            + len(self.transactions) * _TRANSACTION_BYTES
            + len(self.transaction_of) * _SENT_TOGETHER_BYTES
            + self._entries * _ENTRY_BYTES
        )

    def send(self, partition: str, row: int) -> SendRecord:
        records = self.records
        invoked, completed = records.invoked[row], records.completed[row]
        return SendRecord(
            process=self.processes[invoked],
            partition=partition,
            value=records.values[row],
            invoked=invoked,
            invoked_us=self.times_us[invoked],
            outcome=_WORDS[records.outcomes[row]],
            offset=records.offset(row),
            completed=completed,
            completed_us=None if completed == UNKNOWN else self.times_us[completed],
        )

    def sends_of(self, partition: PartitionHistory, value: Value) -> Sequence[int]:
        """Return the rows of the sends of a value, in the order of their invocations.

        Nothing is copied, because a value may have been sent very often.
        """
        first = partition.rows.get(value)
        if first is None or self.records.outcomes[first] == NEVER_SENT:
            return ()
        return partition.sent_again.get(value) or (first,)

    def finish(self) -> None:
        """End the history: a send without a completion has an unknown outcome."""
        records = self.records
        records.pack()
        pending: dict[int, list[tuple[str, int]]] = {}
        for session in self.sessions if PENDING in records.outcomes else ():
            for row in session.rows:
                if records.outcomes[row] == PENDING:
                    records.outcomes[row] = UNSURE
                    self.partitions[session.partition].unsure.append(row)
                    pending.setdefault(records.invoked[row], []).append((session.partition, row))
        for position, sends in pending.items():
            if len(sends) > 1:
                self._add_transaction(Transaction(self.processes[position], position, INFO), sends)
        for client in self._clients.values():
            self._note_all_dry(client)
        if self.removed is not None:
            for name, partition in self.partitions.items():
                polled_dry = self.removed.read_dry.get(name, (UNKNOWN, UNKNOWN))
                partition.read_dry, partition.read_dry_by = polled_dry

    def _partition(self, name: str) -> PartitionHistory:
        partition = self.partitions.get(name)
        if partition is None:
            partition = self.partitions[name] = PartitionHistory(name)
        return partition

    def _client(self, process: int) -> _Client:
        client = self._clients.get(process)
        if client is None:
            client = self._clients[process] = _Client()
        return client

    def _add_transaction(self, transaction: Transaction, sends: Iterable[tuple[str, int]]) -> None:
        transaction.sends.extend(sends)
        for _, row in transaction.sends:
            self.transaction_of[row] = transaction
        self.transactions.append(transaction)

    def _add_poll(
        self, process: int, type_: str, micro: Sequence[Any], position: int, rebalanced: frozenset[str]
    ) -> None:
        client = self._clients.get(process) or self._client(process)
        if type_ == INVOKE:
            client.invoked = position
        elif len(micro) > 1:
            if type_ == OK:
                self._read(client, micro[1], position, rebalanced)
                self._end_ok_poll(client, position)
            else:
                self._read_in_vain(client, (micro[1],), position, rebalanced)

    def _add_several(
        self,
        process: int,
        type_: str,
        value: Sequence[Any],
        position: int,
        rebalanced: frozenset[str],
    ) -> None:
        client = self._client(process)
        sends = [micro for micro in value if micro[0] == SEND]
        if type_ == INVOKE:
            client.invoked = position
            for _, name, written in sends:
                self._invoke(process, name, _value_of(written), position)
            return
        polls = [micro[1] for micro in value if micro[0] == POLL and len(micro) > 1]
        if type_ != OK:
            self._read_in_vain(client, polls, position, rebalanced)
        elif polls:
            for records in polls:
                self._read(client, records, position, rebalanced)
            self._end_ok_poll(client, position)
        if not sends:
            return
        transaction = Transaction(process, position, type_)
        for records in polls:
            for partition, pairs in records.items():
                self._entries += len(pairs)
                transaction.reads.setdefault(partition, []).extend(map(tuple, pairs))
        rows = [(name, self._complete(process, name, written, position, type_)) for _, name, written in sends]
        for name, row in rows if type_ == FAIL else ():
            self.partitions[name].aborted[row] = None
        self._add_transaction(transaction, rows)

    def _invoke(self, process: int, name: str, value: Value, position: int) -> int:
        partition = self.partitions.get(name) or self._partition(name)
        records = self.records
        row = partition.rows.get(value)
        if row is None:
            row = partition.rows[value] = records.add(value)
        elif records.outcome(row) != NEVER_SENT:
            row = self._invoke_again(partition, process, value, row)
        records.invoke(row, position)
        client = self._clients.get(process) or self._client(process)
        session = client.sessions.get(name)
        if session is None:
            session = client.sessions[name] = ProducerSession(process, name)
            self.sessions.append(session)
        session.rows.append(row)
        return row

    def _invoke_again(self, partition: PartitionHistory, process: int, value: Value, first: int) -> int:
        records = self.records
        rows = partition.sent_again.get(value)
        if rows is None:
            rows = partition.sent_again[value] = [first]
            partition.open_sends[value, self.processes[records.invocation(first)]] = deque([first])
        row = records.add(value)
        rows.append(row)
        self._entries += 4
        open_sends = partition.open_sends.get((value, process))
        if open_sends is None:
            open_sends = partition.open_sends[value, process] = deque()
        open_sends.append(row)
        return row

    def _complete(self, process: int, name: str, written: Any, position: int, type_: str) -> int:
        """Match a completion to its invocation: a producer may have several sends in flight."""
        offset: int | None
        offset, value = (written[0], written[1]) if type(written) in _PAIRS else (None, written)
        partition = self.partitions.get(name) or self._partition(name)
        records = self.records
        row = partition.rows.get(value)
        if (
            row is None
            or records.outcome(row) != PENDING
            or self.processes[records.invocation(row)] != process
            or (partition.sent_again and value in partition.sent_again)
        ):
            row = self._first_open(partition, process, value)
            if row is None:
                row = self._invoke(process, name, value, position)
        outcome = OUTCOMES[type_]
        records.complete(row, position, outcome, offset)
        if outcome == ACKED:
            partition.acked.append(row)
        else:
            (partition.failed if outcome == FAILED else partition.unsure).append(row)
        return row

    def _first_open(self, partition: PartitionHistory, process: int, value: Value) -> int | None:
        """Return the first open send of a repeated value by a process, dropping ended sends.

        A producer completes the sends to a partition in their order.
        """
        rows = partition.open_sends.get((value, process))
        while rows:
            row = rows.popleft()
            if self.records.outcome(row) == PENDING:
                return row
        return None

    def _read(
        self, client: _Client, polled: Mapping[str, _Pairs], position: int, rebalanced: frozenset[str]
    ) -> None:
        """Add the records that a poll of an ok operation returned.

        If the process's previous ok poll returned nothing of a partition, the process had read the
        partition to its end. This is noted when it next gets a record of the partition, or at the
        end of the history, so that empty polls cost nothing.
        """
        partitions, positions, records = self.partitions, client.positions, self.records
        for name, pairs in polled.items():
            if not pairs:
                continue
            partition = partitions.get(name) or self._partition(name)
            rows = partition.rows
            before = positions.get(name)
            if before is None:
                self._entries += 1
                following, last, last_operation = pairs[0][0], UNKNOWN, position
                if name in client.assigned:
                    self._note_dry(client, partition)
            else:
                following, last, last_operation = before
                self.polls_in_turn |= last_operation != position
                if client.polled > last_operation:
                    self._note_dry(client, partition)
            has_several = len(pairs) > 1 or (before is not None and last_operation == position)
            self.polls_together |= has_several and name not in rebalanced
            for pair in pairs:
                offset: int = pair[0]
                row = rows.get(pair[1])
                if row is None or records.offset_polled(row) != offset:
                    row = self._row_at(partition, offset, pair[1])
                if records.poll(row, position):
                    partition.polled.append(row)
                else:
                    partition.is_polled_again = True
                if offset != following and not (last_operation == position and name in rebalanced):
                    partition.jumps.extend(
                        (last, row, last_operation, ~position if client.subscribed else position)
                    )
                last, last_operation, following = row, position, offset + 1
            positions[name] = (following, last, position)

    def _read_in_vain(
        self,
        client: _Client,
        polls: Iterable[Mapping[str, _Pairs]],
        position: int,
        rebalanced: frozenset[str],
    ) -> None:
        """Add the records polled by an operation that failed or whose outcome is unknown.

        Such an operation does not move the positions of its process.
        """
        ends: dict[str, _Place] = {}
        for name, pairs in chain.from_iterable(polled.items() for polled in polls):
            if pairs:
                partition = self._partition(name)
                self.polls_in_turn |= name in client.positions
                self.polls_together |= (len(pairs) > 1 or name in ends) and name not in rebalanced
                place = ends.get(name) or client.positions.get(name) or (pairs[0][0], UNKNOWN, position)
                for offset, value in pairs:
                    following, last, last_operation = place
                    row = self._row_at(partition, offset, value)
                    self._entries += 1
                    partition.is_polled_again |= row in partition.polled_in_vain
                    partition.polled_in_vain[row] = position
                    if offset != following and not (last_operation == position and name in rebalanced):
                        partition.jumps.extend(
                            (last, row, last_operation, ~position if client.subscribed else position)
                        )
                    place = offset + 1, row, position
                ends[name] = place

    def _row_at(self, partition: PartitionHistory, offset: int, value: Value) -> int:
        records = self.records
        row = partition.rows.get(value)
        if row is None:
            row = partition.rows[value] = records.add(value)
        elif records.offset_polled(row) == offset:
            return row
        elif records.offset_polled(row) != UNKNOWN:
            moved = partition.moved.setdefault(value, {})
            if offset in moved:
                return moved[offset]
            row = moved[offset] = records.add(value)
            self._entries += 2
        records.find_at(row, offset)
        return row

    def _end_ok_poll(self, client: _Client, position: int) -> None:
        if client.unnamed:
            client.unnamed = False
            self._unnamed -= 1
            for name in client.assigned:
                self._partition(name)
        client.polled = position
        client.polled_invoked = client.invoked

    def _note_dry(self, client: _Client, partition: PartitionHistory) -> None:
        """Note that a process's last ok poll returned nothing of a partition that it reads."""
        if client.polled > partition.read_dry_by and (
            not client.assigned or partition.name in client.assigned
        ):
            partition.read_dry_by = client.polled
            partition.read_dry = client.polled_invoked

    def _note_all_dry(self, client: _Client) -> None:
        if client.polled != UNKNOWN:
            for name in client.assigned or client.positions:
                before = client.positions.get(name)
                if before is None or client.polled > before[2]:
                    self._note_dry(client, self.partitions[name])

    def _assign(self, process: int, partitions: Iterable[str], *, subscribed: bool) -> None:
        """Apply a new assignment, which keeps positions only in the partitions that it names.

        An assignment with an unknown outcome counts, as in Jepsen's checker: no finding relies on
        positions that it may have changed.
        """
        client = self._client(process)
        self._note_all_dry(client)
        self._unnamed -= client.unnamed
        self._entries -= len(client.assigned) + len(client.positions)
        client.assigned = dict.fromkeys(partitions)
        client.positions = {
            name: place for name, place in client.positions.items() if name in client.assigned
        }
        client.sessions = {
            name: session for name, session in client.sessions.items() if name in client.assigned
        }
        self._entries += len(client.assigned) + len(client.positions)
        client.subscribed = subscribed
        client.unnamed = bool(client.assigned)
        self._unnamed += client.unnamed
        client.polled = UNKNOWN
