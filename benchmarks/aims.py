"""How often the seeds of a swarm reach each rare state that it aims at: with the aim, and without any.

Run ``python -m benchmarks.aims [--seconds S] [CAMPAIGN ...]``. An aim that reaches its state no more often than seeds without one is of
no use. For a state that few seeds reach, ``--probe NAME`` tells which settings and faults the seeds that did had drawn more often than
all: what an aim at it is to be made of.
"""

import argparse
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from benchmarks.zoo import library_plan
from harrow.campaigns.language.plan import Aims, Plan
from harrow.campaigns.run.probes.probes import PROBES
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import run_plan

_SHOWN: Final = 12
_HITS_LEAST: Final = 3
_RARE: Final = 0.05


@dataclass(slots=True, eq=False)
class Reached:
    """How many seeds there were, how many reached each state, and what those had drawn."""

    seeds: int = 0
    probes: Counter[str] = field(default_factory=Counter)
    drawn: Counter[str] = field(default_factory=Counter)
    drawn_by_probe: dict[str, Counter[str]] = field(default_factory=dict)

    def add(self, result: RunResult) -> None:
        ingredients = set(_ingredients(result))
        self.seeds += 1
        self.probes.update(result.probes.keys())
        self.drawn.update(ingredients)
        for probe in result.probes:
            self.drawn_by_probe.setdefault(probe, Counter()).update(ingredients)

    def share(self, probe: str) -> float:
        return self.probes[probe] / self.seeds if self.seeds else 0.0


def _ingredients(result: RunResult) -> Iterator[str]:
    for name, value in result.drawn:
        yield from (
            f"{name} {each}" for each in (value.split(", ") if name in ("faults", "actions") else (value,))
        )


def reached(plan: Plan, seconds: float) -> Reached:
    """Return what seeds from 0 on reached in so much CPU time."""
    found, seed, end_s = Reached(), 0, time.process_time() + seconds
    while not seed or time.process_time() < end_s:
        found.add(run_plan(plan, seed))
        seed += 1
    return found


def with_aims(plan: Plan, aims: Aims | None) -> Plan:
    assert plan.swarm is not None
    return replace(plan, swarm=replace(plan.swarm, aims=aims))


def tell_aims(name: str, seconds: float) -> None:
    plan = library_plan(name)
    assert plan.swarm is not None
    without = reached(with_aims(plan, None), seconds)
    print(f"| {name} | without | with its aim | seeds |")
    print("| --- | ---: | ---: | ---: |")
    for aim in plan.swarm.aims.kinds if plan.swarm.aims else ():
        aimed = reached(with_aims(plan, Aims(share=1, kinds=(aim,))), seconds)
        shares = f"{without.share(aim.probe):.1%} | {aimed.share(aim.probe):.1%}"
        print(f"| `{aim.probe}` | {shares} | {without.seeds}, {aimed.seeds} |", flush=True)
    rare = [f"`{probe}` {without.share(probe):.1%}" for probe in PROBES if without.share(probe) < _RARE]
    print(f"\nRarely reached without an aim: {', '.join(rare)}\n", flush=True)


def tell_ingredients(name: str, probe: str, seconds: float) -> None:
    found = reached(with_aims(library_plan(name), None), seconds)
    hits = found.probes[probe]
    of_probe = found.drawn_by_probe.get(probe, Counter())
    lifts = {
        each: count * found.seeds / (hits * found.drawn[each])
        for each, count in of_probe.items()
        if count >= _HITS_LEAST
    }
    print(f"{name}: {hits} of {found.seeds} seeds reach {probe}")
    for each in sorted(lifts, key=lambda one: -lifts[one])[:_SHOWN]:
        print(f"  {lifts[each]:.1f} times as often: {each}")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("campaigns", nargs="*", metavar="CAMPAIGN", default=["swarm", "swarm-kraft"])
    parser.add_argument("--probe", choices=PROBES, help="tell what reaches this state")
    parser.add_argument(
        "--seconds", type=float, default=30, help="of CPU time for each aim, and for the seeds without one"
    )
    arguments = parser.parse_args()
    for name in arguments.campaigns:
        if arguments.probe:
            tell_ingredients(name, arguments.probe, arguments.seconds)
        else:
            tell_aims(name, arguments.seconds)


if __name__ == "__main__":
    main()
