"""From a failing run to a small campaign that fails in the same way.

The run is first written down as a plan in which nothing is left to draw (`explicit_plan`).
Then simpler plans are tried, each by running it: one that still breaks the same rule for the
same cause (`signature`) takes the place of the one before, until nothing simpler fails. What
removes most comes first: what happens after the failure, faults, records, clients, brokers;
then what is merely plainer: settings, faults, times, names. A plan is only ever replaced by
one that is simpler in a fixed order, so this ends; a budget ends it earlier.

What goes first decides what can go later, so where many faults are left the search is made
again with the faults in another order, and the smallest that any of them came to is the best.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from campaigns.delta_debugging import fewest
from campaigns.explicit_plan import explicit_plans, with_named_controllers
from campaigns.fewer_records import with_few_records
from campaigns.plan import Plan, Send
from campaigns.plan_file import UnwritablePlanError, campaign_text
from campaigns.run_result import RunResult
from campaigns.runner import run_plan
from campaigns.signature import Signature, same_failure, signatures
from campaigns.simpler_cluster import (
    with_defaults,
    with_fewer_replicas,
    with_fewer_settings,
    with_fixed_latency,
    with_one_partition,
    with_plain_numbers,
)
from campaigns.simpler_schedule import (
    with_crashes,
    with_end_in_script,
    with_fewer_clients,
    with_plain_values,
    with_plainer_faults,
    with_rounder_times,
)
from campaigns.timeline import Moment, timeline, with_timeline
from checks.finding import INCONCLUSIVE, Finding
from cluster_model.virtual_time import US_PER_SECOND

RUNS_MAX: Final = 20_000
_NAME_MAX: Final = 100
# A smaller plan that takes many more events has fallen into a loop of its own.
_EVENTS_FACTOR: Final = 4
_EVENTS_MIN: Final = 10_000
_RECOVERY_US: Final = 60 * US_PER_SECOND
_OTHER_SEEDS: Final = (0, 1, 2)
"""Tried too while the network draws: what is taken away changes how the dice fall for the rest."""


_FAULTS_FEW: Final = 4
"""With so many faults left nobody looks for fewer by another way."""

_Order = Callable[[range], Sequence[int]]
_ORDERS: Final[tuple[_Order, ...]] = (
    lambda places: places,
    lambda places: places[::-1],
    lambda places: [*places[::2], *places[1::2]],
    lambda places: [*places[1::2], *places[::2]],
)
"""In which order faults are left out: from the first, from the last, every other one."""


class NothingToShrinkError(ValueError):
    """A run without the failure that was asked for; ``status`` is its verdict."""

    def __init__(self, result: RunResult, rule: str | None) -> None:
        """Say what came out instead, and what could be shrunk."""
        self.status = result.verdict.status
        super().__init__(_nothing(result, rule))


class OutOfBudgetError(Exception):
    """The time or the runs that a search may take are used up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shrunk:
    """A failing run, and what of it is the failure that is looked at."""

    plan: Plan
    seed: int
    result: RunResult
    finding: Finding

    def size(self) -> tuple[int, int]:
        """Return how many faults and how many records a plan names."""
        moments = timeline(self.plan)
        return sum(m.is_fault() for m in moments), sum(isinstance(m.action, Send) for m in moments)


class Shrinker:
    """A search for a smaller failure. ``best`` is the smallest so far, at any time."""

    def __init__(
        self,
        plan: Plan,
        seed: int,
        *,
        rule: str | None = None,
        runs_max: int = RUNS_MAX,
        time_max_s: float | None = None,
        on_run: Callable[[int, Shrunk], None] = lambda _runs, _best: None,
    ) -> None:
        """Run the plan, and see what it breaks.

        With *rule* that rule's anomaly is taken, also one that the settings permit.

        Raises:
            NothingToShrinkError: nothing is broken, or there is no such anomaly.

        """
        self._runs_max = runs_max
        self._until_s = None if time_max_s is None else time.monotonic() + time_max_s
        self._on_run = on_run
        self._tried: set[tuple[str, int]] = set()
        self._accepted: set[tuple[str, int]] = set()
        self._given_up: set[tuple[str, int]] = set()
        self._ends: list[Shrunk] = []
        self.runs = 1
        self.complete = False
        result = run_plan(plan, seed)
        found = signatures(result, permitted=rule is not None)
        wanted = [signature for signature in found if rule in (None, signature.rule)]
        if not wanted or result.verdict.status == INCONCLUSIVE:
            raise NothingToShrinkError(result, rule)
        self.signature: Signature = wanted[0]
        self.original = Shrunk(plan=plan, seed=seed, result=result, finding=found[self.signature])
        self._now = self.original
        self._events_max = max(_EVENTS_MIN, _EVENTS_FACTOR * result.events)

    @property
    def best(self) -> Shrunk:
        """The smallest failure so far."""
        return min((*self._ends, self._now), key=Shrunk.size) if self._ends else self._now

    def run(self) -> Shrunk:
        """Search until nothing simpler fails or the budget is used up, and return the best."""
        try:
            self._make_explicit()
            self._cut_after_failure()
            self._search_in_some_order()
            self.complete = True
        except OutOfBudgetError:
            pass
        return self.best

    # The phases

    def _make_explicit(self) -> None:
        seed = self.original.seed
        name = f"{self.original.plan.campaign}-seed-{seed}"[-_NAME_MAX:].lstrip("._-")
        for plan in explicit_plans(self.original.result):
            if self._accept(replace(plan, campaign=name), seed):
                break
        self._accept(with_named_controllers(self._now.plan, self._now.result), seed)
        plan = self._now.plan
        if self._now.result.simulated_us > plan.duration_us + _RECOVERY_US < plan.recovery_limit_us:
            # Waiting ten minutes for what never recovers would be nearly all that the search does.
            self._accept(replace(plan, recovery_limit_us=_RECOVERY_US), seed)

    def _search_in_some_order(self) -> None:
        start, events_max = self._now, self._events_max
        for order in _ORDERS:
            self._begin_anew(start, events_max)
            self._until_nothing_is_simpler(order)
            self._take(with_end_in_script, checked=True)
            self._ends.append(self._now)
            if self._now.size()[0] <= _FAULTS_FEW:
                break

    def _begin_anew(self, start: Shrunk, events_max: int) -> None:
        """Go back for another way.

        What failed on the ways before may be on this one too, and what took too long for them may not for
        this one; what did not fail is known.
        """
        self._now, self._events_max = start, events_max
        self._tried -= self._accepted | self._given_up

    def _until_nothing_is_simpler(self, order: _Order) -> None:
        before: tuple[Plan, int] | None = None
        while before != (self._now.plan, self._now.seed):
            before = self._now.plan, self._now.seed
            self._take(with_fixed_latency)
            self._remove_faults(order)
            self._take(with_plainer_faults)
            self._send_few_records()
            self._remove_faults(order)
            self._remove_others()
            self._take(with_fewer_clients)
            self._take(lambda plan: with_one_partition(plan, self._now.finding.partition), checked=True)
            self._take(with_fewer_replicas, checked=True)
            self._take(with_fixed_latency)
            self._remove_faults(order)
            self._remove_others()
            self._use_seed_zero()
            self._take(with_fewer_settings, checked=True)
            self._take(with_defaults, checked=True)
            self._take(with_plainer_faults)
            self._take(with_crashes)
            self._take(with_rounder_times)
            self._take(with_plain_numbers, checked=True)
            self._take(with_plain_values)

    def _cut_after_failure(self) -> None:
        """Leave out what happens after the last event that the finding tells of."""
        times = [link.at_us for link in self._now.finding.chain if link.at_us is not None]
        if times:
            plan = self._now.plan
            kept = [moment for moment in timeline(plan) if moment.at_us <= max(times)]
            self._accept(with_timeline(plan, kept), self._now.seed)

    def _remove_faults(self, order: _Order) -> None:
        self._remove(lambda moment: moment.is_fault(), order)

    def _remove_others(self) -> None:
        self._remove(lambda moment: not moment.is_fault())

    def _remove(self, removable: Callable[[Moment], bool], order: _Order = _ORDERS[0]) -> None:
        moments = timeline(self._now.plan)
        kept = [moment for moment in moments if not removable(moment)]
        parts = [moment for moment in moments if removable(moment)]

        def still_fails(places: Sequence[int]) -> bool:
            left = [parts[place] for place in sorted(places)]
            return self._accept_any(with_timeline(self._now.plan, [*kept, *left]))

        fewest(order(range(len(parts))), still_fails)

    def _send_few_records(self) -> None:
        """Put one or two records in the place of many."""
        any(self._accept_any(plan) for plan in with_few_records(self._now.plan, self._now.finding))

    def _use_seed_zero(self) -> None:
        """Take the seed that a campaign is run with by default, so that it fails without an option."""
        if self._now.seed:
            self._accept(self._now.plan, 0)

    # Trying

    def _take(self, simpler: Callable[[Plan], Iterable[Plan]], *, checked: bool = False) -> None:
        """Go to simpler plans while there are such that fail.

        With *checked*, plans that no file could say are not run: the model may be at odds with them.
        """
        while any(self._accept_any(plan, checked=checked) for plan in simpler(self._now.plan)):
            pass

    def _accept_any(self, plan: Plan, *, checked: bool = False) -> bool:
        """Run a plan with the seed so far, and with others where chance has a part in it."""
        network = plan.cluster.network
        seeds = [self._now.seed]
        if network.latency_min_us != network.latency_max_us:
            seeds += [seed for seed in _OTHER_SEEDS if seed != self._now.seed]
        return any(self._accept(plan, seed, checked=checked) for seed in seeds)

    def _accept(self, plan: Plan, seed: int, *, checked: bool = False) -> bool:
        """Run a plan; if it fails in the same way it is the best from now on."""
        key = plan.digest(), seed
        if key in self._tried or (plan == self._now.plan and seed == self._now.seed):
            return False
        self._tried.add(key)
        if checked and not _is_writable(plan):
            return False
        if self.runs >= self._runs_max or (self._until_s is not None and time.monotonic() > self._until_s):
            raise OutOfBudgetError
        self.runs += 1
        self._on_run(self.runs, self.best)
        limit = min(plan.events_limit, self._events_max)
        result = run_plan(replace(plan, events_limit=limit), seed)
        if result.events >= limit:
            self._given_up.add(key)
            return False
        finding = same_failure(result, self.signature)
        if finding is None or result.verdict.status == INCONCLUSIVE or not (checked or _is_writable(plan)):
            return False
        self._accepted.add(key)
        self._now = Shrunk(plan=plan, seed=seed, result=result, finding=finding)
        self._events_max = min(self._events_max, max(_EVENTS_MIN, _EVENTS_FACTOR * result.events))
        return True


def _nothing(result: RunResult, rule: str | None) -> str:
    found = dict.fromkeys(signature.rule for signature in signatures(result, permitted=True))
    verdict = f"the verdict is {result.verdict.status}"
    if rule is not None:
        others = f"; there is {', '.join(found)}" if found else ""
        return f"no {rule} is found, {verdict}{others}"
    text = f"no promise is broken, {verdict}"
    if found:
        text += f"; `--rule {next(iter(found))}` shrinks what is permitted"
    elif result.missed:
        text += (
            f", and it is not as expected: {result.missed[0].message}. The less a campaign does, the more of what "
            "it expects is missing, so there is nothing to go by: take out by hand what has no part in it"
        )
    return text


def _is_writable(plan: Plan) -> bool:
    try:
        campaign_text(plan)
    except UnwritablePlanError:
        return False
    return True
