"""Searches the lattice for the cheapest settings that survive fault models.

A point is refuted by one trial that shows harm. The search goes from cheap points to dear ones, and
avoids most trials:

- The refuting run is the first that later points are tried with (counter-examples travel).
- The same run is repeated on safer and safer points. The safest that it still refutes rules out all
  points that no axis makes safer (`Lattice.is_ruled_out`). So a setting that permits a loss costs
  one search, whatever the other settings are.
- The promise table knows settings that permit harm whatever happens, such as ``acks=1``. They are
  never advised, and tried only to show the harm.
- A point that costs more on every axis than one that survives need not be tried.

Of the points that survive, the measured costs choose one; among equal costs, the one that changes
least. It is tried longer, and must then survive a last question: for each of its settings, does a
cheaper value survive as well? What answers no is the evidence that the setting is needed.

Other cores run the next trials meanwhile. The search uses them in order, so that its answer does
not depend on the number of cores.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from typing import Final

from harrow.campaigns.advise.harm import Harm, Needs
from harrow.campaigns.advise.lattice import Lattice, Point
from harrow.campaigns.advise.trial import PointCosts, PointTally, PointTrial, run_trial, without_faults
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.workers.workers import Run, RunOne, Workers
from harrow.cluster_model.lazy_dataclass import dataclass

_EQUAL: Final = 10
"""Costs are equal if they differ by less than one part in ten."""

_CALM_SEEDS: Final = range(2)
"""The seeds of the runs without faults, which measure what acks cost."""

_Key = tuple[int, int]
"""The place of a fault model, and a seed."""

PlanAt = Callable[[int, Point], Plan | None]
"""Returns the plan of a fault model at a point; None if Kafka refuses the point's settings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterExample:
    """A run that refutes a point: the place of its fault model, and its seed."""

    model: int
    seed: int
    harm: Harm


class LatticeSearch:
    """A search for the cheapest of the points that survive. *on_run* is called with each trial.

    Each point is tried with *screening* seeds of each of *models* fault models, the chosen one with
    *seeds*. *travelling* are runs with which each point is tried first.
    """

    def __init__(
        self,
        lattice: Lattice,
        models: int,
        plan_at: PlanAt,
        needs: Needs,
        *,
        seeds: range,
        screening: range,
        workers: Workers,
        run_one: RunOne[PointTrial] = run_trial,
        travelling: Sequence[_Key] = (),
        on_run: Callable[[], None] = lambda: None,
    ) -> None:
        self.lattice = lattice
        self.needs = needs
        self.seeds = seeds
        self.screening = screening
        self.refuted: dict[Point, CounterExample] = {}
        self.undecided: set[Point] = set()
        self.tallies: dict[Point, PointTally] = {}
        self._models = range(models)
        self._plan_at = plan_at
        self._workers = workers
        self._run_one = run_one
        self._on_run = on_run
        self._permissions: dict[Point, str | None] = {}
        self._plans: dict[tuple[int, Point], Plan | None] = {}
        self._points = lattice.points()
        self._ruled_out: list[tuple[Point, str]] = []
        self._travelling = list(travelling)
        self._survivors: list[Point] = []
        self._is_stopped = False

    def run(self) -> Point | None:
        """Return the cheapest point that survives, None if none does."""
        if self.is_possible(self.lattice.own):
            self._survives(self.lattice.own, self.screening)
        while True:
            survivors = self._survivors = self.survivors()
            point = self._next_open(survivors)
            if point is not None:
                if self._survives(point, self.screening):
                    survivors.append(point)
                continue
            if not survivors:
                return None
            chosen = self._with_smaller_change(self._cheapest(survivors))
            if chosen not in survivors:
                survivors.append(chosen)
            if not self._survives(chosen, self.seeds):
                continue
            cheaper = self._cheaper_survivor(chosen)
            if cheaper is None or cheaper in survivors:
                return chosen
            survivors.append(cheaper)

    def survivors(self) -> list[Point]:
        """Return the points that have survived their trials so far."""
        return [
            point for point in self._survivors if point not in self.refuted and point not in self.undecided
        ]

    def stop(self) -> None:
        """Make no more runs, and keep what the finished ones show."""
        self._is_stopped = True
        for point, tally in self.tallies.items():
            for (model, seed), trial in tally.trials.items():
                harm = self._harm(trial)
                if harm is not None:
                    self.refuted.setdefault(point, CounterExample(model=model, seed=seed, harm=harm))

    def strongest(self) -> Point:
        """Return the safest point that did not survive.

        Best is one that shows the very harm from which no other point is safer.
        """
        kinds = self.needs.kinds()
        refuted = []
        for kind in kinds:
            point = self.lattice.safest((kind, *(other for other in kinds if other != kind)))
            if self.is_possible(point) and not self._survives(point, self.screening):
                if point in self.refuted and self.refuted[point].harm.kind == kind:
                    return point
                refuted.append(point)
        if refuted:
            return refuted[0]
        tried = {*self.refuted, *self.undecided}
        return max(tried, key=lambda point: (sum(point), point), default=self.lattice.own)

    def steps_down(self, point: Point) -> Iterator[tuple[int, Point]]:
        """Yield the point with one setting cheaper or, among equals, as the user has it."""
        for number, axis in enumerate(self.lattice.axes):
            own, place = self.lattice.own[number], point[number]
            down = place - 1 if axis.cost != "none" else own if place != own else -1
            if down >= 0:
                other = self.lattice.moved(point, number, down)
                if self.is_possible(other):
                    yield number, other

    def costs(self, point: Point) -> PointCosts:
        """Return the costs of a point, after a few runs without faults."""
        tally = self.tally(point)
        if not tally.calm and not self._is_stopped:
            tally.calm = [self._run(run) for run in self._calm_runs(point)]
        return tally.costs(self.screening)

    def measure(self, point: Point) -> None:
        """Try a point as often as others before their costs are compared, even if it is refuted."""
        keys = [key for key in self._trials_of(point, self.screening) if key[1] in self.screening]
        for key, trial in self._tried(point, keys):
            self._note(point, key, trial)

    def tally(self, point: Point) -> PointTally:
        return self.tallies.setdefault(point, PointTally())

    # Points

    def permitted_by(self, point: Point) -> str | None:
        """Return the setting of a point that permits harm whatever happens, if there is one."""
        if point not in self._permissions:
            plans = (self.plan(model, point) for model in self._models)
            settings = (self.needs.permitted_by(plan) for plan in plans if plan is not None)
            self._permissions[point] = next((setting for setting in settings if setting), None)
        return self._permissions[point]

    def is_possible(self, point: Point) -> bool:
        """Return whether the point makes sense, and Kafka accepts its settings with every model."""
        return self.lattice.makes_sense(point) and all(self.plan(n, point) is not None for n in self._models)

    def is_candidate(self, point: Point) -> bool:
        """Return whether the point is possible, and no setting of it permits harm in any case."""
        return self.is_possible(point) and self.permitted_by(point) is None

    def _next_open(self, survivors: Sequence[Point]) -> Point | None:
        """Return the cheapest point that nothing has decided yet."""
        for point in self._points:
            if (
                point not in self.refuted
                and point not in self.undecided
                and not any(self.lattice.is_dearer(point, other) for other in survivors)
                and not any(self.lattice.is_ruled_out(point, *bad) for bad in self._ruled_out)
                and self.is_candidate(point)
            ):
                return point
        return None

    def _cheapest(self, survivors: Sequence[Point]) -> Point:
        """Return the survivor with the least cost, then the fewest changes."""
        left = list(survivors)
        costs = {point: self.costs(point).in_order() for point in left}
        for number in range(len(next(iter(costs.values())))):
            least = min(costs[point][number] for point in left)
            left = [point for point in left if not _is_more(costs[point][number], least)]
        return min(left, key=self.lattice.change)

    def _with_smaller_change(self, point: Point) -> Point:
        """Return a point that changes less, if one survives and costs no more."""
        for other in self.lattice.nearer(point):
            if self.is_candidate(other) and self._survives(other, self.screening):
                mine, theirs = self.costs(point).in_order(), self.costs(other).in_order()
                if not any(_is_more(their, my) for my, their in zip(mine, theirs, strict=True)):
                    return self._with_smaller_change(other)
        return point

    def _cheaper_survivor(self, point: Point) -> Point | None:
        """Return a cheaper neighbour that survives as many runs as the point, if there is one."""
        for _, other in self.steps_down(point):
            is_survivor = self._survives(other, self.screening) and self._survives(other, self.seeds)
            if is_survivor and self.permitted_by(other) is None:
                mine, theirs = self.costs(point).in_order(), self.costs(other).in_order()
                for my, their in zip(mine, theirs, strict=True):
                    if _is_more(my, their):
                        return other
                    if _is_more(their, my):
                        break
        return None

    # Trials

    def _survives(self, point: Point, seeds: range) -> bool:
        """Return whether trials with these seeds show no harm, and most of them count."""
        if point in self.refuted:
            return False
        counter = self._first_refuting(point, self._trials_of(point, seeds))
        if counter is None:
            tally = self.tally(point)
            if all(2 * tally.counted(model) > tally.tried(model) for model in self._models):
                return True
            self.undecided.add(point)
            return False
        self.refuted[point] = counter
        self._generalise(point, counter)
        return False

    def _trials_of(self, point: Point, seeds: range) -> Iterator[_Key]:
        """Yield the models and seeds that a point was not tried with yet, travellers first."""
        done = self.tally(point).trials
        seen: set[_Key] = set()
        for key in (*self._travelling, *((model, seed) for seed in seeds for model in self._models)):
            if key not in done and key not in seen:
                seen.add(key)
                yield key

    def _first_refuting(self, point: Point, keys: Iterable[_Key]) -> CounterExample | None:
        with closing(self._tried(point, keys)) as tried:
            for key, trial in tried:
                self._note(point, key, trial)
                harm = self._harm(trial)
                if harm is not None:
                    self._travelling = [key, *(other for other in self._travelling if other != key)]
                    return CounterExample(model=key[0], seed=key[1], harm=harm)
        return None

    def _harm(self, trial: PointTrial) -> Harm | None:
        return None if trial.why_not else self.needs.first_harm(trial.harms, trial.run.longest_us)

    def _tried(self, point: Point, keys: Iterable[_Key]) -> Generator[tuple[_Key, PointTrial]]:
        def run_of(key: _Key) -> Run | None:
            plan = self.plan(key[0], point)
            return None if plan is None else (plan, key[1])

        with closing(self._workers.ahead(self._run_one, keys, run_of)) as begun:
            for key, run in begun:
                assert run is not None, "the point is possible"
                yield key, run.result()

    def _calm_runs(self, point: Point) -> Iterator[Run]:
        plans = [self.plan(model, point) for model in self._models]
        for plan in (without_faults(plan) for plan in plans if plan is not None):
            yield from ((plan, seed) for seed in _CALM_SEEDS)

    def _run(self, run: Run) -> PointTrial:
        self._on_run()
        return self._run_one(*run, self._workers)

    def _note(self, point: Point, key: _Key, trial: PointTrial) -> None:
        self.tally(point).trials[key] = trial
        self._on_run()

    def _generalise(self, point: Point, counter: CounterExample) -> None:
        """Find the safest point that the same run refutes, and rule out all that are no safer."""
        key = counter.model, counter.seed
        kind = counter.harm.kind
        for number in range(len(self.lattice.axes)):
            for safer in self.lattice.safer(point, number, kind):
                if not self.is_possible(safer) or (
                    safer not in self.refuted and key in self.tally(safer).trials
                ):
                    continue
                again = self.refuted.get(safer) or self._first_refuting(safer, [key])
                if again is not None:
                    self.refuted[safer] = again
                    if again.harm.kind == kind:
                        point = safer
                        break
        self._ruled_out.append((point, kind))

    def plan(self, model: int, point: Point) -> Plan | None:
        """Return the plan of a fault model at a point; None if Kafka refuses the settings."""
        key = model, point
        if key not in self._plans:
            self._plans[key] = self._plan_at(model, point)
        return self._plans[key]


def _is_more(cost: int, other: int) -> bool:
    return cost * _EQUAL >= other * (_EQUAL + 1) and cost > other
