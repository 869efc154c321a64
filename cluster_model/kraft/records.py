"""Defines the records of the metadata log, with the fields that the model needs.

Modelled on ``metadata/src/main/resources/common/metadata``.
"""

from typing import Final

from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.protocol import ReplicaAssignment
from harrow.cluster_model.settings import Value

NO_INCARNATION: Final = -1


@dataclass(slots=True, frozen=True)
class LeaderChangeMessage:
    """A control record: ``leader`` leads the quorum from the offset of this record on."""

    leader: int


@dataclass(slots=True, frozen=True)
class RegisterBrokerRecord:
    """A broker has registered, and is fenced at first.

    The offset of the record becomes the broker epoch. ``incarnation`` distinguishes the processes
    of a broker (Kafka draws a random id for each). In a snapshot the record also has the broker
    epoch and the broker's later state.
    """

    broker: int
    incarnation: int
    broker_epoch: int = -1
    fenced: bool = True
    in_controlled_shutdown: bool = False
    offline: tuple[str, ...] = ()


@dataclass(slots=True, frozen=True)
class BrokerRegistrationChangeRecord:
    """A broker was fenced or unfenced, or is in controlled shutdown.

    ``expired`` says that it was fenced because its session timed out. ``offline`` are its replicas
    in failed log directories, or None if these have not changed. In Kafka, ``logDirs`` has the
    online directories instead (KIP-858).
    """

    broker: int
    broker_epoch: int
    fenced: bool
    in_controlled_shutdown: bool
    expired: bool = False
    offline: tuple[str, ...] | None = None


@dataclass(slots=True, frozen=True)
class PartitionRecord:
    """The whole state of a partition (``PartitionRecord``, ``PartitionChangeRecord``).

    ``elr`` are the eligible leader replicas (KIP-966). ``altered_by`` is the leader that requested
    this change, or -1 if the controller made it by itself. ``adding`` and ``removing`` are the
    replicas that a reassignment adds and removes (KIP-455).
    """

    partition: str
    replicas: tuple[int, ...]
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int
    elr: tuple[int, ...] = ()
    last_known_leader: int = -1
    altered_by: int = -1
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()

    @property
    def assignment(self) -> ReplicaAssignment:
        return ReplicaAssignment(self.replicas, self.adding, self.removing)

    @property
    def electable(self) -> tuple[int, ...]:
        """The replicas that may lead cleanly: the ISR, or the ELR if the ISR is empty.

        Modelled on ``PartitionChangeBuilder.isValidNewLeader``.
        """
        return self.isr or self.elr


@dataclass(slots=True, frozen=True)
class ProducerIdsRecord:
    """All producer ids below ``next_producer_id`` have been allocated to brokers, in blocks."""

    next_producer_id: int


@dataclass(slots=True, frozen=True)
class RemoveTopicRecord:
    """A topic with a number of ``partitions`` was deleted."""

    topic: str
    partitions: int


@dataclass(slots=True, frozen=True)
class TopicSettingsRecord:
    """The settings of a topic, or of brokers, which replace all earlier ones.

    In Kafka each setting has a ConfigRecord.
    """

    topic: str
    settings: tuple[tuple[str, Value], ...]


MetadataRecord = (
    LeaderChangeMessage
    | RegisterBrokerRecord
    | BrokerRegistrationChangeRecord
    | PartitionRecord
    | ProducerIdsRecord
    | RemoveTopicRecord
    | TopicSettingsRecord
)


_BATCH_BYTES: Final = 61
_REPLICA_BYTES: Final = 20


def size_in_bytes(record: MetadataRecord) -> int:
    """Return the approximate size of a record in the log, where it has a batch of its own.

    Kafka, too, writes a batch for each change.
    """
    if isinstance(record, PartitionRecord):
        return _BATCH_BYTES + 60 + _REPLICA_BYTES * len(record.replicas) + 4 * len(record.isr)
    if isinstance(record, RegisterBrokerRecord):
        return _BATCH_BYTES + 140
    if isinstance(record, LeaderChangeMessage):
        return _BATCH_BYTES + 60
    return _BATCH_BYTES + 30
