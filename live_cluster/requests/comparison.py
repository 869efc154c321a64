"""A sequence on two brokers, up to the first answer in which they differ, and the shortest sequence in which they do."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

from harrow.cluster_model.protocol import FetchRequest
from harrow.live_cluster.errors import LiveError
from harrow.live_cluster.requests.answers import NO_ANSWER, Answer, errors_in
from harrow.live_cluster.requests.broker_driver import BrokerDriver, PartitionStates, SingleRequest
from harrow.live_cluster.requests.controllers.driver import RequestToController
from harrow.live_cluster.requests.controllers.steps import ControllerStep
from harrow.live_cluster.requests.coordinators.driver import CoordinatorRequest
from harrow.live_cluster.requests.coordinators.steps import CoordinatorStep
from harrow.live_cluster.requests.model_broker import ModelBroker
from harrow.live_cluster.requests.resolution import FetchSessions, Resolution
from harrow.live_cluster.requests.steps import FollowerStep, Step

_SHRINK_TRIES_MAX: Final = 200
_PRODUCER_ID: Final = "producer_id"


@dataclass(frozen=True, slots=True)
class Exchange:
    """A step, the request that it became (None of an election), and what both brokers answered."""

    step: Step | ControllerStep | CoordinatorStep
    request: SingleRequest | RequestToController | CoordinatorRequest | None
    modelled: Answer
    real: Answer

    @property
    def differs(self) -> bool:
        return self.modelled != self.real


@dataclass(frozen=True, slots=True)
class ComparedSequence:
    """What came of the steps of a sequence; where the two brokers part, that is the last of the exchanges."""

    exchanges: tuple[Exchange, ...]

    @property
    def requests(self) -> int:
        """How many requests were compared; elections are none."""
        return sum(exchange.request is not None for exchange in self.exchanges)

    def answered(self) -> Counter[tuple[str, str]]:
        """Return how often the real broker gave each answer, by API and error; what it owes an answer at the end is not among them."""
        apis = {
            str(number): exchange.request.api
            for number, exchange in enumerate(self.exchanges, 1)
            if exchange.request is not None
        }
        return Counter(
            (apis[number], error)
            for asked, exchange in enumerate(self.exchanges, 1)
            if exchange.request is not None
            for number, answer in exchange.real.get("answers", {str(asked): exchange.real}).items()
            for error in errors_in(answer)
        )

    @property
    def difference(self) -> Exchange | None:
        """The exchange in which the two differ, None where they agree to the end."""
        return self.exchanges[-1] if self.exchanges and self.exchanges[-1].differs else None

    @property
    def steps(self) -> tuple[Step | ControllerStep | CoordinatorStep, ...]:
        return tuple(exchange.step for exchange in self.exchanges)


class SequenceEndedError(LiveError):
    """What is real did not hold out, which says nothing of the model; ``sequence`` is what led there, the step without an answer included."""

    def __init__(self, error: LiveError, exchanges: Iterable[Exchange], last: Exchange) -> None:
        super().__init__(str(error))
        self.sequence = ComparedSequence((*exchanges, last))


class _Side:
    """One of the two brokers, with what it draws taken out of its answers."""

    def __init__(self, driver: BrokerDriver) -> None:
        self._driver = driver
        self._sessions = FetchSessions()
        # The first that it has given away.
        self._producer_id: int | None = None

    def ask(self, request: SingleRequest, expected: Answer | None = None) -> Answer:
        answer = self._sessions.with_number(self._driver.ask(self._sessions.with_id(request)))
        if _PRODUCER_ID in answer:
            answer = {**answer, _PRODUCER_ID: self._since_first(answer[_PRODUCER_ID])}
        if isinstance(request, FetchRequest) and request.replica_id >= 0:
            # What a follower fetches may bring it into the ISR.
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


def compared_sequence(steps: Sequence[Step], model: ModelBroker, real: BrokerDriver) -> ComparedSequence:
    """Take the steps on both brokers, which are new, up to the first difference.

    Raises:
        SequenceEndedError: the real broker does not hold out.

    """
    resolution = Resolution(model)
    ours, theirs = _Side(model), _Side(real)
    exchanges: list[Exchange] = []
    for step in steps:
        if isinstance(step, FollowerStep):
            modelled = ours.elect(step)
            take = partial(theirs.elect, step, modelled)
            exchanges.append(exchanged(exchanges, step, None, modelled, take))
        else:
            request = resolution.request(step)
            modelled = ours.ask(request)
            take = partial(theirs.ask, request, modelled)
            exchanges.append(exchanged(exchanges, step, request, modelled, take))
            resolution.answered(request, modelled)
        if exchanges[-1].differs:
            break
    return ComparedSequence(tuple(exchanges))


def exchanged(
    before: Iterable[Exchange],
    step: Step | ControllerStep | CoordinatorStep,
    request: SingleRequest | RequestToController | CoordinatorRequest | None,
    modelled: Answer,
    take: Callable[[], Answer],
) -> Exchange:
    """Return a step with what the model answered and with what comes of it where it is taken for real.

    Raises:
        SequenceEndedError: there it comes to no answer; the exchanges *before* are kept with it.

    """
    try:
        real = take()
    except LiveError as error:
        last = Exchange(step, request, modelled, dict(NO_ANSWER))
        raise SequenceEndedError(error, before, last) from error
    return Exchange(step, request, modelled, real)


class DifferingPlace(NamedTuple):
    """A place in which two answers differ: the API, and the path to it with *n* for each number on the way.

    ``said`` is what the model and the broker say there in words, such as their errors; "" for anything with a number.
    """

    api: str
    path: tuple[str, ...]
    said: tuple[str, str]

    def __str__(self) -> str:
        """Return it in a line."""
        ours, theirs = self.said
        said = (
            f": {ours or 'other'} in the model, {theirs or 'other'} on the broker" if any(self.said) else ""
        )
        return f"{self.api} {'.'.join(self.path)}{said}"


def kind_of(exchange: Exchange) -> tuple[DifferingPlace, ...]:
    """Return in which respects two answers differ, the same for other numbers."""
    return tuple(
        dict.fromkeys(
            DifferingPlace(
                _api(exchange), tuple(map(_without_number, path)), (_words(modelled), _words(real))
            )
            for path, modelled, real in _parts(exchange.modelled, exchange.real)
        )
    )


def where(exchange: Exchange) -> str:
    """Return in words what two answers say differently."""
    parts = (
        f"{_written(path)} is {modelled!r} in the model, {real!r} on the broker"
        for path, modelled, real in _parts(exchange.modelled, exchange.real)
    )
    return f"{_api(exchange)}: {'; '.join(parts)}"


def _api(exchange: Exchange) -> str:
    return "election" if exchange.request is None else exchange.request.api


def _written(path: Iterable[str | int]) -> str:
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path).removeprefix(".")


def _without_number(key: str | int) -> str:
    name, dash, number = str(key).rpartition("-")
    return f"{name}{dash}n" if number.isdigit() else str(key)


def _words(value: Any) -> str:
    return value if isinstance(value, str) and not any(map(str.isdigit, value)) else ""


def _parts(modelled: Any, real: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[Any, Any, Any]]:
    """Yield each place in which two answers differ, with what both have there."""
    if isinstance(modelled, dict) and isinstance(real, dict):
        for key in dict.fromkeys((*modelled, *real)):
            yield from _parts(modelled.get(key), real.get(key), (*path, key))
    elif isinstance(modelled, list) and isinstance(real, list) and len(modelled) == len(real):
        for place, (ours, theirs) in enumerate(zip(modelled, real, strict=True)):
            yield from _parts(ours, theirs, (*path, place))
    elif modelled != real:
        yield path, modelled, real


def shortest(
    found: ComparedSequence, compare: Callable[[Sequence[Any]], ComparedSequence]
) -> ComparedSequence:
    """Leave out what can be left out of a sequence that differs, first in halves, then step by step.

    What is left differs in the same respect; without any one of its steps it would not.
    """
    tries = 0
    size = max(1, (len(found.steps) - 1) // 2)
    while size:
        start, shorter = len(found.steps) - 1 - size, False
        while start >= 0 and tries < _SHRINK_TRIES_MAX:
            steps = found.steps
            tries += 1
            tried = compare((*steps[:start], *steps[start + size :]))
            if tried.difference is not None and _alike(tried.difference, found.difference):
                found, shorter = tried, True
            start = min(start, len(found.steps) - 1) - size
        if size > 1 or not shorter:
            size //= 2
    return found


def _alike(one: Exchange, other: Exchange | None) -> bool:
    return other is not None and kind_of(one) == kind_of(other)
