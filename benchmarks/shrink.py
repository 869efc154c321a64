"""How small failures become and how long that takes, for each known flaw that loses data.

Run ``python -m benchmarks.shrink [--failures N] [--into FOLDER] [MUTANT...]``; the table is that of
docs/evidence/shrinking.md. Seconds are CPU time, which other work on the machine hardly changes.
"""

import argparse
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from benchmarks.known_flaws import library_plan
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.runner import run_plan
from harrow.campaigns.search.shrink import Shrinker
from harrow.campaigns.search.shrunk_campaign import shrunk_text
from harrow.campaigns.search.signature import signatures
from harrow.cluster_model.release.profiles import MUTANTS, swarm_of

DATA_RULES = ("lost-write", "duplicate", "inconsistent-offsets")
_SEEDS_MAX = 200
_COLUMNS = ("mutant", "seed", "rule", "seconds", "runs", "faults", "records", "brokers")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mutants", nargs="*", metavar="MUTANT", default=list(MUTANTS))
    parser.add_argument("--failures", type=int, default=1, help="of each mutant so many")
    parser.add_argument("--seeds", type=int, default=_SEEDS_MAX, help="look for failures in so many seeds")
    parser.add_argument("--into", type=Path, help="keep the shrunk campaigns in this folder")
    options = parser.parse_args()
    print(f"| {' | '.join(_COLUMNS)} |")
    print(f"| {' | '.join('---' for _ in _COLUMNS)} |")
    for name in options.mutants:
        mutant = MUTANTS[name]
        plan = library_plan(swarm_of(mutant)).flawed(mutant)
        for seed in islice(_failing(plan, options.seeds), options.failures):
            text = _shrink(name, plan, seed)
            if options.into is not None:
                options.into.mkdir(parents=True, exist_ok=True)
                (options.into / f"{name}-{seed}.yaml").write_text(text, encoding="utf-8")


def _failing(plan: Plan, seeds: int) -> Iterator[int]:
    """Yield the seeds with which clients lose or double data, or see two records at one offset."""
    for seed in range(seeds):
        broken = signatures(run_plan(plan, seed))
        if any(signature.rule in DATA_RULES for signature in broken):
            yield seed


def _shrink(name: str, plan: Plan, seed: int) -> str:
    start_s = time.process_time()
    shrinker = Shrinker(plan, seed)
    best = shrinker.run()
    seconds = time.process_time() - start_s
    faults, records = best.size()
    original = shrinker.original.result
    sent = sum(
        operation.type == "invoke" and operation.f == "send" for operation in original.evidence.operations
    )
    cells = (
        f"`{name}`",
        seed,
        shrinker.failure.name,
        f"{seconds:.1f}",
        shrinker.runs,
        f"{len(original.faults)} -> {faults}",
        f"{sent} -> {records}",
        f"{len(original.plan.cluster.brokers)} -> {len(best.plan.cluster.brokers)}",
    )
    print(f"| {' | '.join(map(str, cells))} |", flush=True)
    mutant = MUTANTS[name]
    override = f"behaviours.{mutant.switch}={str(mutant.value).lower()}"
    return shrunk_text(shrinker, f"harrow run swarm --seed {seed} --set {override}")


if __name__ == "__main__":
    main()
