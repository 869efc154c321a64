"""Sets each switch to its earlier value, and counts the seeds until a rule notices.

Run ``python -m benchmarks.switches [--seconds S] [SWITCH ...]``. The second table of
docs/evidence/runs-with-a-known-flaw.md is its output. A switch runs on the first release that has
its later value, in the swarm for that release's control plane, in `swarm-eos` or in `swarm-disks`.
Everything else that a later release repaired is repaired. A rule that also breaks with the later
value does not count.
"""

import argparse
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final

from benchmarks.known_flaws import FirstFailure, broken_rules, first_failure, library_plan
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.runner import run_plan
from harrow.checks.finding import INCONCLUSIVE
from harrow.cluster_model.release.profiles import RELEASES, SWITCHES, ReleaseProfile

SEEDS: Final = 100_000
REPAIRED: Final = {name: switch.safe for name, switch in SWITCHES.items() if switch.is_repair}


def changes() -> Iterator[tuple[str, Any, ReleaseProfile]]:
    """Yield each switch with a value that some profile replaced, and the profile that did so."""
    profiles = list(RELEASES.values())
    for name, switch in SWITCHES.items():
        for before, after in pairwise(profiles):
            former = switch.value_in(before.name)
            if former != switch.value_in(after.name):
                yield name, former, after


def swarm_of(name: str, release: ReleaseProfile) -> Plan:
    """Return the swarm on a release, with KRaft if the switch is about KRaft."""
    subject = SWITCHES[name].subject
    needs_kraft = subject.is_kraft_only or "zookeeper" not in release.modes
    metadata: Any = "kraft" if needs_kraft else "zookeeper"
    plan = library_plan("swarm-kraft" if needs_kraft else "swarm")
    if subject.campaign == "swarm-disks":
        plan = library_plan("swarm-disks", "kraft" if needs_kraft else None)
    if subject.needs_coordinators:
        plan, metadata = library_plan("swarm-eos"), release.metadata
    return replace(plan, kafka=release.name, cluster=replace(plan.cluster, metadata=metadata))


def noticed(plan: Plan, seed: int) -> tuple[str, ...]:
    """Return the rules that a run breaks, or INCONCLUSIVE if it did not settle."""
    verdict = run_plan(plan, seed).verdict
    return (verdict.status,) if verdict.status == INCONCLUSIVE else broken_rules(verdict)


def first_of_its_own(before: Plan, after: Plan, end_s: float) -> FirstFailure:
    """Return the first seed that breaks a rule only with the switch's earlier value."""

    def rules_broken_only_before(seed: int) -> tuple[str, ...]:
        found = noticed(before, seed)
        others = noticed(after, seed) if found else ()
        return tuple(name for name in found if name not in others)

    return first_failure(rules_broken_only_before, range(SEEDS), end_s)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("switches", nargs="*", metavar="SWITCH")
    parser.add_argument("--seconds", type=float, default=60, help="of CPU time for each switch")
    parser.add_argument("--all", action="store_true", help="those of mutants, too")
    arguments = parser.parse_args()
    print("| switch | earlier value, release | seeds | noticed by |")
    print("| --- | --- | ---: | --- |")
    for name, value, release in changes():
        if arguments.switches and name not in arguments.switches:
            continue
        if not arguments.switches and SWITCHES[name].mutants and not arguments.all:
            continue
        plan = swarm_of(name, release)
        # Switches that would hide the difference stay off.
        others = {**REPAIRED, **plan.behaviours, **dict.fromkeys(SWITCHES[name].hidden_by, False)}
        former, later = (
            replace(plan, behaviours={**others, name: each})
            for each in (value, SWITCHES[name].value_in(release.name))
        )
        found = first_of_its_own(former, later, time.process_time() + arguments.seconds)
        cells = f"{found.seeds} | {', '.join(found.rules)}" if found.rules else f"not in {found.seeds} |"
        print(f"| `{name}` | {value}, {release.name} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
