"""When a fault strikes: at a time, on a condition, periodically or at random."""

from dataclasses import dataclass

from faults.condition import Condition
from faults.fault import Fault


@dataclass(frozen=True, slots=True, kw_only=True)
class At:
    """Once, at this virtual time."""

    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class When:
    """Each time the condition comes to hold, ``times`` times at the most."""

    condition: Condition
    times: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Every:
    """Periodically, from ``start_us`` on and before ``stop_us``."""

    period_us: int
    start_us: int
    stop_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """At random, on average once in ``mean_us``, from ``start_us`` on and before ``stop_us``."""

    mean_us: int
    start_us: int
    stop_us: int


Timing = At | When | Every | Rate


@dataclass(frozen=True, slots=True, kw_only=True)
class Injection:
    """One entry under ``faults:``. With several faults, one of them is drawn each time.

    ``together`` is how many strike at once, each drawn anew: what goes wrong together in
    production mostly has one cause.
    """

    timing: Timing
    faults: tuple[Fault, ...]
    together: int = 1
    line: int = 0
