"""When a fault strikes: at a time, on a condition, periodically or at random."""

from dataclasses import dataclass
from typing import Final

from harrow.cluster_model import fields
from harrow.cluster_model.fields import Count, Duration, DurationRange, described
from harrow.faults.condition import ConditionField
from harrow.faults.fault import Fault

_START: Final = "With `every` and `rate`: from when on; by default 0s."
_STOP: Final = "With `every` and `rate`: until when; by default the workload's end."


@dataclass(frozen=True, slots=True, kw_only=True)
class At:
    """Once, at this virtual time, or at one that is drawn from a range."""

    at_us: DurationRange = described("Once, at this virtual time; of a range one is drawn.", key="at")


@dataclass(frozen=True, slots=True, kw_only=True)
class When:
    """Each time the condition comes to hold, ``times`` times at the most."""

    condition: ConditionField = described("Each time this comes to hold.", key="when")
    times: Count = described("With `when`: how many times at the most; by default 1.", default=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Every:
    """Periodically, from ``start_us`` on and before ``stop_us``."""

    period_us: Duration = described("Periodically.", key="every", minimum=1)
    start_us: Duration = described(_START, default=0, key="from")
    stop_us: Duration = described(_STOP, key="until", implied=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """At random, on average once in ``mean_us``, from ``start_us`` on and before ``stop_us``."""

    mean_us: fields.Rate = described("At random, this often on average.", key="rate")
    start_us: Duration = described(_START, default=0, key="from")
    stop_us: Duration = described(_STOP, key="until", implied=True)


Timing = At | When | Every | Rate

TIMINGS: Final[dict[str, type[Timing]]] = {"at": At, "when": When, "every": Every, "rate": Rate}
"""The timings by the key of a campaign that only they have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Injection:
    """An entry of `faults`: when, and which fault."""

    # What goes wrong together in production mostly has one cause. Of several faults one is drawn each time.
    timing: Timing = described("When.", key="")
    faults: tuple[Fault, ...] = described("The faults.", key="")
    together: Count = described("How many strike at once, each drawn anew; by default 1.", default=1)
    # One after the other, each when the one before is over; else one of them is drawn.
    serial: bool = described("Whether all strike.", default=False, key="", counts_if_set=True)
    repeat: Count = described(
        "How many times, each when the one before is over; of `serial`, how many rounds. By default once.",
        default=1,
        counts_if_set=True,
    )
    pause: DurationRange = described(
        "With `serial` or `repeat`: how long between the end of one and the next; by default 0s.",
        default=(0, 0),
        counts_if_set=True,
    )
    stop_when: ConditionField | None = described(
        "Strikes no more once this holds when it would strike.", default=None, counts_if_set=True
    )
    line: int = described("Where it stands in the file.", default=0, key="")

    def is_sequence(self) -> bool:
        """Return whether several strike one after the other each time."""
        return self.serial or self.repeat > 1
