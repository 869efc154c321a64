"""Asks `harrow advise` the questions with known answers, with as many runs as users have.

Run ``python -m benchmarks.known_answers [--runs N] [NAME...]``; a NAME is a part of the name of a
case. It exits with 1 if an answer is wrong. All cases with 300 runs each take a quarter of an hour
on a core, if harrow is compiled.
"""

import argparse
import sys
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from harrow.campaigns.language.spelling import counted
from harrow.compilation import compilation
from tests.campaigns.advise.known_answers import CASES, Case, advice_of, changed


def main() -> None:
    """Print for each case whether the answer is right, and what it cost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=300, help="of each case; 300 by default")
    parser.add_argument("names", nargs="*", metavar="NAME")
    arguments = parser.parse_args()
    names: list[str] = arguments.names
    cases = [case for case in CASES if not names or any(name in case.name for name in names)]
    costs_s: list[float] = []
    wrong = 0
    for case in cases:
        is_right, runs, cost_s = _asked(case, arguments.runs)
        costs_s.append(cost_s)
        wrong += not is_right
        print(f"{'right' if is_right else 'WRONG'}  {cost_s:6.1f} s  {runs:5} runs  {case.name}", flush=True)
    if not costs_s:
        sys.exit("no case has such a name")
    print(f"CPU seconds: median {median(costs_s):.1f}, most {max(costs_s):.1f}, all {sum(costs_s):.0f}")
    print(f"{len(cases) - wrong} of {counted(len(cases), 'answer')} right, {compilation()[0]}")
    sys.exit(1 if wrong else 0)


def _asked(case: Case, runs: int) -> tuple[bool, int, float]:
    """Return whether the answer is right, the number of runs, and the CPU seconds."""
    with TemporaryDirectory() as folder:
        start_s = time.process_time()
        advice = advice_of(case, Path(folder), runs=runs)
        return changed(advice) == case.answer, advice.runs, time.process_time() - start_s


if __name__ == "__main__":
    main()
