"""A broker that coordinates groups and transactions, of the model or a real one, as sequences are driven against it."""

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
"""A request in the model's words, with all its values."""

Answers = dict[int, Answer]
"""What has been answered, by the number of the request: who joins a group is answered when others have joined."""

TransactionStates = dict[str, list[object]]
"""State, producer id and producer epoch of each transactional id, as they stand last in the log of its coordinator."""


class CoordinatorDriver(Protocol):
    """One broker, with a group, transactional ids and a topic of its own for a sequence, which has a number there."""

    @property
    def sequence(self) -> int:
        """The number of the sequence."""

    def ask(self, number: int, request: CoordinatorRequest, expected: Collection[int] | None) -> Answers:
        """Send a request, and return what has been answered since the last one.

        Where that takes time the answers of those that are *expected* to have one are waited for.
        """

    def again(self, number: int, request: CoordinatorRequest) -> Answer:
        """Ask once more what has no effect, or has had none."""

    def transactions(self, expected: TransactionStates | None) -> TransactionStates:
        """Return how transactions stand; where that takes time it is waited for what is *expected*."""
