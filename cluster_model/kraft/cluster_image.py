"""Defines the state that the records of a metadata log add up to (``MetadataImage.java``)."""

from collections.abc import Iterable, Mapping
from typing import Self

from harrow.cluster_model.kraft.records import (
    BrokerRegistrationChangeRecord,
    MetadataRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicSettingsRecord,
)
from harrow.cluster_model.lazy_dataclass import dataclass, replace
from harrow.cluster_model.settings import Value


@dataclass(slots=True, frozen=True)
class BrokerRegistration:
    """A broker's registration in the metadata log."""

    broker_epoch: int
    incarnation: int
    fenced: bool = True
    in_controlled_shutdown: bool = False
    offline: frozenset[str] = frozenset()
    """The broker's replicas in failed log directories."""

    @property
    def is_active(self) -> bool:
        """Whether the broker may join ISRs and lead (``ClusterControlManager.isActive``)."""
        return not self.fenced and not self.in_controlled_shutdown


class ClusterImage:
    """The brokers, partitions and producer ids after the records below an offset of the log."""

    __slots__ = (
        "_active",
        "_in_isr",
        "_unfenced",
        "brokers",
        "leaderless",
        "next_offset",
        "next_producer_id",
        "partitions",
        "removed_topics",
        "topic_settings",
    )

    def __init__(self) -> None:
        self.next_offset = 0
        self.brokers: dict[int, BrokerRegistration] = {}
        self.partitions: dict[str, PartitionRecord] = {}
        self.leaderless: dict[str, None] = {}
        self.next_producer_id = 0
        self.removed_topics: dict[str, int] = {}
        """The topics that were deleted, with their numbers of partitions."""
        self.topic_settings: dict[str, Mapping[str, Value]] = {}
        """The settings of topics that administrators have set."""
        # These are caches, which are cleared when a broker changes.
        self._active: dict[int, int] | None = None
        self._unfenced: dict[int, int] | None = None
        # The partitions that have a broker in their ISR or ELR, by broker (BrokersToIsrs.java).
        self._in_isr: dict[int, dict[str, None]] = {}

    @classmethod
    def of_snapshot(cls, records: Iterable[MetadataRecord], end_offset: int) -> Self:
        """Return the image that the records of a snapshot below *end_offset* describe."""
        image = cls()
        for record in records:
            image._replay(record)
        image.next_offset = end_offset
        return image

    def write(self) -> tuple[MetadataRecord, ...]:
        """Return the state as the records of a snapshot (``MetadataImage.write``)."""
        records: list[MetadataRecord] = [
            RegisterBrokerRecord(
                *(broker, registration.incarnation, registration.broker_epoch),
                *(registration.fenced, registration.in_controlled_shutdown),
                tuple(sorted(registration.offline)),
            )
            for broker, registration in self.brokers.items()
        ]
        records += [replace(partition, altered_by=-1) for partition in self.partitions.values()]
        if self.next_producer_id:
            records.append(ProducerIdsRecord(self.next_producer_id))
        records += [RemoveTopicRecord(*removed) for removed in self.removed_topics.items()]
        records += [
            TopicSettingsRecord(topic, tuple(settings.items()))
            for topic, settings in self.topic_settings.items()
        ]
        return tuple(records)

    def apply(self, record: MetadataRecord) -> None:
        """Apply the next record of the log."""
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
            registration = self.brokers[record.broker]
            self._set_broker(
                record.broker,
                BrokerRegistration(
                    *(
                        registration.broker_epoch,
                        registration.incarnation,
                        record.fenced,
                        record.in_controlled_shutdown,
                    ),
                    registration.offline if record.offline is None else frozenset(record.offline),
                ),
            )
        elif isinstance(record, ProducerIdsRecord):
            self.next_producer_id = record.next_producer_id
        elif isinstance(record, TopicSettingsRecord):
            self.topic_settings[record.topic] = dict(record.settings)
        elif isinstance(record, RemoveTopicRecord):
            self._remove_topic(record)

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

    def _remove_topic(self, record: RemoveTopicRecord) -> None:
        self.removed_topics[record.topic] = record.partitions
        self.topic_settings.pop(record.topic, None)
        for name in self.removed_partitions(record.topic):
            self.leaderless.pop(name, None)
            partition = self.partitions.pop(name, None)
            for broker in () if partition is None else (*partition.isr, *partition.elr):
                self._in_isr[broker].pop(name, None)

    def removed_partitions(self, topic: str) -> tuple[str, ...]:
        """Return the partitions that a deleted topic had."""
        return tuple([f"{topic}-{number}" for number in range(self.removed_topics[topic])])

    def topics(self) -> dict[str, int]:
        """Return the number of partitions of each topic."""
        counts: dict[str, int] = {}
        for name in self.partitions:
            topic = name.rpartition("-")[0]
            counts[topic] = counts.get(topic, 0) + 1
        return counts

    def unfenced_brokers(self) -> Mapping[int, int]:
        """Return the broker epochs of unfenced brokers, ordered by broker id."""
        if self._unfenced is None:
            self._unfenced = {
                broker: registration.broker_epoch
                for broker, registration in sorted(self.brokers.items())
                if not registration.fenced
            }
        return self._unfenced

    def active(self) -> Mapping[int, int]:
        """Return the broker epochs of active brokers, which may join ISRs and lead."""
        if self._active is None:
            self._active = {
                broker: registration.broker_epoch
                for broker, registration in self.brokers.items()
                if registration.is_active
            }
        return self._active

    def is_active(self, broker: int) -> bool:
        registration = self.brokers.get(broker)
        return registration is not None and registration.is_active

    def may_lead(self, partition: str, broker: int) -> bool:
        """Return whether a broker is active and its replica is not in a failed log directory.

        Modelled on ``isAcceptableLeader``.
        """
        registration = self.brokers.get(broker)
        return registration is not None and registration.is_active and partition not in registration.offline

    def with_in_isr(self, broker: int) -> tuple[str, ...]:
        """Return the partitions with a broker in their ISR or ELR, sorted by topic and number."""
        names = self._in_isr.get(broker, {})
        return tuple(sorted(names, key=_by_number))

    def leads(self, broker: int) -> bool:
        """Return whether a broker leads any partition."""
        return any(self.partitions[name].leader == broker for name in self._in_isr.get(broker, ()))


def _by_number(partition: str) -> tuple[str, int]:
    topic, _, number = partition.rpartition("-")
    return topic, int(number)
