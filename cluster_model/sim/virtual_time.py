"""Defines virtual time: whole microseconds since time 0 of a campaign."""

from typing import Final

US_PER_MS: Final = 1_000
US_PER_SECOND: Final = 1_000_000


def ms(milliseconds: int) -> int:
    """Return *milliseconds* in microseconds, the unit of the virtual clock."""
    return milliseconds * US_PER_MS
