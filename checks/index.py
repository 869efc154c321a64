"""The evidence, sorted once for all rules: sends, polls, final logs, and events by their kinds.

A run is judged as often as it is run, so the history and the trace are walked once each, whatever rules
there are. What only a finding needs, the replayed cluster, is made when it is first asked for.
"""

from collections import defaultdict
from collections.abc import Iterator, KeysView, Mapping, Sequence
from functools import cached_property
from itertools import chain
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeVar

from harrow.checks.causes.resumed_epoch import resumed_epochs
from harrow.checks.evidence import Evidence
from harrow.checks.history.index import HistoryIndex
from harrow.checks.history.records import Pair, SendRecord, Value
from harrow.checks.history.version_order import VersionOrders
from harrow.checks.replay.cluster_state import ClusterState
from harrow.checks.replay.partition_state import PartitionState
from harrow.cluster_model.events import BecameLeader, Event, UnflushedLost, event_fields
from harrow.cluster_model.trace import TraceEvent, TraceLine, decode

_NO_LEADER: Final = -1

E = TypeVar("E", bound=Event)


class SessionSends(NamedTuple):
    """The sends of a process to a partition, in the order of their invocations."""

    process: int
    partition: str
    sends: Sequence[SendRecord]


class Index:
    """What rules look up. Partitions are in the order in which the run first names them.

    ``history`` and ``orders`` are what the history alone says. ``sends`` are by partition and value, in the order
    of their invocations, ``sessions`` has them by process and partition. ``acked``
    are the sends that ended ok, ``polled`` what all consumers read, as (offset, value) pairs.
    ``logs`` has the final values by offset of each replica.
    """

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self._readable: dict[str, frozenset[Value]] = {}
        self._events: dict[tuple[tuple[type[Event], ...], str | None], Sequence[TraceLine[Any]]] = {}
        self._by_partition: dict[tuple[type[Event], ...], defaultdict[str, list[TraceLine[Any]]]] = {}
        numbers: defaultdict[str, list[int]] = defaultdict(list)
        for number, event in enumerate(evidence.trace, 1):
            numbers[event[1]].append(number)
        self._numbers = numbers
        self.history = HistoryIndex(evidence.operations)
        self.orders = VersionOrders(self.history)
        self.sessions: list[SessionSends] = []
        self.sends: defaultdict[str, dict[Value, list[SendRecord]]] = defaultdict(dict)
        self.acked: dict[str, list[SendRecord]] = {}
        self.polled: dict[str, KeysView[Pair]] = {}
        self._take(self.history)
        self.logs: dict[str, dict[int, list[str | None]]] = {
            partition: {broker: log.values() for broker, log in replicas.items()}
            for partition, replicas in evidence.replicas.items()
        }

    def _take(self, history: HistoryIndex) -> None:
        """Make objects of the sends: a run has few enough of them, and its rules ask for all."""
        sends: dict[int, SendRecord] = {}
        for session in history.sessions:
            sent = {row: history.send(session.partition, row) for row in session.rows}
            sends.update(sent)
            self.sessions.append(SessionSends(session.process, session.partition, [*sent.values()]))
        for send in sorted(sends.values(), key=attrgetter("invoked")):
            self.sends[send.partition].setdefault(send.value, []).append(send)
        for name, known in history.partitions.items():
            if known.acked:
                self.acked[name] = [sends[row] for row in known.acked]
            if known.polled:
                self.polled[name] = dict.fromkeys(map(history.records.pair, known.polled)).keys()

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
            by_partition = self._by_partition[kinds] = defaultdict(list)
            for line in of_any:
                by_partition[getattr(line.event, "partition")].append(line)  # noqa: B009 - not all events have one
        return by_partition[partition]

    def raw_events(self, *kinds: type[Event]) -> Iterator[tuple[int, TraceEvent]]:
        """Yield the events of some kinds as the trace has them, each with its line.

        For what there are very many of: it costs much less than an object of each.
        """
        lines = (self._numbers.get(kind.name, ()) for kind in kinds)
        for number in sorted(chain.from_iterable(lines)):
            yield number, self.evidence.trace[number - 1]

    @cached_property
    def _cluster(self) -> ClusterState:
        cluster = ClusterState({})
        for event in self.evidence.trace:
            cluster.advance(event)
        return cluster

    def partition(self, name: str) -> PartitionState:
        """Return a partition with all that ever stood in its logs; the trace is replayed once."""
        return self._cluster.partition(name)

    def sends_of(self, partition: str, value: Value) -> list[SendRecord]:
        """Return the sends of a value, in the order of their invocations."""
        return self.sends[partition].get(value, [])

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
    def _resumed_epochs(self) -> Mapping[str, int]:
        lines: Sequence[TraceLine[BecameLeader | UnflushedLost]] = self.events(BecameLeader, UnflushedLost)
        return resumed_epochs(event for _, event in lines)

    def is_excused(self, partition: str, offset: int | None) -> bool:
        """Return whether an anomaly at an offset, or at any, can come from a leader that resumed its epoch."""
        lowest = self._resumed_epochs.get(partition)
        return lowest is not None and (offset is None or offset >= lowest)

    def readable(self, partition: str) -> frozenset[Value]:
        """Return every value that consumers can still read: those in the last leader's log.

        Where no leader is known, those of any log; without any log, what was read.
        """
        values = self._readable.get(partition)
        if values is None:
            logs = self.logs.get(partition)
            if logs:
                leading = logs.get(self.last_leader(partition))
                stored = chain.from_iterable(logs.values()) if leading is None else leading
                values = frozenset(value for value in stored if value is not None)
            else:
                values = self.orders.read(partition)
            self._readable[partition] = values
        return values

    def standing_at(self, partition: str, offset: int) -> Value | None:
        """Return what the last leader has at an offset, None where it has nothing or is not known."""
        values = self.logs.get(partition, {}).get(self.last_leader(partition), [])
        return values[offset] if offset < len(values) else None

    def unread_partitions(self) -> list[str]:
        """Return the partitions of which acked records could not be read back."""
        return [partition for partition in self.acked if partition not in self.evidence.read_back]

    def has_unread(self) -> bool:
        """Return whether acked records could not be read back, so that they may be there or not."""
        return bool(self.unread_partitions())
