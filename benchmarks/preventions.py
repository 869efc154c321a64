"""Which setting prevents each finding of failing swarm runs, and which findings none prevents.

The swarm runs on all releases, and with every known flaw.

Run ``python -m benchmarks.preventions [RUNS]``. Findings of a run with the same rule and causes
count once. harrow tries each prevention (`proven`). ``python -m benchmarks.preventions --library``
does the same for the campaigns that ship, with seed 0.
"""

import argparse
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import count

from benchmarks.known_flaws import library_plan
from harrow.campaigns.language.library_index import library_names, resolve
from harrow.campaigns.language.loader import load_campaign
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.proof import proven
from harrow.campaigns.run.runner import run_plan
from harrow.checks.finding import PERMITTED, VIOLATED
from harrow.cluster_model.release.profiles import MUTANTS, RELEASES, swarm_of


def main() -> None:
    """Print the counts, and each cause without a prevention."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="?", type=int, default=200)
    parser.add_argument("--library", action="store_true", help="the campaigns that ship, with seed 0")
    arguments = parser.parse_args()
    ways: Counter[str] = Counter()
    without: list[str] = []
    runs, run_s, proof_s = 0, 0.0, 0.0
    for name, plan, seed in _library() if arguments.library else _swarms():
        if runs == arguments.runs and not arguments.library:
            break
        start_s = time.process_time()
        result = run_plan(plan, seed)
        run_s += time.process_time() - start_s
        if result.verdict.status not in (VIOLATED, PERMITTED):
            continue
        runs += 1
        start_s = time.process_time()
        rules = proven(result).verdict.rules
        proof_s += time.process_time() - start_s
        by_cause = {
            (rule, finding.permitted_by, tuple(sorted(cause.kind.name for cause in finding.causes))): finding
            for rule, judged in rules.items()
            for finding in judged.findings
        }
        for (rule, setting, kinds), finding in by_cause.items():
            held = [way.name for way in finding.prevented_by if way.held]
            ways.update(held or ["nothing that was tried"])
            if not held:
                why = "; ".join(finding.no_remedy) or "no reason declared"
                causes = ", ".join(kinds) or "no cause"
                without.append(f"{name}, seed {seed}: {rule} by {causes} ({setting}): {why}")
    print(f"{runs} runs in {run_s:.1f} s, tried in {proof_s:.1f} s")
    for way, times in ways.most_common():
        print(f"{times:6}  {way}")
    print(*without, sep="\n")


def _library() -> Iterator[tuple[str, Plan, int]]:
    for campaign in library_names():
        for file in resolve(campaign):
            for plan in load_campaign(file).plans:
                yield f"{plan.campaign}[{plan.variant or 'base'}]", plan, 0


def _swarms() -> Iterator[tuple[str, Plan, int]]:
    """Yield plans of the swarm endlessly, for each release and for each flaw in turn."""
    swarm = library_plan("swarm")
    models = (*RELEASES, *MUTANTS)
    for number in count():
        name = models[number % len(models)]
        yield name, _model(swarm, name), number // len(models)


def _model(swarm: Plan, name: str) -> Plan:
    if name in MUTANTS:
        return library_plan(swarm_of(MUTANTS[name])).flawed(MUTANTS[name])
    assert swarm.swarm is not None
    return replace(swarm, kafka=name, swarm=replace(swarm.swarm, releases=()))


if __name__ == "__main__":
    main()
