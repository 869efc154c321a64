"""A sequence on two brokers that coordinate, up to the first answer in which they differ."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from harrow.cluster_model import errors
from harrow.live_cluster.requests.answers import Answer
from harrow.live_cluster.requests.comparison import ComparedRequest, ComparedSequence, exchanged
from harrow.live_cluster.requests.coordinators.driver import (
    CoordinatorDriver,
    CoordinatorRequest,
    TransactionStates,
)
from harrow.live_cluster.requests.coordinators.model_coordinator import ModelCoordinator
from harrow.live_cluster.requests.coordinators.resolution import (
    CoordinatorResolution,
    Correspondence,
)
from harrow.live_cluster.requests.coordinators.steps import CoordinatorStep

_TRANSACTIONS: Final = "transactions"
_ANSWERS: Final = "answers"
_REPEATABLE: Final = ("OffsetFetch", "Fetch", "ListOffsets")
"""What changes nothing: a group coordinator takes what a marker says in a thread of its own, after the transaction is complete."""


class _CoordinatorSide:
    """One of the two brokers, with what it makes up taken out of its answers."""

    def __init__(self, driver: CoordinatorDriver) -> None:
        self._driver = driver
        self.ids = Correspondence(driver.sequence)

    def ask(self, number: int, request: CoordinatorRequest, expected: Answer | None = None) -> Answer:
        sent = self.ids.sent(request)
        awaited = None if expected is None else [int(each) for each in expected[_ANSWERS]]
        answers = self.ids.told(self._driver.ask(number, sent, awaited))
        if expected is not None and self._is_early(request, answers, expected[_ANSWERS], str(number)):
            answers.update(self.ids.told({number: self._driver.again(number, sent)}))
        states = self._driver.transactions(self._own(expected) if expected is not None else None)
        return {_ANSWERS: answers, _TRANSACTIONS: self._common(states)}

    @staticmethod
    def _is_early(
        request: CoordinatorRequest, answers: dict[str, Answer], expected: dict[str, Answer], number: str
    ) -> bool:
        """Return whether an answer may have come before all was done that came of the request before.

        What is said of a transaction by a coordinator follows what stands in its log, a moment later.
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
    told = partitions.values() if isinstance(partitions, dict) else ()
    return errors.CONCURRENT_TRANSACTIONS in (answer.get("error"), *told)


def compared_coordinators(
    steps: Sequence[CoordinatorStep], model: ModelCoordinator, real: CoordinatorDriver
) -> ComparedSequence:
    """Take the steps on both brokers, with a group, transactional ids and a topic that are new to them, up to the first difference.

    Where a group's leader goes, a broker has one of the others lead, by the order of a hash table: a sequence in which the two have
    chosen differently goes no further, and that is no difference.

    Raises:
        SequenceEndedError: the real broker does not hold out.

    """
    ours, theirs = _CoordinatorSide(model), _CoordinatorSide(real)
    resolution = CoordinatorResolution(model, ours.ids)
    exchanges: list[ComparedRequest] = []
    for number, step in enumerate(steps, 1):
        request = resolution.request(number, step)
        modelled = ours.ask(number, request)
        take = partial(theirs.ask, number, request, modelled)
        exchange = exchanged(exchanges, step, request, modelled, take)
        if exchange.differs and _have_chosen_leaders(exchange, resolution.leader):
            break
        exchanges.append(exchange)
        if exchange.differs:
            break
        resolution.answered(modelled[_ANSWERS])
    return ComparedSequence(tuple(exchanges))


def _have_chosen_leaders(exchange: ComparedRequest, former: str) -> bool:
    """Return whether both began the same generation, with another leader, which the *former* one is not a member of any more."""
    answers = exchange.modelled.get(_ANSWERS, {}).values()
    stays = any(told.get("member") == former and told["error"] == errors.NONE for told in answers)
    return not stays and _without_leader(exchange.modelled) == _without_leader(exchange.real)


def _without_leader(answer: Answer) -> dict[str, Any]:
    answers = {
        number: {**told, "leader": None, "members": None, "skips": None} if "leader" in told else told
        for number, told in answer.get(_ANSWERS, {}).items()
    }
    return {**answer, _ANSWERS: answers}
