"""Provides everything in a run that is left to chance, in one object: `Choices`.

`Choices` has separate streams, so that an additional draw from one stream does not affect the
others: a fault that draws a broker does not change the latency of a message. The numbers of a
stream come from a seed (`SeededStream`), or from any other subclass of `Stream`, such as one that
replays a recording.
"""

import hashlib
import struct
from collections.abc import Sequence
from typing import Any, Final, TypeVar

from harrow.cluster_model.compiling import i64, mypyc_attr
from harrow.cluster_model.lazy_dataclass import dataclass

T = TypeVar("T")

STREAM_NAMES: Final = ("network", "disk", "schedule", "workload")

_DRAW_BYTES: Final = 8
_BLOCK_DRAWS: Final = 512
_FIRST_DRAWS: Final = 64
"""A stream first makes this many draws of its first block.

Some streams of a short run need no more, and the whole block takes six times as long.
"""

_HALF: Final = 32
_HALF_MASK: Final = (1 << _HALF) - 1
_DRAW_MASK: Final = (1 << 2 * _HALF) - 1
_BOUND_MAX: Final = 1 << 31
"""Up to this bound, the products of the bound with each half of a draw fit into 64 bits."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Stream:
    """A source of choices.

    It has a single method, so that another kind of source is easy to write.
    """

    __slots__ = ()

    def below(self, bound: int) -> int:
        """Return an integer in ``[0, bound)``; *bound* is at least 1."""
        raise NotImplementedError


class SeededStream(Stream):
    """Choices from a seed: SHAKE-128 of the seed, the stream's name and a block counter.

    They depend only on the seed and the name, so they are the same in every process, on every
    platform and in every version of Python.
    """

    __slots__ = ("_draws", "_key", "_parts")

    def __init__(self, seed: int, name: str) -> None:
        self._key = f"{seed}/{name}"
        self._parts = 0
        self._draws: list[i64] = []

    def below(self, bound: int) -> int:
        # The result is ``draw * bound >> 64`` for a draw of 64 bits. This needs no division, and
        # has a bias below 2**-40 for any bound in use. Each half of a draw is multiplied by itself,
        # so that compiled code needs no long integers.
        draws = self._draws
        if not draws:
            draws = self._draws = _part(self._key, self._parts)
            self._parts += 1
        draw = draws.pop()
        if bound > _BOUND_MAX:
            return _product(draw, bound)
        low: i64 = draw & _HALF_MASK
        high: i64 = draw >> _HALF & _HALF_MASK
        return (high * bound + (low * bound >> _HALF)) >> _HALF


def _product(draw: Any, bound: int) -> int:
    # Python checks for signals when it multiplies long integers, which may raise KeyboardInterrupt.
    # If the draw were typed as int, compiled code would swallow that interrupt.
    product: int = (draw & _DRAW_MASK) * bound >> 2 * _HALF
    return product


def _part(key: str, number: int) -> list[i64]:
    """Return a part of the draws of a stream, last first. A draw from 2**63 on is negative here.

    A part is a block, except that the first block has two parts.
    """
    count = _BLOCK_DRAWS if number else _FIRST_DRAWS
    block = hashlib.shake_128(f"{key}/{max(0, number - 1)}".encode()).digest(count * _DRAW_BYTES)
    draws = list(struct.unpack(f"<{count}q", block))
    if number == 1:
        del draws[:_FIRST_DRAWS]
    draws.reverse()
    return draws


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
    """Return an integer in ``[low, high]``. Draw it only if there is more than one."""
    return low if high <= low else low + stream.below(high - low + 1)


def pick(stream: Stream, options: Sequence[T]) -> T:
    """Return one of *options*. Draw it only if there is more than one."""
    return options[0] if len(options) == 1 else options[stream.below(len(options))]


def happens(stream: Stream, probability: float) -> bool:
    """Return True with a *probability* from 0 to 1, which is rounded to millionths."""
    if probability <= 0:
        return False
    return probability >= 1 or stream.below(1_000_000) < round(probability * 1_000_000)
