"""Indexes the evidence of a run once for all rules: sends, polls, final logs, and events by kind.

The history and the trace are each read once, however many rules there are. Indexes that only
findings need, such as the replayed cluster, are built on first use.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from operator import attrgetter, itemgetter
from typing import Any, Final, TypeVar, cast

from harrow.checks.causes.resumed_epoch import Loss, resumed_epochs
from harrow.checks.causes.undecided_reads import UndecidedRead, undecided_reads
from harrow.checks.evidence import Evidence
from harrow.checks.group_work import GroupWork
from harrow.checks.history.index import HistoryIndex
from harrow.checks.history.records import SendRecord, Value
from harrow.checks.history.version_order import VersionOrders
from harrow.checks.history.views import PolledPairs, SendsByRow, SessionSends
from harrow.checks.last_logs import LastLogs
from harrow.checks.permission import Permission
from harrow.checks.promise import BY_FORGOTTEN_EPOCH, BY_RESUMED_EPOCH
from harrow.checks.replay.cluster_state import REPLAYED, ClusterState
from harrow.checks.replay.log_ends import FOLLOWED, LogEnds
from harrow.checks.replay.partition_state import LogEntry, PartitionState
from harrow.checks.trace_index import BlockReader, TraceIndex
from harrow.checks.transaction_fates import TransactionPart
from harrow.cluster_model import events
from harrow.cluster_model.coordinators.groups.group_records import offsets_in
from harrow.cluster_model.events import BrokerResumed, BrokerStarted, Event, FaultEnded
from harrow.cluster_model.history import OK, POLL, columns_of
from harrow.cluster_model.log.old_checkpoints import LEADER_EPOCH_CHECKPOINT
from harrow.cluster_model.release.profiles import Behaviours
from harrow.cluster_model.topology import is_internal
from harrow.cluster_model.trace import TraceLine, decode

_REPLAYED_AT_ONCE: Final = 1_000_000
"""Traces of up to so many events are replayed for all partitions at once, which takes about 300
MiB."""
_REPLAYS_MAX: Final = 5

E = TypeVar("E", bound=Event)
T = TypeVar("T")
L = TypeVar("L", bound=tuple[Any, ...])


def _was_power_loss(event: events.BecameLeader | Loss) -> bool | None:
    """Return whether a log lost its end in a power loss (True) or in a disk failure (False).

    None if the event is not a loss.
    """
    if isinstance(event, events.BecameLeader):
        return None
    return isinstance(event, events.UnflushedLost) or (isinstance(event, events.CorruptionCut) and event.torn)


def lines_before(lines: Sequence[L], line: float) -> Iterator[L]:
    """Yield those of *lines* that are before a line of the trace, latest first.

    Each begins with its number, and the numbers ascend.
    """
    end = bisect_left(lines, line, key=itemgetter(0))
    return map(lines.__getitem__, range(end - 1, -1, -1))


def _grouped(lines: Iterable[TraceLine[E]], field: str) -> Mapping[Any, Sequence[TraceLine[E]]]:
    """Return the lines grouped by a field of their events."""
    groups: dict[Any, list[TraceLine[E]]] = {}
    for line in lines:
        groups.setdefault(getattr(line.event, field), []).append(line)
    return groups


def detail_values(fault: events.FaultStruck) -> list[Any]:
    """Return all values in the details of a fault, and the items of the values that are lists."""
    values = [value for _, value in fault.details]
    return [*values, *(item for value in values if isinstance(value, list | tuple) for item in value)]


def names(fault: events.FaultStruck, target: int | str | None) -> bool:
    """Return whether the details of a fault name a broker or a client."""
    return target is not None and any(
        type(value) is type(target) and value == target for value in detail_values(fault)
    )


class Index:
    """The indexes of a run. Partitions are in the order in which the run first names them.

    ``history`` and ``orders`` come from the history alone. ``sessions`` has the sends by process
    and partition, ``acked`` the acknowledged sends by partition, and ``polled`` the (offset, value)
    pairs that consumers read. ``logs`` has the final values of each replica by offset, and
    ``written`` the partitions in which any of these logs is not empty. A run has
    millions of events and sends, so only line and row numbers are stored, and objects are created
    on access. A *reader* reads the trace while it is indexed.
    """

    def __init__(self, evidence: Evidence, reader: BlockReader | None = None) -> None:
        self.evidence = evidence
        self._partitions: dict[str, PartitionState] = {}
        self._replays = 0
        self._copies: dict[str, dict[int, list[LogEntry]]] = {}
        self._copies_of_keys: dict[tuple[str, str], list[LogEntry]] = {}
        self._readable: tuple[str, frozenset[Value]] | None = None
        self._strikes: dict[tuple[int, int | str | None], int | None] = {}
        self._events: dict[tuple[tuple[type[Event], ...], str | None], Sequence[TraceLine[Any]]] = {}
        self._by_partition: dict[tuple[type[Event], ...], dict[str, list[TraceLine[Any]]]] = {}
        self._derived: dict[Callable[[Index], Any], Any] = {}
        trace_index = TraceIndex(evidence.trace, reader)
        self.has = trace_index.has
        self.raw_events = trace_index.raw_events
        self.last_us = trace_index.last_us
        self.during = trace_index.during
        self.position_at = trace_index.position_at
        history = self.history = HistoryIndex(evidence.operations)
        self.orders = VersionOrders(history)
        self.sessions = [
            SessionSends(each.process, each.partition, SendsByRow(history, each.partition, each.rows))
            for each in history.sessions
        ]
        self.acked = {
            name: SendsByRow(history, name, partition.acked)
            for name, partition in history.partitions.items()
            if partition.acked
        }
        self.polled = PolledPairs(history)
        self._last_logs = LastLogs(evidence, self._last_leaders())
        self.logs = self._last_logs.values
        self.written = self._last_logs.written
        self.has_transactions = self._last_logs.has_transactions
        self.last_leader = self._last_logs.leader
        self.last_log = self._last_logs.values_of
        self.standing_at = self._last_logs.standing_at
        self.fates = self._last_logs.fates
        self.transaction_parts = self._last_logs.transaction_parts

    def events(self, *kinds: type[E], partition: str | None = None) -> Sequence[TraceLine[E]]:
        """Return the events of some kinds, in the order of the trace.

        With a *partition*, the events of other partitions are excluded.
        """
        matches = self._events.get((kinds, partition))
        if matches is None:
            if partition is None:
                matches = [TraceLine(number, decode(event)) for number, event in self.raw_events(*kinds)]
            else:
                matches = self._of_partition(kinds, partition)
            self._events[kinds, partition] = matches
        return matches

    def _of_partition(self, kinds: tuple[type[E], ...], partition: str) -> Sequence[TraceLine[E]]:
        of_any = self.events(*kinds)
        are_of_partitions = {"partition" in events.event_fields(kind.name) for kind in kinds}
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

    def partition(self, name: str) -> PartitionState:
        """Return the state of a partition, with every record that was ever in its logs.

        A short trace is replayed once for all partitions. In a long trace, the copies of all
        records would take as much memory as the run, but few partitions have findings. So the first
        `_REPLAYS_MAX` - 1 requested partitions are replayed one by one.
        """
        state = self._partitions.get(name)
        if state is None and self._replays == _REPLAYS_MAX:
            state = PartitionState(name)  # No event of the trace concerns it.
        if state is None:
            alone = len(self.evidence.trace) > _REPLAYED_AT_ONCE and self._replays < _REPLAYS_MAX - 1
            self._replays = self._replays + 1 if alone else _REPLAYS_MAX
            cluster = ClusterState({})
            lines = self.raw_events(*REPLAYED)
            cluster.advance_over(
                (line for line in lines if cluster.concerns(line[1], name)) if alone else lines
            )
            state = cluster.partition(name)
            # Stories refer to partitions of earlier replays, so those objects stay.
            self._partitions = (
                {**self._partitions, name: state} if alone else {**cluster.partitions, **self._partitions}
            )
        return state

    def copies_at(self, partition: str, offset: int) -> list[LogEntry]:
        """Return all copies that were ever stored at an offset, value by value."""
        by_offset = self._copies.get(partition)
        if by_offset is None:
            by_offset = self._copies[partition] = {}
            for copy in chain.from_iterable(self.partition(partition).by_value.values()):
                by_offset.setdefault(copy.offset, []).append(copy)
        return by_offset.get(offset, [])

    def copies_of_key(self, partition: str, value: str) -> Sequence[LogEntry]:
        """Return all copies of all records with the same key as a record, by rising offset.

        They include the copies of the record itself. If it has no key, there are none.
        """
        state = self.partition(partition)
        keyed = state.keys.get(value)
        if keyed is None:
            return ()
        place = partition, keyed.key
        copies = self._copies_of_keys.get(place)
        if copies is None:
            copies = [copy for other in state.by_key[keyed.key] for copy in state.by_value.get(other, ())]
            copies.sort(key=attrgetter("offset"))
            self._copies_of_keys[place] = copies
        return copies

    def strike_at(self, line: float, target: int | str | None) -> int | None:
        """Return the number of the fault that struck a broker or a client at a line, or None.

        The event of a message rule has the number of its fault. Any other fault precedes its
        effects in the trace: it is the last fault of that instant, preferably one that names the
        target. If a fault acts in steps, its later steps belong to the last fault that names the
        target and has not ended.
        """
        key = int(line), target
        if key not in self._strikes:
            self._strikes[key] = self._strike_at(*key)
        return self._strikes[key]

    def _strike_at(self, number: int, target: int | str | None) -> int | None:
        if not 0 < number <= len(self.evidence.trace):
            return None
        event = decode(self.evidence.trace[number - 1])
        if isinstance(event, events.MessageRuleApplied | events.FaultStruck):
            return event.strike
        if isinstance(event, events.BrokerStopped) and event.cause == events.SHUT_DOWN:
            # A controlled shutdown ends long after the fault that requested it.
            for place, request in lines_before(self.events(events.BrokerStopping), number):
                if request.broker == event.broker:
                    return self.strike_at(place, target)
            return None
        latest: int | None = None
        for _, fault in lines_before(self.events(events.FaultStruck), number + 1):
            is_now = fault.at_us == event.at_us
            if is_now and latest is None:
                latest = fault.strike
            if names(fault, target) and (is_now or not self._had_ended(fault.strike, number, event.at_us)):
                return fault.strike
        return latest

    def _had_ended(self, strike: int, number: int, at_us: int) -> bool:
        """Return whether a fault had ended at a line, and before its instant."""
        return any(place <= number and over.at_us < at_us for place, over in self.fault_ends.get(strike, ()))

    @cached_property
    def fault_ends(self) -> Mapping[int | None, Sequence[TraceLine[FaultEnded]]]:
        """The events that ended faults, by the number of the fault (``strike``)."""
        return _grouped(self.events(FaultEnded), "strike")

    @cached_property
    def broker_returns(self) -> Mapping[int, Sequence[TraceLine[BrokerStarted | BrokerResumed]]]:
        """The events that ended stops and pauses of brokers, by broker."""
        lines: Sequence[TraceLine[BrokerStarted | BrokerResumed]]
        lines = self.events(BrokerStarted, BrokerResumed)
        return _grouped(lines, "broker")

    def derived(self, make: Callable[["Index"], T]) -> T:
        """Return what a function derives from this index. It is called once."""
        if make not in self._derived:
            self._derived[make] = make(self)
        derived: T = self._derived[make]
        return derived

    def sends_of(self, partition: str, value: Value) -> list[SendRecord]:
        """Return the sends of a value, in the order of their invocations."""
        sends = self.history.partitions.get(partition)
        rows = [] if sends is None else self.history.sends_of(sends, value)
        return [self.history.send(partition, row) for row in rows]

    @cached_property
    def undecided_reads(self) -> Mapping[tuple[str, Value], UndecidedRead]:
        """For each record that may not be committed, one read of it, by partition and value."""
        return undecided_reads(self.evidence, self.history)

    @cached_property
    def forgetful_partitions(self) -> Sequence[str]:
        """The partitions with a log that lost committed records, in the order of the trace.

        Either a leader started with fewer records than had been committed, or a replica truncated
        its log below its high watermark because the leader had other records there.
        """
        committed: dict[str, int] = {}
        passed: dict[tuple[str, int], int] = {}
        forgetful: dict[str, None] = {}
        for _, event in self.raw_events(
            events.HighWatermarkSet, events.BecameLeader, events.LogTruncated, events.LogOpened
        ):
            if event[1] == events.BecameLeader.name:
                led = events.BecameLeader(event[0], *event[2:])
                if led.start_offset < committed.get(led.partition, 0):
                    forgetful[led.partition] = None
            elif event[1] == events.LogTruncated.name:
                cut = events.LogTruncated(event[0], *event[2:])
                if cut.to_offset < passed.get((cut.partition, cut.broker), 0):
                    forgetful[cut.partition] = None
            elif event[1] == events.LogOpened.name:
                opened = events.LogOpened(event[0], *event[2:])
                passed[opened.partition, opened.broker] = opened.hw
            else:
                raised = events.HighWatermarkSet(event[0], *event[2:])
                committed[raised.partition] = max(raised.hw, committed.get(raised.partition, 0))
                place = raised.partition, raised.broker
                passed[place] = max(raised.hw, passed.get(place, 0))
        return tuple(forgetful)

    @cached_property
    def behaviours(self) -> Behaviours:
        """The behaviour of brokers and clients, built once: a rule may need it at each event."""
        return self.evidence.does()

    @cached_property
    def log_ends(self) -> LogEnds:
        """The transactions in all logs, and the reads above the last stable offset."""
        readers = {each.name for each in self.evidence.consumers.values() if each.read_committed}
        return LogEnds(self.raw_events(*FOLLOWED), readers, self._exists)

    def _exists(self, partition: str) -> bool:
        """Return whether a partition exists at the end. Internal topics are never deleted."""
        return is_internal(partition) or partition in self.evidence.partitions

    @cached_property
    def group_work(self) -> GroupWork:
        return GroupWork(self.evidence, self.history, self._last_logs, self.offset_parts)

    def _last_leaders(self) -> Mapping[str, int]:
        latest: dict[str, tuple[int, int]] = {}
        for _, (_, _, broker, partition, leader_epoch, *_) in self.raw_events(events.BecameLeader):
            led = leader_epoch, broker
            latest[partition] = max(led, latest.get(partition, led))
        return {partition: broker for partition, (_, broker) in latest.items()}

    @cached_property
    def metadata_lost_us(self) -> int | None:
        """When the quorum lost committed metadata, because no majority had all of it."""
        lost = (event.at_us for _, event in self.events(events.MetadataLogLost) if not event.is_kept)
        return next(lost, None)

    @cached_property
    def _excuses(self) -> Sequence[tuple[Permission, Mapping[str, int]]]:
        """For each permission, the lowest offset by partition from which logs may have diverged."""
        lines: Sequence[TraceLine[events.BecameLeader | Loss]]
        lines = self.events(events.BecameLeader, events.UnflushedLost, events.CorruptionCut, events.LogLost)
        led = [event for _, event in lines]
        forgotten = dict(resumed_epochs(event for event in led if not _was_power_loss(event)))
        for _, reverted in self.events(events.CheckpointReverted):
            for partition, offset in reverted.offsets if reverted.kind == LEADER_EPOCH_CHECKPOINT else ():
                forgotten[partition] = min(offset, forgotten.get(partition, offset))
        return (
            (BY_RESUMED_EPOCH, resumed_epochs(event for event in led if _was_power_loss(event) is not False)),
            (BY_FORGOTTEN_EPOCH, forgotten),
        )

    def excuse(self, partition: str, offset: int | None) -> Permission | None:
        """Return the permission for an anomaly that a resumed or forgotten epoch caused, or None.

        Without an *offset*, any lost offset of the partition counts.
        """
        for permission, offsets in self._excuses:
            lowest = offsets.get(partition)
            if lowest is not None and (offset is None or offset >= lowest):
                return permission
        return None

    def readable(self, partition: str) -> frozenset[Value]:
        """Return every value that consumers can still read: the last leader's, except aborted ones.

        If the leader is unknown, the values of all logs count. Without logs, the values that
        consumers have read count.
        """
        if self._readable is None or self._readable[0] != partition:
            stored = self._last_logs.readable(partition) if self.logs.get(partition) else None
            values = (
                self.orders.read(partition)
                if stored is None
                else cast("frozenset[Value]", frozenset(stored) - {None})
            )
            # Rules visit one partition after another, so it is enough to cache the result for one.
            self._readable = partition, values
        return self._readable[1]

    @cached_property
    def offset_parts(self) -> Mapping[tuple[str, str, int], list[tuple[int, TransactionPart]]]:
        """The commits of groups in transactions, each with its append time.

        A key is the group, the partition and the position. A commit is a part of its transaction,
        as a record is.
        """
        commits: dict[tuple[str, str, int], list[tuple[int, TransactionPart]]] = {}
        appended = {
            (raw[3], raw[4], raw[5]): raw[0]
            for _, raw in (self.raw_events(events.BatchAppended) if self.evidence.offset_replicas else ())
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
                        commits.setdefault((group, partition, position), []).append((at_us, part))
        return commits

    @cached_property
    def committed_reads(self) -> Mapping[str, frozenset[Value]]:
        """The values that read_committed consumers have polled, by partition."""
        readers = {
            process for process, settings in self.evidence.consumers.items() if settings.read_committed
        }
        reads: dict[str, set[Value]] = {}
        for _, processes, types, fs, values, _, _ in columns_of(self.evidence.operations):
            for process, type_, f, value in zip(processes, types, fs, values, strict=True):
                if f == POLL and type_ == OK and process in readers:
                    for name, pairs in value[0][1].items():
                        reads.setdefault(name, set()).update([read for _, read in pairs])
        return {name: frozenset(values) for name, values in reads.items()}

    def unread_partitions(self) -> list[str]:
        """Return the partitions with acked records that could not be read back."""
        return [partition for partition in self.acked if partition not in self.evidence.read_back]

    def has_sends(self) -> bool:
        """Return whether any record was sent."""
        return bool(self.history.sends_total)

    def has_acks(self) -> bool:
        """Return whether any send was acknowledged."""
        return bool(self.acked)

    def has_groups(self) -> bool:
        """Return whether any consumer is in a group."""
        return any(settings.group for settings in self.evidence.consumers.values())

    def has_patient_groups(self) -> bool:
        """Return whether any consumer is in a group and has timeouts."""
        return any(settings.group and settings.patience_us for settings in self.evidence.consumers.values())

    def has_unread(self) -> bool:
        """Return whether some acked records were not read back, so their loss is undecided."""
        return bool(self.unread_partitions())
