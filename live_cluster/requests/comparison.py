"""What came of a sequence of steps on the model and on something real, and the shortest sequence in which they differ."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from harrow.live_cluster.errors import LiveError
from harrow.live_cluster.requests.answers import NO_ANSWER, Answer, errors_in

_SHRINK_TRIES_MAX: Final = 200


@dataclass(frozen=True, slots=True)
class ComparedRequest:
    """A step, the request that it became (None of an election), and what both brokers answered."""

    step: Any
    request: Any
    modelled: Answer
    real: Answer

    @property
    def differs(self) -> bool:
        return self.modelled != self.real


@dataclass(frozen=True, slots=True)
class ComparedSequence:
    """What came of the steps of a sequence; where the two brokers part, that is the last of the exchanges."""

    exchanges: tuple[ComparedRequest, ...]

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
    def difference(self) -> ComparedRequest | None:
        """The exchange in which the two differ, None where they agree to the end."""
        return self.exchanges[-1] if self.exchanges and self.exchanges[-1].differs else None

    @property
    def steps(self) -> tuple[Any, ...]:
        return tuple(exchange.step for exchange in self.exchanges)


class SequenceEndedError(LiveError):
    """What is real did not hold out, which says nothing of the model; ``sequence`` is what led there, the step without an answer included."""

    def __init__(self, error: LiveError, exchanges: Iterable[ComparedRequest], last: ComparedRequest) -> None:
        super().__init__(str(error))
        self.sequence = ComparedSequence((*exchanges, last))


def exchanged(
    before: Iterable[ComparedRequest],
    step: Any,
    request: Any,
    modelled: Answer,
    take: Callable[[], Answer],
) -> ComparedRequest:
    """Return a step with what the model answered and with what comes of it where it is taken for real.

    Raises:
        SequenceEndedError: there it comes to no answer; the exchanges *before* are kept with it.

    """
    try:
        real = take()
    except LiveError as error:
        last = ComparedRequest(step, request, modelled, dict(NO_ANSWER))
        raise SequenceEndedError(error, before, last) from error
    return ComparedRequest(step, request, modelled, real)


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


def kind_of(exchange: ComparedRequest) -> tuple[DifferingPlace, ...]:
    """Return in which respects two answers differ, the same for other numbers."""
    return tuple(
        dict.fromkeys(
            DifferingPlace(
                _api(exchange), tuple(map(_without_number, path)), (_words(modelled), _words(real))
            )
            for path, modelled, real in _parts(exchange.modelled, exchange.real)
        )
    )


def where(exchange: ComparedRequest) -> str:
    """Return in words what two answers say differently."""
    parts = (
        f"{_written(path)} is {modelled!r} in the model, {real!r} on the broker"
        for path, modelled, real in _parts(exchange.modelled, exchange.real)
    )
    return f"{_api(exchange)}: {'; '.join(parts)}"


def _api(exchange: ComparedRequest) -> str:
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


def _alike(one: ComparedRequest, other: ComparedRequest | None) -> bool:
    return other is not None and kind_of(one) == kind_of(other)
