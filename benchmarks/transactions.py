"""The CPU time of a record in standard-eos.yaml relative to standard.yaml, with all rules on.

Both run the same code in turns.

Run ``python -m benchmarks.transactions [SEEDS]``. The records are those handed to producers; in
standard-eos, these include the records that applications make of others. Both campaigns are also
measured without faults, because their faults differ.
"""

import argparse
import time
from dataclasses import replace

from harrow.campaigns.language.library_index import resolve
from harrow.campaigns.language.loader import load_campaign
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.collector import collect_rarely
from harrow.campaigns.run.runner import run_plan

_GOAL = 2.5


def main() -> None:
    """Print the figures, and the ratio of the costs of a record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seeds", nargs="?", type=int, default=10)
    seeds = range(parser.parse_args().seeds)
    for with_faults in (True, False):
        plans = [_plan(name, with_faults=with_faults) for name in ("standard", "standard-eos")]
        costs = _measure(plans, seeds)
        print("with faults" if with_faults else "without faults")
        for plan, (records, took_s, events) in zip(plans, costs, strict=True):
            print(
                f"  {plan.campaign:13} {records:7} records, {took_s / records * 1e6:6.0f} us a record, "
                f"{events / records:5.1f} events a record, {took_s / len(seeds) * 1e3:5.0f} ms a run"
            )
        (records, took_s, _), (eos_records, eos_took_s, _) = costs
        ratio = (eos_took_s / eos_records) / (took_s / records)
        print(f"  {ratio:.2f} times as much (goal: at most {_GOAL})")


def _plan(name: str, *, with_faults: bool) -> Plan:
    plan = load_campaign(resolve(name)[0]).plans[0]
    return plan if with_faults else replace(plan, faults=())


def _measure(plans: list[Plan], seeds: range) -> list[tuple[int, float, int]]:
    """Return records, seconds and events of each plan, while the plans take turns."""
    found = [(0, 0.0, 0) for _ in plans]
    for plan in plans:
        run_plan(plan, 0)  # Do not measure imports and the filling of caches.
    collect_rarely()  # As `harrow run` does.
    for seed in seeds:
        for number, plan in enumerate(plans):
            start_s = time.process_time()
            result = run_plan(plan, seed)
            took_s = time.process_time() - start_s
            sent = sum(
                len(list(operation.sends()))
                for operation in result.evidence.operations
                if not operation.is_completion
            )
            records, total_s, events = found[number]
            found[number] = (records + sent, total_s + took_s, events + result.events)
    return found


if __name__ == "__main__":
    main()
