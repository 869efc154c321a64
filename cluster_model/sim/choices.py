"""Provides all nondeterminism of a run, in one object: `Choices`.

It has separate streams, so that one more draw from one does not affect the others: a fault that
draws a broker does not change the latency of a message. A stream is fed by a seed (`SeededStream`),
or by any other subclass of `Stream` that can pick a number below *n*, such as a recording.
"""

import hashlib
import struct
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain, count
from typing import Any, Final, TypeVar

from harrow.cluster_model.compiling import i64, mypyc_attr
from harrow.cluster_model.lazy_dataclass import dataclass

T = TypeVar("T")

STREAM_NAMES: Final = ("network", "disk", "schedule", "workload")

_BLOCK_DRAWS: Final = 512
_BLOCK_FORMAT: Final = f"<{2 * _BLOCK_DRAWS}I"
_BLOCK_BYTES: Final = struct.calcsize(_BLOCK_FORMAT)

_HALF: Final = 32
_BOUND_MAX: Final = 1 << 31
"""Up to this bound, all products of a draw's halves fit into 64 bits."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Stream:
    """A source of choices, with a single primitive so that a source is easy to write."""

    __slots__ = ()

    def below(self, bound: int) -> int:
        """Return an integer in ``[0, bound)``; *bound* is at least 1."""
        raise NotImplementedError


class SeededStream(Stream):
    """Choices from a seed: SHAKE-128 of the seed, the stream's name and a block counter.

    The numbers depend only on (seed, name), so they are the same in every process, on every
    platform and in every Python version.
    """

    __slots__ = ("_draws",)

    def __init__(self, seed: int, name: str) -> None:
        self._draws = _draws(f"{seed}/{name}")

    def below(self, bound: int) -> int:
        # 64-bit multiply-shift, ``draw * bound >> 64``: no division, and a bias below 2**-40 for
        # any bound in use. In halves, compiled code needs no long integers.
        low: i64
        high: i64
        for low, high in self._draws:
            if bound > _BOUND_MAX:
                return _product(low, high, bound)
            factor: i64 = bound
            return (high * factor + (low * factor >> _HALF)) >> _HALF
        raise AssertionError("the draws never end")


def _product(low: Any, high: Any, bound: int) -> int:
    # Python checks for signals when it multiplies long integers. If the halves were typed as int,
    # compiled code would swallow an interrupt that is raised there.
    product: int = ((high << _HALF) + low) * bound >> 64
    return product


def _draws(key: str) -> Iterator[tuple[int, int]]:
    """Return an endless iterator of draws: 64 bits, as the lower half and the upper half.

    A chain costs a third of an index.
    """
    return chain.from_iterable(map(partial(_block, key), count()))


def _block(key: str, number: int) -> Iterator[tuple[int, int]]:
    halves = struct.unpack(_BLOCK_FORMAT, hashlib.shake_128(f"{key}/{number}".encode()).digest(_BLOCK_BYTES))
    return zip(halves[::2], halves[1::2], strict=True)


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
    """Return an integer in ``[low, high]``, drawn only if there is a choice."""
    return low if high <= low else low + stream.below(high - low + 1)


def pick(stream: Stream, options: Sequence[T]) -> T:
    """Return one of *options*, drawn only if there are several."""
    return options[0] if len(options) == 1 else options[stream.below(len(options))]


def happens(stream: Stream, probability: float) -> bool:
    """Return True with a *probability* (0 to 1, in millionths)."""
    if probability <= 0:
        return False
    return probability >= 1 or stream.below(1_000_000) < round(probability * 1_000_000)
