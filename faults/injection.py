"""The timing of faults: at a time, on a condition, periodically or at random."""

from typing import Final

from harrow.cluster_model import fields
from harrow.cluster_model.fields import Count, Duration, DurationRange, described
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.faults.condition import ConditionField
from harrow.faults.fault import Fault

_START: Final = "With `every` and `rate`: when it begins; by default 0s."
_STOP: Final = "With `every` and `rate`: when it ends; by default with the workload."


@dataclass(frozen=True, slots=True, kw_only=True)
class At:
    """Once, at a virtual time or at a random one from a range."""

    at_us: DurationRange = described("Once, at this virtual time, or at a random one from a range.", key="at")


@dataclass(frozen=True, slots=True, kw_only=True)
class When:
    """Each time that a condition becomes true, at most ``times`` times."""

    condition: ConditionField = described("Each time that this becomes true.", key="when")
    times: Count = described("With `when`: the most times that it strikes; by default 1.", default=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Every:
    """Periodically, from ``start_us`` until before ``stop_us``."""

    period_us: Duration = described("Periodically.", key="every", minimum=1)
    start_us: Duration = described(_START, default=0, key="from")
    stop_us: Duration = described(_STOP, key="until", implied=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """At random, on average once in ``mean_us``, from ``start_us`` until before ``stop_us``."""

    mean_us: fields.Rate = described("At random, this often on average.", key="rate")
    start_us: Duration = described(_START, default=0, key="from")
    stop_us: Duration = described(_STOP, key="until", implied=True)


Timing = At | When | Every | Rate

TIMINGS: Final[dict[str, type[Timing]]] = {"at": At, "when": When, "every": Every, "rate": Rate}
"""The timings, by the campaign key that marks each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Injection:
    """An entry of `faults`: a timing, and the faults that strike."""

    # One of several faults is drawn each time.
    timing: Timing = described("When.", key="")
    faults: tuple[Fault, ...] = described("The faults.", key="")
    together: Count = described(
        "How many strike at the same time, each chosen separately; by default 1.", default=1
    )
    # All in turn, each when the one before has ended; else one of them is drawn.
    serial: bool = described("Whether all strike.", default=False, key="", counts_if_set=True)
    repeat: Count = described(
        "How many times, each when the one before has ended; with `serial`, how many rounds. By default once.",
        default=1,
        counts_if_set=True,
    )
    pause: DurationRange = described(
        "With `serial` or `repeat`: how long between the end of one fault and the next; by default 0s.",
        default=(0, 0),
        counts_if_set=True,
    )
    stop_when: ConditionField | None = described(
        "A condition that is checked before each strike; once it holds, the entry ends.",
        default=None,
        counts_if_set=True,
    )
    line: int = described("Its line in the file.", default=0, key="")

    def is_sequence(self) -> bool:
        """Return whether several faults strike in turn each time."""
        return self.serial or self.repeat > 1
