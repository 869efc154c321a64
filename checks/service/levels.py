"""Measures the service levels of a run: what clients got from the cluster, promised or not.

All numbers come from the history. Only the reasons why an outage began and ended come from the
trace. The consumers with which harrow reads everything back after healing do not belong to the
workload, so they are excluded.
"""

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import accumulate, chain
from typing import Any, Final

from harrow.checks.history.records import ACKED, FAILED, NEVER_SENT, UNKNOWN, UNSURE
from harrow.checks.index import Index
from harrow.checks.service.outages import Disturbances, Outage, outages_of
from harrow.cluster_model.clients.consumer import LATEST
from harrow.cluster_model.coordinators.groups.consumer_group import ASSIGNING, RECONCILING
from harrow.cluster_model.coordinators.groups.group import PREPARING_REBALANCE, STABLE
from harrow.cluster_model.events import GroupStateChanged, OffsetReset
from harrow.cluster_model.history import ASSIGN, COMMIT, OK, POLL, SEND, columns_of
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND

BUCKETS_MAX: Final = 120
"""The maximal number of points of a series over time."""
_STEPS: Final = (1, 2, 5)
_REBALANCING: Final = frozenset({PREPARING_REBALANCE, ASSIGNING, RECONCILING})


@dataclass(frozen=True, slots=True)
class Latency:
    """The distribution of durations: half are within ``p50_us``, 99% within ``p99_us``.

    A percentile is the smallest measured duration that this share of the durations does not exceed
    (nearest rank).
    """

    count: int
    p50_us: int
    p99_us: int
    max_us: int


@dataclass(slots=True)
class Sends:
    """The numbers of sends by outcome: ``acked``, ``failed`` (in no log), or ``unknown``.

    The remaining sends had not ended. With ``acks=0`` the producer itself acknowledges at once.
    """

    sent: int = 0
    acked: int = 0
    failed: int = 0
    unknown: int = 0
    ack_latency: Latency | None = None
    _latencies_us: "array[int]" = field(default_factory=lambda: array("q"), repr=False)

    def add(self, sent: int, failed: int, unknown: int, latencies_us: "array[int]") -> None:
        """Add sends, with the latency of each ack."""
        self.sent += sent
        self.acked += len(latencies_us)
        self.failed += failed
        self.unknown += unknown
        self._latencies_us.extend(latencies_us)

    def finish(self) -> None:
        """Compute the latency, when all sends have been added."""
        self.ack_latency = latency_of(self._latencies_us)
        self._latencies_us = array("q")


@dataclass(slots=True)
class PartitionLevel(Sends):
    """The sends to a partition, its outages in order, and the longest time without an ack."""

    outages: tuple[Outage, ...] = ()
    longest: Outage | None = None


@dataclass(slots=True)
class ConsumerLevel:
    """The service level of a consumer of the workload.

    ``records`` counts a record each time that a poll returns it. The end-to-end latency is from the
    first send of a value to the first poll that returns it. ``lag`` is the number of offsets
    between the consumer's position and the end of the acked records, at the end of the run and in
    its worst partition, and ``lag_max`` is the maximum during the run. A partition that was revoked
    from a member of a group no longer counts for that member.
    """

    records: int = 0
    lag: int = 0
    lag_max: int = 0
    end_to_end: Latency | None = None


@dataclass(frozen=True, slots=True)
class Unread:
    """A time during which no consumer read a partition although it had unread acked records."""

    partition: str
    start_us: int
    end_us: int

    @property
    def length_us(self) -> int:
        return self.end_us - self.start_us


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceLevels:
    """The service levels of a run. ``acks`` counts acks in each ``bucket_us`` from time zero on.

    ``transactions`` is how long committed transactions took, from the first send to the answer, and
    ``rebalances`` how long groups had no stable generation. ``unread`` is the longest time for
    which no consumer read a partition with unread acked records, among the partitions that
    consumers of the workload read or should read; None if there was no such time.
    """

    total: Sends
    partitions: Mapping[str, PartitionLevel]
    producers: Mapping[str, Sends]
    consumers: Mapping[str, ConsumerLevel]
    end_to_end: Latency | None
    transactions: Latency | None
    rebalances: Latency | None
    unread: Unread | None
    bucket_us: int
    acks: tuple[int, ...]

    @property
    def outages(self) -> list[Outage]:
        """The outages of all partitions, in the order of their starts."""
        outages = [outage for level in self.partitions.values() for outage in level.outages]
        return sorted(outages, key=lambda outage: (outage.start_us, outage.partition))

    @property
    def longest_us(self) -> int:
        """The longest time without an ack of any partition, whether it was an outage or not."""
        longest = (level.longest for level in self.partitions.values())
        return max((outage.length_us for outage in longest if outage is not None), default=0)

    @property
    def acked_millionths(self) -> int | None:
        """How many millionths of all sends were acked, None without sends."""
        return round(self.total.acked / self.total.sent * 1_000_000) if self.total.sent else None


def latency_of(latencies_us: Iterable[int]) -> Latency | None:
    """Return the distribution of durations, None if there are none."""
    ordered = sorted(latencies_us)
    if not ordered:
        return None
    return Latency(len(ordered), percentile(ordered, 50), percentile(ordered, 99), ordered[-1])


def percentile(ordered: Sequence[int], percent: int) -> int:
    """Return the smallest of sorted numbers that *percent* of the numbers do not exceed."""
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]


def service_levels(
    index: Index, left_out: frozenset[str] = frozenset(), *, explained: bool = True
) -> ServiceLevels:
    """Return the service levels of a run; *left_out* names the consumers outside the workload.

    Finding out why each outage began and ended takes half of the time. If outages are not
    *explained*, the result has the same outages without these reasons.
    """
    names = index.evidence.process_names
    records, times_us = index.history.records, index.history.times_us
    total = Sends()
    partitions: dict[str, PartitionLevel] = {}
    producers: dict[str, Sends] = {}
    acked_us: list[int] = []
    for session in index.sessions:
        name = names.get(session.process, f"process {session.process}")
        partition = partitions.setdefault(session.partition, PartitionLevel())
        rows = session.sends.rows
        failed = unknown = 0
        latencies_us = array("q")
        for row in rows:
            completed = records.completed[row]
            if completed == UNKNOWN:
                continue
            outcome = records.outcomes[row]
            if outcome == ACKED:
                at_us = times_us[completed]
                acked_us.append(at_us)
                latencies_us.append(at_us - times_us[records.invoked[row]])
            failed += outcome == FAILED
            unknown += outcome == UNSURE
        for level in (total, partition, producers.setdefault(name, Sends())):
            level.add(len(rows), failed, unknown, latencies_us)
    for level in (total, *partitions.values(), *producers.values()):
        level.finish()
    _find_outages(index, partitions, explained=explained)
    readings, reads = _collected_reads(index, left_out)
    bucket_us = bucket_of(max(acked_us, default=0))
    counts = Counter([max(0, at_us) // bucket_us for at_us in acked_us])
    return ServiceLevels(
        total=total,
        partitions=partitions,
        producers=producers,
        consumers={name: reading.level() for name, reading in readings.items()},
        end_to_end=latency_of(us for reading in readings.values() for us in reading.latencies_us),
        transactions=latency_of(_transaction_times(index)),
        rebalances=latency_of(_rebalance_times(index)),
        unread=_longest_unread(index, reads),
        bucket_us=bucket_us,
        acks=tuple(counts[place] for place in range(max(counts, default=-1) + 1)),
    )


def _find_outages(index: Index, partitions: Mapping[str, PartitionLevel], *, explained: bool) -> None:
    disturbances = Disturbances(index) if explained else None
    end_us = index.history.times_us[-1] if index.history.times_us else 0
    rows: dict[str, list[Sequence[int]]] = {}
    for session in index.sessions:
        rows.setdefault(session.partition, []).append(session.sends.rows)
    for name, level in partitions.items():
        outages, longest = outages_of(name, index.history, chain.from_iterable(rows[name]), end_us)
        level.outages, level.longest = tuple(outages), longest
        if disturbances is not None:
            level.outages = tuple(map(disturbances.explained, outages))
            level.longest = None if longest is None else disturbances.explained(longest)


def _collected_reads(
    index: Index, left_out: frozenset[str]
) -> tuple[dict[str, "_ConsumerReads"], dict[str, "_PartitionReads"]]:
    """Return the reads of each consumer of the workload, and the reads of each partition.

    A partition that one of the consumers should read has an entry, even if no consumer read it.
    """
    names = index.evidence.process_names
    collector = _ReadCollector(index, left_out)
    position = -1
    for _, processes, types, fs, values, times_us, _ in columns_of(index.evidence.operations):
        for process, type_, f, value, at_us in zip(processes, types, fs, values, times_us, strict=True):
            position += 1
            if f != SEND and type_ == OK and names.get(process) not in left_out:
                collector.note(process, f, value, position, at_us)
    return collector.finish()


class _ReadCollector:
    """Collects what consumers read, operation by operation, and what else they should read."""

    def __init__(self, index: Index, left_out: frozenset[str]) -> None:
        self._index = index
        self._names = index.evidence.process_names
        self._groups = _GroupReads(index, left_out)
        self._acks = {name: _Acks(index, sends.rows) for name, sends in index.acked.items()}
        self._by_name: dict[str, _ConsumerReads] = {}
        self._reads: dict[str, _PartitionReads] = {}

    def note(self, process: int, f: str, value: Iterable[Any], position: int, at_us: int) -> None:
        """Apply a successful operation of a process of the workload."""
        if f == COMMIT:
            for _, partition, offset in value:
                self._groups.move(process, partition, offset)
            return
        reading = self._reading(process)
        if f == ASSIGN:
            partitions = tuple(value)
            reading.keep_only(partitions)
            self._groups.assign(process, partitions)
            return
        for partition, pairs in _polled(value):
            reading.read(partition, pairs, position, at_us)
            end = pairs[-1][0] + 1
            self._groups.move(process, partition, end)
            self._reads_of(partition).add(position, at_us, end)

    def finish(self) -> tuple[dict[str, "_ConsumerReads"], dict[str, "_PartitionReads"]]:
        """Add the resets of positions, and the partitions that consumers failed to read."""
        for event in self._groups.resets:
            if event.partition in self._acks:
                position = bisect_left(self._index.history.times_us, event.at_us)
                self._reads_of(event.partition).add(position, event.at_us, event.offset)
        for process, partition, end in self._groups.not_read(self._acks):
            self._reads_of(partition)
            reading = self._reading(process)
            if end is not None:
                reading.set_position(partition, end)
        return self._by_name, self._reads

    def _reading(self, process: int) -> "_ConsumerReads":
        name = self._names.get(process, f"process {process}")
        reading = self._by_name.get(name)
        if reading is None:
            reading = self._by_name[name] = _ConsumerReads(self._index, self._acks)
        return reading

    def _reads_of(self, partition: str) -> "_PartitionReads":
        reads = self._reads.get(partition)
        if reads is None:
            reads = self._reads[partition] = _PartitionReads()
        return reads


class _GroupReads:
    """The partitions that consumers should read, and the positions of groups and single consumers.

    A position comes from the last poll, commit or reset. A partition without an owner counts for
    all members of the group that subscribe to its topic.
    """

    def __init__(self, index: Index, left_out: frozenset[str]) -> None:
        names = index.evidence.process_names
        self._settings = {
            process: settings
            for process, settings in index.evidence.consumers.items()
            if names[process] not in left_out
        }
        self._assigned: dict[int, tuple[str, ...]] = {}
        self._ends: dict[tuple[str, str], int] = {}
        clients = {names[process]: process for process in self._settings}
        self.resets = [
            event
            for _, event in index.events(OffsetReset)
            if event.client in clients and event.offset > event.position
        ]
        for event in self.resets:
            self._ends[self._reader(clients[event.client]), event.partition] = event.offset
        # A restarted client is a new process, and its former process need not read anything.
        self._last = frozenset(clients.values())

    def _reader(self, process: int) -> str:
        settings = self._settings[process]
        return f"group {settings.group}" if settings.group else settings.name

    def move(self, process: int, partition: str, offset: int) -> None:
        if process in self._settings:
            self._ends[self._reader(process), partition] = offset

    def assign(self, process: int, partitions: Iterable[str]) -> None:
        self._assigned[process] = tuple(partitions)

    def not_read(self, acks: Mapping[str, "_Acks"]) -> Iterator[tuple[int, str, int | None]]:
        """Yield each consumer with each partition that it should read, and its position there.

        The position is None if it is unknown.
        """
        owned = {
            (settings.group, partition)
            for process, settings in self._settings.items()
            if process in self._last
            for partition in self._assigned.get(process, ())
        }
        for process in sorted(self._last):
            settings = self._settings[process]
            for partition, acked in acks.items():
                is_elsewhere = settings.group and (settings.group, partition) in owned
                is_own = partition in self._assigned.get(process, ())
                if settings.is_to_read(partition) and (is_own or not is_elsewhere):
                    begin = None if settings.offset_reset == LATEST else acked.begin
                    yield process, partition, self._ends.get((self._reader(process), partition), begin)


def _polled(value: Iterable[Any]) -> Iterator[tuple[str, Sequence[tuple[int, str]]]]:
    for micro in value:
        if micro[0] == POLL and len(micro) > 1:
            for partition, pairs in micro[1].items():
                if pairs:
                    yield partition, pairs


class _PartitionReads:
    """The polls that returned records of a partition: positions, times, and next offsets."""

    __slots__ = ("ends", "positions", "times_us")

    def __init__(self) -> None:
        self.positions = array("q")
        self.times_us = array("q")
        self.ends: list[int] = []

    def add(self, position: int, at_us: int, end: int) -> None:
        self.positions.append(position)
        self.times_us.append(at_us)
        self.ends.append(end)


def _longest_unread(index: Index, reads: Mapping[str, _PartitionReads]) -> Unread | None:
    """Return the longest time for which no consumer read available records."""
    end_us = index.history.times_us[-1] if index.history.times_us else 0
    spans = (
        Unread(partition, start_us, stop_us)
        for partition, read in reads.items()
        if partition in index.acked
        for start_us, stop_us in _unread(index, index.acked[partition].rows, read, end_us)
    )
    return max(spans, key=lambda span: span.length_us, default=None)


def _unread(
    index: Index, acked: Iterable[int], read: _PartitionReads, end_us: int
) -> Iterator[tuple[int, int]]:
    """Yield the times for which a partition had unread acked records, from one poll to the next."""
    records, times_us = index.history.records, index.history.times_us
    acks = [
        (records.completed[row], records.acked_at[row] + 1)
        for row in acked
        if records.acked_at[row] != UNKNOWN
    ]
    moments = sorted(
        [
            *((position, times_us[position], end, False) for position, end in acks),
            *(
                (position, at_us, end, True)
                for position, at_us, end in zip(read.positions, read.times_us, read.ends, strict=True)
            ),
        ]
    )
    acked_end = read_end = 0
    since_us: int | None = None
    for _, at_us, end, is_read in moments:
        if is_read:
            if since_us is not None:
                yield since_us, at_us
            read_end = max(read_end, end)
            since_us = at_us if acked_end > read_end else None
        else:
            acked_end = max(acked_end, end)
            if since_us is None and acked_end > read_end:
                since_us = at_us
    if since_us is not None:
        yield since_us, end_us


def _transaction_times(index: Index) -> Iterator[int]:
    """Yield how long committed transactions took, from the first send to the answer."""
    records, times_us = index.history.records, index.history.times_us
    for transaction in index.history.transactions:
        if transaction.outcome == OK:
            first = min(records.invoked[row] for _, row in transaction.sends)
            yield times_us[transaction.position] - times_us[first]


def _rebalance_times(index: Index) -> Iterator[int]:
    """Yield how long groups rebalanced: from the preparation of a generation until it is stable.

    If the coordinator assigns partitions (KIP-848), a rebalance begins with the state Assigning, or
    with Reconciling if the assignment exists already. A rebalance that starts again before it is
    over counts as one, and a rebalance of a group that becomes empty does not count.
    """
    since_us: dict[str, int] = {}
    for _, event in index.events(GroupStateChanged):
        if event.state in _REBALANCING:
            since_us.setdefault(event.group, event.at_us)
        elif event.state == STABLE:
            if event.group in since_us:
                yield event.at_us - since_us.pop(event.group)
        elif not event.members:
            since_us.pop(event.group, None)


class _Acks:
    """The offset after the acked records of a partition, at each position in the history."""

    def __init__(self, index: Index, rows: Iterable[int]) -> None:
        records = index.history.records
        # Rows are in the order of their acks. An offset may exceed the range of an array.
        named = [(row, offset) for row in rows if (offset := records.offset(row)) is not None]
        self._positions = array("q", [records.completed[row] for row, _ in named])
        offsets = [offset for _, offset in named]
        self.begin = min(offsets, default=0)
        self._ends = list(accumulate([offset + 1 for offset in offsets], max))

    def end(self, position: int | None = None) -> int:
        """Return the offset after the last record that was acked before a position."""
        place = len(self._ends) if position is None else bisect_left(self._positions, position)
        return self._ends[place - 1] if place else 0


class _ConsumerReads:
    """The positions of a consumer, its latencies and its lag."""

    def __init__(self, index: Index, acks: Mapping[str, _Acks]) -> None:
        self.latencies_us: array[int] = array("q")
        self._index = index
        self._acks = acks
        self._records = 0
        self._ends: dict[str, int] = {}
        self._read_rows = bytearray(len(index.history.records.values))
        self._lag_max = 0

    def read(self, partition: str, pairs: Sequence[tuple[int, str]], position: int, at_us: int) -> None:
        """Add the records of a partition that a poll returned."""
        self._records += len(pairs)
        # Before its first read, the consumer's position was the first offset of that read.
        end = self._ends.get(partition, pairs[0][0])
        if partition in self._acks:
            self._lag_max = max(self._lag_max, self._acks[partition].end(position) - end)
        self._ends[partition] = pairs[-1][0] + 1
        history = self._index.history
        rows, records, read_rows = history.partitions[partition].rows, history.records, self._read_rows
        for _, value in pairs:
            row = rows[value]
            if not read_rows[row] and records.outcomes[row] != NEVER_SENT:
                self.latencies_us.append(at_us - history.times_us[records.invoked[row]])
            read_rows[row] = True

    def set_position(self, partition: str, end: int) -> None:
        """Set the position in a partition that the consumer should read but never polled."""
        self._ends.setdefault(partition, end)

    def keep_only(self, partitions: Iterable[str]) -> None:
        """Forget the positions in all other partitions, which the consumer no longer reads."""
        kept = set(partitions)
        self._ends = {name: end for name, end in self._ends.items() if name in kept}

    def level(self) -> ConsumerLevel:
        lags = [self._acks[name].end() - end for name, end in self._ends.items() if name in self._acks]
        lag = max((0, *lags))
        return ConsumerLevel(self._records, lag, max(lag, self._lag_max), latency_of(self.latencies_us))


def bucket_of(end_us: int) -> int:
    """Return the shortest of 1s, 2s, 5s, 10s ... such that `BUCKETS_MAX` buckets cover a time."""
    decade_us = US_PER_SECOND
    while True:
        for step in _STEPS:
            if end_us < BUCKETS_MAX * step * decade_us:
                return step * decade_us
        decade_us *= 10
