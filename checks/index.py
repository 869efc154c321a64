"""The evidence, sorted once for all rules: sends, polls, final logs, and the events rules look at.

A run is judged as often as it is run, so the history and the trace are walked once each. What
only a finding needs, the lives of the stored copies, is replayed when it is first asked for.
"""

from itertools import chain
from typing import Final

from checks.copies import PartitionCopies, copies_by_partition
from checks.evidence import Evidence
from checks.history.index import HistoryIndex
from checks.history.records import Send, Value
from checks.history.version_order import VersionOrders
from cluster_model.trace import TraceEvent

_NO_LEADER: Final = -1


class Index:
    """What rules look up. Partitions are in the order in which the run first names them.

    ``history`` has the sends and ``orders`` the version orders of the history alone. ``acked``
    are the sends that ended ok, ``polled`` what all consumers read, as (offset, value) pairs.
    ``logs`` has the final values by offset of each replica.
    """

    __slots__ = (
        "_copies",
        "_evidence",
        "_readable",
        "acked",
        "broken_invariants",
        "history",
        "isr_events",
        "leader_events",
        "logs",
        "orders",
        "polled",
        "watermark_events",
    )

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._copies: dict[str, PartitionCopies] | None = None
        self._readable: dict[str, frozenset[Value]] = {}
        self.history = HistoryIndex(evidence.operations)
        self.orders = VersionOrders(self.history)
        partitions = self.history.partitions.values()
        self.acked = {known.name: known.acked for known in partitions if known.acked}
        self.polled = {known.name: known.polled.keys() for known in partitions if known.polled}
        self.logs: dict[str, dict[int, list[str]]] = {
            partition: {broker: log.values() for broker, log in replicas.items()}
            for partition, replicas in evidence.replicas.items()
        }
        self.broken_invariants: list[TraceEvent] = []
        self.isr_events: list[TraceEvent] = []
        self.leader_events: list[TraceEvent] = []
        self.watermark_events: list[TraceEvent] = []
        self._read_trace()

    def _read_trace(self) -> None:
        wanted = {
            "isr": self.isr_events.append,
            "leader": self.leader_events.append,
            "hw": self.watermark_events.append,
            "recover": self.watermark_events.append,
            "served": self.watermark_events.append,
            "invariant_broken": self.broken_invariants.append,
        }.get
        for event in self._evidence.trace:
            add = wanted(event[1])
            if add is not None:
                add(event)

    def sends_of(self, partition: str, value: Value) -> list[Send]:
        """Return the sends of a value, in the order of their invocations."""
        known = self.history.partitions.get(partition)
        return [] if known is None else known.sends.get(value, [])

    def last_leader(self, partition: str) -> int:
        """Return the broker that led a partition in its latest epoch, -1 if none is known."""
        led = [(event[4], event[2]) for event in self.leader_events if event[3] == partition]
        return max(led)[1] if led else _NO_LEADER

    def polled_values(self, partition: str) -> frozenset[Value]:
        """Return every value that some consumer read."""
        return self.orders.read(partition)

    def readable(self, partition: str) -> frozenset[Value]:
        """Return every value that consumers can still read: those in the last leader's log.

        Where no leader is known, those of any log; without any log, what was read.
        """
        values = self._readable.get(partition)
        if values is None:
            logs = self.logs.get(partition)
            if logs:
                leading = logs.get(self.last_leader(partition))
                values = frozenset(chain.from_iterable(logs.values()) if leading is None else leading)
            else:
                values = self.polled_values(partition)
            self._readable[partition] = values
        return values

    def standing_at(self, partition: str, offset: int) -> Value | None:
        """Return what the last leader has at an offset, None where it has nothing or is not known."""
        values = self.logs.get(partition, {}).get(self.last_leader(partition), [])
        return values[offset] if offset < len(values) else None

    def unread_partitions(self) -> list[str]:
        """Return the partitions of which acked records could not be read back."""
        return [partition for partition in self.acked if partition not in self._evidence.read_back]

    def copies(self, partition: str) -> PartitionCopies:
        """Return where each record of a partition was stored, and how it went; replayed once."""
        if self._copies is None:
            self._copies = copies_by_partition(self._evidence.trace)
        copies = self._copies.get(partition)
        if copies is None:
            copies = self._copies[partition] = PartitionCopies()
        return copies
