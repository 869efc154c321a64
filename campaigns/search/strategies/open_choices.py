"""Lets Hypothesis decide what a campaign leaves open, in place of a seed."""

from typing import Final

from hypothesis import strategies as st

from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.swarm import draw as draw_open
from harrow.campaigns.search.strategies.faults import decided
from harrow.campaigns.search.strategies.plans import injections
from harrow.cluster_model.lazy_dataclass import replace
from harrow.cluster_model.sim.choices import Stream
from harrow.cluster_model.sim.virtual_time import US_PER_MS
from harrow.faults.fault import Fault
from harrow.faults.injection import Injection, Rate

STRIKES_MAX: Final = 20


class DrawnStream(Stream):
    """A stream of choices that Hypothesis makes.

    The choice 0 is the simplest: the lower end of a range, or the first item of a list.
    """

    __slots__ = ("_draw",)

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw

    def below(self, bound: int) -> int:
        return self._draw(st.integers(0, bound - 1))


@st.composite
def drawn_from(draw: st.DrawFn, plan: Plan) -> Plan:
    """Draw a plan that leaves nothing open from one that leaves choices to a seed.

    Random faults become a list of strikes, each with a time, a broker and a duration, so that
    Hypothesis can leave out the strikes that are not needed.
    """
    concrete = plan if plan.swarm is None else draw_open(plan, DrawnStream(draw)).plan
    injections_drawn: list[Injection] = []
    for injection in concrete.faults:
        if isinstance(injection.timing, Rate):
            injections_drawn += draw(_strikes(injection, injection.timing, concrete))
        else:
            injections_drawn.append(injection)
    return replace(concrete, faults=tuple(injections_drawn))


@st.composite
def _strikes(draw: st.DrawFn, injection: Injection, rate: Rate, plan: Plan) -> tuple[Injection, ...]:
    """Draw strikes in place of a rate: up to about twice the expected number, within a limit."""
    brokers = [broker.id for broker in plan.cluster.brokers]
    length_us = rate.stop_us - rate.start_us
    most = min(STRIKES_MAX, 1 + 2 * length_us // rate.mean_us)
    times = st.integers(0, max(0, length_us - 1) // US_PER_MS)
    fault_strategy = st.one_of([decided(fault, brokers) for fault in injection.faults])
    together = st.lists(fault_strategy, min_size=1, max_size=injection.together)
    strikes: list[tuple[int, Fault]] = [
        (rate.start_us + at_ms * US_PER_MS, fault)
        for at_ms, faults in draw(st.lists(st.tuples(times, together), max_size=most))
        for fault in faults
    ]
    return injections(strikes)
