"""Measures what compiling gains, and checks that it changes no result.

Run ``python -m benchmarks.compiled [SEEDS]`` after ``make compiled``; ``--campaigns`` chooses some.
The same seeds run compiled and in pure Python, in two processes at the same time, so that a busy
machine slows both. Digests of traces and histories, verdicts and findings are compared seed by
seed.
"""

import argparse
import hashlib
import os
import subprocess
import sys
import time
from dataclasses import replace
from typing import Final

from harrow.campaigns.language.library_index import resolve
from harrow.campaigns.language.loader import load_campaign
from harrow.campaigns.record.json_text import json_line
from harrow.campaigns.record.report import run_as_mapping
from harrow.campaigns.run.runner import run_plan
from harrow.compilation import COMPILED, PURE, compilation

CAMPAIGNS: Final = ("standard", "swarm", "swarm-kraft", "swarm-eos", "swarm-disks")


def main() -> None:
    """Compare, and print what each side took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seeds", nargs="?", type=int, default=100)
    parser.add_argument(
        "--campaigns",
        nargs="+",
        metavar="NAME",
        default=CAMPAIGNS,
        help=f"campaigns of the library; default: {', '.join(CAMPAIGNS)}",
    )
    parser.add_argument(
        "--of", metavar="NAME", help="print what the seeds of one campaign give, as one side does"
    )
    arguments = parser.parse_args()
    if arguments.of:
        print_runs(arguments.of, arguments.seeds)
        return
    different = 0
    for campaign in arguments.campaigns:
        ours, pure = (start_side(campaign, arguments.seeds, pure=pure) for pure in (False, True))
        (*runs, summary), (*pure_runs, pure_summary) = (
            side.communicate()[0].splitlines() for side in (ours, pure)
        )
        (how, seconds), (pure_how, pure_seconds) = summary.split("; "), pure_summary.split("; ")
        if ours.returncode or pure.returncode or (how, pure_how) != (COMPILED, PURE):
            sys.exit(f"one side is {how}, the other {pure_how}: make compiled")
        different_runs = [run for run, pure_run in zip(runs, pure_runs, strict=True) if run != pure_run]
        different += len(different_runs)
        ratio = float(pure_seconds) / float(seconds)
        print(
            f"{campaign}: {arguments.seeds} seeds, {len(different_runs)} of them different {different_runs[:3] or ''}".rstrip()
        )
        print(
            f"CPU seconds: {how} {seconds}, {pure_how} {pure_seconds}: {ratio:.2f} times as fast",
            flush=True,
        )
    sys.exit(different != 0)


def start_side(campaign: str, seeds: int, *, pure: bool) -> subprocess.Popen[str]:
    """Start the process of one side: compiled, or in *pure* Python."""
    command = (sys.executable, "-m", "benchmarks.compiled", str(seeds), "--of", campaign)
    environment = {**os.environ, "HARROW_PURE": "1" if pure else ""}
    return subprocess.Popen(  # noqa: S603 - this script itself
        command, env=environment, stdout=subprocess.PIPE, text=True
    )


def print_runs(campaign: str, seeds: int) -> None:
    """Print a line for each seed, then whether the core is compiled, and the CPU seconds."""
    plan = load_campaign(resolve(campaign)[0]).plans[0]
    run_plan(plan, 0)
    cpu_s = 0.0
    for seed in range(seeds):
        before = time.process_time()
        result = run_plan(plan, seed)
        cpu_s += time.process_time() - before
        document = run_as_mapping(replace(result, wall_ms=0), "")
        operations = [operation.as_mapping() for operation in result.evidence.operations]
        document_digest = hashlib.sha256(json_line([document, operations]).encode()).hexdigest()[:16]
        print(seed, result.trace_digest, result.verdict.status, document_digest)
    print(f"{compilation()[0]}; {cpu_s:.2f}")


if __name__ == "__main__":
    main()
