"""The evidence, sorted once for all rules: sends, polls, final logs, and the events rules look at.

A run is judged as often as it is run, so the history and the trace are walked once each
and sets are built by the interpreter's own loops. What only a finding needs, the lives of
the stored copies, is replayed when it is first asked for.
"""

from collections.abc import Mapping
from itertools import chain
from typing import Final

from checks.copies import PartitionCopies, copies_by_partition
from checks.evidence import Evidence
from cluster_model.history import INVOKE, OK, Operation
from cluster_model.trace import TraceEvent

Pair = tuple[int, str]
"""An offset and the value that stands there."""

_NO_LEADER: Final = -1
_SENDING_OR_POLLING: Final = frozenset({"send", "poll", "txn"})


class Send:
    """One send: its invocation and what came of it.

    ``outcome`` is ``ok``, ``fail`` or ``info``, None while nothing came back. ``offset`` is
    what the ack said, None if it said nothing.
    """

    __slots__ = ("completed_us", "invoked_us", "offset", "outcome", "partition", "process", "value")

    def __init__(self, process: int, partition: str, value: str, invoked_us: int) -> None:
        self.process = process
        self.partition = partition
        self.value = value
        self.invoked_us = invoked_us
        self.outcome: str | None = None
        self.offset: int | None = None
        self.completed_us: int | None = None


class Index:
    """What rules look up. Partitions are in the order in which the run first names them.

    ``sends`` are by (partition, value) in the order of their invocations, ``sessions`` by
    (process, partition); ``acked`` are the sends that ended ok. ``polled`` has what all
    consumers read, as (offset, value) pairs. ``logs`` has the final values by offset of
    each replica.
    """

    __slots__ = (
        "_copies",
        "_evidence",
        "_polled_values",
        "_readable",
        "acked",
        "leader_events",
        "logs",
        "polled",
        "sends",
        "sessions",
        "watermark_events",
    )

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._copies: dict[str, PartitionCopies] | None = None
        self._polled_values: dict[str, frozenset[str]] = {}
        self._readable: dict[str, frozenset[str]] = {}
        self.sends: dict[tuple[str, str], list[Send]] = {}
        self.sessions: dict[tuple[int, str], list[Send]] = {}
        self.acked: dict[str, list[Send]] = {}
        self.polled: dict[str, set[Pair]] = {}
        self.logs: dict[str, dict[int, list[str]]] = {
            partition: {broker: log.values() for broker, log in replicas.items()}
            for partition, replicas in evidence.replicas.items()
        }
        self.leader_events: list[TraceEvent] = []
        self.watermark_events: list[TraceEvent] = []
        self._read_history()
        self._read_trace()

    def _read_history(self) -> None:
        for operation in self._evidence.operations:
            if operation.f not in _SENDING_OR_POLLING:
                continue
            for micro in operation.value:
                if micro[0] == "send":
                    if operation.type == INVOKE:
                        self._invoke(operation, micro[1], micro[2])
                    else:
                        self._complete(operation, micro[1], micro[2])
                elif operation.type == OK and len(micro) == 2:
                    self._poll(micro[1])

    def _invoke(self, operation: Operation, partition: str, value: str) -> Send:
        process = operation.process
        send = Send(process, partition, value, operation.time_us)
        known = self.sends.get((partition, value))
        if known is None:
            self.sends[partition, value] = [send]
        else:
            known.append(send)
        session = self.sessions.get((process, partition))
        if session is None:
            self.sessions[process, partition] = [send]
        else:
            session.append(send)
        return send

    def _complete(self, operation: Operation, partition: str, written: str | Pair | tuple[None, str]) -> None:
        """Match a completion to its invocation: a producer has several sends outstanding."""
        offset, value = (None, written) if isinstance(written, str) else written
        for send in self.sends.get((partition, value), ()):
            if send.outcome is None and send.process == operation.process:
                break
        else:
            send = self._invoke(operation, partition, value)
        send.outcome = operation.type
        send.completed_us = operation.time_us
        send.offset = offset
        if operation.type == OK:
            self.acked.setdefault(partition, []).append(send)

    def _poll(self, records: Mapping[str, list[Pair]]) -> None:
        for partition, pairs in records.items():
            polled = self.polled.get(partition)
            if polled is None:
                polled = self.polled[partition] = set()
            polled.update(pairs)

    def _read_trace(self) -> None:
        wanted = {
            "leader": self.leader_events.append,
            "hw": self.watermark_events.append,
            "recover": self.watermark_events.append,
            "served": self.watermark_events.append,
        }.get
        for event in self._evidence.trace:
            add = wanted(event[1])
            if add is not None:
                add(event)

    def last_leader(self, partition: str) -> int:
        """Return the broker that led a partition in its latest epoch, -1 if none is known."""
        led = [(event[4], event[2]) for event in self.leader_events if event[3] == partition]
        return max(led)[1] if led else _NO_LEADER

    def polled_values(self, partition: str) -> frozenset[str]:
        """Return every value that some consumer read."""
        values = self._polled_values.get(partition)
        if values is None:
            values = frozenset([value for _, value in self.polled.get(partition, ())])
            self._polled_values[partition] = values
        return values

    def readable(self, partition: str) -> frozenset[str]:
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
