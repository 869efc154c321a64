"""Turns steps into requests.

The requests depend on the answers to each slot and on the current state of the model's broker. A
real broker that has given the same answers so far has the same state, so both get the same request.
The ids that brokers assign have a common form in requests and answers (`IdTranslation`): member ids
are numbered in the order in which they were assigned, producer ids are relative to the first one.
"""

from collections.abc import Mapping
from typing import Any, Final

from harrow.cluster_model import protocol
from harrow.cluster_model.coordinators import protocol as messages
from harrow.cluster_model.lazy_dataclass import replace
from harrow.cluster_model.log.record_batch import NO_PRODUCER_ID, NO_SEQUENCE, RecordBatch
from harrow.cluster_model.sim.virtual_time import US_PER_MS, US_PER_SECOND
from harrow.cluster_model.topology import CONSUMER_OFFSETS, TRANSACTION_STATE
from harrow.live_cluster.requests.answers import LOG_START, Answer
from harrow.live_cluster.requests.brokers.broker_driver import PARTITIONS, partition_name
from harrow.live_cluster.requests.coordinators.consumer_identities import ConsumerIdentities
from harrow.live_cluster.requests.coordinators.driver import CoordinatorRequest
from harrow.live_cluster.requests.coordinators.model_coordinator import ModelCoordinator
from harrow.live_cluster.requests.coordinators.steps import (
    GROUP,
    INSTANCES,
    INSTANCES_OF_MEMBERS,
    MEMBERS,
    PROTOCOLS,
    SUBSCRIPTIONS,
    TRANSACTIONAL_IDS,
    AddOffsetsStep,
    AddPartitionsStep,
    CommitStep,
    CommittedStep,
    ConsumerCommitStep,
    ConsumerCommittedStep,
    ConsumerHeartbeatStep,
    CoordinatorStep,
    EndOffsetStep,
    EndTxnStep,
    FindStep,
    GroupHeartbeatStep,
    InitStep,
    JoinStep,
    LeaveStep,
    MemberId,
    Producer,
    ReadStep,
    RepeatStep,
    SyncStep,
    TxnCommitStep,
    TxnProduceStep,
)

_SESSION_US: Final = 600 * US_PER_SECOND
"""No session ends while a sequence lasts, and no rebalance continues without a missing member."""
_SHORT_SESSION_US: Final = US_PER_MS
_TRANSACTION_US: Final = 600 * US_PER_SECOND
_TOO_LONG_US: Final = 1_000 * US_PER_SECOND
_PRODUCE_TIMEOUT_US: Final = 5 * US_PER_SECOND
_MAX_BYTES: Final = 1_000_000
_RECORD_BYTES: Final = 80
_GHOST: Final = "ghost"
_UNKNOWN_PRODUCER: Final = 10**9
"""A producer id that no broker has assigned."""
_EPOCH_LIMIT: Final = 2**15 - 1


_PARTITION_NAMES: Final = tuple(partition_name(number) for number in PARTITIONS)


class IdTranslation:
    """Translates between the ids that one broker assigned and their common form.

    *sequence* is the number of the sequence on this broker. It makes unknown producer ids unique:
    the broker knows those of earlier sequences.
    """

    def __init__(self, sequence: int = 0) -> None:
        self._sequence = sequence
        self._members: list[str] = []
        self._first_producer_id: int | None = None

    def own_request(self, request: CoordinatorRequest) -> CoordinatorRequest:
        """Return a request with this broker's ids."""
        changes: dict[str, Any] = {}
        if isinstance(member := getattr(request, "member", None), str):
            changes["member"] = self._member(member)
        if isinstance(request, messages.SyncGroupRequest):
            changes["assignments"] = {
                self._member(name): partitions for name, partitions in request.assignments.items()
            }
        if isinstance(producer := getattr(request, "producer_id", None), int):
            changes["producer_id"] = self.own_producer_id(producer)
        if isinstance(request, protocol.ProduceRequest):
            changes["batches"] = {
                name: replace_producer(batch, self.own_producer_id(batch.producer_id))
                for name, batch in request.batches.items()
            }
        return replace(request, **changes) if changes else request

    def common_answers(self, answers: Mapping[int, Answer]) -> dict[str, Answer]:
        """Return answers with common ids.

        Members are numbered in the order of their first answers.
        """
        for _, answer in sorted(answers.items()):
            if answer.get("member") and answer["member"] not in (*self._members, _GHOST):
                self._members.append(answer["member"])
        return {str(number): self._common(answer) for number, answer in sorted(answers.items())}

    def common_producer_id(self, producer_id: int) -> int:
        if producer_id == NO_PRODUCER_ID:
            return producer_id
        if producer_id >= _UNKNOWN_PRODUCER:
            return producer_id - self._sequence
        if self._first_producer_id is None:
            self._first_producer_id = producer_id
        return producer_id - self._first_producer_id

    def _common(self, answer: Answer) -> Answer:
        common = dict(answer)
        for key in ("member", "leader"):
            if key in common:
                common[key] = self._number(common[key])
        if "members" in common:
            common["members"] = sorted([self._number(name), *rest] for name, *rest in common["members"])
        if "producer_id" in common:
            common["producer_id"] = self.common_producer_id(common["producer_id"])
        for fetched in common.get("fetched", {}).values():
            fetched["batches"] = [
                [offset, epoch, self.common_producer_id(producer), *rest]
                for offset, epoch, producer, *rest in fetched["batches"]
            ]
            fetched["aborted"] = sorted(
                [self.common_producer_id(producer), first] for producer, first in fetched["aborted"]
            )
        return common

    def _number(self, member: str) -> str:
        return f"m{self._members.index(member)}" if member in self._members else member

    def _member(self, number: str) -> str:
        is_number = number[1:].isdecimal() and int(number[1:]) < len(self._members)
        return self._members[int(number[1:])] if is_number else number

    def own_producer_id(self, common: int) -> int:
        """Return this broker's id for a common producer id."""
        if common == NO_PRODUCER_ID:
            return common
        if common >= _UNKNOWN_PRODUCER:
            return common + self._sequence
        return common + (self._first_producer_id or 0)


def replace_producer(batch: RecordBatch, producer_id: int) -> RecordBatch:
    """Return a batch with another producer id."""
    return RecordBatch(
        batch.values,
        producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        size_bytes=batch.size_bytes,
        is_transactional=batch.is_transactional,
    )


class CoordinatorResolution:
    """Turns the steps of one sequence into requests."""

    def __init__(self, model: ModelCoordinator, model_ids: IdTranslation) -> None:
        self._model = model
        self._ids = model_ids
        self._members: dict[int, list[str]] = {slot: [] for slot in MEMBERS}
        self._slots: dict[int, int] = {}
        self._generation = 0
        self.leader = ""
        """The member that became leader last."""
        self._group: tuple[str, ...] = ()
        self._consumers = ConsumerIdentities()
        self._instances: dict[int, tuple[int, int]] = {}
        self._initialising: dict[int, int] = {}
        self._ending: dict[int, int] = {}
        self._records = 0
        self._offsets = 0
        self._sent: list[CoordinatorRequest] = []

    def request(self, number: int, step: CoordinatorStep) -> CoordinatorRequest:
        """Return the request of a step in the current state."""
        request = self._group_request(number, step) or self._transaction_request(number, step)
        if not isinstance(request, (protocol.FetchRequest, protocol.ListOffsetsRequest)):
            self._sent.append(request)
        return request

    # Groups

    def _group_request(self, number: int, step: CoordinatorStep) -> CoordinatorRequest | None:
        if isinstance(step, CommittedStep):
            stable = step.stable and self._model.knows_stable_offsets
            return messages.OffsetFetchRequest(GROUP, _PARTITION_NAMES, require_stable=stable)
        if isinstance(step, FindStep):
            of_group = step.of == "group"
            return messages.FindCoordinatorRequest(
                CONSUMER_OFFSETS if of_group else TRANSACTION_STATE,
                GROUP if of_group else TRANSACTIONAL_IDS[0],
            )
        if isinstance(step, (JoinStep, SyncStep, GroupHeartbeatStep, LeaveStep, CommitStep)):
            return self._member_request(number, step)
        if isinstance(step, ConsumerHeartbeatStep):
            return self._consumers.heartbeat(step)
        if isinstance(step, ConsumerCommitStep):
            member, epoch = self._consumers.member_in_epoch(step.member, step.who, step.epoch)
            offsets = self._next_offsets(step.partitions)
            return messages.OffsetCommitRequest(GROUP, epoch, member, messages.NO_INSTANCE, offsets)
        if isinstance(step, ConsumerCommittedStep):
            member, epoch = self._consumers.member_in_epoch(step.member, step.who, step.epoch)
            return messages.OffsetFetchRequest(GROUP, _PARTITION_NAMES, step.stable, member, epoch)
        return None

    def _instance(self, step: JoinStep | SyncStep | GroupHeartbeatStep | LeaveStep | CommitStep) -> str:
        """Return the group instance id in a member's request."""
        if not self._model.knows_instances:
            return ""
        instance = INSTANCES_OF_MEMBERS.get(step.member, "")
        if step.strays:
            return "" if instance else INSTANCES_OF_MEMBERS[MEMBERS[-1]]
        return instance

    def _member_request(
        self, number: int, step: JoinStep | SyncStep | GroupHeartbeatStep | LeaveStep | CommitStep
    ) -> CoordinatorRequest:
        member = self._member(step.member, step.who)
        instance = self._instance(step)
        if isinstance(step, JoinStep):
            self._slots[number] = step.member
            session_us = _SHORT_SESSION_US if step.is_short else _SESSION_US
            subscription = messages.Subscription(SUBSCRIPTIONS[step.subscription])
            protocols = tuple((name, subscription) for name in PROTOCOLS[step.protocols])
            return messages.JoinGroupRequest(GROUP, session_us, _SESSION_US, member, instance, protocols)
        if isinstance(step, LeaveStep):
            return messages.LeaveGroupRequest(GROUP, member, instance)
        generation = messages.NO_GENERATION
        if step.generation is not None:
            generation = max(0, self._generation + step.generation)
        if isinstance(step, GroupHeartbeatStep):
            return messages.HeartbeatRequest(GROUP, generation, member, instance)
        if isinstance(step, SyncStep):
            assigns = member == self.leader if step.assigns is None else step.assigns
            assignments = {
                name: (partition_name(place % 2),) for place, name in enumerate(self._group) if assigns
            }
            return messages.SyncGroupRequest(GROUP, generation, member, instance, assignments)
        return messages.OffsetCommitRequest(
            GROUP, generation, member, instance, self._next_offsets(step.partitions)
        )

    def _member(self, slot: int, who: MemberId) -> str:
        if who == "other":
            slot, who = (slot + 1) % len(MEMBERS), "own"
        ids = self._members[slot]
        if who == "ghost":
            return _GHOST
        if who == "former":
            return ids[-2] if len(ids) > 1 else messages.NO_MEMBER
        return ids[-1] if ids and who == "own" else messages.NO_MEMBER

    def _next_offsets(self, partitions: tuple[int, ...]) -> dict[str, int]:
        self._offsets += 1
        return {partition_name(partition): self._offsets for partition in partitions}

    # Transactions

    def _transaction_request(self, number: int, step: CoordinatorStep) -> CoordinatorRequest:
        if isinstance(step, ReadStep):
            return protocol.FetchRequest(
                protocol.CONSUMER_REPLICA_ID,
                0,
                _MAX_BYTES,
                {partition_name(step.partition): protocol.PartitionData(LOG_START, protocol.NO_EPOCH)},
                int(step.committed),
            )
        if isinstance(step, EndOffsetStep):
            return protocol.ListOffsetsRequest(
                protocol.CONSUMER_REPLICA_ID,
                {partition_name(step.partition): protocol.NO_EPOCH},
                int(step.committed),
            )
        if isinstance(step, RepeatStep):
            if self._sent:
                return self._sent[-1 - step.back % len(self._sent)]
            return messages.FindCoordinatorRequest(TRANSACTION_STATE, TRANSACTIONAL_IDS[0])
        if isinstance(step, InitStep):
            return self._init(number, step)
        assert isinstance(
            step, (AddPartitionsStep, AddOffsetsStep, TxnCommitStep, EndTxnStep, TxnProduceStep)
        )
        if isinstance(step, TxnProduceStep):
            return self._produce(step)
        transactional_id = TRANSACTIONAL_IDS[step.instance]
        producer_id, epoch = self._producer(step.instance, step.producer, step.epoch)
        if isinstance(step, AddPartitionsStep):
            partitions = tuple(partition_name(partition) for partition in step.partitions)
            verifies = step.verifies and self._model.knows_verification
            is_v2 = verifies or self._uses_v2(step)
            return messages.AddPartitionsToTxnRequest(
                transactional_id,
                producer_id,
                epoch,
                partitions,
                verify_only=verifies,
                is_v2=is_v2,
            )
        if isinstance(step, AddOffsetsStep):
            return messages.AddOffsetsToTxnRequest(transactional_id, producer_id, epoch, GROUP)
        if isinstance(step, TxnCommitStep):
            generation, member, instance = self._committing_member(step)
            return messages.TxnOffsetCommitRequest(
                transactional_id,
                GROUP,
                producer_id,
                epoch,
                self._next_offsets(step.partitions),
                generation,
                member,
                instance,
                adds_partitions=self._uses_v2(step),
                knows_group_errors=self._uses_v2(step) and self._model.has_specific_commit_errors,
            )
        self._ending[number] = step.instance
        return messages.EndTxnRequest(transactional_id, producer_id, epoch, step.commits, self._uses_v2(step))

    def _uses_v2(self, step: AddPartitionsStep | TxnCommitStep | EndTxnStep | TxnProduceStep) -> bool:
        """Return whether a request has a version of transactions v2."""
        return self._model.uses_transactions_v2 and not step.is_old

    def _committing_member(self, step: TxnCommitStep) -> tuple[int, str, str]:
        """Return the generation, member and instance with which a transaction commits offsets."""
        if step.generation is None or not self._model.knows_stable_offsets:
            return messages.NO_GENERATION, messages.NO_MEMBER, messages.NO_INSTANCE
        if step.member is None:
            return step.generation, _GHOST, messages.NO_INSTANCE
        if not self._consumers.is_empty:
            member, epoch = self._consumers.member_in_epoch(step.member, "own", step.generation)
            return epoch, member, messages.NO_INSTANCE
        instance = INSTANCES_OF_MEMBERS.get(step.member, messages.NO_INSTANCE)
        return self._generation + step.generation, self._member(step.member, "own"), instance

    def _init(self, number: int, step: InitStep) -> CoordinatorRequest:
        self._initialising[number] = step.instance
        timeout_us = _TOO_LONG_US if step.is_too_long else _TRANSACTION_US
        producer_id, epoch = NO_PRODUCER_ID, protocol.NO_EPOCH
        if step.again and step.instance in self._instances and self._model.knows_next_epoch:
            producer_id, epoch = self._producer(step.instance, "own", step.epoch)
        return protocol.InitProducerIdRequest(
            TRANSACTIONAL_IDS[step.instance], timeout_us, producer_id, epoch
        )

    def _producer(self, instance: int, whose: Producer, epoch: int) -> tuple[int, int]:
        if whose == "other":
            instance = (instance + 1) % len(INSTANCES)
        producer_id, last = self._instances.get(instance, (_UNKNOWN_PRODUCER, 0))
        if whose == "unknown":
            producer_id = _UNKNOWN_PRODUCER
        return producer_id, min(_EPOCH_LIMIT, max(0, last + epoch))

    def _produce(self, step: TxnProduceStep) -> CoordinatorRequest:
        values = tuple(f"m{self._records + number}" for number in range(step.records))
        self._records += step.records
        name, size = partition_name(step.partition), _RECORD_BYTES * len(values)
        if step.instance is None:
            batch = RecordBatch(values, size_bytes=size)
            return protocol.ProduceRequest(-1, _PRODUCE_TIMEOUT_US, {name: batch})
        producer_id, epoch = self._producer(step.instance, step.producer, step.epoch)
        sequence = max(0, self._next_sequence(step.partition, producer_id, epoch) + step.sequence)
        batch = RecordBatch(
            values, producer_id, epoch, sequence, size_bytes=size, is_transactional=step.transactional
        )
        transactional_id = TRANSACTIONAL_IDS[step.instance] if step.transactional else ""
        adds_partitions = step.transactional and self._uses_v2(step)
        return protocol.ProduceRequest(
            -1, _PRODUCE_TIMEOUT_US, {name: batch}, transactional_id, adds_partitions
        )

    def _next_sequence(self, partition: int, producer_id: int, epoch: int) -> int:
        entry = self._model.log(partition).producers.entries.get(self._ids.own_producer_id(producer_id))
        if entry is None or entry.producer_epoch != epoch or entry.last_sequence == NO_SEQUENCE:
            return 0
        return entry.last_sequence + 1

    # Answers

    def answered(self, answers: Mapping[str, Answer]) -> None:
        """Remember the ids, epochs and generations in answers."""
        for text, answer in answers.items():
            number = int(text)
            self._consumers.answered(answer)
            if number in self._slots and answer.get("member"):
                ids = self._members[self._slots[number]]
                has_id = answer["error"] in ("NONE", "MEMBER_ID_REQUIRED")
                if has_id and (not ids or ids[-1] != answer["member"]):
                    ids.append(answer["member"])
                if answer["error"] == "NONE":
                    self._generation, self.leader = answer["generation"], answer["leader"]
                    if answer["members"]:
                        self._group = tuple(name for name, *_ in answer["members"])
            if answer.get("error") == "NONE" and "producer_id" in answer:
                instance = self._initialising.get(number, self._ending.get(number))
                if instance is not None and answer["producer_id"] != NO_PRODUCER_ID:
                    self._instances[instance] = answer["producer_id"], answer["producer_epoch"]
