"""Runs seeds of `standard` on every release with each control plane, and counts the verdicts.

Run ``python -m benchmarks.releases [--seconds S] [--first SEED] [--last SEED] [--metadata MODE]
[--repaired]``. The table of docs/evidence/runs-that-must-pass.md is its output. A release runs as
it was, with flaws that later releases repaired or that every release has. It also runs with these
flaws repaired, and then must not break a promise.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final, cast, get_args

from harrow.campaigns.language.library_index import resolve
from harrow.campaigns.language.loader import load_campaign
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.runner import run_plan
from harrow.checks.finding import HELD, INCONCLUSIVE, PERMITTED, VIOLATED
from harrow.cluster_model.release.profiles import RELEASES, SWITCHES
from harrow.cluster_model.settings import PRODUCER, SETTINGS
from harrow.cluster_model.topology import Metadata

ROUND: Final = 25
"""How many seeds of a row run before the next row's turn, so that rows share the time fairly."""
ROUND_AS_IT_WAS: Final = 5
"""The same for a release with its flaws. It is smaller, because its failures are no news."""
STATUSES: Final = (HELD, PERMITTED, INCONCLUSIVE, VIOLATED)


@dataclass(slots=True, kw_only=True)
class ReleaseRow:
    """One release in one metadata mode, with the verdicts of its seeds."""

    release: str
    mode: str
    is_repaired: bool
    has_flaws: bool
    plan: Plan
    verdicts: Counter[str] = field(default_factory=Counter)
    rules: Counter[str] = field(default_factory=Counter)

    @property
    def title(self) -> str:
        return f"| {self.release} | {self.mode} | {'repaired' if self.is_repaired else 'as it was'} "

    def run(self, seed: int) -> None:
        """Run one seed, and print it to standard error if it is violated or inconclusive."""
        verdict = run_plan(self.plan, seed).verdict
        self.verdicts[verdict.status] += 1
        broken = [name for name, judged in verdict.rules.items() if judged.status == VIOLATED]
        self.rules.update(broken)
        if verdict.status in {VIOLATED, INCONCLUSIVE}:
            sys.stderr.write(f"{self.title}| seed {seed} | {verdict.status} | {', '.join(broken)} |\n")
            sys.stderr.flush()

    def cells(self) -> str:
        counts = " | ".join(str(self.verdicts[status]) for status in STATUSES)
        broken = ", ".join(f"{name} {count}" for name, count in self.rules.most_common())
        return f"{self.title}| {self.verdicts.total()} | {counts} | {broken} |"


def rows() -> Iterator[ReleaseRow]:
    """Yield each release and mode as it was, and with its flaws repaired if it has any."""
    for name, release in RELEASES.items():
        repairs = {
            switch.name: switch.safe
            for switch in SWITCHES.values()
            if switch.is_repair and switch.value_in(name) != switch.safe
        }
        for mode in release.modes:
            plan = _standard_on(name, cast("Metadata", mode))
            yield ReleaseRow(release=name, mode=mode, is_repaired=False, has_flaws=bool(repairs), plan=plan)
            if repairs:
                yield ReleaseRow(
                    release=name,
                    mode=mode,
                    is_repaired=True,
                    has_flaws=False,
                    plan=replace(plan, behaviours=repairs),
                )


def _standard_on(release: str, mode: Metadata) -> Plan:
    """Return `standard` on another release, without settings that the release does not have."""
    plan = load_campaign(resolve("standard")[0]).plans[0]
    producers = tuple(
        replace(
            producer,
            settings={
                name: value
                for name, value in producer.settings.items()
                if SETTINGS[PRODUCER, name].exists_in(release)
            },
        )
        for producer in plan.producers
    )
    cluster = replace(plan.cluster, metadata=mode)
    return replace(plan, kafka=release, behaviours={}, cluster=cluster, producers=producers)


def main() -> None:
    """Run seeds for as long as there is time, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument(
        "--last", type=int, default=sys.maxsize, help="end with this seed, if there is time for it"
    )
    parser.add_argument("--metadata", choices=get_args(Metadata), help="leave out the other mode")
    parser.add_argument("--repaired", action="store_true", help="leave out releases with their flaws")
    arguments = parser.parse_args()
    table = [
        row
        for row in rows()
        if (row.is_repaired or not (arguments.repaired and row.has_flaws))
        and arguments.metadata in {None, row.mode}
    ]
    first, end = arguments.first, time.monotonic() + arguments.seconds
    while time.monotonic() < end and first <= arguments.last:
        for row in table:
            last = min(first + (ROUND_AS_IT_WAS if row.has_flaws else ROUND) - 1, arguments.last)
            for seed in range(first, last + 1):
                row.run(seed)
        first += ROUND
        sys.stderr.write("\n".join(["", *(row.cells() for row in table), ""]))
    sys.stdout.write(
        "| release | metadata | flaws | seeds | held | permitted | inconclusive | violated | by |\n"
    )
    sys.stdout.write("|---|---|---|---:|---:|---:|---:|---:|---|\n")
    sys.stdout.write("".join(f"{row.cells()}\n" for row in table))


if __name__ == "__main__":
    main()
