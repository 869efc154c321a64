"""How single values are written in a campaign: the way back from `campaigns.literals`."""

from typing import Final

from campaigns.literals import LONGEST_US
from campaigns.units import duration_text as spaced_duration_text
from campaigns.units import value_text
from cluster_model.settings import SETTINGS, Value, scopes_of
from cluster_model.virtual_time import US_PER_MS, US_PER_SECOND

_MINUTE_US: Final = 60 * US_PER_SECOND
_HOUR_US: Final = 60 * _MINUTE_US
_PERIODS: Final = (("s", US_PER_SECOND), ("m", _MINUTE_US), ("h", _HOUR_US))

# Beyond it nobody would say so: 1/3.7s is plainer than 973/h.
_PLAIN_COUNT_MAX: Final = {"s": 10_000, "m": 120, "h": 120}


def duration_text(us: int) -> str:
    """Return a time of *us* microseconds exactly, as in ``1.5s``, ``250ms`` or ``10m``."""
    if us >= _HOUR_US and us % _HOUR_US == 0:
        return f"{us // _HOUR_US}h"
    # A minute is 60s, as people say who set timeouts.
    if us > _MINUTE_US and us % _MINUTE_US == 0:
        return f"{us // _MINUTE_US}m"
    return spaced_duration_text(us).replace(" ", "")


def duration_range_text(duration: tuple[int, int]) -> str:
    """Return a range such as ``1s..10s``, or the one time that it consists of."""
    low, high = duration
    return duration_text(low) if low == high else f"{duration_text(low)}..{duration_text(high)}"


def rate_text(interval_us: int) -> str:
    """Return the rate that has this mean interval, as in ``10/s``, ``12/m`` or ``1/7s``."""
    for unit, period_us in _PERIODS:
        count = round(period_us / interval_us)
        if 0 < count <= _PLAIN_COUNT_MAX[unit] and round(period_us / count) == interval_us:
            return f"{count}/{unit}"
    return f"1/{duration_text(interval_us)}"


def probability_text(probability: float) -> str:
    """Return a probability with all its digits; `1.0e-07`, for YAML knows no number without a point."""
    digits, e, exponent = repr(probability).partition("e")
    return f"{digits if '.' in digits or not e else digits + '.0'}{e}{exponent}"


def setting_text(name: str, value: Value) -> str:
    """Return a setting's value: times as durations, where these are shorter to say."""
    scopes = scopes_of(name)
    kind = SETTINGS[scopes[0], name].kind if scopes else ""
    if isinstance(value, int) and not isinstance(value, bool) and kind in ("ms", "seconds"):
        us = value * (US_PER_MS if kind == "ms" else US_PER_SECOND)
        least_us = US_PER_SECOND if kind == "ms" else 2 * _MINUTE_US
        # What is longer than a day stands for never, as Kafka's largest number does.
        if least_us <= us <= LONGEST_US:
            text = duration_text(us)
            return text if kind == "ms" or not text.endswith("s") else str(value)
    return value_text(value)
