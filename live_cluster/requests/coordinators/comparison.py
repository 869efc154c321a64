"""Compares a sequence on two coordinators, up to the first difference."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from harrow.cluster_model import errors
from harrow.live_cluster.requests.answers import Answer
from harrow.live_cluster.requests.comparison import ComparedRequest, ComparedSequence, finish_exchange
from harrow.live_cluster.requests.coordinators.driver import (
    CoordinatorDriver,
    CoordinatorRequest,
    TransactionStates,
)
from harrow.live_cluster.requests.coordinators.model_coordinator import ModelCoordinator
from harrow.live_cluster.requests.coordinators.resolution import (
    CoordinatorResolution,
    IdTranslation,
)
from harrow.live_cluster.requests.coordinators.steps import CoordinatorStep

_TRANSACTIONS: Final = "transactions"
_ANSWERS: Final = "answers"
_REPEATABLE: Final = ("OffsetFetch", "Fetch", "ListOffsets")
"""Requests without effects, which can be repeated. The first may be too early after a transaction:
a group coordinator handles the marker in its own thread, after the transaction is complete."""


class _CoordinatorSide:
    """One of the two brokers. In its answers, the ids that it has assigned are replaced."""

    def __init__(self, driver: CoordinatorDriver) -> None:
        self._driver = driver
        self.ids = IdTranslation(driver.sequence)

    def ask(self, number: int, request: CoordinatorRequest, expected: Answer | None = None) -> Answer:
        own_request = self.ids.own_request(request)
        awaited = None if expected is None else list(map(int, expected[_ANSWERS]))
        answers = self.ids.common_answers(self._driver.ask(number, own_request, awaited))
        if expected is not None and self._is_early(request, answers, expected[_ANSWERS], str(number)):
            answers.update(self.ids.common_answers({number: self._driver.again(number, own_request)}))
        states = self._driver.transactions(None if expected is None else self._own(expected))
        return {_ANSWERS: answers, _TRANSACTIONS: self._common(states)}

    @staticmethod
    def _is_early(
        request: CoordinatorRequest, answers: dict[str, Answer], expected: dict[str, Answer], number: str
    ) -> bool:
        """Return whether an answer may have come before all effects of the previous request.

        A coordinator's view of a transaction lags a moment behind its log.
        """
        ours, theirs = expected.get(number), answers.get(number)
        if ours is None or theirs is None or ours == theirs:
            return False
        return request.api in _REPEATABLE or _is_concurrent(theirs)

    def _common(self, states: TransactionStates) -> TransactionStates:
        return {
            name: [state, *(self._common_id(value) for value in rest[:1]), *rest[1:]]
            for name, (state, *rest) in sorted(states.items())
        }

    def _common_id(self, value: Any) -> int:
        return self.ids.common_producer_id(int(value))

    def _own(self, expected: Answer) -> TransactionStates:
        return {
            name: [state, *(self.ids.own_producer_id(int(value)) for value in rest[:1]), *rest[1:]]
            for name, (state, *rest) in expected[_TRANSACTIONS].items()
        }


def _is_concurrent(answer: Answer) -> bool:
    partitions = answer.get("partitions", {})
    partition_errors = partitions.values() if isinstance(partitions, dict) else ()
    return errors.CONCURRENT_TRANSACTIONS in (answer.get("error"), *partition_errors)


def compare_coordinators(
    steps: Sequence[CoordinatorStep], model: ModelCoordinator, real: CoordinatorDriver
) -> ComparedSequence:
    """Take the steps on both brokers, with new names, up to the first difference.

    When the leader of a group goes, a broker chooses another by the order of a hash table. If
    the two choose differently, the sequence ends there, without a difference. Raise
    `SequenceEndedError` if the real broker fails.
    """
    ours, theirs = _CoordinatorSide(model), _CoordinatorSide(real)
    resolution = CoordinatorResolution(model, ours.ids)
    exchanges: list[ComparedRequest] = []
    for number, step in enumerate(steps, 1):
        request = resolution.request(number, step)
        modelled = ours.ask(number, request)
        ask_real = partial(theirs.ask, number, request, modelled)
        exchange = finish_exchange(exchanges, step, request, modelled, ask_real)
        if exchange.differs and _differ_in_leader(exchange, resolution.leader):
            break
        exchanges.append(exchange)
        if exchange.differs:
            break
        resolution.answered(modelled[_ANSWERS])
    return ComparedSequence(tuple(exchanges))


def _differ_in_leader(exchange: ComparedRequest, former: str) -> bool:
    """Return whether both only chose different successors of the *former* leader."""
    answers = exchange.modelled.get(_ANSWERS, {}).values()
    stays = any(answer.get("member") == former and answer["error"] == errors.NONE for answer in answers)
    return not stays and _without_leader(exchange.modelled) == _without_leader(exchange.real)


def _without_leader(result: Answer) -> dict[str, Any]:
    answers = {
        number: {**answer, "leader": None, "members": None, "skips": None} if "leader" in answer else answer
        for number, answer in result.get(_ANSWERS, {}).items()
    }
    return {**result, _ANSWERS: answers}
