"""The coordinator that a sequence tests: one of the model, or a real one."""

from collections.abc import Collection
from typing import Protocol

from harrow.cluster_model.coordinators.protocol import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    ConsumerGroupHeartbeatRequest,
    EndTxnRequest,
    FindCoordinatorRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
    TxnOffsetCommitRequest,
)
from harrow.cluster_model.protocol import (
    FetchRequest,
    InitProducerIdRequest,
    ListOffsetsRequest,
    ProduceRequest,
)
from harrow.live_cluster.requests.answers import Answer

CoordinatorRequest = (
    JoinGroupRequest
    | SyncGroupRequest
    | HeartbeatRequest
    | LeaveGroupRequest
    | ConsumerGroupHeartbeatRequest
    | OffsetCommitRequest
    | OffsetFetchRequest
    | FindCoordinatorRequest
    | InitProducerIdRequest
    | AddPartitionsToTxnRequest
    | AddOffsetsToTxnRequest
    | TxnOffsetCommitRequest
    | EndTxnRequest
    | ProduceRequest
    | FetchRequest
    | ListOffsetsRequest
)
"""A request of the model with all its values."""

Answers = dict[int, Answer]
"""Answers by the number of the request. A JoinGroup waits for other members to join."""

TransactionStates = dict[str, list[object]]
"""State, producer id and producer epoch of each transactional id, from its coordinator's log."""


class CoordinatorDriver(Protocol):
    """One broker, with its own group, transactional ids and topic for a sequence."""

    @property
    def sequence(self) -> int:
        """The number of the sequence on this broker."""

    def ask(self, number: int, request: CoordinatorRequest, expected: Collection[int] | None) -> Answers:
        """Send a request, and return all new answers.

        A real broker waits for the *expected* ones.
        """

    def again(self, number: int, request: CoordinatorRequest) -> Answer:
        """Repeat a request that has no effect, or had none."""

    def transactions(self, expected: TransactionStates | None) -> TransactionStates:
        """Return the states of transactions.

        A real broker waits a while for the *expected* ones.
        """
