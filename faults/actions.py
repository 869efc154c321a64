"""Defines the actions of administrators and clients in a script. Faults can be actions, too."""

from collections.abc import Iterator, Sequence
from typing import ClassVar, Final

from harrow.cluster_model.controller.control_plane import CREATE_PARTITIONS_API, REASSIGNMENT_API
from harrow.cluster_model.fields import (
    Bandwidth,
    BrokerId,
    Count,
    Partition,
    Producer,
    Skip,
    Topic,
    described,
)
from harrow.cluster_model.lazy_dataclass import dataclass, replace
from harrow.cluster_model.log.unified_log import DELETE_RECORDS
from harrow.cluster_model.protocol import DELETE_TO_HIGH_WATERMARK
from harrow.cluster_model.topology import PARTITIONS_MAX
from harrow.faults.action import Action, AdminRequest, Operator
from harrow.faults.condition import ConditionField

SENDS_MAX: Final = 10_000
# A series of at least this many numbered values is written as one `send` with a `count`.
_SERIES_MIN: Final = 3
_TRANSACTIONS_SINCE: Final = "0.11"
_PRODUCER: Final = "Which producer; may be left out if there is only one."


@dataclass(frozen=True, slots=True, kw_only=True)
class Send(Action):
    """Hand a record to a producer."""

    name: ClassVar[str] = "send"
    shorthand_field: ClassVar[str] = "value"
    is_recorded: ClassVar[bool] = True

    value: str = described("The value. Send each value only once.")
    count: Count | None = described(
        "How many records, with values `value-0`, `value-1` and so on; by default one with `value`.",
        default=None,
        maximum=SENDS_MAX,
    )
    partition: Partition | None = described(
        "The partition; by default the partitioner decides.", default=None
    )
    record_key: str | None = described("The record's key; by default none.", default=None, key="key")
    tombstone: bool = described(
        "Whether the record is a tombstone, which deletes its key; `value` is then only its name.",
        default=False,
    )
    producer: Producer = described(_PRODUCER, implied=True)

    def take(self, operator: Operator) -> list[str]:
        for record in self.single_actions():
            sender = operator.sender(record.producer)
            sender.send(record.value, record.partition, record.record_key, tombstone=record.tombstone)
        return []

    def single_actions(self) -> Iterator["Send"]:
        if self.count is None:
            yield self
        for number in range(self.count or 0):
            yield replace(self, value=f"{self.value}-{number}", count=None)

    def merged_with(self, following: Sequence[Action]) -> tuple["Send", int]:
        """Merge sends of ``value-0``, ``value-1`` and so on, if there are enough of them."""
        stem, has_zero_suffix, suffix = self.value.rpartition("-0")
        if not has_zero_suffix or suffix or self.count is not None:
            return self, 0
        length = 1
        for action in following[: SENDS_MAX - 1]:
            if action != replace(self, value=f"{stem}-{length}"):
                break
            length += 1
        return (replace(self, value=stem, count=length), length - 1) if length >= _SERIES_MIN else (self, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionAction(Action):
    """A call of a producer with a `transactional.id`.

    If the application still waits for its previous call, it makes this call when that one returns.
    """

    shorthand_field: ClassVar[str] = "producer"
    is_recorded: ClassVar[bool] = True
    since: ClassVar[str] = _TRANSACTIONS_SINCE

    producer: Producer = described(_PRODUCER, implied=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginTransaction(TransactionAction):
    """A producer with a `transactional.id` begins a transaction.

    Its next records take effect together or not at all.
    """

    name: ClassVar[str] = "begin_transaction"

    def take(self, operator: Operator) -> list[str]:
        operator.sender(self.producer).begin_transaction()
        return []


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitTransaction(TransactionAction):
    """A producer commits its transaction, after all of its records have been acknowledged.

    If the commit fails, the transaction stays open until the producer or its coordinator aborts it.
    """

    name: ClassVar[str] = "commit_transaction"

    def take(self, operator: Operator) -> list[str]:
        operator.sender(self.producer).commit_transaction()
        return []


@dataclass(frozen=True, slots=True, kw_only=True)
class AbortTransaction(TransactionAction):
    """A producer aborts its transaction and drops its unsent records."""

    name: ClassVar[str] = "abort_transaction"

    def take(self, operator: Operator) -> list[str]:
        operator.sender(self.producer).abort_transaction()
        return []


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartProducer(Action):
    """The producer's application dies and starts again with a new session."""

    name: ClassVar[str] = "restart_producer"
    sole_field: ClassVar[str] = "producer"

    producer: Producer = described("Which producer.")

    def take(self, operator: Operator) -> list[str]:
        operator.sender(self.producer).restart()
        return []


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectPreferredLeaders(Action):
    """An administrator asks for preferred leader election (kafka-preferred-replica-election)."""

    name: ClassVar[str] = "elect_preferred_leaders"

    def take(self, operator: Operator) -> list[str]:
        operator.administrator.elect_preferred_leaders()
        return []


_REASSIGNMENT_SINCE: Final = "2.4"
_REASSIGNMENT: Final = AdminRequest(REASSIGNMENT_API, since=_REASSIGNMENT_SINCE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReassignPartition(Action):
    """An administrator gives a partition other replicas (kafka-reassign-partitions).

    The request is AlterPartitionReassignments. The reassignment has ended when `assignment` shows
    only the new replicas. Before that, the new replicas must join the ISR, and then the old ones
    are removed. A second reassignment of the partition replaces the first. This works from 2.4 on
    (KIP-455). Earlier releases only have a znode for reassignments.
    """

    name: ClassVar[str] = "reassign_partition"
    since: ClassVar[str] = _REASSIGNMENT_SINCE
    request: ClassVar[AdminRequest | None] = _REASSIGNMENT

    partition: Partition = described("Which partition.")
    replicas: tuple[BrokerId, ...] = described("Its new replicas, preferred leader first.", unique=True)

    def take(self, operator: Operator) -> list[str]:
        operator.administrator.alter_partition_reassignment(self.partition, self.replicas)
        return []


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelReassignment(Action):
    """An administrator cancels a reassignment in progress, and its added replicas are removed."""

    name: ClassVar[str] = "cancel_reassignment"
    sole_field: ClassVar[str] = "partition"
    since: ClassVar[str] = _REASSIGNMENT_SINCE
    request: ClassVar[AdminRequest | None] = _REASSIGNMENT

    partition: Partition = described("Which partition.")

    def take(self, operator: Operator) -> list[str]:
        operator.administrator.alter_partition_reassignment(self.partition, None)
        return []


@dataclass(frozen=True, slots=True, kw_only=True)
class AddBroker(Action):
    """A broker starts for the first time and joins the cluster (`cluster.brokers.joins`).

    The broker has no replicas until partitions are reassigned to it, or new partitions are created.
    """

    name: ClassVar[str] = "add_broker"
    sole_field: ClassVar[str] = "broker"

    broker: BrokerId = described("Which broker.")

    def take(self, operator: Operator) -> list[str]:
        operator.administrator.add_broker(self.broker)
        return []


@dataclass(frozen=True, slots=True, kw_only=True)
class ThrottleReplication(Action):
    """An administrator sets the rate of throttled replicas on all brokers (KIP-73).

    This is what kafka-reassign-partitions --throttle does. It sets
    `leader.replication.throttled.rate` and `follower.replication.throttled.rate`. Topics name the
    throttled replicas in `leader.replication.throttled.replicas` and
    `follower.replication.throttled.replicas`.
    """

    name: ClassVar[str] = "throttle_replication"
    sole_field: ClassVar[str] = "rate"

    rate: Bandwidth = described("The rate at which each broker may send, and at which it may fetch.")

    def take(self, operator: Operator) -> list[str]:
        operator.administrator.throttle_replication(self.rate)
        return []


@dataclass(frozen=True, slots=True, kw_only=True)
class UnthrottleReplication(Action):
    """An administrator removes the throttle of replicas (kafka-reassign-partitions --verify)."""

    name: ClassVar[str] = "unthrottle_replication"

    def take(self, operator: Operator) -> list[str]:
        operator.administrator.throttle_replication(None)
        return []


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRecords(Action):
    """An administrator deletes the oldest records of a partition (kafka-delete-records).

    The request is DeleteRecords. From then on the leader's log starts at `offset` for every reader.
    The logs of followers do so after their next fetch. The leader answers the request when all live
    replicas have followed. The event `delete_records_answered` has the result. This works from 0.11
    on (KIP-107).
    """

    name: ClassVar[str] = "delete_records"
    since: ClassVar[str] = "0.11"
    request: ClassVar[AdminRequest | None] = AdminRequest(DELETE_RECORDS, since="0.11")

    partition: Partition = described("Which partition.")
    offset: Skip | None = described(
        "The first offset that stays; by default all committed records are deleted.", default=None
    )

    def take(self, operator: Operator) -> list[str]:
        operator.administrator.delete_records(
            self.partition, DELETE_TO_HIGH_WATERMARK if self.offset is None else self.offset
        )
        return []


@dataclass(frozen=True, slots=True, kw_only=True)
class AddPartitions(Action):
    """An administrator gives a topic more partitions (kafka-topics --alter, KIP-195).

    The request is CreatePartitions. Clients learn of the new partitions when they refresh their
    metadata. From then on the partitioner maps keys to other partitions, so records of one key may
    be read out of order. A consumer with `auto.offset.reset=latest` misses records that are written
    to a partition before the consumer learns of it (KAFKA-12261).
    """

    name: ClassVar[str] = "add_partitions"
    request: ClassVar[AdminRequest | None] = AdminRequest(CREATE_PARTITIONS_API, since="1.0")

    topic: Topic = described("Which topic.")
    partitions: Count = described("The total number of partitions.", maximum=PARTITIONS_MAX)

    def take(self, operator: Operator) -> list[str]:
        operator.administrator.create_partitions(self.topic, self.partitions)
        return []


@dataclass(frozen=True, slots=True, kw_only=True)
class Expect(Action):
    """A condition must hold now."""

    name: ClassVar[str] = "expect"
    sole_field: ClassVar[str] = "condition"
    is_recorded: ClassVar[bool] = True

    condition: ConditionField = described("The condition.")

    def take(self, operator: Operator) -> list[str]:
        return self.condition.mismatches(operator.observer)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait(Action):
    """The step only waits, like a step without `do`."""

    name: ClassVar[str] = "wait"
    is_recorded: ClassVar[bool] = True

    def take(self, operator: Operator) -> list[str]:
        return []
