"""All nondeterminism of a run is drawn from one object, `Choices`.

It has separate streams, so that drawing once more from one leaves the others as
they were: a fault that draws a broker does not change the latency of a message.
What feeds a stream can be a seed (`SeededStream`) or, through the `Stream` protocol,
anything else that can pick a number below *n*, such as a recording.
"""

import hashlib
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, count
from typing import Any, Final, Protocol, TypeVar

T = TypeVar("T")

STREAM_NAMES: Final = ("network", "disk", "schedule", "workload")

_BLOCK_DRAWS: Final = 512
_BLOCK_FORMAT: Final = f"<{_BLOCK_DRAWS}Q"
_BLOCK_BYTES: Final = struct.calcsize(_BLOCK_FORMAT)


class Stream(Protocol):
    """A source of choices. One primitive, so that every source is easy to write."""

    def below(self, bound: int) -> int:
        """Return a whole number in ``[0, bound)``; *bound* is at least 1."""


class SeededStream:
    """Choices from a seed: SHAKE-128 of the seed, the stream's name and a block counter.

    The numbers depend on nothing but (seed, name), so they are the same in every
    process, on every platform and in every Python version.
    """

    __slots__ = ("_draw",)

    def __init__(self, seed: int, name: str) -> None:
        # Python looks for signals when it multiplies long numbers. Compiled code that knows these for numbers would not hear of an
        # interrupt that is raised there.
        self._draw: Callable[[], Any] = _draws(f"{seed}/{name}").__next__

    def below(self, bound: int) -> int:
        # 64-bit multiply-shift: no division, and a bias below 2**-40 for any bound in use.
        number: int = (self._draw() * bound) >> 64
        return number


def _draws(key: str) -> Iterator[int]:
    """Return whole numbers of 64 bits, without end; a chain, which costs a third of what an index costs."""
    return chain.from_iterable(map(partial(_block, key), count()))


def _block(key: str, number: int) -> tuple[int, ...]:
    return struct.unpack(_BLOCK_FORMAT, hashlib.shake_128(f"{key}/{number}".encode()).digest(_BLOCK_BYTES))


@dataclass(slots=True, eq=False)
class Choices:
    """The streams of a run: ``network``, ``disk``, ``schedule`` and ``workload``."""

    network: Stream
    disk: Stream
    schedule: Stream
    workload: Stream

    @classmethod
    def from_seed(cls, seed: int) -> "Choices":
        return cls(*(SeededStream(seed, name) for name in STREAM_NAMES))


def between(stream: Stream, low: int, high: int) -> int:
    """Return a whole number in ``[low, high]``, drawn only when there is a choice."""
    return low if high <= low else low + stream.below(high - low + 1)


def pick(stream: Stream, options: Sequence[T]) -> T:
    """Return one of *options*, drawn only when there is more than one."""
    return options[0] if len(options) == 1 else options[stream.below(len(options))]


def happens(stream: Stream, probability: float) -> bool:
    """Return whether something of this *probability* (0 to 1, in millionths) happens."""
    if probability <= 0:
        return False
    return probability >= 1 or stream.below(1_000_000) < round(probability * 1_000_000)
