"""The results of a sequence on the model and on a real server, and shrinking of differences."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.live_cluster.errors import LiveError
from harrow.live_cluster.requests.answers import NO_ANSWER, Answer, errors_in

_SHRINK_TRIES_MAX: Final = 200


@dataclass(frozen=True, slots=True)
class ComparedRequest:
    """A step, its request (None for an election), and the answers of both sides."""

    step: Any
    request: Any
    modelled: Answer
    real: Answer

    @property
    def differs(self) -> bool:
        return self.modelled != self.real


@dataclass(frozen=True, slots=True)
class ComparedSequence:
    """The results of the steps of a sequence; a difference is always in the last exchange."""

    exchanges: tuple[ComparedRequest, ...]

    @property
    def requests(self) -> int:
        """The number of compared requests; elections do not count."""
        return sum(exchange.request is not None for exchange in self.exchanges)

    def answered(self) -> Counter[tuple[str, str]]:
        """Count the real broker's answers by API and error; unanswered requests do not count."""
        apis = {
            str(number): exchange.request.api
            for number, exchange in enumerate(self.exchanges, 1)
            if exchange.request is not None
        }
        return Counter(
            (apis[number], error)
            for position, exchange in enumerate(self.exchanges, 1)
            if exchange.request is not None
            for number, answer in exchange.real.get("answers", {str(position): exchange.real}).items()
            for error in errors_in(answer)
        )

    @property
    def difference(self) -> ComparedRequest | None:
        """The exchange in which the two sides differ, None if they agree to the end."""
        return self.exchanges[-1] if self.exchanges and self.exchanges[-1].differs else None

    @property
    def steps(self) -> tuple[Any, ...]:
        return tuple(exchange.step for exchange in self.exchanges)


class SequenceEndedError(LiveError):
    """The real side failed, which says nothing about the model.

    ``sequence`` contains all steps, including the one without an answer.
    """

    def __init__(self, error: LiveError, exchanges: Iterable[ComparedRequest], last: ComparedRequest) -> None:
        super().__init__(str(error))
        self.sequence = ComparedSequence((*exchanges, last))


def finish_exchange(
    before: Iterable[ComparedRequest],
    step: Any,
    request: Any,
    modelled: Answer,
    ask_real: Callable[[], Answer],
) -> ComparedRequest:
    """Ask the real side, and return both answers to a step.

    If the real side fails, raise `SequenceEndedError` with the exchanges *before*.
    """
    try:
        real = ask_real()
    except LiveError as error:
        last = ComparedRequest(step, request, modelled, dict(NO_ANSWER))
        raise SequenceEndedError(error, before, last) from error
    return ComparedRequest(step, request, modelled, real)


class DifferingPlace(NamedTuple):
    """A place in which two answers differ: the API, and the path with *n* for each number.

    ``words`` are the values of the model and of the broker if they are words, such as errors. A
    value with a digit is "".
    """

    api: str
    path: tuple[str, ...]
    words: tuple[str, str]

    def __str__(self) -> str:
        ours, theirs = self.words
        place = f"{self.api} {'.'.join(self.path)}"
        if not any(self.words):
            return place
        return f"{place}: {ours or 'other'} in the model, {theirs or 'other'} on the broker"


def difference_kind(exchange: ComparedRequest) -> tuple[DifferingPlace, ...]:
    """Return the places in which two answers differ, without their numbers."""
    return tuple(
        dict.fromkeys(
            DifferingPlace(
                _api(exchange), tuple(map(_without_number, path)), (_words(modelled), _words(real))
            )
            for path, modelled, real in _parts(exchange.modelled, exchange.real)
        )
    )


def difference_text(exchange: ComparedRequest) -> str:
    """Describe the differences of two answers."""
    parts = (
        f"{_path_text(path)} is {modelled!r} in the model, {real!r} on the broker"
        for path, modelled, real in _parts(exchange.modelled, exchange.real)
    )
    return f"{_api(exchange)}: {'; '.join(parts)}"


def _api(exchange: ComparedRequest) -> str:
    return "election" if exchange.request is None else exchange.request.api


def _path_text(path: Iterable[str | int]) -> str:
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path).removeprefix(".")


def _without_number(key: str | int) -> str:
    name, dash, number = str(key).rpartition("-")
    return f"{name}{dash}n" if number.isdigit() else str(key)


def _words(value: Any) -> str:
    return value if isinstance(value, str) and not any(map(str.isdigit, value)) else ""


def _parts(modelled: Any, real: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[Any, Any, Any]]:
    """Yield the path of each difference with both values."""
    if isinstance(modelled, dict) and isinstance(real, dict):
        for key in dict.fromkeys((*modelled, *real)):
            yield from _parts(modelled.get(key), real.get(key), (*path, key))
    elif isinstance(modelled, list) and isinstance(real, list) and len(modelled) == len(real):
        for place, (ours, theirs) in enumerate(zip(modelled, real, strict=True)):
            yield from _parts(ours, theirs, (*path, place))
    elif modelled != real:
        yield path, modelled, real


def shrink(
    sequence: ComparedSequence, compare: Callable[[Sequence[Any]], ComparedSequence]
) -> ComparedSequence:
    """Shorten a sequence that ends in a difference: leave out halves, smaller parts, single steps.

    The result has the same kind of difference, which would vanish without any one of its steps.
    """
    tries = 0
    size = max(1, (len(sequence.steps) - 1) // 2)
    while size:
        start, is_shorter = len(sequence.steps) - 1 - size, False
        while start >= 0 and tries < _SHRINK_TRIES_MAX:
            steps = sequence.steps
            tries += 1
            attempt = compare((*steps[:start], *steps[start + size :]))
            if attempt.difference is not None and _alike(attempt.difference, sequence.difference):
                sequence, is_shorter = attempt, True
            start = min(start, len(sequence.steps) - 1) - size
        if size > 1 or not is_shorter:
            size //= 2
    return sequence


def _alike(one: ComparedRequest, other: ComparedRequest | None) -> bool:
    return other is not None and difference_kind(one) == difference_kind(other)
