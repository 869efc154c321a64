"""Seeds, as people write them."""

import re
import sys
from typing import Final

_SEED_END: Final = 2**63


class SeedError(ValueError):
    """No seed, or no range of seeds."""


def parse_seeds(text: str) -> range:
    """Return the seeds of ``A..B``; B is excluded, and ``N`` stands for ``0..N``.

    Raises:
        SeedError: it is not of that form, or there is no seed in it.

    """
    match = re.fullmatch(r"(?:(\d+)\.\.)?(\d+)", text.strip())
    if match is None:
        raise SeedError(f"{text!r} is not of the form A..B or N, such as 0..100 or 100")
    first, end = int(match[1] or 0), int(match[2])
    if first >= end:
        raise SeedError(f"there is no seed in {text}: A..B begins with A and ends before B")
    found = range(check_seed(first), check_seed(end - 1) + 1)
    if end - first > sys.maxsize:
        raise SeedError(f"{text} are more seeds than can be counted: {sys.maxsize} at most")
    return found


def check_seed(seed: int) -> int:
    """Return *seed* if a run can have it.

    Raises:
        SeedError: no run can.

    """
    if not 0 <= seed < _SEED_END:
        raise SeedError("a seed is a whole number from 0 to 2^63 - 1")
    return seed
