"""Reads the final logs of each partition's last leader, and the transactions in them."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Final

from harrow.checks.evidence import Evidence, FinalLog
from harrow.checks.history.records import Value
from harrow.checks.transaction_fates import (
    ABORTED,
    TransactionFate,
    TransactionPart,
    fate_of,
    transaction_fates,
)

NO_LEADER: Final = -1


def _values_of_replicas(replicas: Mapping[int, FinalLog]) -> dict[int, list[str | None]]:
    values: dict[int, list[str | None]] = {}
    previous: FinalLog | None = None
    same: list[str | None] = []
    for broker, log in replicas.items():
        # Most replicas have the same batches as their leader.
        if log is not previous and (
            previous is None
            or log.batches != previous.batches
            or (log.damaged, log.begins_at) != (previous.damaged, previous.begins_at)
        ):
            same = log.values() if log.batches else []
        values[broker] = same
        previous = log
    return values


class LastLogs:
    """The final logs of the last leaders of partitions.

    ``values`` has the final values of each replica by offset, and ``written`` the partitions in
    which any of these logs is not empty. ``leaders`` maps a partition to its leader in its latest
    epoch. What a log says about transactions is read on first use.
    """

    def __init__(self, evidence: Evidence, leaders: Mapping[str, int]) -> None:
        self._evidence = evidence
        self._leaders = leaders
        self.values: dict[str, dict[int, list[str | None]]] = {
            partition: _values_of_replicas(replicas) for partition, replicas in evidence.replicas.items()
        }
        self.written: dict[str, None] = {
            partition: None for partition, logs in self.values.items() if any(logs.values())
        }
        self.has_transactions = any(producer.transactional_id for producer in evidence.producers.values())
        self._fates: dict[str, Mapping[int, TransactionFate]] = {}
        self._parts: dict[str, Mapping[Value, list[TransactionPart]]] = {}

    def leader(self, partition: str) -> int:
        """Return the leader of a partition in its latest epoch, `NO_LEADER` if none is known."""
        return self._leaders.get(partition, NO_LEADER)

    def of(self, partition: str) -> FinalLog | None:
        """Return a partition's last leader's log, None if it is unknown."""
        replicas = self._evidence.replicas.get(partition)
        if not replicas:
            replicas = self._evidence.offset_replicas.get(partition, {})
        return replicas.get(self.leader(partition))

    def values_of(self, partition: str) -> Sequence[str | None]:
        """Return the values in a partition's last leader's log by offset, empty if unknown."""
        return self.values.get(partition, {}).get(self.leader(partition), ())

    def standing_at(self, partition: str, offset: int) -> Value | None:
        """Return the value at an offset of the last leader's log."""
        values = self.values_of(partition)
        return values[offset] if offset < len(values) else None

    def readable(self, partition: str) -> Iterable[str | None]:
        """Return the values in the last leader's log, without those of aborted transactions.

        If the leader is unknown, the values of all logs count.
        """
        logs = self.values.get(partition, {})
        if self.leader(partition) not in logs:
            return chain.from_iterable(logs.values())
        values = self.values_of(partition)
        fates = self.fates(partition) if self.has_transactions else {}
        if not fates:
            return values
        return [
            value
            for offset, value in enumerate(values)
            if offset not in fates or fates[offset].state != ABORTED
        ]

    def fates(self, partition: str) -> Mapping[int, TransactionFate]:
        """Return the fates of transactional records in the last leader's log, by offset."""
        fates = self._fates.get(partition)
        if fates is None:
            log = self.of(partition)
            fates = self._fates[partition] = {} if log is None else transaction_fates(log)
        return fates

    def transaction_parts(self, partition: str) -> Mapping[Value, list[TransactionPart]]:
        """Return the transactional records in the last leader's log of a partition, by value."""
        known = self._parts.get(partition)
        if known is not None:
            return known
        parts: dict[Value, list[TransactionPart]] = {}
        values = self.values_of(partition)
        for offset, fate in self.fates(partition).items() if self.has_transactions else ():
            value = values[offset] if offset < len(values) else None
            if value is not None:
                parts.setdefault(value, []).append(TransactionPart(partition, offset, value, fate))
        self._parts[partition] = parts
        return parts

    def fate(self, partition: str, value: Value) -> str | None:
        """Return the fate of a value of a partition, None if it is in no transaction."""
        return fate_of(self.transaction_parts(partition).get(value, ()))
