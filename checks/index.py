"""The evidence, sorted once for all rules: sends, polls, final logs, and events by their kinds.

A run is judged as often as it is run, so the history and the trace are walked once each, whatever rules
there are. What only a finding needs, the replayed cluster, is made when it is first asked for.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, KeysView, Mapping, Sequence
from functools import cached_property, partial
from itertools import chain, pairwise
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeVar, overload

from harrow.checks.causes.resumed_epoch import Loss, resumed_epochs
from harrow.checks.causes.undecided_reads import UndecidedRead, undecided_reads
from harrow.checks.evidence import Evidence
from harrow.checks.group_work import GroupWork
from harrow.checks.history.index import HistoryIndex
from harrow.checks.history.records import Pair, SendRecord, Value
from harrow.checks.history.version_order import VersionOrders
from harrow.checks.permission import Permission
from harrow.checks.promise import BY_FORGOTTEN_EPOCH, BY_RESUMED_EPOCH
from harrow.checks.replay.cluster_state import ClusterState
from harrow.checks.replay.partition_state import LogEntry, PartitionState
from harrow.checks.transaction_fates import (
    ABORTED,
    TransactionFate,
    TransactionPart,
    fate_of,
    transaction_fates,
)
from harrow.cluster_model.coordinators.groups.group_records import offsets_in
from harrow.cluster_model.events import (
    SHUT_DOWN,
    BatchAppended,
    BecameLeader,
    BrokerStopped,
    BrokerStopping,
    CheckpointReverted,
    CorruptionCut,
    Event,
    FaultEnded,
    FaultStruck,
    HighWatermarkSet,
    LogLost,
    LogOpened,
    LogTruncated,
    MessageRuleApplied,
    MetadataLogLost,
    UnflushedLost,
    event_fields,
)
from harrow.cluster_model.history import OK, POLL, columns_of
from harrow.cluster_model.log.old_checkpoints import LEADER_EPOCH_CHECKPOINT
from harrow.cluster_model.packed_log import blocks_of, rows_at
from harrow.cluster_model.trace import TraceEvent, TraceLine, decode

_NO_LEADER: Final = -1
_REPLAYED_AT_ONCE: Final = 1_000_000
"""Up to so many events a trace is replayed for all partitions: it takes some 300 MiB."""
_REPLAYS_MAX: Final = 5

E = TypeVar("E", bound=Event)


_Numbers = dict[str, "array[int]"]
"""Lines of the trace, rising, by what they have in common."""


def _numbers(trace: Sequence[TraceEvent]) -> tuple[_Numbers, "array[int]", "array[int]"]:
    """Return the lines of each kind of event, and of each block of events the first line and its time."""
    numbers: defaultdict[str, array[int]] = defaultdict(partial(array, "I"))
    begins, times_us = array("I", (1,)), array("q")
    for rows in blocks_of(trace):
        begin = begins[-1]
        for number, name in enumerate(map(itemgetter(1), rows), begin):
            numbers[name].append(number)
        times_us.append(rows[0][0])
        begins.append(begin + len(rows))
    return dict(numbers), begins, times_us


def _is_of_power(event: BecameLeader | Loss) -> bool | None:
    """Return whether a log has lost its end with the power, or with its disk; None for no loss."""
    if isinstance(event, BecameLeader):
        return None
    return isinstance(event, UnflushedLost) or (isinstance(event, CorruptionCut) and event.torn)


def names(fault: FaultStruck, struck: int | str | None) -> bool:
    """Return whether the details of a fault name a broker or a client."""
    values = [value for _, value in fault.details]
    flat = [*values, *(item for value in values if isinstance(value, list | tuple) for item in value)]
    return struck is not None and any(type(value) is type(struck) and value == struck for value in flat)


class SendsByRow(Sequence[SendRecord]):
    """Sends to a partition, as rows of its history: an object is made of one that somebody looks at.

    What looks at every send of a run goes by the rows and their columns.
    """

    __slots__ = ("_history", "_partition", "rows")

    def __init__(self, history: HistoryIndex, partition: str, rows: Sequence[int]) -> None:
        self._history = history
        self._partition = partition
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, index: int) -> SendRecord: ...

    @overload
    def __getitem__(self, index: slice) -> "SendsByRow": ...

    def __getitem__(self, index: int | slice) -> "SendRecord | SendsByRow":
        if isinstance(index, slice):
            return SendsByRow(self._history, self._partition, self.rows[index])
        return self._history.send(self._partition, self.rows[index])


class SessionSends(NamedTuple):
    """The sends of a process to a partition, in the order of their invocations."""

    process: int
    partition: str
    sends: SendsByRow


class PolledPairs(Mapping[str, KeysView[Pair]]):
    """What all consumers read of each partition, as (offset, value) pairs, made anew when somebody looks at it."""

    __slots__ = ("_history", "_names")

    def __init__(self, history: HistoryIndex) -> None:
        self._history = history
        self._names = {name: None for name, known in history.partitions.items() if known.polled}

    def __getitem__(self, partition: str) -> KeysView[Pair]:
        if partition not in self._names:
            raise KeyError(partition)
        rows = self._history.partitions[partition].polled
        return dict.fromkeys(map(self._history.records.pair, rows)).keys()

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class Index:
    """What rules look up. Partitions are in the order in which the run first names them.

    ``history`` and ``orders`` are what the history alone says. ``sessions`` has the sends by process and partition,
    ``acked`` those that ended ok by partition, ``polled`` what all consumers read, as (offset, value) pairs.
    ``logs`` has the final values by offset of each replica. There are millions of events and sends: of each only a
    number is kept, and objects are made of those that somebody asks for.
    """

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self._partitions: dict[str, PartitionState] = {}
        self._replays = 0
        self._copies: dict[str, dict[int, list[LogEntry]]] = {}
        self._readable: tuple[str, frozenset[Value]] | None = None
        self._fates: dict[str, Mapping[int, TransactionFate]] = {}
        self._strikes: dict[tuple[int, int | str | None], int | None] = {}
        self._parts: dict[str, Mapping[Value, list[TransactionPart]]] = {}
        self._events: dict[tuple[tuple[type[Event], ...], str | None], Sequence[TraceLine[Any]]] = {}
        self._by_partition: dict[tuple[type[Event], ...], dict[str, list[TraceLine[Any]]]] = {}
        self._numbers_by_partition: dict[type[Event], _Numbers] = {}
        self._numbers, self._begins, self._times_us = _numbers(evidence.trace)
        history = self.history = HistoryIndex(evidence.operations)
        self.orders = VersionOrders(history)
        self.sessions = [
            SessionSends(each.process, each.partition, SendsByRow(history, each.partition, each.rows))
            for each in history.sessions
        ]
        self.acked = {
            name: SendsByRow(history, name, known.acked)
            for name, known in history.partitions.items()
            if known.acked
        }
        self.polled = PolledPairs(history)
        self.logs: dict[str, dict[int, list[str | None]]] = {
            partition: {broker: log.values() for broker, log in replicas.items()}
            for partition, replicas in evidence.replicas.items()
        }

    def events(self, *kinds: type[E], partition: str | None = None) -> Sequence[TraceLine[E]]:
        """Return the events of some kinds, in the order of the trace.

        With a *partition*, those of other partitions are left out.
        """
        found = self._events.get((kinds, partition))
        if found is None:
            if partition is None:
                found = [TraceLine(number, decode(event)) for number, event in self.raw_events(*kinds)]
            else:
                found = self._of_partition(kinds, partition)
            self._events[kinds, partition] = found
        return found

    def _of_partition(self, kinds: tuple[type[E], ...], partition: str) -> Sequence[TraceLine[E]]:
        """Return the events of kinds that are about a partition or about none, in one pass for all partitions."""
        of_any = self.events(*kinds)
        are_of_partitions = {"partition" in event_fields(kind.name) for kind in kinds}
        if are_of_partitions == {False}:
            return of_any
        if are_of_partitions != {True}:
            return [line for line in of_any if getattr(line.event, "partition", partition) == partition]
        by_partition = self._by_partition.get(kinds)
        if by_partition is None:
            by_partition = self._by_partition[kinds] = {}
            for line in of_any:
                name = getattr(line.event, "partition")  # noqa: B009 - not all events have one
                by_partition.setdefault(name, []).append(line)
        return by_partition.get(partition, ())

    def has(self, *kinds: type[Event]) -> bool:
        """Return whether anything of some kinds happened at all: rules about what a run does not have cost nothing."""
        return any(kind.name in self._numbers for kind in kinds)

    def raw_events(self, *kinds: type[Event]) -> Iterator[tuple[int, TraceEvent]]:
        """Yield the events of some kinds as the trace has them, each with its line.

        For what there are very many of: it costs much less than an object of each.
        """
        lines = [self._numbers[kind.name] for kind in kinds if kind.name in self._numbers]
        return rows_at(self.evidence.trace, self._merged(lines), first=1)

    def _merged(self, lines: Sequence["array[int]"]) -> Iterator[int]:
        """Yield the lines of several kinds in order; a block at a time, for there may be millions."""
        for begin, end in pairwise(self._begins):
            found = [each[bisect_left(each, begin) : bisect_left(each, end)] for each in lines]
            yield from found[0] if len(found) == 1 else sorted(chain.from_iterable(found))

    def during(self, start_us: int, end_us: int, kind: type[E], partition: str) -> Sequence[E]:
        """Return the events of a kind of a partition within a time, its ends included.

        For what there are very many of: only those are looked at.
        """
        by_partition = self._numbers_by_partition.get(kind)
        if by_partition is None:
            place = [*event_fields(kind.name)].index("partition") + 2
            by_partition = self._numbers_by_partition[kind] = {}
            for number, event in self.raw_events(kind):
                by_partition.setdefault(event[place], array("I")).append(number)
        numbers = by_partition.get(partition, array("I"))
        # Of a time the index has only the block in which it begins.
        first = max(0, bisect_left(self._times_us, start_us) - 1)
        end = bisect_right(self._times_us, end_us)
        within = numbers[bisect_left(numbers, self._begins[first]) : bisect_left(numbers, self._begins[end])]
        events = rows_at(self.evidence.trace, within, first=1)
        return [kind(event[0], *event[2:]) for _, event in events if start_us <= event[0] <= end_us]

    def position_at(self, at_us: int) -> int:
        """Return how many events came before an instant."""
        block = max(0, bisect_left(self._times_us, at_us) - 1)
        low, high = self._begins[block] - 1, self._begins[min(block + 1, len(self._times_us))] - 1
        return bisect_left(self.evidence.trace, at_us, low, high, key=itemgetter(0))

    def partition(self, name: str) -> PartitionState:
        """Return a partition with all that ever stood in its logs.

        A short trace is replayed once. Of a long one the copies of all records would take as much memory as the run,
        so the first partitions that are asked for are replayed alone, for as a rule few have findings.
        """
        found = self._partitions.get(name)
        if found is None and self._replays == _REPLAYS_MAX:
            found = PartitionState(name)  # nothing happened to it
        if found is None:
            alone = len(self.evidence.trace) > _REPLAYED_AT_ONCE and self._replays < _REPLAYS_MAX - 1
            self._replays = self._replays + 1 if alone else _REPLAYS_MAX
            cluster = ClusterState({})
            for begin, rows in zip(self._begins, blocks_of(self.evidence.trace), strict=False):
                for number, event in enumerate(rows, begin):
                    if not alone or cluster.concerns(event, name):
                        cluster.advance(event, number)
            found = cluster.partition(name)
            # Those that have been asked for are part of stories.
            self._partitions = (
                {**self._partitions, name: found} if alone else {**cluster.partitions, **self._partitions}
            )
        return found

    def copies_at(self, partition: str, offset: int) -> list[LogEntry]:
        """Return the copies that ever stood at an offset: value by value, each in the order of storing."""
        by_offset = self._copies.get(partition)
        if by_offset is None:
            by_offset = self._copies[partition] = {}
            for copy in chain.from_iterable(self.partition(partition).by_value.values()):
                by_offset.setdefault(copy.offset, []).append(copy)
        return by_offset.get(offset, [])

    def strike_at(self, line: float, struck: int | str | None) -> int | None:
        """Return the number of the fault that struck a broker or a client at a line, None where none did.

        A rule for messages names its fault. Any other fault is in the trace before what it does: it is the last one of that instant,
        rather one that names who was struck. What a fault does in steps comes later: it is the last one that names it and has not ended.
        """
        key = int(line), struck
        if key not in self._strikes:
            self._strikes[key] = self._strike_at(*key)
        return self._strikes[key]

    def _strike_at(self, number: int, struck: int | str | None) -> int | None:
        if not 0 < number <= len(self.evidence.trace):
            return None
        event = decode(self.evidence.trace[number - 1])
        if isinstance(event, MessageRuleApplied | FaultStruck):
            return event.strike
        if isinstance(event, BrokerStopped) and event.cause == SHUT_DOWN:
            # What ends in good order ends when it has stopped; the fault told it to.
            told = [place for place, each in self.events(BrokerStopping) if each.broker == event.broker]
            asked = [place for place in told if place < number]
            return self.strike_at(asked[-1], struck) if asked else None
        before = [fault for place, fault in self.events(FaultStruck) if place <= number]
        ended = {
            over.strike
            for place, over in self.events(FaultEnded)
            if place <= number and over.at_us < event.at_us
        }
        now = [fault for fault in reversed(before) if fault.at_us == event.at_us]
        lasting = [fault for fault in reversed(before) if fault.strike not in ended]
        named = (fault.strike for fault in (*now, *lasting) if names(fault, struck))
        return next(named, now[0].strike if now else None)

    def sends_of(self, partition: str, value: Value) -> list[SendRecord]:
        """Return the sends of a value, in the order of their invocations."""
        known = self.history.partitions.get(partition)
        rows = [] if known is None else self.history.sends_of(known, value)
        return [self.history.send(partition, row) for row in rows]

    @cached_property
    def undecided_reads(self) -> Mapping[tuple[str, Value], UndecidedRead]:
        """Who read what is not known to be committed, by partition and value."""
        return undecided_reads(self.evidence, self.history)

    @cached_property
    def forgetful_partitions(self) -> Sequence[str]:
        """The partitions of which a log lost what had been committed, in the order in which that was seen.

        A leader began with less than that, or a replica cut off what its high watermark had passed: another history had taken its place.
        """
        committed: dict[str, int] = {}
        passed: dict[tuple[str, int], int] = {}
        found: dict[str, None] = {}
        for _, event in self.raw_events(HighWatermarkSet, BecameLeader, LogTruncated, LogOpened):
            if event[1] == BecameLeader.name:
                led = BecameLeader(event[0], *event[2:])
                if led.start_offset < committed.get(led.partition, 0):
                    found[led.partition] = None
            elif event[1] == LogTruncated.name:
                cut = LogTruncated(event[0], *event[2:])
                if cut.to_offset < passed.get((cut.partition, cut.broker), 0):
                    found[cut.partition] = None
            elif event[1] == LogOpened.name:
                opened = LogOpened(event[0], *event[2:])
                passed[opened.partition, opened.broker] = opened.hw
            else:
                raised = HighWatermarkSet(event[0], *event[2:])
                committed[raised.partition] = max(raised.hw, committed.get(raised.partition, 0))
                place = raised.partition, raised.broker
                passed[place] = max(raised.hw, passed.get(place, 0))
        return tuple(found)

    @cached_property
    def group_work(self) -> GroupWork:
        """What groups did with their partitions."""
        return GroupWork(
            self.evidence,
            self.history,
            self.last_log,
            lambda partition, value: fate_of(self.transaction_parts(partition).get(value, ())),
            lambda group, partition, position: fate_of(
                [part for _, part in self.offset_parts.get((group, partition, position), ())]
            ),
        )

    @cached_property
    def _last_leaders(self) -> Mapping[str, int]:
        latest: dict[str, tuple[int, int]] = {}
        for _, event in self.events(BecameLeader):
            led = event.leader_epoch, event.broker
            latest[event.partition] = max(led, latest.get(event.partition, led))
        return {partition: broker for partition, (_, broker) in latest.items()}

    def last_leader(self, partition: str) -> int:
        """Return the broker that led a partition in its latest epoch, -1 if none is known."""
        return self._last_leaders.get(partition, _NO_LEADER)

    @cached_property
    def metadata_lost_us(self) -> int | None:
        """When no majority of the quorum was left that had all of the committed metadata, None for never."""
        lost = (event.at_us for _, event in self.events(MetadataLogLost) if not event.is_kept)
        return next(lost, None)

    @cached_property
    def _excuses(self) -> Sequence[tuple[Permission, Mapping[str, int]]]:
        """The lowest offset, by partition, from where on logs may have parted, and what permits that."""
        lines: Sequence[TraceLine[BecameLeader | Loss]]
        lines = self.events(BecameLeader, UnflushedLost, CorruptionCut, LogLost)
        led = [event for _, event in lines]
        forgotten = dict(resumed_epochs(event for event in led if not _is_of_power(event)))
        for _, reverted in self.events(CheckpointReverted):
            for partition, offset in reverted.offsets if reverted.kind == LEADER_EPOCH_CHECKPOINT else ():
                forgotten[partition] = min(offset, forgotten.get(partition, offset))
        return (
            (BY_RESUMED_EPOCH, resumed_epochs(event for event in led if _is_of_power(event) is not False)),
            (BY_FORGOTTEN_EPOCH, forgotten),
        )

    def excuse(self, partition: str, offset: int | None) -> Permission | None:
        """Return what permits an anomaly at an offset, or at any: a leader that resumed its epoch, a forgotten epoch."""
        for permission, offsets in self._excuses:
            lowest = offsets.get(partition)
            if lowest is not None and (offset is None or offset >= lowest):
                return permission
        return None

    def readable(self, partition: str) -> frozenset[Value]:
        """Return every value that consumers can still read: those in the last leader's log, but for what was aborted there.

        Where no leader is known, those of any log; without any log, what was read.
        """
        if self._readable is None or self._readable[0] != partition:
            logs = self.logs.get(partition)
            if logs:
                leading = logs.get(self.last_leader(partition))
                stored = chain.from_iterable(logs.values()) if leading is None else self._unaborted(partition)
                values: frozenset[Value] = frozenset(value for value in stored if value is not None)
            else:
                values = self.orders.read(partition)
            # Rules go from partition to partition, so one at a time will do.
            self._readable = partition, values
        return self._readable[1]

    def _unaborted(self, partition: str) -> Iterable[str | None]:
        """Return the values of the last leader's log, but for those in transactions that were aborted there."""
        values = self.last_log(partition)
        fates = self.fates(partition) if self.has_transactions else {}
        if not fates:
            return values
        return (
            value
            for offset, value in enumerate(values)
            if offset not in fates or fates[offset].state != ABORTED
        )

    def last_log(self, partition: str) -> Sequence[str | None]:
        """Return the values of a partition by offset, as its last leader has them; without a known one nothing."""
        return self.logs.get(partition, {}).get(self.last_leader(partition), ())

    def standing_at(self, partition: str, offset: int) -> Value | None:
        """Return what the last leader has at an offset, None where it has nothing or is not known."""
        values = self.logs.get(partition, {}).get(self.last_leader(partition), [])
        return values[offset] if offset < len(values) else None

    def fates(self, partition: str) -> Mapping[int, TransactionFate]:
        """Return what became of the records of transactions in the last leader's log, by offset."""
        found = self._fates.get(partition)
        if found is None:
            replicas = self.evidence.replicas.get(partition) or self.evidence.offset_replicas.get(
                partition, {}
            )
            log = replicas.get(self.last_leader(partition))
            found = self._fates[partition] = {} if log is None else transaction_fates(log)
        return found

    @cached_property
    def has_transactions(self) -> bool:
        """Whether any producer of the run has transactions."""
        return any(producer.transactional_id for producer in self.evidence.producers.values())

    def transaction_parts(self, partition: str) -> Mapping[Value, list[TransactionPart]]:
        """Return the records of transactions in the last leader's log of a partition, by value."""
        found = self._parts.get(partition)
        if found is None:
            parts: dict[Value, list[TransactionPart]] = {}
            for offset, fate in self.fates(partition).items() if self.has_transactions else ():
                value = self.standing_at(partition, offset)
                if value is not None:
                    parts.setdefault(value, []).append(TransactionPart(partition, offset, value, fate))
            found = self._parts[partition] = parts
        return found

    @cached_property
    def offset_parts(self) -> Mapping[tuple[str, str, int], list[tuple[int, TransactionPart]]]:
        """What transactions have committed of offsets, by group, partition and position: parts of them like any record, each with when it was appended."""
        found: dict[tuple[str, str, int], list[tuple[int, TransactionPart]]] = {}
        appended = {
            (raw[3], raw[4], raw[5]): raw[0]
            for _, raw in (self.raw_events(BatchAppended) if self.evidence.offset_replicas else ())
            if raw[3] in self.evidence.offset_replicas
        }
        for name, replicas in self.evidence.offset_replicas.items():
            log, fates = replicas.get(self.last_leader(name)), self.fates(name)
            for batch in () if log is None else log.batches:
                at_us = appended.get((name, batch.base_offset, batch.leader_epoch))
                if not batch.is_transactional or at_us is None:
                    continue
                for offset, group, partition, position in offsets_in(batch):
                    if offset in fates:
                        part = TransactionPart(
                            name, offset, f"offset {position} of {partition} for group {group}", fates[offset]
                        )
                        found.setdefault((group, partition, position), []).append((at_us, part))
        return found

    @cached_property
    def committed_reads(self) -> Mapping[str, frozenset[Value]]:
        """What consumers have polled that read what is committed alone, by partition."""
        readers = {
            process for process, settings in self.evidence.consumers.items() if settings.read_committed
        }
        found: dict[str, set[Value]] = {}
        for _, processes, types, fs, values, _, _ in columns_of(self.evidence.operations):
            for process, type_, f, value in zip(processes, types, fs, values, strict=True):
                if f == POLL and type_ == OK and process in readers:
                    for name, pairs in value[0][1].items():
                        found.setdefault(name, set()).update([read for _, read in pairs])
        return {name: frozenset(values) for name, values in found.items()}

    def unread_partitions(self) -> list[str]:
        """Return the partitions of which acked records could not be read back."""
        return [partition for partition in self.acked if partition not in self.evidence.read_back]

    def has_unread(self) -> bool:
        """Return whether acked records could not be read back, so that they may be there or not."""
        return bool(self.unread_partitions())
