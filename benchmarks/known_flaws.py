"""Counts the seeds that the swarms need to find each known flaw, in ten ranges of seeds.

Run ``python -m benchmarks.known_flaws [--seconds S] [MUTANT ...]``. The first table of
docs/evidence/runs-with-a-known-flaw.md is its output.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from harrow.campaigns.language.library_index import resolve
from harrow.campaigns.language.loader import load_campaign
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.runner import run_plan
from harrow.checks.finding import VIOLATED, Verdict
from harrow.cluster_model.release.profiles import MUTANTS, swarm_of
from harrow.cluster_model.release.switch import Mutant

RANGES: Final = 10
SEEDS_PER_RANGE: Final = 10_000
"""More seeds than any flaw needs."""


class FirstFailure(NamedTuple):
    """The number of seeds until a flaw was noticed, and the rules that noticed it, if any did."""

    seeds: int
    rules: tuple[str, ...] = ()


def library_plan(name: str, variant: str | None = None) -> Plan:
    plans = load_campaign(resolve(name)[0]).plans
    return plans[0] if variant is None else next(plan for plan in plans if plan.variant == variant)


def broken_rules(verdict: Verdict) -> tuple[str, ...]:
    return tuple(name for name, judged in verdict.rules.items() if judged.status == VIOLATED)


def first_failure(
    noticed: Callable[[int], tuple[str, ...]], seeds: Iterable[int], end_s: float
) -> FirstFailure:
    """Return how many seeds ran until the first with a finding, or until the time was over."""
    count = 0
    for count, seed in enumerate(seeds, start=1):
        rules = noticed(seed)
        if rules:
            return FirstFailure(count, rules)
        if time.process_time() > end_s:
            break
    return FirstFailure(count)


def row(mutant: Mutant, seconds: float) -> str:
    """Return the row of a flaw: how many seeds the swarm needs to find it.

    If the time ended within a range, and more seeds ran in that range than were needed in any other
    range, the worst number of seeds is "over" that number.
    """
    plan = library_plan(swarm_of(mutant)).flawed(mutant)
    end_s = time.process_time() + seconds
    found: list[FirstFailure] = []
    unfinished = 0

    def noticed(seed: int) -> tuple[str, ...]:
        return broken_rules(run_plan(plan, seed).verdict)

    for number in range(RANGES):
        failure = first_failure(
            noticed, range(number * SEEDS_PER_RANGE, (number + 1) * SEEDS_PER_RANGE), end_s
        )
        if not failure.rules:
            unfinished = failure.seeds
            break
        found.append(failure)
    if not found:
        return f"| `{mutant.name}` | not in {failure.seeds} | | | | {swarm_of(mutant)}, {plan.kafka} | |"
    counts = [failure.seeds for failure in found]
    rules = ", ".join(dict.fromkeys(rule for failure in found for rule in failure.rules))
    median, swarm = f"{statistics.median(counts):.0f}", f"{swarm_of(mutant)}, {plan.kafka}"
    worst = f"over {unfinished}" if unfinished > max(counts) else f"{max(counts)}"
    cells = (found[0].seeds, median, worst, len(found), swarm, rules)
    return f"| `{mutant.name}` | {' | '.join(map(str, cells))} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mutants", nargs="*", metavar="MUTANT", default=list(MUTANTS))
    parser.add_argument("--seconds", type=float, default=60, help="of CPU time for each flaw")
    arguments = parser.parse_args()
    print("| mutant | seeds | median | worst | ranges | swarm, release | noticed by |")
    print("| --- | ---: | ---: | ---: | ---: | --- | --- |")
    for name in arguments.mutants:
        print(row(MUTANTS[name], arguments.seconds), flush=True)


if __name__ == "__main__":
    main()
