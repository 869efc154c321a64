"""Makes a line of the table: what a cluster costs in the work tree and in a commit."""

import statistics
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from benchmarks.speed.clusters import MeasuredCluster
from benchmarks.speed.measurement import Cost

COLUMNS: Final = (
    "cluster",
    "ratio",
    "spread",
    "events",
    "CPU s",
    "µs an event",
    "bare events an event",
    "judging",
    "peak MiB",
    "bare events/s",
    "instructions",
    "M instructions a run",
)


_EVENTS_RATIO_MAX: Final = 1.25
"""A change that moves a choice changes the faults, so a small difference means nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostComparison:
    """The rounds of a cluster. Rounds of both sides with the same number ran close together."""

    cluster: MeasuredCluster
    limit_s: int
    work_tree: list[Cost] = field(default_factory=list)
    commit: list[Cost] = field(default_factory=list)
    instructions: list[float] = field(default_factory=list)
    """Millions of instructions of a run, in the work tree and in the commit, if counted."""

    def is_over(self) -> bool:
        """Return whether a side was stopped at its limit."""
        return any(cost.over for cost in (*self.work_tree, *self.commit))

    def ratios(self) -> tuple[float, float, float] | None:
        """Return the ratio of the least CPU times, and the least and the greatest ratio of a round.

        Return None if one of the times is unknown. The least times count because other work on the
        machine can only add to a time.
        """
        if self.is_over():
            return None
        rounds = [new.cpu_s / old.cpu_s for new, old in zip(self.work_tree, self.commit, strict=True)]
        return least_cpu(self.work_tree).cpu_s / least_cpu(self.commit).cpu_s, min(rounds), max(rounds)

    def bound(self) -> str:
        """Return a bound of the ratio if only one side was stopped, nothing if both were."""
        if all(side[0].over for side in (self.work_tree, self.commit)):
            return ""
        if self.commit[0].over:
            return f"< {least_cpu(self.work_tree).cpu_s / self.limit_s:.2f}"
        return f"> {self.limit_s / least_cpu(self.commit).cpu_s:.2f}"

    def cells(self) -> list[str]:
        """Return the cells of the line. In a cell with two values, the work tree's is first."""
        ratios = self.ratios()
        sides = (self.work_tree, self.commit)
        both = [None if side[0].over else least_cpu(side) for side in sides]
        new = both[0]
        ratio, spread = self.bound(), ""
        if ratios is not None:
            ratio, spread = f"{ratios[0]:.2f}", f"{ratios[1]:.2f} to {ratios[2]:.2f}"
        bare = statistics.median(cost.bare_events_per_s for side in sides for cost in side)
        return [
            f"`{self.cluster.name}`",
            ratio,
            spread,
            pair("" if cost is None else f"{cost.events}" for cost in both),
            pair(f"over {self.limit_s}" if cost is None else f"{cost.cpu_s:.2f}" for cost in both),
            pair("" if cost is None else f"{cost.us_per_event:.1f}" for cost in both),
            "" if new is None else f"{least_bare(self.work_tree):.0f}",
            pair("" if cost is None else f"{cost.judge_s / cost.cpu_s:.0%}" for cost in both),
            pair(f"{max(cost.peak_mib for cost in side):.0f}" for side in sides),
            f"{bare / 1e6:.1f} M",
            *self._instruction_cells(),
        ]

    def _instruction_cells(self) -> list[str]:
        if not self.instructions:
            return ["not counted", "not counted"]
        new, old = self.instructions
        return [f"{new / old:.3f}", pair(f"{count:.0f}" for count in self.instructions)]

    def notes(self) -> Iterator[str]:
        """Yield the reasons why the ratio may mislead."""
        new, old = self.work_tree[0], self.commit[0]
        if self.is_over():
            return
        if new.verdicts != old.verdicts:
            verdicts = f"{', '.join(new.verdicts)} in the work tree, {', '.join(old.verdicts)} in the commit"
            yield f"The verdicts of `{self.cluster.name}` differ: {verdicts}."
        if max(new.events, old.events) > _EVENTS_RATIO_MAX * min(new.events, old.events):
            yield f"The events of `{self.cluster.name}` differ much: it did other work."

    def as_json(self) -> dict[str, Any]:
        """Return every measurement, and the ratio made of them."""
        ratios = self.ratios()
        return {
            "cluster": self.cluster.name,
            "limit_s": self.limit_s,
            "ratio": None if ratios is None else ratios[0],
            "ratio_min": None if ratios is None else ratios[1],
            "ratio_max": None if ratios is None else ratios[2],
            "instructions_m": self.instructions,
            "work_tree": [asdict(cost) for cost in self.work_tree],
            "commit": [asdict(cost) for cost in self.commit],
        }


def least_cpu(costs: list[Cost]) -> Cost:
    """Return the measurement that was disturbed least."""
    return min(costs, key=lambda cost: cost.cpu_s)


def least_bare(costs: list[Cost]) -> float:
    """Return the least cost of an event, in events of the barest loop."""
    return min(cost.bare_events_per_event for cost in costs)


def pair(texts: Iterable[str]) -> str:
    """Join the texts of the two sides; return one of them if they are equal."""
    new, old = texts
    return new if new == old else f"{new or '?'} / {old or '?'}"
