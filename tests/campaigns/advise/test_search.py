"""The search for the cheapest settings, on lattices whose survivors are known."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harrow.campaigns.advise.axis import Axis, Level
from harrow.campaigns.advise.harm import FAILED, OUTAGE, Harm, Needs
from harrow.campaigns.advise.lattice import Lattice, Point
from harrow.campaigns.advise.search import LatticeSearch
from harrow.campaigns.advise.trial import PointTrial
from harrow.campaigns.assess.trials import FaultTrial
from harrow.campaigns.language.loader import load_text
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.workers.workers import Workers
from harrow.checks.finding import HELD, INCONCLUSIVE
from harrow.checks.rule import LOST

PLAN = load_text("name: any\nsettings: {acks: all, enable.idempotence: true}\n", "any.yaml").plans[0]

Harms = Callable[[Point, int, int], str | None]
"""Returns the kind of harm that a point shows with a model and a seed."""


def axis(name: str, *, protects: Sequence[str] = (LOST,), exposes: Sequence[str] = ()) -> Axis:
    return Axis(
        name=name,
        meaning="",
        values=(),
        cost="latency",
        protects=tuple(protects),
        exposes=tuple(exposes),
        own=lambda _: (),
        options=lambda _plan, _chosen: (),
        lines=lambda _plan, _chosen: (),
        rank=int,
    )


def lattice(sizes: Sequence[int], own: Point, axes: Sequence[Axis] = ()) -> Lattice:
    levels = tuple(
        tuple(Level(values=(place,), own=place == mine) for place in range(size))
        for size, mine in zip(sizes, own, strict=True)
    )
    return Lattice(tuple(axes) or tuple(axis(f"axis {n}") for n in range(len(sizes))), levels)


def shown(point: Point, harm: str | None, *, status: str = HELD) -> PointTrial:
    run = FaultTrial(
        seed=0,
        status=status,
        reasons=(),
        is_struck=True,
        damage={},
        broken=(),
        longest_us=10_000_000 if harm == OUTAGE else 0,
        sent=1,
        acked=1,
        ack_p50_us=1_000 * (1 + sum(point)),
        ack_p99_us=1_000 * (1 + sum(point)),
    )
    harms = (Harm(kind=harm, sentence=""),) if harm not in (None, OUTAGE) else ()
    return PointTrial(harms=harms, run=run, copies=3_000)


class Tries:
    """Runs of points that show the harm that a function decides."""

    def __init__(self, harms: Harms, models: int = 1, status: str = HELD) -> None:
        self.harms = harms
        self.models = models
        self.status = status
        self.tried: list[tuple[Point, int, int]] = []

    def plan_at(self, model: int, point: Point) -> Plan:
        return replace(PLAN, description=f"{model}:{','.join(map(str, point))}")

    def run_one(self, plan: Plan, seed: int, _: Workers) -> PointTrial:
        model, places = plan.description.split(":")
        point = tuple(int(place) for place in places.split(",") if place)
        self.tried.append((point, int(model), seed))
        return shown(point, self.harms(point, int(model), seed), status=self.status)

    def search(self, of: Lattice, needs: Needs | None = None) -> LatticeSearch:
        return LatticeSearch(
            of,
            self.models,
            self.plan_at,
            needs or Needs(never=(LOST,)),
            seeds=range(20),
            screening=range(5),
            workers=Workers(),
            run_one=self.run_one,
        )


def test_the_strongest_settings_show_the_harm_that_no_setting_prevents() -> None:
    axes = [axis("acks", exposes=(FAILED,)), axis("delivery timeout", protects=(FAILED,))]
    search = Tries(lambda _point, _model, _seed: FAILED).search(
        lattice((3, 2), (2, 0), axes), Needs(never=(LOST, FAILED))
    )
    assert search.run() is None
    assert search.strongest() == (0, 1)
    exposed = Tries(lambda point, _model, _seed: FAILED if point[0] else LOST).search(
        lattice((3, 2), (2, 0), axes), Needs(never=(LOST, FAILED))
    )
    assert exposed.run() is None
    assert exposed.strongest() == (2, 1)


@given(st.data())
def test_the_cheapest_survivor_of_any_monotone_lattice_is_found(data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
    points = list(product(*map(range, sizes)))
    own = data.draw(st.sampled_from(points))
    needed = data.draw(st.lists(st.sampled_from(points), max_size=3))

    def survives(point: Point) -> bool:
        return any(all(a >= b for a, b in zip(point, least, strict=True)) for least in needed)

    tries = Tries(lambda point, _, seed: None if survives(point) or seed % 3 else LOST)
    chosen = tries.search(lattice(sizes, own)).run()
    if not needed:
        assert chosen is None
        return
    assert chosen is not None
    assert survives(chosen)
    least = min(sum(point) for point in points if survives(point))
    # Latencies that differ by less than a tenth count as equal.
    assert (1 + sum(chosen)) * 10 < (1 + least) * 11


def test_every_cheaper_neighbour_of_the_answer_is_refuted_by_a_run() -> None:
    tries = Tries(lambda point, _, seed: LOST if min(point) < 1 and seed == 3 else None)
    search = tries.search(lattice((3, 3), (0, 0)))
    assert search.run() == (1, 1)
    counters = [search.refuted[point] for _, point in search.steps_down((1, 1))]
    assert [(counter.seed, counter.harm.kind) for counter in counters] == [(3, LOST), (3, LOST)]


def test_a_counter_example_is_the_first_run_that_later_points_are_tried_with() -> None:
    tries = Tries(lambda point, _, seed: LOST if point[0] < 2 and seed == 4 else None)
    tries.search(lattice((3, 1), (0, 0))).run()
    first_of_next = next(run for run in tries.tried if run[0] == (1, 0))
    assert first_of_next == ((1, 0), 0, 4)


def test_one_refutation_rules_out_all_settings_that_are_no_safer() -> None:
    tries = Tries(lambda point, _, _seed: LOST if point[0] == 0 else None)
    tries.search(lattice((2, 3, 3, 3), (0, 0, 0, 0))).run()
    refuted = {point for point, _, _ in tries.tried if point[0] == 0}
    assert len(refuted) <= 1 + 3  # of 27: the first point, and one step to the top of each other axis


def test_a_setting_that_guards_against_loss_can_cost_too_long_an_outage() -> None:
    axes = [axis("min.isr", exposes=(OUTAGE,))]
    bounded = Needs(never=(LOST,), outage=("<", 5_000_000))
    tries = Tries(lambda point, _model, _seed: (LOST, None, OUTAGE)[point[0]])
    assert tries.search(lattice((3,), (2,), axes), bounded).run() == (1,)
    tries = Tries(lambda point, _model, _seed: (LOST, LOST, OUTAGE)[point[0]])
    search = tries.search(lattice((3,), (2,), axes), bounded)
    assert search.run() is None
    assert search.strongest() == (2,)
    assert search.refuted[2,].harm.kind == OUTAGE


def test_the_settings_of_the_user_win_among_equal_costs() -> None:
    free = replace(axis("free"), cost="none")
    tries = Tries(lambda _point, _model, _seed: None)
    assert tries.search(lattice((3,), (1,), [free])).run() == (1,)


def test_every_fault_model_has_to_be_survived() -> None:
    tries = Tries(lambda point, model, _: LOST if point[model] == 0 else None, models=2)
    assert tries.search(lattice((2, 2), (0, 0))).run() == (1, 1)


def test_the_answer_survives_more_runs_than_the_screening() -> None:
    tries = Tries(lambda point, _model, seed: LOST if point[0] == 0 and seed == 17 else None)
    assert tries.search(lattice((2,), (0,))).run() == (1,)


@pytest.mark.parametrize("own", [0, 1])
def test_settings_whose_runs_decide_nothing_do_not_survive(own: int) -> None:
    tries = Tries(lambda _point, _model, _seed: None, status=INCONCLUSIVE)
    search = tries.search(lattice((2,), (own,)))
    assert search.run() is None
    assert search.strongest() not in search.refuted
