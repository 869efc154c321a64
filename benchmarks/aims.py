"""How often the seeds of a swarm reach each rare state that it aims at, with and without the aim.

Run ``python -m benchmarks.aims [--seconds S] [CAMPAIGN ...]``. An aim is useless if its seeds reach
the state no more often than seeds without an aim. A second table lists the states that the campaign
can reach, but that few or no seeds without an aim reach. Beside each state is the choice that seeds
which reached it drew more often than all seeds did: a new aim may use that choice. ``--probe NAME``
lists more such choices for one state.
"""

import argparse
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final

from benchmarks.known_flaws import library_plan
from harrow.campaigns.language.plan import Aims, Plan
from harrow.campaigns.language.plan_reach import reach_of
from harrow.campaigns.probes.probes import PROBES, in_reach
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import run_plan

_SHOWN: Final = 12
_HITS_MIN: Final = 3
_RARE: Final = 0.05


@dataclass(slots=True, eq=False)
class Reached:
    """How many seeds ran, how many reached each state, and which choices these had drawn."""

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

    def lifts(self, probe: str) -> dict[str, float]:
        """Return how many times as often as all seeds those that reached a state drew each choice.

        The choice with the highest ratio comes first.
        """
        hits, drawn_with_probe = self.probes[probe], self.drawn_by_probe.get(probe, Counter())
        found = {
            each: count * self.seeds / (hits * self.drawn[each])
            for each, count in drawn_with_probe.items()
            if count >= _HITS_MIN
        }
        return dict(sorted(found.items(), key=lambda item: -item[1]))


def _ingredients(result: RunResult) -> Iterator[str]:
    for name, value in result.drawn:
        yield from (
            f"{name} {each}" for each in (value.split(", ") if name in ("faults", "actions") else (value,))
        )


def reached(plan: Plan, seconds: float) -> Reached:
    """Run seeds from 0 on for this much CPU time, and return what they reached."""
    found, seed, end_s = Reached(), 0, time.process_time() + seconds
    while not seed or time.process_time() < end_s:
        found.add(run_plan(plan, seed))
        seed += 1
    return found


def with_aims(plan: Plan, aims: Aims | None) -> Plan:
    assert plan.swarm is not None
    return replace(plan, swarm=replace(plan.swarm, aims=aims))


def print_aims(name: str, seconds: float) -> None:
    plan = library_plan(name)
    assert plan.swarm is not None
    without = reached(with_aims(plan, None), seconds)
    print(f"| {name} | without | with its aim | seeds |")
    print("| --- | ---: | ---: | ---: |")
    for aim in plan.swarm.aims.kinds if plan.swarm.aims else ():
        aimed = reached(with_aims(plan, Aims(share=1, kinds=(aim,))), seconds)
        shares = f"{without.share(aim.probe):.1%} | {aimed.share(aim.probe):.1%}"
        print(f"| `{aim.probe}` | {shares} | {without.seeds}, {aimed.seeds} |", flush=True)
    print(f"\n| {name}, without an aim | of {without.seeds} seeds | drawn more often |")
    print("| --- | ---: | --- |")
    for probe in rarely_reached(plan, without):
        lift = next((f"{each}, {times:.1f} times" for each, times in without.lifts(probe).items()), "")
        print(f"| `{probe}` | {without.probes[probe]} | {lift} |")
    print(flush=True)


def rarely_reached(plan: Plan, found: Reached) -> list[str]:
    """Return the states that a plan can reach but hardly any seed reached, the rarest first."""
    rare = [probe for probe in in_reach(reach_of(plan)) if found.share(probe) < _RARE]
    return sorted(rare, key=lambda probe: found.probes[probe])


def print_ingredients(name: str, probe: str, seconds: float) -> None:
    found = reached(with_aims(library_plan(name), None), seconds)
    print(f"{name}: {found.probes[probe]} of {found.seeds} seeds reach {probe}")
    for each, times in islice(found.lifts(probe).items(), _SHOWN):
        print(f"  {times:.1f} times as often: {each}")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "campaigns", nargs="*", metavar="CAMPAIGN", default=["swarm", "swarm-kraft", "swarm-eos"]
    )
    parser.add_argument("--probe", choices=PROBES, help="show what reaches this state")
    parser.add_argument(
        "--seconds", type=float, default=30, help="CPU time for each aim, and for the seeds without one"
    )
    arguments = parser.parse_args()
    for name in arguments.campaigns:
        if arguments.probe:
            print_ingredients(name, arguments.probe, arguments.seconds)
        else:
            print_aims(name, arguments.seconds)


if __name__ == "__main__":
    main()
