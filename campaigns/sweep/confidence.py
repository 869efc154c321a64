"""Confidence in a sampled rate: the score interval of Wilson (1927), the bound without hits."""

from math import sqrt
from typing import Final

_Z_95: Final = 1.959963984540054
"""The quantile of the normal distribution that leaves 2.5% on each side."""


def wilson(hits: int, tries: int) -> tuple[float, float]:
    """Return the 95% interval of a rate, from 0 to 1; (0, 1) without any tries.

    It holds for rare events too: no hit in 20 000 tries gives an upper end of 0.02%.
    """
    if tries == 0:
        return 0.0, 1.0
    rate = hits / tries
    square = _Z_95 * _Z_95
    divisor = 1 + square / tries
    middle = (rate + square / (2 * tries)) / divisor
    half = _Z_95 * sqrt(rate * (1 - rate) / tries + square / (4 * tries * tries)) / divisor
    low = 0.0 if hits == 0 else max(0.0, middle - half)
    high = 1.0 if hits == tries else min(1.0, middle + half)
    return low, high


def bound_without_hits(tries: int) -> float:
    """Return the rate that is too high, with 95% confidence, if no try was a hit.

    At that rate, or a higher one, as many tries would miss with a probability of at most 5%. That
    is the exact one-sided bound; for many tries it is close to 3/tries ("rule of three").
    """
    return 1.0 - 0.05 ** (1 / tries) if tries else 1.0
