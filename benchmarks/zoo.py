"""How soon the swarm finds each known flaw: seeds and seconds on one core.

Run ``python -m benchmarks.zoo [SEEDS]``; the table is that of docs/zoo.md.
"""

import argparse
import time
from dataclasses import replace

from harrow.campaigns.language.library_index import resolve
from harrow.campaigns.language.loader import load_campaign
from harrow.campaigns.run.runner import run_plan
from harrow.checks.finding import VIOLATED
from harrow.cluster_model.mutants import MUTANTS


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seeds", nargs="?", type=int, default=4_000)
    seeds = parser.parse_args().seeds
    plan = load_campaign(resolve("swarm")[0]).plans[0]
    print("| mutant | seeds | seconds | noticed by |")
    print("| --- | --- | --- | --- |")
    for name, mutant in MUTANTS.items():
        broken = replace(plan, behaviours={**plan.behaviours, mutant.switch: mutant.value})
        started = time.process_time()
        for seed in range(seeds):
            rules = run_plan(broken, seed).verdict.rules
            seen = [rule for rule, judged in rules.items() if judged.status == VIOLATED]
            if seen:
                print(f"| `{name}` | {seed + 1} | {time.process_time() - started:.1f} | {', '.join(seen)} |")
                break
        else:
            print(f"| `{name}` | more than {seeds} | | |")


if __name__ == "__main__":
    main()
