"""Virtual time: whole microseconds since the campaign's zero."""

from typing import Final

US_PER_MS: Final = 1_000
US_PER_SECOND: Final = 1_000_000


def ms(milliseconds: int) -> int:
    """Return *milliseconds* in microseconds, the unit of the virtual clock."""
    return milliseconds * US_PER_MS


def format_us(duration_us: int) -> str:
    """Return a duration as a person writes it in a campaign: ``500ms``, ``2s``, ``1m``."""
    if duration_us == 0:
        return "0s"
    for unit_us, unit in ((60 * US_PER_SECOND, "m"), (US_PER_SECOND, "s"), (US_PER_MS, "ms")):
        if duration_us % unit_us == 0:
            return f"{duration_us // unit_us}{unit}"
    return f"{duration_us / US_PER_MS:g}ms"
