"""What the records of the metadata log amount to (``MetadataImage.java``, and the controller's own hash maps)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Self

from harrow.cluster_model.kraft.records import (
    BrokerRegistrationChangeRecord,
    MetadataRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
)


@dataclass(slots=True, frozen=True)
class BrokerRegistration:
    """A broker as the metadata log has it."""

    broker_epoch: int
    incarnation: int
    fenced: bool = True
    in_controlled_shutdown: bool = False
    offline: frozenset[str] = frozenset()
    """Its replicas in log directories that have failed."""

    @property
    def is_active(self) -> bool:
        """Whether it may join ISRs and lead (``ClusterControlManager.isActive``)."""
        return not self.fenced and not self.in_controlled_shutdown


class ClusterImage:
    """Brokers, partitions and producer ids, up to an offset of the log."""

    __slots__ = (
        "_active",
        "_in_isr",
        "_unfenced",
        "brokers",
        "leaderless",
        "next_offset",
        "next_producer_id",
        "partitions",
    )

    def __init__(self) -> None:
        self.next_offset = 0
        self.brokers: dict[int, BrokerRegistration] = {}
        self.partitions: dict[str, PartitionRecord] = {}
        self.leaderless: dict[str, None] = {}
        self.next_producer_id = 0
        # What the brokers amount to, until one of them changes.
        self._active: dict[int, int] | None = None
        self._unfenced: dict[int, int] | None = None
        # By broker the partitions that have it in their ISR or ELR (BrokersToIsrs.java).
        self._in_isr: dict[int, dict[str, None]] = {}

    @classmethod
    def of_snapshot(cls, records: Iterable[MetadataRecord], end_offset: int) -> Self:
        """Return what a snapshot says, which ends before an offset of the log."""
        image = cls()
        for record in records:
            image._replay(record)
        image.next_offset = end_offset
        return image

    def write(self) -> tuple[MetadataRecord, ...]:
        """Return the records of a snapshot: what there is, however it came about (``MetadataImage.write``)."""
        records: list[MetadataRecord] = [
            RegisterBrokerRecord(
                *(broker, known.incarnation, known.broker_epoch),
                *(known.fenced, known.in_controlled_shutdown),
                tuple(sorted(known.offline)),
            )
            for broker, known in self.brokers.items()
        ]
        records += [replace(known, altered_by=-1) for known in self.partitions.values()]
        if self.next_producer_id:
            records.append(ProducerIdsRecord(self.next_producer_id))
        return tuple(records)

    def apply(self, record: MetadataRecord) -> None:
        """Take over the next record of the log."""
        self._replay(record)
        self.next_offset += 1

    def _replay(self, record: MetadataRecord) -> None:
        if isinstance(record, PartitionRecord):
            self._apply_partition(record)
        elif isinstance(record, RegisterBrokerRecord):
            epoch = self.next_offset if record.broker_epoch < 0 else record.broker_epoch
            self._set_broker(
                record.broker,
                BrokerRegistration(
                    *(epoch, record.incarnation, record.fenced, record.in_controlled_shutdown),
                    frozenset(record.offline),
                ),
            )
        elif isinstance(record, BrokerRegistrationChangeRecord):
            known = self.brokers[record.broker]
            self._set_broker(
                record.broker,
                BrokerRegistration(
                    *(known.broker_epoch, known.incarnation, record.fenced, record.in_controlled_shutdown),
                    known.offline if record.offline is None else frozenset(record.offline),
                ),
            )
        elif isinstance(record, ProducerIdsRecord):
            self.next_producer_id = record.next_producer_id

    def _set_broker(self, broker: int, registration: BrokerRegistration) -> None:
        self.brokers[broker] = registration
        self._active = self._unfenced = None

    def _apply_partition(self, record: PartitionRecord) -> None:
        name = record.partition
        before = self.partitions.get(name)
        members = (*record.isr, *record.elr)
        for broker in () if before is None else (*before.isr, *before.elr):
            if broker not in members:
                self._in_isr[broker].pop(name, None)
        for broker in members:
            self._in_isr.setdefault(broker, {})[name] = None
        self.partitions[name] = record
        if record.leader < 0:
            self.leaderless[name] = None
        else:
            self.leaderless.pop(name, None)

    def unfenced(self) -> Mapping[int, int]:
        """Return the broker epochs of those that are registered and not fenced, in order of their ids."""
        if self._unfenced is None:
            self._unfenced = {b: k.broker_epoch for b, k in sorted(self.brokers.items()) if not k.fenced}
        return self._unfenced

    def active(self) -> Mapping[int, int]:
        """Return the broker epochs of those that may join ISRs and lead."""
        if self._active is None:
            self._active = {b: known.broker_epoch for b, known in self.brokers.items() if known.is_active}
        return self._active

    def is_active(self, broker: int) -> bool:
        known = self.brokers.get(broker)
        return known is not None and known.is_active

    def may_lead(self, partition: str, broker: int) -> bool:
        """Return whether a broker is active, and its replica of a partition not in a log directory that has failed (``isAcceptableLeader``)."""
        known = self.brokers.get(broker)
        return known is not None and known.is_active and partition not in known.offline

    def with_in_isr(self, broker: int) -> tuple[str, ...]:
        """Return the partitions that have a broker in their ISR or ELR, as they were created."""
        names = self._in_isr.get(broker, {})
        return tuple(sorted(names, key=_by_number))

    def leads(self, broker: int) -> bool:
        """Return whether a broker leads anything."""
        return any(self.partitions[name].leader == broker for name in self._in_isr.get(broker, ()))


def _by_number(partition: str) -> tuple[str, int]:
    topic, _, number = partition.rpartition("-")
    return topic, int(number)
