"""Simulated seconds and events a second of one core, for standard.yaml with all rules on.

Run ``python -m benchmarks.standard [RUNS]``; ``--profile`` shows where the time goes. ``--releases
2.4 4.0`` runs the same seeds on several releases in turn, each with its newest metadata mode, and
prints their cost relative to the first.
"""

import argparse
import cProfile
import platform
import pstats
import re
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.releases import rows
from harrow.campaigns.language.library_index import resolve
from harrow.campaigns.language.loader import load_campaign
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.collector import collect_rarely
from harrow.campaigns.run.runner import run_plan
from harrow.cluster_model.release.profiles import RELEASES
from harrow.compilation import compilation


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="?", type=int, default=100)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--releases", nargs="+", choices=RELEASES, metavar="RELEASE")
    parser.add_argument("--rounds", type=int, default=5, help="of --releases; default %(default)s")
    arguments = parser.parse_args()
    if arguments.releases:
        compare_releases(arguments.releases, arguments.runs, arguments.rounds)
        return
    plan = load_campaign(resolve("standard")[0]).plans[0]
    run_plan(plan, 0)  # Imports and caches are not what is measured.
    collect_rarely()  # As `harrow run` does: the collector need not scan imported modules.
    if arguments.profile:
        profile(lambda: measure(plan, arguments.runs))
    else:
        measure(plan, arguments.runs)


def measure(plan: Plan, runs: int) -> None:
    """Run the seeds below *runs*, and print rates: the median of the runs, and the overall rate."""
    rates = []
    events = simulated_us = 0
    start_s = time.process_time()
    for seed in range(runs):
        run_start_s = time.process_time()
        result = run_plan(plan, seed)
        rates.append(result.simulated_us / 1e6 / (time.process_time() - run_start_s))
        events += result.events
        simulated_us += result.simulated_us
    total_s = time.process_time() - start_s
    print(f"{runs} runs of {plan.campaign}: {simulated_us / 1e6:.0f} simulated seconds, {events} events")
    print(
        f"simulated seconds a second: {simulated_us / 1e6 / total_s:.0f} (median run {statistics.median(rates):.0f})"
    )
    print(f"events a second:            {events / total_s:.0f}")
    print(f"measured on:                {_machine()}")
    print(f"milliseconds a run:         {total_s / runs * 1e3:.1f}")


def _machine() -> str:
    """Return the processor, the interpreter, and how the core runs."""
    info = Path("/proc/cpuinfo")
    names = (
        re.findall(r"^model name\s*: (.*)", info.read_text("utf-8"), re.MULTILINE) if info.exists() else []
    )
    processor = names[0] if names else platform.processor() or platform.machine()
    interpreter = f"{platform.python_implementation()} {platform.python_version()}"
    return f"{processor}, {interpreter}, {compilation()[0]}"


def compare_releases(releases: list[str], runs: int, rounds: int) -> None:
    """Run the seeds below *runs* on each release in turn, *rounds* times.

    Print a line for each release: the median CPU time of a run, and the ratio to the first release.
    """
    plans = {
        row.release: row.plan
        for row in rows()
        if not row.has_flaws and row.mode == RELEASES[row.release].metadata
    }
    for release in releases:
        run_plan(plans[release], 0)
    collect_rarely()
    taken_s: dict[str, list[float]] = {release: [] for release in releases}
    for _ in range(rounds):
        for release in releases:
            start_s = time.process_time()
            for seed in range(runs):
                run_plan(plans[release], seed)
            taken_s[release].append((time.process_time() - start_s) / runs)
    first = taken_s[releases[0]]
    for release in releases:
        ratios = sorted(one / other for one, other in zip(taken_s[release], first, strict=True))
        print(
            f"{release}, {plans[release].cluster.metadata}: {statistics.median(taken_s[release]) * 1e3:.1f} ms a run, "
            f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f}) of {releases[0]}"
        )


def profile(work: Callable[[], None]) -> None:
    """Print the functions that take the most time themselves."""
    profiler = cProfile.Profile()
    profiler.runcall(work)
    pstats.Stats(profiler).strip_dirs().sort_stats("tottime").print_stats(25)


if __name__ == "__main__":
    main()
