"""Defines when faults strike: at a time, on a condition, periodically or at random."""

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
    """The faults strike once: at a virtual time, or at a random time from a range."""

    at_us: DurationRange = described("Once, at this virtual time, or at a random one from a range.", key="at")


@dataclass(frozen=True, slots=True, kw_only=True)
class When:
    """The faults strike each time that a condition becomes true, at most ``times`` times."""

    condition: ConditionField = described("Each time that this becomes true.", key="when")
    times: Count = described("With `when`: the most times that it strikes; by default 1.", default=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Every:
    """The faults strike periodically, from ``start_us`` until before ``stop_us``."""

    period_us: Duration = described("Periodically.", key="every", minimum=1)
    start_us: Duration = described(_START, default=0, key="from")
    stop_us: Duration = described(_STOP, key="until", implied=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """The faults strike at random times, from ``start_us`` until before ``stop_us``.

    The mean time from one strike to the next is ``mean_us``.
    """

    mean_us: fields.Rate = described("At random, this often on average.", key="rate")
    start_us: Duration = described(_START, default=0, key="from")
    stop_us: Duration = described(_STOP, key="until", implied=True)


Timing = At | When | Every | Rate

TIMINGS: Final[dict[str, type[Timing]]] = {"at": At, "when": When, "every": Every, "rate": Rate}
"""The timings, by the key in a campaign that says which timing an entry has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Injection:
    """An entry of a campaign's `faults`: a timing, and the faults that strike.

    If there are several faults, one is drawn for each strike, unless the entry is ``serial``.
    """

    timing: Timing = described("When the faults strike.", key="")
    faults: tuple[Fault, ...] = described("The faults.", key="")
    together: Count = described(
        "How many strike at the same time, each chosen separately; by default 1.", default=1
    )
    # Whether each strike is a series: all faults in turn, each when the previous one has ended.
    serial: bool = described("Whether all faults strike.", default=False, key="", counts_if_set=True)
    repeat: Count = described(
        "How many times, each when the one before has ended; with `serial`, how many rounds. By default one.",
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
    line: int = described("The line of the entry in the file.", default=0, key="")

    def is_sequence(self) -> bool:
        """Return whether each strike is several strikes in turn, of different faults or of one."""
        return self.serial or self.repeat > 1
