"""Rates and counts for people."""


def interval(low: float, high: float) -> str:
    return f"[{percent(low)[:-1]}, {percent(high)[:-1]}]"


def percent(rate: float) -> str:
    """Return a rate in percent, with more digits for a small rate."""
    hundred = rate * 100
    if hundred in {0, 100}:
        return f"{hundred:.0f}%"
    if hundred >= 99.95:
        return ">99.9%"  # "100.0%" would be wrong.
    if hundred >= 1:
        return f"{hundred:.1f}%"
    return f"{hundred:.2g}%" if hundred >= 0.0001 else f"{hundred:.1e}%"


def grouped(number: int) -> str:
    """Return a number with its thousands separated by blanks."""
    return f"{number:,}".replace(",", " ")


def times(number: int) -> str:
    """Return ``once``, or a number as in ``2 times``."""
    return "once" if number == 1 else f"{grouped(number)} times"
