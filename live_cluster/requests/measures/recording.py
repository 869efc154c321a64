"""A compared sequence as plain data, and the broker that answers out of it: what was seen once, without a broker."""

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
from harrow.live_cluster.requests.answers import Answer, described
from harrow.live_cluster.requests.brokers.broker_driver import PartitionStates, SingleRequest
from harrow.live_cluster.requests.brokers.steps import Step
from harrow.live_cluster.requests.comparison import ComparedSequence
from harrow.live_cluster.requests.controllers.driver import PartitionsSeen, RequestToController
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
    """Return the steps of a sequence, each with what the real broker answered."""
    return [{"step": asdict(exchange.step), "answer": exchange.real} for exchange in compared.exchanges]


def steps_of(recorded: list[dict[str, Any]]) -> tuple[Any, ...]:
    """Return the steps of what has been recorded.

    Raises:
        pydantic.ValidationError: there is one that is none.

    """
    return _STEPS.validate_python([entry["step"] for entry in recorded])


class RecordedBroker:
    """Answers as a real broker did, one answer after the other (`BrokerDriver`)."""

    def __init__(self, recorded: list[dict[str, Any]]) -> None:
        self._answers = [entry["answer"] for entry in recorded]
        self._asked = 0

    def ask(self, request: SingleRequest) -> Answer:
        return self._next()

    def register_follower(self) -> None:
        """Go on to the states that this came to."""
        self._next()

    unregister_follower = elect_follower = register_follower

    def partition_states(self, expected: PartitionStates | None) -> PartitionStates:
        """Return the states that belong to the last answer."""
        states: PartitionStates = self._answers[self._asked - 1]["states"]
        return states

    def _next(self) -> Answer:
        self._asked += 1
        answer: Answer = self._answers[self._asked - 1]
        return answer


class RecordedCoordinator:
    """Answers as a real broker did as coordinator (`CoordinatorDriver`)."""

    sequence = 0

    def __init__(self, recorded: list[dict[str, Any]]) -> None:
        self._answers = [entry["answer"] for entry in recorded]
        self._asked = 0

    def ask(self, number: int, request: CoordinatorRequest, expected: Collection[int] | None) -> Answers:
        self._asked += 1
        return {int(each): answer for each, answer in self._answers[self._asked - 1]["answers"].items()}

    def again(self, number: int, request: CoordinatorRequest) -> Answer:
        answer: Answer = self._answers[self._asked - 1]["answers"][str(number)]
        return answer

    def transactions(self, expected: TransactionStates | None) -> TransactionStates:
        states: TransactionStates = self._answers[self._asked - 1]["transactions"]
        return states


class RecordedController:
    """Answers as a real controller did (`ControllerDriver`): first that its brokers are alive, then one answer after the other.

    Broker epochs are offsets of a controller's log and stand in no recording: each registration that was accepted gets the next one.
    """

    def __init__(self, recorded: list[dict[str, Any]]) -> None:
        self._answers = [entry["answer"] for entry in recorded]
        self._asked = 0
        self._has_topic = False
        self._broker_epoch = 0

    def ask(self, request: RequestToController) -> Answer:
        is_registration = isinstance(request, BrokerRegistrationRequest)
        if not self._has_topic:
            alive = described(BrokerHeartbeatResponse(errors.NONE, is_caught_up=True, is_fenced=False))
            return self._registered() if is_registration else alive
        answer = self._next()
        if not is_registration:
            return answer
        return {**answer, **self._registered(str(answer["error"]))}

    def _registered(self, error: str = errors.NONE) -> Answer:
        self._broker_epoch += 1
        return described(BrokerRegistrationResponse(error, self._broker_epoch))

    def create_topic(self) -> None:
        self._has_topic = True

    def elect_preferred_leaders(self) -> None:
        """Go on to the partitions that this came to."""
        self._next()

    def partitions(self, expected: PartitionsSeen | None) -> PartitionsSeen:
        """Return those that belong to the last answer; before the topic there are none."""
        if not self._has_topic:
            return {}
        seen: PartitionsSeen = self._answers[self._asked - 1]["partitions_seen"]
        return seen

    def _next(self) -> Answer:
        self._asked += 1
        answer: Answer = self._answers[self._asked - 1]
        return answer
