"""Shrinks a failing run to a small campaign that fails in the same way.

The run is first written as a plan that leaves nothing to draw (`explicit_plan`). Then the search
runs simpler plans. If one still fails in the same way for the same cause (`failure`), it becomes
the current plan. This is repeated until no simpler plan fails. The largest removals come first:
everything after the failure, faults, records, clients, brokers. Then come simpler settings, faults,
times and names. By a fixed order, each current plan is simpler than the one before, so the search
ends. A budget can end it earlier.

What is removed first decides what can be removed later. So if many faults are left, the search is
repeated with the faults in another order, and the smallest of all results is the best.

Most plans do not fail. So while one core runs a plan, other cores run the next ones (`Workers`). Of
the plans that fail, the first in order becomes the current plan, and later runs do not count.
"""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from operator import itemgetter
from typing import Final

from harrow.campaigns.language.plan import Plan
from harrow.campaigns.language.plan_file import UnwritablePlanError, campaign_text
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import run_plan
from harrow.campaigns.run.workers.workers import Run, Workers
from harrow.campaigns.search import simpler_cluster, simpler_schedule
from harrow.campaigns.search.delta_debugging import fewest
from harrow.campaigns.search.explicit_plan import explicit_plans, sends_of, with_named_controllers
from harrow.campaigns.search.failure import Failure, failures
from harrow.campaigns.search.fewer_records import with_few_records
from harrow.campaigns.search.timeline import timeline, with_timeline
from harrow.checks.finding import INCONCLUSIVE, Finding
from harrow.cluster_model.lazy_dataclass import dataclass, replace
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND
from harrow.faults.actions import Send

RUNS_MAX: Final = 20_000
_NAME_MAX: Final = 100
# If a simpler plan has many times as many events, its run is probably caught in a loop.
_EVENTS_FACTOR: Final = 4
_EVENTS_MIN: Final = 10_000
_RECOVERY_US: Final = 60 * US_PER_SECOND
_OTHER_SEEDS: Final = (0, 1, 2)
"""Seeds that are also tried while latencies are random: a removal changes the other latencies."""

_FAULTS_FEW: Final = 4
"""If no more faults than this are left, no other order is tried."""

_Key = tuple[str, int]
"""The digest of a plan, and a seed."""

_Order = Callable[[range], Sequence[int]]
_ORDERS: Final[tuple[_Order, ...]] = (
    lambda places: places,
    lambda places: places[::-1],
    lambda places: [*places[::2], *places[1::2]],
    lambda places: [*places[1::2], *places[::2]],
)
"""Orders in which to remove faults: from the first, from the last, and every other fault first."""


class NothingToShrinkError(ValueError):
    """A run does not have the requested failure. ``status`` is its verdict."""

    def __init__(self, result: RunResult, names: Collection[str]) -> None:
        self.status = result.verdict.status
        super().__init__(_why_nothing_to_shrink(result, names))


class OutOfBudgetError(Exception):
    """A search has used up its time or its runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shrunk:
    """A failing run, and the finding that is being shrunk."""

    plan: Plan
    seed: int
    result: RunResult
    finding: Finding

    def size(self) -> tuple[int, int]:
        """Return the number of faults in the plan, and the number of records that it sends."""
        moments = timeline(self.plan)
        records = sum(isinstance(m.action, Send) for m in moments)
        if _generates(self.plan):
            records = sum(1 for _ in sends_of(self.result))
        return sum(m.is_fault() for m in moments), records


@dataclass(frozen=True, slots=True)
class _Attempt:
    """A run of a simpler plan: its result and its finding, if it fails in the same way.

    ``is_over_limit`` tells whether the run was stopped because it had too many events.
    """

    is_over_limit: bool = False
    failure: tuple[RunResult, Finding] | None = None


def _try(plan: Plan, seed: int, workers: Workers, *, failure: Failure, events_max: int) -> _Attempt:
    limit = min(plan.events_limit, events_max)
    result = run_plan(replace(plan, events_limit=limit), seed, check=workers.check)
    if result.events >= limit:
        return _Attempt(is_over_limit=True)
    finding = failure.shown_by(result)
    if finding is None or result.verdict.status == INCONCLUSIVE or not _is_writable(plan):
        return _Attempt()
    return _Attempt(failure=(result, finding))


class Shrinker:
    """A search for a smaller failure. ``best`` is the smallest so far."""

    def __init__(
        self,
        plan: Plan,
        seed: int,
        *,
        names: Collection[str] = (),
        runs_max: int = RUNS_MAX,
        time_max_s: float | None = None,
        on_run: Callable[[int, Shrunk], None] = lambda _runs, _best: None,
        workers: Workers | None = None,
    ) -> None:
        """Run the plan, and pick the failure to shrink.

        With *names*, a failure with one of these names is picked: an anomaly of a rule, even if it
        is permitted, or a missed bound such as `service.outage`.

        Raises:
            NothingToShrinkError: Nothing is broken or missed, or there is no such failure.

        """
        self._runs_max = runs_max
        self._until_s = None if time_max_s is None else time.monotonic() + time_max_s
        self._on_run = on_run
        self.workers = workers or Workers()
        self._tried: set[_Key] = set()
        self._accepted: set[_Key] = set()
        self._over_limit: set[_Key] = set()
        self._results: list[Shrunk] = []
        self.runs = 1
        self.complete = False
        result = run_plan(plan, seed)
        shown = failures(result, permitted=bool(names))
        candidates = [failure for failure in shown if not names or failure.name in names]
        if not candidates or result.verdict.status == INCONCLUSIVE:
            raise NothingToShrinkError(result, names)
        self.failure = candidates[0]
        self.original = Shrunk(plan=plan, seed=seed, result=result, finding=shown[self.failure])
        self._current = self.original
        self._events_max = max(_EVENTS_MIN, _EVENTS_FACTOR * result.events)

    @property
    def best(self) -> Shrunk:
        return min((*self._results, self._current), key=Shrunk.size) if self._results else self._current

    def run(self) -> Shrunk:
        """Search until no simpler plan fails or the budget is used up, and return the best."""
        try:
            self._make_explicit()
            self._cut_after_failure()
            self._search_in_each_order()
            self.complete = True
        except OutOfBudgetError:
            pass
        return self.best

    # The phases

    def _make_explicit(self) -> None:
        seed = self.original.seed
        name = f"{self.original.plan.campaign}-seed-{seed}"[-_NAME_MAX:].lstrip("._-")
        plans = (replace(plan, campaign=name) for plan in explicit_plans(self.original.result))
        self._accept((plan, seed) for plan in plans)
        self._accept([(with_named_controllers(self._current.plan, self._current.result), seed)])
        plan = self._current.plan
        if self._current.result.simulated_us > plan.duration_us + _RECOVERY_US < plan.recovery_limit_us:
            # Otherwise nearly all the time would be spent on clusters that never recover, for which
            # a run waits ten minutes.
            self._accept([(replace(plan, recovery_limit_us=_RECOVERY_US), seed)])

    def _search_in_each_order(self) -> None:
        start, events_max = self._current, self._events_max
        for order in _ORDERS:
            self._restart(start, events_max)
            self._until_nothing_is_simpler(order)
            self._simplify(simpler_schedule.with_end_in_script, checked=True)
            self._results.append(self._current)
            if self._current.size()[0] <= _FAULTS_FEW:
                break

    def _restart(self, start: Shrunk, events_max: int) -> None:
        self._current, self._events_max = start, events_max
        # A plan that failed in another order can become the current plan in this one too, and the
        # limit of events is higher again. Plans that passed are not tried again.
        self._tried -= self._accepted | self._over_limit

    def _until_nothing_is_simpler(self, order: _Order) -> None:
        before: tuple[Plan, int] | None = None
        while before != (self._current.plan, self._current.seed):
            before = self._current.plan, self._current.seed
            if _generates(self._current.plan):
                # An explicit plan may fail in the same way now, although a larger one did not.
                self._accept((plan, self._current.seed) for plan in explicit_plans(self._current.result))
            self._simplify(simpler_cluster.with_fixed_latency)
            self._remove(order, faults=True)
            self._simplify(simpler_schedule.with_plainer_faults)
            self._accept_any(with_few_records(self._current.plan, self._current.finding))
            self._remove(order, faults=True)
            self._remove(faults=False)
            self._simplify(simpler_schedule.with_fewer_clients, checked=True)
            self._simplify(
                lambda plan: simpler_cluster.with_one_partition(plan, self._current.finding.partition),
                checked=True,
            )
            self._simplify(simpler_cluster.with_fewer_replicas, checked=True)
            self._simplify(simpler_cluster.with_fixed_latency)
            self._remove(order, faults=True)
            self._remove(faults=False)
            # If it fails with the default seed, the campaign needs no `--seed`.
            self._accept([(self._current.plan, 0)])
            self._simplify(simpler_cluster.with_fewer_settings, checked=True)
            self._simplify(simpler_cluster.with_defaults, checked=True)
            self._simplify(simpler_schedule.with_plainer_faults)
            self._simplify(simpler_schedule.with_crashes)
            self._simplify(simpler_schedule.with_rounder_times)
            self._simplify(simpler_cluster.with_plain_numbers, checked=True)
            self._simplify(simpler_schedule.with_plain_values)

    def _cut_after_failure(self) -> None:
        """Leave out everything after the last event of the finding's chain."""
        times = [link.at_us for link in self._current.finding.chain if link.at_us is not None]
        if times:
            plan = self._current.plan
            before_failure = [moment for moment in timeline(plan) if moment.at_us <= max(times)]
            self._accept([(with_timeline(plan, before_failure), self._current.seed)])

    def _remove(self, order: _Order = _ORDERS[0], *, faults: bool) -> None:
        """Leave out faults, or else everything but faults."""
        moments = timeline(self._current.plan)
        others = [moment for moment in moments if moment.is_fault() != faults]
        parts = [moment for moment in moments if moment.is_fault() == faults]

        def first_failing(subsets: Iterable[list[int]]) -> int | None:
            plan, seeds = self._current.plan, self._seeds(self._current.plan)
            kept = ([parts[place] for place in sorted(subset)] for subset in subsets)
            plans = (with_timeline(plan, [*others, *moments]) for moments in kept)
            place = self._first_failing((plan, seed) for plan in plans for seed in seeds)
            return None if place is None else place // len(seeds)

        fewest(order(range(len(parts))), first_failing)

    # Trying

    def _simplify(self, simpler: Callable[[Plan], Iterable[Plan]], *, checked: bool = False) -> None:
        """Move to a simpler plan that fails in the same way, as often as there is one.

        With *checked*, a plan that no campaign file can express is not run, because the model may
        not support it.
        """
        while self._accept_any(simpler(self._current.plan), checked=checked):
            pass

    def _accept_any(self, plans: Iterable[Plan], *, checked: bool = False) -> bool:
        runs = ((plan, seed) for plan in plans for seed in self._seeds(plan))
        return self._accept(runs, checked=checked)

    def _seeds(self, plan: Plan) -> list[int]:
        """Return the current seed and, if latencies are random, other seeds."""
        network = plan.cluster.network
        others = _OTHER_SEEDS if network.latency_min_us != network.latency_max_us else ()
        return [self._current.seed, *(seed for seed in others if seed != self._current.seed)]

    def _accept(self, runs: Iterable[Run], *, checked: bool = False) -> bool:
        """Move to the first run that fails in the same way, and return whether there is one."""
        return self._first_failing(runs, checked=checked) is not None

    def _first_failing(self, runs: Iterable[Run], *, checked: bool = False) -> int | None:
        """Move to the first run that fails in the same way, and return its place among *runs*."""
        run_one = partial(_try, failure=self.failure, events_max=self._events_max)
        untried = self._untried(runs, checked=checked)
        with closing(self.workers.ahead(run_one, untried, itemgetter(2))) as begun:
            for (place, key, _), run in begun:
                assert run is not None
                self._tried.add(key)
                is_late = self._until_s is not None and time.monotonic() > self._until_s
                if is_late or self.runs >= self._runs_max:
                    raise OutOfBudgetError
                self.runs += 1
                self._on_run(self.runs, self.best)
                attempt = run.result()
                if attempt.is_over_limit:
                    self._over_limit.add(key)
                if attempt.failure is not None:
                    self._accepted.add(key)
                    result, finding = attempt.failure
                    self._current = Shrunk(plan=run.plan, seed=run.seed, result=result, finding=finding)
                    events_max = max(_EVENTS_MIN, _EVENTS_FACTOR * result.events)
                    self._events_max = min(self._events_max, events_max)
                    return place
        return None

    def _untried(self, runs: Iterable[Run], *, checked: bool) -> Iterator[tuple[int, _Key, Run]]:
        """Yield each run that was not tried yet, with its place and its key."""
        keys: set[_Key] = set()
        for place, (plan, seed) in enumerate(runs):
            key = plan.digest(), seed
            is_current = plan == self._current.plan and seed == self._current.seed
            if not (is_current or key in keys or key in self._tried) and (not checked or _is_writable(plan)):
                keys.add(key)
                yield place, key, (plan, seed)


def _why_nothing_to_shrink(result: RunResult, names: Collection[str]) -> str:
    rules = dict.fromkeys(failure.name for failure in failures(result, permitted=True))
    verdict = f"the verdict is {result.verdict.status}"
    if names:
        others = f"; there is {', '.join(rules)}" if rules else ""
        return f"{', '.join(names)} has no finding, {verdict}{others}"
    text = f"no promise is broken, {verdict}"
    if rules:
        text += f"; `--rule {next(iter(rules))}` shrinks what is permitted"
    elif result.missed:
        text += (
            f", and an expectation is missed: {result.missed[0].message}. A smaller campaign misses more of its "
            "expectations, so no rule tells which one is right: shrink it by hand"
        )
    return text


def _is_writable(plan: Plan) -> bool:
    try:
        campaign_text(plan)
    except UnwritablePlanError:
        return False
    return True


def _generates(plan: Plan) -> bool:
    """Return whether producers send records that the plan does not list."""
    return any(producer.interval_us is not None for producer in plan.producers)
