"""Compares a sequence on two brokers, up to the first difference."""

from collections.abc import Sequence
from functools import partial
from typing import Final

from harrow.cluster_model.protocol import FetchRequest
from harrow.live_cluster.requests.answers import Answer
from harrow.live_cluster.requests.brokers.broker_driver import BrokerDriver, PartitionStates, SingleRequest
from harrow.live_cluster.requests.brokers.model_broker import ModelBroker
from harrow.live_cluster.requests.brokers.resolution import FetchSessions, Resolution
from harrow.live_cluster.requests.brokers.steps import FollowerStep, Step
from harrow.live_cluster.requests.comparison import ComparedRequest, ComparedSequence, finish_exchange

_PRODUCER_ID: Final = "producer_id"


class _Side:
    """One of the two brokers. In its answers, the ids that it has chosen are replaced."""

    def __init__(self, driver: BrokerDriver) -> None:
        self._driver = driver
        self._sessions = FetchSessions()
        # The first producer id that the broker has assigned.
        self._producer_id: int | None = None

    def ask(self, request: SingleRequest, expected: Answer | None = None) -> Answer:
        answer = self._sessions.with_number(self._driver.ask(self._sessions.with_id(request)))
        if _PRODUCER_ID in answer:
            answer = {**answer, _PRODUCER_ID: self._since_first(answer[_PRODUCER_ID])}
        if isinstance(request, FetchRequest) and request.replica_id >= 0:
            # A fetch may bring the follower into the ISR.
            answer = {**answer, "states": self._states(expected)}
        return answer

    def _since_first(self, producer_id: int) -> int:
        if self._producer_id is None:
            self._producer_id = producer_id
        return producer_id - self._producer_id

    def elect(self, step: FollowerStep, expected: Answer | None = None) -> Answer:
        if step.does == "comes":
            self._driver.register_follower()
        elif step.does == "goes":
            self._driver.unregister_follower()
        else:
            self._driver.elect_follower()
        return {"states": self._states(expected)}

    def _states(self, expected: Answer | None) -> PartitionStates:
        return self._driver.partition_states(None if expected is None else expected["states"])


def compare_brokers(steps: Sequence[Step], model: ModelBroker, real: BrokerDriver) -> ComparedSequence:
    """Take the steps on both brokers, which must be new, up to the first difference.

    Raise `SequenceEndedError` if the real broker fails.
    """
    resolution = Resolution(model)
    ours, theirs = _Side(model), _Side(real)
    exchanges: list[ComparedRequest] = []
    for step in steps:
        request: SingleRequest | None = None
        if isinstance(step, FollowerStep):
            modelled = ours.elect(step)
            ask_real = partial(theirs.elect, step, modelled)
        else:
            request = resolution.request(step)
            modelled = ours.ask(request)
            ask_real = partial(theirs.ask, request, modelled)
            resolution.answered(request, modelled)
        exchanges.append(finish_exchange(exchanges, step, request, modelled, ask_real))
        if exchanges[-1].differs:
            break
    return ComparedSequence(tuple(exchanges))
