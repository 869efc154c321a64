"""Service levels: what clients got out of a cluster while a run went on, whatever was promised.

Everything is counted from the history; only why an outage began and ended is looked up in the trace.
The consumers that read everything back after healing are none of the workload's, and are left out.
"""

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain
from typing import Any, Final

from harrow.checks.history.records import ACKED, FAILED, NEVER_SENT, UNKNOWN, UNSURE, SendRecord
from harrow.checks.index import Index
from harrow.checks.service.outages import Disturbances, Outage, outages_of
from harrow.checks.service.rebalances import rebalance_times
from harrow.cluster_model.clients.consumer import LATEST
from harrow.cluster_model.events import OffsetReset
from harrow.cluster_model.history import ASSIGN, COMMIT, OK, POLL, SEND, columns_of
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND

BUCKETS_MAX: Final = 120
"""How many points a series over time has at most."""
_STEPS: Final = (1, 2, 5)


@dataclass(frozen=True, slots=True)
class Latency:
    """How long something took, in microseconds: half of all within ``p50_us``, 99 of 100 within ``p99_us``.

    A percentile is the smallest latency that so many did not exceed (nearest rank), so it is always one that was.
    """

    count: int
    p50_us: int
    p99_us: int
    max_us: int


@dataclass(slots=True)
class Sends:
    """What became of sends: ``acked``, ``failed`` (in no log), or ``unknown``; the rest had not ended.

    With ``acks=0`` an ack is the producer's own word, given at once.
    """

    sent: int = 0
    acked: int = 0
    failed: int = 0
    unknown: int = 0
    ack_latency: Latency | None = None
    _latencies_us: "array[int]" = field(default_factory=lambda: array("q"), repr=False)

    def add(self, sent: int, ends: Mapping[int, int], latencies_us: "array[int]") -> None:
        """Count sends, with how many had which outcome (`harrow.checks.history.records`), and how long acks took."""
        self.sent += sent
        self.acked += ends.get(ACKED, 0)
        self.failed += ends.get(FAILED, 0)
        self.unknown += ends.get(UNSURE, 0)
        self._latencies_us.extend(latencies_us)

    def finish(self) -> None:
        """Work out the latencies, when everything has been counted."""
        self.ack_latency = latency_of(self._latencies_us)
        self._latencies_us = array("q")


@dataclass(slots=True)
class PartitionLevel(Sends):
    """The same of a partition, with its outages in their order, and the longest time without an ack, be it one or not."""

    outages: tuple[Outage, ...] = ()
    longest: Outage | None = None


@dataclass(slots=True)
class ConsumerLevel:
    """What a consumer of the workload read.

    ``records`` counts each time that a poll returned one. The end-to-end latency is from the first send of a
    value to its first return. ``lag`` are the acked records of a partition that it had not read yet, of the one
    where that were most: at the end, and ``lag_max`` at the worst. A partition that a member of a group has given up is
    another one's matter.
    """

    records: int = 0
    lag: int = 0
    lag_max: int = 0
    end_to_end: Latency | None = None


@dataclass(frozen=True, slots=True)
class Unread:
    """A time for which no consumer read a partition although it had unread acked records."""

    partition: str
    start_us: int
    end_us: int

    @property
    def length_us(self) -> int:
        return self.end_us - self.start_us


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceLevels:
    """The service levels of a run. ``acks`` counts acks in each ``bucket_us`` from time zero on.

    ``transactions`` is how long those took that were committed, from the first send to the answer; ``rebalances`` how long groups
    had no generation in which all members knew their partitions. ``unread`` is the longest time for which no consumer
    read a partition that had acked records to be read, of those that consumers of the workload read or are to read;
    None where they read nothing.
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
        """Return the outages of all partitions, in the order of their beginnings."""
        found = [outage for level in self.partitions.values() for outage in level.outages]
        return sorted(found, key=lambda outage: (outage.start_us, outage.partition))

    @property
    def longest_us(self) -> int:
        """Return the longest time without an ack of any partition, whether it was an outage or not."""
        found = (level.longest for level in self.partitions.values())
        return max((longest.length_us for longest in found if longest is not None), default=0)

    @property
    def acked_millionths(self) -> int | None:
        """Return how many millionths of what was sent were acked, None if nothing was sent."""
        return round(self.total.acked / self.total.sent * 1_000_000) if self.total.sent else None


def latency_of(latencies_us: Iterable[int]) -> Latency | None:
    """Return how long something took, None if it never happened."""
    ordered = sorted(latencies_us)
    if not ordered:
        return None
    return Latency(len(ordered), percentile(ordered, 50), percentile(ordered, 99), ordered[-1])


def percentile(ordered: Sequence[int], percent: int) -> int:
    """Return the smallest of some sorted numbers that *percent* of them do not exceed (nearest rank)."""
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]


def service_levels(
    index: Index, left_out: frozenset[str] = frozenset(), *, explained: bool = True
) -> ServiceLevels:
    """Return the service levels of a run; *left_out* names the consumers that are not of the workload.

    To find out what began and ended each outage takes half of the time. Where they are not *explained* they are as
    the history alone has them: the same number of them, and as long.
    """
    names = index.evidence.process_names
    records, times_us = index.history.records, index.history.times_us
    total = Sends()
    partitions: dict[str, PartitionLevel] = {}
    producers: dict[str, Sends] = {}
    for session in index.sessions:
        name = names.get(session.process, f"process {session.process}")
        partition = partitions.setdefault(session.partition, PartitionLevel())
        rows = session.sends.rows
        ends = Counter([records.outcomes[row] for row in rows if records.completed[row] != UNKNOWN])
        latencies_us = array("q")
        for row in rows:
            if records.outcomes[row] == ACKED:
                latencies_us.append(times_us[records.completed[row]] - times_us[records.invoked[row]])
        for level in (total, partition, producers.setdefault(name, Sends())):
            level.add(len(rows), ends, latencies_us)
    for level in (total, *partitions.values(), *producers.values()):
        level.finish()
    _find_outages(index, partitions, explained=explained)
    readings, reads = _readings(index, left_out)
    last_us = max(
        [times_us[records.completed[row]] for sends in index.acked.values() for row in sends.rows], default=0
    )
    bucket_us = bucket_of(last_us)
    counts: Counter[int] = Counter()
    for sends in index.acked.values():
        counts.update([max(0, times_us[records.completed[row]]) // bucket_us for row in sends.rows])
    return ServiceLevels(
        total=total,
        partitions=partitions,
        producers=producers,
        consumers={name: reading.level() for name, reading in readings.items()},
        end_to_end=latency_of(us for reading in readings.values() for us in reading.latencies_us),
        transactions=latency_of(_transaction_times(index)),
        rebalances=latency_of(rebalance_times(index)),
        unread=_longest_unread(index, reads),
        bucket_us=bucket_us,
        acks=tuple(counts[place] for place in range(max(counts, default=-1) + 1)),
    )


def _find_outages(index: Index, partitions: Mapping[str, PartitionLevel], *, explained: bool) -> None:
    disturbances = Disturbances(index) if explained else None
    end_us = index.history.times_us[-1] if index.history.times_us else 0
    sends: dict[str, list[Sequence[SendRecord]]] = {}
    for session in index.sessions:
        sends.setdefault(session.partition, []).append(session.sends)
    for name, level in partitions.items():
        outages, longest = outages_of(name, chain.from_iterable(sends[name]), end_us)
        level.outages, level.longest = tuple(outages), longest
        if disturbances is not None:
            level.outages = tuple(map(disturbances.explained, outages))
            level.longest = None if longest is None else disturbances.explained(longest)


def _readings(index: Index, left_out: frozenset[str]) -> tuple[dict[str, "_Reading"], dict[str, "_Reads"]]:
    """Return what each consumer of the workload read, and what all of them read of each partition.

    A partition that one of them is to read has an entry, whether anything was read of it or not.
    """
    names = index.evidence.process_names
    walk = _Readings(index, left_out)
    position = -1
    for _, processes, types, fs, values, times_us, _ in columns_of(index.evidence.operations):
        for process, type_, f, value, at_us in zip(processes, types, fs, values, times_us, strict=True):
            position += 1
            if f != SEND and type_ == OK and names.get(process) not in left_out:
                walk.note(process, f, value, position, at_us)
    return walk.finish()


class _Readings:
    """What consumers read, operation by operation, and at last what they are to read besides."""

    def __init__(self, index: Index, left_out: frozenset[str]) -> None:
        self._index = index
        self._names = index.evidence.process_names
        self._groups = _GroupReads(index, left_out)
        self._acks = {name: _Acks(index, sends.rows) for name, sends in index.acked.items()}
        self._found: dict[str, _Reading] = {}
        self._reads: dict[str, _Reads] = {}

    def note(self, process: int, f: str, value: Iterable[Any], position: int, at_us: int) -> None:
        """Take what an ok operation of a process of the workload did."""
        if f == COMMIT:
            for _, partition, offset in value:
                self._groups.move(process, partition, offset)
            return
        reading = self._reading(process)
        if f == ASSIGN:
            partitions = tuple(value)
            reading.keep(partitions)
            self._groups.assign(process, partitions)
            return
        for partition, pairs in _polled(value):
            reading.read(partition, pairs, position, at_us)
            end = pairs[-1][0] + 1
            self._groups.move(process, partition, end)
            self._reads_of(partition).add(position, at_us, end)

    def finish(self) -> tuple[dict[str, "_Reading"], dict[str, "_Reads"]]:
        """Count what was passed over, and what consumers are to read and never did."""
        for event in self._groups.resets:
            if event.partition in self._acks:
                position = bisect_left(self._index.history.times_us, event.at_us)
                self._reads_of(event.partition).add(position, event.at_us, event.offset)
        for process, partition, end in self._groups.not_read(self._acks):
            self._reads_of(partition)
            reading = self._reading(process)
            if end is not None:
                reading.is_at(partition, end)
        return self._found, self._reads

    def _reading(self, process: int) -> "_Reading":
        name = self._names.get(process, f"process {process}")
        reading = self._found.get(name)
        if reading is None:
            reading = self._found[name] = _Reading(self._index, self._acks)
        return reading

    def _reads_of(self, partition: str) -> "_Reads":
        reads = self._reads.get(partition)
        if reads is None:
            reads = self._reads[partition] = _Reads()
        return reads


class _GroupReads:
    """Who is to read what, and where groups and single consumers are: where they were last, if only by a commit.

    A partition that no member has is the matter of all members of the group that subscribe to its topic.
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
        # A client that was started again is another process, and the one before has nothing more to read.
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
        """Yield consumers with the partitions that they are to read, and where they are in these: None where nothing tells."""
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
    """Yield what an operation polled, by partition."""
    for micro in value:
        if micro[0] == POLL and len(micro) > 1:
            for partition, pairs in micro[1].items():
                if pairs:
                    yield partition, pairs


class _Reads:
    """The polls that returned something of a partition: their positions in the history, when they ended, and how far they came."""

    __slots__ = ("ends", "positions", "times_us")

    def __init__(self) -> None:
        self.positions = array("q")
        self.times_us = array("q")
        self.ends: list[int] = []

    def add(self, position: int, at_us: int, end: int) -> None:
        self.positions.append(position)
        self.times_us.append(at_us)
        self.ends.append(end)


def _longest_unread(index: Index, reads: Mapping[str, _Reads]) -> Unread | None:
    """Return the longest time for which no consumer read what was there to be read."""
    end_us = index.history.times_us[-1] if index.history.times_us else 0
    spans = (
        Unread(partition, start_us, stop_us)
        for partition, read in reads.items()
        if partition in index.acked
        for start_us, stop_us in _unread(index, index.acked[partition].rows, read, end_us)
    )
    return max(spans, key=lambda span: span.length_us, default=None)


def _unread(index: Index, acked: Iterable[int], read: _Reads, end_us: int) -> Iterator[tuple[int, int]]:
    """Yield the times for which a partition had unread acked records, from one poll of it to the next."""
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
    """Yield how long transactions took that were committed, from the first send to the answer."""
    records, times_us = index.history.records, index.history.times_us
    for transaction in index.history.transactions:
        if transaction.outcome == OK:
            begun = min(records.invoked[row] for _, row in transaction.sends)
            yield times_us[transaction.position] - times_us[begun]


class _Acks:
    """How far a partition was acked, by position in the history."""

    def __init__(self, index: Index, rows: Iterable[int]) -> None:
        records = index.history.records
        acks = [(records.completed[row], records.offset(row)) for row in rows]
        known = sorted([(position, offset) for position, offset in acks if offset is not None])
        self._positions = array("q", [position for position, _ in known])
        self.begin = min((offset for _, offset in known), default=0)
        # Offsets of a history may be longer than any column.
        self._ends = list(accumulate([offset + 1 for _, offset in known], max))

    def end(self, position: int | None = None) -> int:
        """Return the offset after the last record that was acked before a position, by default at the end."""
        place = len(self._ends) if position is None else bisect_left(self._positions, position)
        return self._ends[place - 1] if place else 0


class _Reading:
    """How far a consumer has read, and how far it was behind."""

    def __init__(self, index: Index, acks: Mapping[str, _Acks]) -> None:
        self.latencies_us: array[int] = array("q")
        self._index = index
        self._acks = acks
        self._records = 0
        self._ends: dict[str, int] = {}
        self._seen = bytearray(len(index.history.records.values))
        self._lag_max = 0

    def read(self, partition: str, pairs: Sequence[tuple[int, str]], position: int, at_us: int) -> None:
        """Count what a poll returned of a partition."""
        self._records += len(pairs)
        # Until its first read it was where that began.
        end = self._ends.get(partition, pairs[0][0])
        if partition in self._acks:
            self._lag_max = max(self._lag_max, self._acks[partition].end(position) - end)
        self._ends[partition] = pairs[-1][0] + 1
        history = self._index.history
        rows, records, seen = history.partitions[partition].rows, history.records, self._seen
        for _, value in pairs:
            row = rows[value]
            if not seen[row] and records.outcomes[row] != NEVER_SENT:
                self.latencies_us.append(at_us - history.times_us[records.invoked[row]])
            seen[row] = True

    def is_at(self, partition: str, end: int) -> None:
        """Take a partition that it has never polled, or has given up, for one that it is to read from an offset on."""
        self._ends.setdefault(partition, end)

    def keep(self, partitions: Iterable[str]) -> None:
        """Forget where it was in partitions that it does not read any more."""
        kept = set(partitions)
        self._ends = {name: end for name, end in self._ends.items() if name in kept}

    def level(self) -> ConsumerLevel:
        lags = [self._acks[name].end() - end for name, end in self._ends.items() if name in self._acks]
        lag = max((0, *lags))
        return ConsumerLevel(self._records, lag, max(lag, self._lag_max), latency_of(self.latencies_us))


def bucket_of(end_us: int) -> int:
    """Return a round length of which at most `BUCKETS_MAX` make up a time: 1s, 2s, 5s, 10s and so on."""
    decade_us = US_PER_SECOND
    while True:
        for step in _STEPS:
            if end_us < BUCKETS_MAX * step * decade_us:
                return step * decade_us
        decade_us *= 10
