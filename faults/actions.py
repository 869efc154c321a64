"""What a script does beside faults: an operator's and the clients' part."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
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
from harrow.cluster_model.log.unified_log import DELETE_RECORDS
from harrow.cluster_model.protocol import DELETE_TO_HIGH_WATERMARK
from harrow.cluster_model.registry import Registry
from harrow.cluster_model.topology import PARTITIONS_MAX
from harrow.faults.action import Action, AdminRequest, Operator
from harrow.faults.condition import ConditionField

SENDS_MAX: Final = 10_000
# So many numbered values, or more, are written as one `send` with a `count`.
_SERIES_MIN: Final = 3
_FIRST_TRANSACTIONS: Final = "0.11"


@dataclass(frozen=True, slots=True, kw_only=True)
class Send(Action):
    """Hand a record to a producer."""

    name: ClassVar[str] = "send"
    short: ClassVar[str] = "value"
    is_noted: ClassVar[bool] = True

    value: str = described("What is sent; each value should be sent once only.")
    count: Count | None = described(
        "How many records, `value-0`, `value-1` and so on; by default `value` alone.",
        default=None,
        maximum=SENDS_MAX,
    )
    partition: Partition | None = described("Where to; by default as the partitioner says.", default=None)
    record_key: str | None = described("The record's key; by default it has none.", default=None, key="key")
    tombstone: bool = described(
        "Whether the record has no value, which deletes its key; `value` is only what it is called.",
        default=False,
    )
    producer: Producer = described("By whom; may be left out when there is one producer.", implied=True)

    def take(self, operator: Operator) -> list[str]:
        for record in self.each():
            sender = operator.sender(record.producer)
            sender.send(record.value, record.partition, record.record_key, tombstone=record.tombstone)
        return []

    def each(self) -> Iterator["Send"]:
        """Yield one for each record."""
        if self.count is None:
            yield self
        for number in range(self.count or 0):
            yield replace(self, value=f"{self.value}-{number}", count=None)

    def joined(self, following: Sequence[Action]) -> tuple["Send", int]:
        """Return one for records ``value-0``, ``value-1`` and so on, where there are enough of them."""
        stem, zero, rest = self.value.rpartition("-0")
        if not zero or rest or self.count is not None:
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

    An application that waits for the call before makes it when that has returned.
    """

    short: ClassVar[str] = "producer"
    is_noted: ClassVar[bool] = True
    since: ClassVar[str] = _FIRST_TRANSACTIONS

    producer: Producer = described("By whom; may be left out when there is one producer.", implied=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginTransaction(TransactionAction):
    """A producer with a `transactional.id` begins a transaction: what it sends from then on takes effect with it, or not at all."""

    name: ClassVar[str] = "begin_transaction"

    def take(self, operator: Operator) -> list[str]:
        operator.sender(self.producer).begin_transaction()
        return []


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitTransaction(TransactionAction):
    """A producer commits its transaction, once all that it has sent in it is in the logs.

    Where that fails the transaction stays open, until the producer aborts it or its coordinator does.
    """

    name: ClassVar[str] = "commit_transaction"

    def take(self, operator: Operator) -> list[str]:
        operator.sender(self.producer).commit_transaction()
        return []


@dataclass(frozen=True, slots=True, kw_only=True)
class AbortTransaction(TransactionAction):
    """A producer aborts its transaction; what it has not sent yet it drops."""

    name: ClassVar[str] = "abort_transaction"

    def take(self, operator: Operator) -> list[str]:
        operator.sender(self.producer).abort_transaction()
        return []


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartProducer(Action):
    """The producer's application dies and is started again: a new session."""

    name: ClassVar[str] = "restart_producer"
    whole: ClassVar[str] = "producer"

    producer: Producer = described("Which producer.")

    def take(self, operator: Operator) -> list[str]:
        operator.sender(self.producer).restart()
        return []


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectPreferredLeaders(Action):
    """An administrator asks for preferred leader election (kafka-preferred-replica-election)."""

    name: ClassVar[str] = "elect_preferred_leaders"

    def take(self, operator: Operator) -> list[str]:
        operator.elect_preferred_leaders()
        return []


_FIRST_REASSIGNED: Final = "2.4"
_REASSIGNMENT: Final = AdminRequest(REASSIGNMENT_API, since=_FIRST_REASSIGNED)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReassignPartition(Action):
    """An administrator gives a partition other replicas (kafka-reassign-partitions, AlterPartitionReassignments).

    It is over when `assignment` says so: new replicas have to be in the ISR before old ones go. Another one for the same
    partition takes its place. From 2.4 on (KIP-455); before, a znode was the only way.
    """

    name: ClassVar[str] = "reassign_partition"
    since: ClassVar[str] = _FIRST_REASSIGNED
    request: ClassVar[AdminRequest | None] = _REASSIGNMENT

    partition: Partition = described("Which partition.")
    replicas: tuple[BrokerId, ...] = described(
        "The brokers that shall have it, preferred leader first.", unique=True
    )

    def take(self, operator: Operator) -> list[str]:
        operator.alter_partition_reassignment(self.partition, self.replicas)
        return []


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelReassignment(Action):
    """An administrator has a reassignment that is under way taken back: what it has added goes again."""

    name: ClassVar[str] = "cancel_reassignment"
    whole: ClassVar[str] = "partition"
    since: ClassVar[str] = _FIRST_REASSIGNED
    request: ClassVar[AdminRequest | None] = _REASSIGNMENT

    partition: Partition = described("Of which partition.")

    def take(self, operator: Operator) -> list[str]:
        operator.alter_partition_reassignment(self.partition, None)
        return []


@dataclass(frozen=True, slots=True, kw_only=True)
class AddBroker(Action):
    """A broker of the campaign is started for the first time, and joins the cluster (`cluster.brokers.joins`).

    It has no partitions before some are reassigned to it, or a topic gets new ones.
    """

    name: ClassVar[str] = "add_broker"
    whole: ClassVar[str] = "broker"

    broker: BrokerId = described("Which broker.")

    def take(self, operator: Operator) -> list[str]:
        operator.add_broker(self.broker)
        return []


@dataclass(frozen=True, slots=True, kw_only=True)
class ThrottleReplication(Action):
    """An administrator sets the rate of throttled replicas on all brokers (kafka-reassign-partitions --throttle, KIP-73).

    That is `leader.replication.throttled.rate` and `follower.replication.throttled.rate`. Which replicas are throttled topics say:
    `leader.replication.throttled.replicas` and `follower.replication.throttled.replicas`.
    """

    name: ClassVar[str] = "throttle_replication"
    whole: ClassVar[str] = "rate"

    rate: Bandwidth = described("How much each broker sends, and how much it fetches.")

    def take(self, operator: Operator) -> list[str]:
        operator.throttle_replication(self.rate)
        return []


@dataclass(frozen=True, slots=True, kw_only=True)
class UnthrottleReplication(Action):
    """An administrator has throttled replicas replicated as fast as can be again (kafka-reassign-partitions --verify)."""

    name: ClassVar[str] = "unthrottle_replication"

    def take(self, operator: Operator) -> list[str]:
        operator.throttle_replication(None)
        return []


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRecords(Action):
    """An administrator has the oldest records of a partition deleted (kafka-delete-records, DeleteRecords).

    The leader's log begins at the offset from then on, for all who read, and the logs of its followers with their next fetches. He is
    answered when all live replicas have done so: the event `delete_records_answered` says with what. From 0.11 on (KIP-107).
    """

    name: ClassVar[str] = "delete_records"
    since: ClassVar[str] = "0.11"
    request: ClassVar[AdminRequest | None] = AdminRequest(DELETE_RECORDS, since="0.11")

    partition: Partition = described("Of which partition.")
    offset: Skip | None = described(
        "The first offset that stays; by default all that is committed is deleted.", default=None
    )

    def take(self, operator: Operator) -> list[str]:
        operator.delete_records(
            self.partition, DELETE_TO_HIGH_WATERMARK if self.offset is None else self.offset
        )
        return []


@dataclass(frozen=True, slots=True, kw_only=True)
class AddPartitions(Action):
    """An administrator gives a topic more partitions (kafka-topics --alter, CreatePartitions, KIP-195).

    Clients learn of them with new metadata. What a producer hashes or distributes goes elsewhere from then on, so that the order by
    key that a topic had is broken; and a consumer with `auto.offset.reset=latest` misses what was written before (KAFKA-12261).
    """

    name: ClassVar[str] = "add_partitions"
    request: ClassVar[AdminRequest | None] = AdminRequest(CREATE_PARTITIONS_API, since="1.0")

    topic: Topic = described("Which topic.")
    partitions: Count = described("How many it shall have in all.", maximum=PARTITIONS_MAX)

    def take(self, operator: Operator) -> list[str]:
        operator.create_partitions(self.topic, self.partitions)
        return []


@dataclass(frozen=True, slots=True, kw_only=True)
class Expect(Action):
    """The condition has to hold now."""

    name: ClassVar[str] = "expect"
    whole: ClassVar[str] = "condition"
    is_noted: ClassVar[bool] = True

    condition: ConditionField = described("What has to hold.")

    def take(self, operator: Operator) -> list[str]:
        return self.condition.mismatches(operator.observer)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait(Action):
    """Nothing: the step only waits, as one without `do`."""

    name: ClassVar[str] = "wait"
    is_noted: ClassVar[bool] = True

    def take(self, operator: Operator) -> list[str]:
        return []


ACTIONS: Final[Registry[str, type[Action]]] = Registry(
    (action.name, action)
    for action in (
        *(Send, BeginTransaction, CommitTransaction, AbortTransaction, RestartProducer),
        *(ElectPreferredLeaders, ReassignPartition, CancelReassignment),
        *(AddBroker, ThrottleReplication, UnthrottleReplication, DeleteRecords, AddPartitions, Expect, Wait),
    )
)
"""Action classes by the name that a campaign uses."""
