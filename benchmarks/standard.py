"""Simulated seconds and events a second of one core, for standard.yaml with all rules on.

Run ``python -m benchmarks.standard [RUNS]``; ``--profile`` shows where the time goes.
"""

import argparse
import cProfile
import gc
import pstats
import statistics
import time
from collections.abc import Callable

from harrow.campaigns.language.library_index import resolve
from harrow.campaigns.language.loader import load_campaign
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.runner import run_plan


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="?", type=int, default=100)
    parser.add_argument("--profile", action="store_true")
    arguments = parser.parse_args()
    plan = load_campaign(resolve("standard")[0]).plans[0]
    run_plan(plan, 0)  # Imports and caches are not what is measured.
    gc.freeze()  # As `harrow run` does: what was imported is not garbage.
    if arguments.profile:
        profile(lambda: measure(plan, arguments.runs))
    else:
        measure(plan, arguments.runs)


def measure(plan: Plan, runs: int) -> None:
    """Run seeds 0 to *runs* and print rates, as a median and over everything."""
    rates = []
    events = simulated_us = 0
    started = time.process_time()
    for seed in range(runs):
        run_started = time.process_time()
        result = run_plan(plan, seed)
        rates.append(result.simulated_us / 1e6 / (time.process_time() - run_started))
        events += result.events
        simulated_us += result.simulated_us
    took = time.process_time() - started
    print(f"{runs} runs of {plan.campaign}: {simulated_us / 1e6:.0f} simulated seconds, {events} events")
    print(
        f"simulated seconds a second: {simulated_us / 1e6 / took:.0f} (median run {statistics.median(rates):.0f})"
    )
    print(f"events a second:            {events / took:.0f}")
    print(f"milliseconds a run:         {took / runs * 1e3:.1f}")


def profile(work: Callable[[], None]) -> None:
    """Print the functions that take the most time themselves."""
    profiler = cProfile.Profile()
    profiler.runcall(work)
    pstats.Stats(profiler).strip_dirs().sort_stats("tottime").print_stats(25)


if __name__ == "__main__":
    main()
