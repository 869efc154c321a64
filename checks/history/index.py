"""A history, sorted once for all rules: sends, what was polled, and where consumers jumped.

Operations are added one after the other and not kept, so that a history of hours can be
judged from a stream. What is kept of a poll are its records; where a consumer went on from
one offset to the very next there is nothing to remember, and of everywhere else only the two
offsets, until all offsets of the partition are known.
"""

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any, Final

from harrow.checks.history.records import Pair, PartitionHistory, ProducerSession, SendRecord, Transaction
from harrow.cluster_model.history import FAIL, INFO, INVOKE, OK, POLL, SEND, TXN, Operation

ASSIGN: Final = "assign"
SUBSCRIBE: Final = "subscribe"

NO_PROCESS: Final = -1
"""What stands in the place of a process that is no client."""

_NOTHING: Final[frozenset[str]] = frozenset()
_NO_REBALANCE: Final[Mapping[int, frozenset[str]]] = {}
_WRITING: Final = frozenset({SEND, TXN})
_READING_OR_WRITING: Final = frozenset({SEND, POLL, TXN})
_ASSIGNING: Final = frozenset({ASSIGN, SUBSCRIBE})
_PAIRS: Final = frozenset({tuple, list})
_CHANGES_NOTHING: Final = frozenset({INVOKE, FAIL})


@dataclass(slots=True, eq=False)
class _Client:
    """Where a process stands: the last pair that it read, with the operation, by partition."""

    positions: dict[str, tuple[Pair, int]] = field(default_factory=dict)
    sessions: dict[str, ProducerSession] = field(default_factory=dict)
    assigned: tuple[str, ...] = ()
    subscribed: bool = False
    invoked: int = -1


class HistoryIndex:
    """What rules look up of a history. Partitions are in the order in which it first names them.

    ``processes``, ``times_us`` and ``numbers`` (the index that an operation gives itself) are
    by position. ``transactions`` are the operations that did more than send one record or poll.
    ``passed_over`` counts the lines of what is no client. `finish` says that there is no more.
    """

    __slots__ = (
        *("_clients", "numbers", "partitions", "passed_over"),
        *("processes", "sessions", "times_us", "transactions"),
    )

    def __init__(self, operations: Sequence[Operation] = ()) -> None:
        self.partitions: dict[str, PartitionHistory] = {}
        self.processes: list[int] = []
        self.times_us = array("q")
        self.numbers = array("q")
        self.sessions: list[ProducerSession] = []
        self.transactions: list[Transaction] = []
        self.passed_over = 0
        self._clients: dict[int, _Client] = {}
        self.add(
            [operation.process for operation in operations],
            [operation.type for operation in operations],
            [operation.f for operation in operations],
            [operation.value for operation in operations],
            [operation.time_us for operation in operations],
            [operation.index for operation in operations],
        )
        if operations:
            self.finish()

    def add(
        self,
        processes: Sequence[int],
        types: Sequence[str],
        fs: Sequence[str],
        values: Sequence[Any],
        times_us: Sequence[int],
        numbers: Sequence[int],
        rebalances: Mapping[int, frozenset[str]] = _NO_REBALANCE,
    ) -> None:
        """Add the next operations, column by column.

        The micro-operations are those of `harrow.cluster_model.history`, lists as well as tuples;
        *numbers* are what the operations call themselves. *rebalances* are the partitions that
        a consumer lost or got meanwhile, by the place of the operation in the columns.
        """
        position = len(self.processes)
        self.processes += processes
        self.times_us.extend(times_us)
        self.numbers.extend(numbers)
        clients = self._clients
        for place, (process, type_, f, value) in enumerate(zip(processes, types, fs, values, strict=True)):
            client = clients.get(process)
            if client is None:
                client = clients[process] = _Client()
            if f in _WRITING and len(value) == 1 and value[0][0] == SEND:
                _, partition, written = value[0]
                if type_ == INVOKE:
                    self._invoke(client, process, partition, written, position)
                else:
                    self._complete(client, process, partition, written, position, type_)
            elif f in _READING_OR_WRITING:
                if type_ == INVOKE:
                    self._invoke_all(client, process, value, position)
                else:
                    rebalanced = rebalances.get(place, _NOTHING) if rebalances else _NOTHING
                    self._complete_all(client, process, value, position, type_, rebalanced)
            elif f in _ASSIGNING and type_ not in _CHANGES_NOTHING:
                _assign(client, value, subscribed=f == SUBSCRIBE)
            position += 1

    def pass_over(self, time_us: int, number: int) -> None:
        """Add an operation that is no client's."""
        self.passed_over += 1
        self.processes.append(NO_PROCESS)
        self.times_us.append(time_us)
        self.numbers.append(number)

    @property
    def sends_total(self) -> int:
        return sum(len(session.sends) for session in self.sessions)

    def finish(self) -> None:
        """Take what nothing came back of as unknown: the recording ended before."""
        pending: dict[int, list[SendRecord]] = {}
        for session in self.sessions:
            for send in session.sends:
                if send.outcome is None:
                    send.outcome = INFO
                    self.partitions[send.partition].unsure.append(send)
                    pending.setdefault(send.invoked, []).append(send)
        for position, sends in pending.items():
            if len(sends) > 1:
                transaction = Transaction(sends[0].process, position, INFO)
                transaction.sends = sends
                for send in sends:
                    send.transaction = transaction
                self.transactions.append(transaction)

    def _partition(self, name: str) -> PartitionHistory:
        partition = self.partitions.get(name)
        if partition is None:
            partition = self.partitions[name] = PartitionHistory(name)
        return partition

    def _invoke(
        self, client: _Client, process: int, partition: str, written: Any, position: int
    ) -> SendRecord:
        value = written if type(written) is str else written[1] if type(written) in _PAIRS else written
        send = SendRecord(process, partition, value, position, self.times_us[position])
        sends = (self.partitions.get(partition) or self._partition(partition)).sends
        known = sends.get(value)
        if known is None:
            sends[value] = [send]
        else:
            known.append(send)
        session = client.sessions.get(partition)
        if session is None:
            session = client.sessions[partition] = ProducerSession(process, partition)
            self.sessions.append(session)
        session.sends.append(send)
        return send

    def _complete(
        self, client: _Client, process: int, partition: str, written: Any, position: int, type_: str
    ) -> SendRecord:
        """Match a completion to its invocation: a producer has several sends outstanding."""
        offset, value = written if type(written) in _PAIRS else (None, written)
        known = self.partitions.get(partition) or self._partition(partition)
        for send in reversed(known.sends.get(value, ())):
            if send.outcome is None and send.process == process:
                break
        else:
            send = self._invoke(client, process, partition, value, position)
        send.outcome = type_
        send.completed = position
        send.completed_us = self.times_us[position]
        send.offset = offset
        if type_ == OK:
            known.acked.append(send)
        elif type_ == FAIL:
            known.failed.append(send)
        else:
            known.unsure.append(send)
        return send

    def _invoke_all(self, client: _Client, process: int, value: Sequence[Any], position: int) -> None:
        client.invoked = position
        for micro in value:
            if micro[0] == SEND:
                self._invoke(client, process, micro[1], micro[2], position)

    def _complete_all(
        self,
        client: _Client,
        process: int,
        value: Sequence[Any],
        position: int,
        type_: str,
        rebalanced: frozenset[str],
    ) -> None:
        ends: dict[str, tuple[Pair, int]] = {}
        if len(value) == 1 and len(value[0]) == 2:
            # One poll, and nothing else: most operations are this, or one send.
            self._poll(client, process, value[0][1], position, type_, ends, rebalanced)
            if type_ == OK:
                self._move(client, ends)
            return
        polls = [micro[1] for micro in value if micro[0] == POLL and len(micro) > 1]
        for records in polls:
            self._poll(client, process, records, position, type_, ends, rebalanced)
        if type_ == OK and polls:
            self._move(client, ends)
        sends = [micro for micro in value if micro[0] == SEND]
        if not sends:
            return
        transaction = Transaction(process, position, type_)
        for _, partition, written in sends:
            send = self._complete(client, process, partition, written, position, type_)
            send.transaction = transaction
            transaction.sends.append(send)
        for records in polls:
            for partition, pairs in records.items():
                transaction.reads.setdefault(partition, []).extend(map(tuple, pairs))
        self.transactions.append(transaction)

    def _move(self, client: _Client, ends: Mapping[str, tuple[Pair, int]]) -> None:
        """Note how far an ok operation has read, and of which partitions it got nothing."""
        for name in client.assigned or client.positions:
            if name not in ends:
                self._partition(name).read_dry = client.invoked
        client.positions.update(ends)

    def _poll(
        self,
        client: _Client,
        process: int,
        records: Mapping[str, Sequence[Sequence[Any]]],
        position: int,
        type_: str,
        ends: dict[str, tuple[Pair, int]],
        rebalanced: frozenset[str],
    ) -> None:
        """Take what one poll returned; *ends* is how far the operation has read so far."""
        for name, pairs in records.items():
            if not pairs:
                continue
            partition = self.partitions.get(name) or self._partition(name)
            read: list[Pair] = list(map(tuple, pairs))
            (partition.polled if type_ == OK else partition.polled_in_vain).update(
                zip(read, repeat(position))
            )
            first, last = read[0][0], read[-1][0]
            before = ends.get(name)
            if before is None:
                before = client.positions.get(name)
            if (
                before is not None
                and first != before[0][0] + 1
                and not (before[1] == position and name in rebalanced)
            ):
                partition.jumps.append((process, before[0], read[0], before[1], position, client.subscribed))
            if (
                len(read) > 1
                and (last - first != len(read) - 1 or not _one_after_the_other(read))
                and name not in rebalanced
            ):
                partition.jumps += zip(
                    repeat(process),
                    read,
                    read[1:],
                    repeat(position),
                    repeat(position),
                    repeat(client.subscribed),
                )
            ends[name] = (read[-1], position)


def _one_after_the_other(read: Sequence[Pair]) -> bool:
    """Return whether offsets rise by one, of which the last is as far from the first as that takes."""
    if len(read) <= 2:
        return True
    first = read[0][0]
    return [offset for offset, _ in read] == list(range(first, first + len(read)))


def _assign(client: _Client, partitions: Sequence[str], *, subscribed: bool) -> None:
    """Note a new assignment: the place in a partition is kept only if it is named again.

    One that may or may not have taken effect counts, as in Jepsen's checker: no finding rests on
    what it may have changed.
    """
    kept = frozenset(partitions)
    client.positions = {name: place for name, place in client.positions.items() if name in kept}
    client.sessions = {name: session for name, session in client.sessions.items() if name in kept}
    client.assigned = tuple(partitions)
    client.subscribed = subscribed
