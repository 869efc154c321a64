"""Formats times and other values for people."""

from typing import Any, Final

from harrow.cluster_model.sim.virtual_time import US_PER_MS, US_PER_SECOND

_SECONDS_PER_MINUTE: Final = 60
_MINUTES_PER_HOUR: Final = 60
_SHOWN_AS_SECOND_US: Final = 999_500
"""Three digits of a longer time round to a second."""


def duration_text(us: int) -> str:
    """Format a duration in microseconds exactly, as in ``1.204 s``."""
    if us < 0:
        return f"-{duration_text(-us)}"
    if 0 < us < US_PER_MS:
        return f"{us} us"
    if 0 < us < US_PER_SECOND:
        return f"{_decimal(us, US_PER_MS)} ms"
    return f"{_decimal(us, US_PER_SECOND)} s"


def milliseconds(time_us: int) -> int | float:
    """Return a time in milliseconds for JSON, as a whole number if possible."""
    return time_us // US_PER_MS if time_us % US_PER_MS == 0 else time_us / US_PER_MS


def rough_duration_text(us: int) -> str:
    """Format a duration with at most two units, as in ``3 h 4 min``."""
    seconds = us / US_PER_SECOND
    if us < _SHOWN_AS_SECOND_US:
        return f"{us / US_PER_MS:.3g} ms"
    if seconds < _SECONDS_PER_MINUTE:
        return f"{seconds:.3g} s"
    minutes, seconds_left = divmod(round(seconds), _SECONDS_PER_MINUTE)
    hours, minutes_left = divmod(minutes, _MINUTES_PER_HOUR)
    if hours:
        return f"{hours} h {minutes_left} min" if minutes_left else f"{hours} h"
    return f"{minutes} min {seconds_left} s" if seconds_left else f"{minutes} min"


def value_text(value: Any) -> str:
    """Format a value of a setting, a switch or a trace event, as a campaign writes it."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (tuple, list)):
        return "[" + ", ".join(value_text(part) for part in value) + "]"
    return str(value)


def fields_text(fields: tuple[tuple[str, Any], ...]) -> str:
    """Format named values on one line, as in ``broker=1 kind=process``."""
    return " ".join(f"{name}={value_text(value)}" for name, value in fields)


def _decimal(amount: int, unit: int) -> str:
    whole, rest = divmod(amount, unit)
    if not rest:
        return str(whole)
    digits = str(rest).rjust(len(str(unit)) - 1, "0").rstrip("0")
    return f"{whole}.{digits}"
