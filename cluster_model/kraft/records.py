"""The records of the metadata log, with the fields that matter (metadata/src/main/resources/common/metadata)."""

from dataclasses import dataclass
from typing import Final

from harrow.cluster_model.protocol import ReplicaAssignment

NO_INCARNATION = -1


@dataclass(slots=True, frozen=True)
class LeaderChangeMessage:
    """A control record: this node leads the quorum from here on."""

    leader: int


@dataclass(slots=True, frozen=True)
class RegisterBrokerRecord:
    """A broker has registered; it is fenced at first. Its offset in the log is the broker epoch.

    ``incarnation`` tells the lives of a broker apart (Kafka draws an id for each). In a snapshot the record says as well what has become of
    the broker since, and which offset it had.
    """

    broker: int
    incarnation: int
    broker_epoch: int = -1
    fenced: bool = True
    in_controlled_shutdown: bool = False
    offline: tuple[str, ...] = ()


@dataclass(slots=True, frozen=True)
class BrokerRegistrationChangeRecord:
    """A broker is fenced, unfenced, or in controlled shutdown; ``expired`` says that it was not heard of for too long.

    ``offline`` are its replicas in log directories that have failed, None where that is as before (``logDirs`` has the others,
    KIP-858).
    """

    broker: int
    broker_epoch: int
    fenced: bool
    in_controlled_shutdown: bool
    expired: bool = False
    offline: tuple[str, ...] | None = None


@dataclass(slots=True, frozen=True)
class PartitionRecord:
    """The whole state of a partition, as it is created or changed (``PartitionRecord``, ``PartitionChangeRecord``).

    ``elr`` are the eligible leader replicas (KIP-966); ``altered_by`` is the leader that has asked for the change, -1 where
    it was the controller's own. ``adding`` and ``removing`` are the replicas that a reassignment adds and removes (KIP-455).
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
        """Who may lead cleanly: the ISR; where it is empty the ELR (``PartitionChangeBuilder.isValidNewLeader``)."""
        return self.isr or self.elr


@dataclass(slots=True, frozen=True)
class ProducerIdsRecord:
    """Producer ids below this one have been given away in blocks."""

    next_producer_id: int


MetadataRecord = (
    LeaderChangeMessage
    | RegisterBrokerRecord
    | BrokerRegistrationChangeRecord
    | PartitionRecord
    | ProducerIdsRecord
)


_BATCH_BYTES: Final = 61
_REPLICA_BYTES: Final = 20


def size_in_bytes(record: MetadataRecord) -> int:
    """Return about what a record takes in the log, in a batch of its own: Kafka has them in batches as well, one for each change."""
    if isinstance(record, PartitionRecord):
        return _BATCH_BYTES + 60 + _REPLICA_BYTES * len(record.replicas) + 4 * len(record.isr)
    if isinstance(record, RegisterBrokerRecord):
        return _BATCH_BYTES + 140
    if isinstance(record, LeaderChangeMessage):
        return _BATCH_BYTES + 60
    return _BATCH_BYTES + 30
