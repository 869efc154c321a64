"""The lattice of settings: its points, their order by cost, and what a refuted point rules out."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import product
from typing import Final

from harrow.campaigns.advise.axes import REPLICATION_FACTOR
from harrow.campaigns.advise.axis import Axis, Level
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.language.spelling import listed
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.settings import MIN_ISR, Value

Point = tuple[int, ...]
"""A point of the lattice: the place of its level on each axis, from cheap to dear."""

POINTS_MAX: Final = 100_000


@dataclass(frozen=True, slots=True)
class Lattice:
    """The axes on which advice may move, each with its levels from cheap to dear."""

    axes: tuple[Axis, ...]
    levels: tuple[tuple[Level, ...], ...]

    @property
    def own(self) -> Point:
        """The user's own settings."""
        return tuple(next(n for n, level in enumerate(levels) if level.own) for levels in self.levels)

    def points(self) -> list[Point]:
        """Return the points that make sense, each after those that are cheaper on every axis."""
        points = product(*(range(len(levels)) for levels in self.levels))
        return sorted(filter(self.makes_sense, points), key=lambda point: (sum(self._costs(point)), point))

    def makes_sense(self, point: Point) -> bool:
        """Return whether a topic has as many replicas as ``min.insync.replicas`` demands."""
        level = {axis.name: levels[n] for axis, levels, n in zip(self.axes, self.levels, point, strict=True)}
        if MIN_ISR not in level or REPLICATION_FACTOR not in level:
            return True
        return int(max(level[MIN_ISR].values)) <= int(min(level[REPLICATION_FACTOR].values))

    def is_dearer(self, point: Point, other: Point) -> bool:
        """Return whether a point costs at least as much as another one on every axis."""
        return all(
            mine >= theirs for mine, theirs in zip(self._costs(point), self._costs(other), strict=True)
        )

    def is_ruled_out(self, point: Point, refuted: Point, harm: str) -> bool:
        """Return whether a point is on no axis safer from a harm than a refuted one."""
        return all(
            (place <= bad or harm not in axis.protects) and (place >= bad or harm not in axis.exposes)
            for axis, place, bad in zip(self.axes, point, refuted, strict=True)
        )

    def safer(self, point: Point, number: int, harm: str) -> Iterator[Point]:
        """Yield points that are safer from a harm on one axis, safest first."""
        axis, place, last = self.axes[number], point[number], len(self.levels[number]) - 1
        places: Sequence[int] = ()
        if harm in axis.protects:
            places = range(last, place, -1)
        elif harm in axis.exposes:
            places = range(place)
        yield from (self.moved(point, number, other) for other in places)

    def safest(self, harms: Sequence[str]) -> Point:
        """Return the point that is safest from the first harm, then from the next, and so on."""

        def place(axis: Axis, last: int, own: int) -> int:
            harm = next((harm for harm in harms if harm in (*axis.protects, *axis.exposes)), None)
            return own if harm is None else last if harm in axis.protects else 0

        return tuple(
            place(axis, len(levels) - 1, own)
            for axis, levels, own in zip(self.axes, self.levels, self.own, strict=True)
        )

    def moved(self, point: Point, number: int, place: int) -> Point:
        return (*point[:number], place, *point[number + 1 :])

    def changes(self, point: Point) -> tuple[int, ...]:
        """Return the axes on which a point differs from the user's settings."""
        return tuple(n for n, (place, own) in enumerate(zip(point, self.own, strict=True)) if place != own)

    def change(self, point: Point) -> tuple[int, int, int, Point]:
        """Return the size of a point's change: settings, those that cost something, steps."""
        changed = self.changes(point)
        priced = sum(self.axes[n].cost != "none" and point[n] > self.own[n] for n in changed)
        return len(changed), priced, sum(abs(point[n] - self.own[n]) for n in changed), point

    def nearer(self, point: Point) -> Iterator[Point]:
        """Yield points that on one axis are nearer to the user's settings, nearest first."""
        for number in self.changes(point):
            own, place = self.own[number], point[number]
            for other in range(own, place, 1 if place > own else -1):
                yield self.moved(point, number, other)

    def level(self, point: Point, number: int) -> Level:
        return self.levels[number][point[number]]

    def chosen(self, point: Point) -> Mapping[str, Value]:
        """Return the values that a point changes, by axis."""
        return {self.axes[n].name: self.level(point, n).values[0] for n in self.changes(point)}

    def options(self, point: Point, plan: Plan) -> tuple[str, ...]:
        """Return the options (``--set``) that take a plan from the user's settings to a point."""
        chosen = self.chosen(point)
        return tuple(option for n in self.changes(point) for option in self.axes[n].options(plan, chosen))

    def _costs(self, point: Point) -> tuple[int, ...]:
        """Return the cost on each axis. Where all levels cost the same, a change is a cost."""
        return tuple(
            place if axis.cost != "none" else int(place != own)
            for axis, place, own in zip(self.axes, point, self.own, strict=True)
        )


def obstacle(
    axis: Axis, plans: Sequence[Plan], harms: Collection[str], changed_plans: Sequence[Plan] = ()
) -> str:
    """Return why advice cannot change a setting of the plans' cluster; empty if it can."""
    if not any(harm in (*axis.protects, *axis.exposes) for harm in harms):
        return f"has no effect on this harm: {listed(harms)}"
    return "" if len(_levels(axis, plans, changed_plans)) > 1 else "has no other value on this cluster"


def lattice_of(
    axes: Collection[Axis], plans: Sequence[Plan], harms: Collection[str], changed_plans: Sequence[Plan] = ()
) -> Lattice:
    """Return the lattice of the axes that matter for these harms on the plans' cluster.

    The settings of *changed_plans* are not all the user's. They count only if *plans* lack them.
    """
    found = tuple(axis for axis in axes if not obstacle(axis, plans, harms, changed_plans))
    return Lattice(found, tuple(_levels(axis, plans, changed_plans) for axis in found))


def _levels(axis: Axis, plans: Sequence[Plan], changed_plans: Sequence[Plan]) -> tuple[Level, ...]:
    return axis.levels(plans) or axis.levels(changed_plans)
