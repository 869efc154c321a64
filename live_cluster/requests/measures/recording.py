"""Recordings of compared sequences, and drivers that replay the real answers from them."""

from collections.abc import Collection
from dataclasses import asdict
from typing import Annotated, Any, Final

from pydantic import Field, TypeAdapter

from harrow.cluster_model import errors
from harrow.cluster_model.kraft.protocol import (
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from harrow.live_cluster.requests.answers import Answer, plain_answer
from harrow.live_cluster.requests.brokers.broker_driver import PartitionStates, SingleRequest
from harrow.live_cluster.requests.brokers.steps import Step
from harrow.live_cluster.requests.comparison import ComparedSequence
from harrow.live_cluster.requests.controllers.driver import ControllerPartitions, RequestToController
from harrow.live_cluster.requests.controllers.steps import ControllerStep
from harrow.live_cluster.requests.coordinators.driver import (
    Answers,
    CoordinatorRequest,
    TransactionStates,
)
from harrow.live_cluster.requests.coordinators.steps import CoordinatorStep

_STEPS: Final[TypeAdapter[tuple[Step | ControllerStep | CoordinatorStep, ...]]] = TypeAdapter(
    tuple[Annotated[Step | ControllerStep | CoordinatorStep, Field(discriminator="kind")], ...]
)


def recording(compared: ComparedSequence) -> list[dict[str, Any]]:
    """Return the steps of a sequence, each with the real answer."""
    return [{"step": asdict(exchange.step), "answer": exchange.real} for exchange in compared.exchanges]


def steps_of(recorded: list[dict[str, Any]]) -> tuple[Any, ...]:
    """Return the steps of a recording; raise `pydantic.ValidationError` if it is damaged."""
    return _STEPS.validate_python([entry["step"] for entry in recorded])


class _Recorded:
    """Replays recorded results in order; ``_current`` is the last one."""

    def __init__(self, recorded: list[dict[str, Any]]) -> None:
        self._answers = iter([entry["answer"] for entry in recorded])
        self._current: Answer = {}

    def _next(self) -> Answer:
        self._current = next(self._answers)
        return self._current


class RecordedBroker(_Recorded):
    """A `BrokerDriver` that replays a real broker's answers."""

    def ask(self, request: SingleRequest) -> Answer:
        return self._next()

    def register_follower(self) -> None:
        self._next()

    unregister_follower = elect_follower = register_follower

    def partition_states(self, expected: PartitionStates | None) -> PartitionStates:
        states: PartitionStates = self._current["states"]
        return states


class RecordedCoordinator(_Recorded):
    """A `CoordinatorDriver` that replays a real coordinator's answers."""

    sequence = 0

    def ask(self, number: int, request: CoordinatorRequest, expected: Collection[int] | None) -> Answers:
        return {int(key): answer for key, answer in self._next()["answers"].items()}

    def again(self, number: int, request: CoordinatorRequest) -> Answer:
        answer: Answer = self._current["answers"][str(number)]
        return answer

    def transactions(self, expected: TransactionStates | None) -> TransactionStates:
        states: TransactionStates = self._current["transactions"]
        return states


class RecordedController(_Recorded):
    """A `ControllerDriver` that replays a real controller's answers, after the opening steps.

    Recordings contain no broker epochs, which are offsets of the controller's log. Each accepted
    registration gets the next number instead.
    """

    def __init__(self, recorded: list[dict[str, Any]]) -> None:
        super().__init__(recorded)
        self._has_topic = False
        self._broker_epoch = 0

    def ask(self, request: RequestToController) -> Answer:
        is_registration = isinstance(request, BrokerRegistrationRequest)
        if not self._has_topic:
            alive = plain_answer(BrokerHeartbeatResponse(errors.NONE, is_caught_up=True, is_fenced=False))
            return self._registered() if is_registration else alive
        answer = self._next()
        if not is_registration:
            return answer
        return {**answer, **self._registered(str(answer["error"]))}

    def _registered(self, error: str = errors.NONE) -> Answer:
        self._broker_epoch += 1
        return plain_answer(BrokerRegistrationResponse(error, self._broker_epoch))

    def create_topic(self) -> None:
        self._has_topic = True

    def elect_preferred_leaders(self) -> None:
        self._next()

    def partitions(self, expected: ControllerPartitions | None) -> ControllerPartitions:
        """Return the partitions after the last answer; none before the topic exists."""
        if not self._has_topic:
            return {}
        partitions: ControllerPartitions = self._current["partitions_seen"]
        return partitions
