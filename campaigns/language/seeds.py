"""Parses seeds and ranges of seeds."""

import re
import sys
from typing import Final

_SEED_END: Final = 2**63


class SeedError(ValueError):
    """Text that is not a seed, or not a range of seeds."""


def parse_seeds(text: str) -> range:
    """Parse ``A..B``, which excludes B, or ``N``, which means ``0..N``.

    Raises:
        SeedError: The text has neither form, or the range is empty or too large.

    """
    match = re.fullmatch(r"(?:(\d+)\.\.)?(\d+)", text.strip())
    if match is None:
        raise SeedError(f"{text!r} is not of the form A..B or N, such as 0..100 or 100")
    first, end = int(match[1] or 0), int(match[2])
    if first >= end:
        raise SeedError(f"there is no seed in {text}: A..B begins with A and ends before B")
    seeds = range(check_seed(first), check_seed(end - 1) + 1)
    if end - first > sys.maxsize:
        raise SeedError(f"{text} has too many seeds: at most {sys.maxsize}")
    return seeds


def check_seed(seed: int) -> int:
    """Return *seed* if it is in range.

    Raises:
        SeedError: *seed* is out of range.

    """
    if not 0 <= seed < _SEED_END:
        raise SeedError("a seed is a whole number from 0 to 2^63 - 1")
    return seed
