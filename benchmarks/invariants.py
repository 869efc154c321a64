"""The share of a run's time that its invariants cost, for standard.yaml.

Run ``python -m benchmarks.invariants [SEEDS]``. Each seed runs with and without invariants, one
after the other in one process, so that other work on the machine slows both.
"""

import argparse
import statistics
import time
from dataclasses import replace

from harrow.campaigns.language.library_index import resolve
from harrow.campaigns.language.loader import load_campaign
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.collector import collect_rarely
from harrow.campaigns.run.runner import run_plan
from harrow.cluster_model.invariants.catalogue import INVARIANTS

REPEATS = 3
"""How often each seed runs with invariants, and without. The fastest run of each counts."""


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seeds", nargs="?", type=int, default=20)
    seeds = parser.parse_args().seeds
    watched = load_campaign(resolve("standard")[0]).plans[0]
    unwatched = replace(watched, invariants=())
    run_plan(watched, 0)  # Do not measure imports and the filling of caches.
    run_plan(unwatched, 0)
    collect_rarely()  # As `harrow run` does: the collector need not scan imported modules.
    with_s, without_s = [], []
    for seed in range(seeds):
        pairs = [(seconds(watched, seed), seconds(unwatched, seed)) for _ in range(REPEATS)]
        with_s.append(min(on for on, _ in pairs))
        without_s.append(min(off for _, off in pairs))
    shares = [1 - off / on for on, off in zip(with_s, without_s, strict=True)]
    print(f"{seeds} seeds of {watched.campaign}, {len(INVARIANTS)} invariants")
    print(f"milliseconds a run, watched:   {sum(with_s) / seeds * 1e3:.1f}")
    print(f"milliseconds a run, unwatched: {sum(without_s) / seeds * 1e3:.1f}")
    print(f"share of a run's time:         {1 - sum(without_s) / sum(with_s):.1%}")
    print(f"                               {statistics.median(shares):.1%} (median run)")


def seconds(plan: Plan, seed: int) -> float:
    """Return the processor time of one run."""
    started = time.process_time()
    run_plan(plan, seed)
    return time.process_time() - started


if __name__ == "__main__":
    main()
