"""Prints a line for each switch whose `is_read_in_campaign` is wrong.

The program replaces attributes of the switches' classes, so it needs plain Python
(``HARROW_PURE=1``).
"""

import sys
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.runner import run_plan
from harrow.cli.render.advised_run import AdvisedRun, advised_run, plans_of
from harrow.cluster_model import lazy_dataclass, release
from harrow.cluster_model.release.profiles import SWITCHES, Behaviours
from harrow.cluster_model.release.subjects import Subject

_READERS = ("harrow.cluster_model.", "harrow.campaigns.clients.")
_COPIERS = (f"{release.__name__}.", lazy_dataclass.__name__)
"""Modules that read all switches only to copy them."""

_read: set[str] = set()


def watch(declaring: type[Any], name: str) -> None:
    """Record in ``_read`` when code of the model or of its clients reads a switch."""
    slot = declaring.__dict__[name]

    def value(switches: Any) -> Any:
        reader = sys._getframe(1).f_globals["__name__"]
        if reader.startswith(_READERS) and not reader.startswith(_COPIERS):
            _read.add(name)
        return slot.__get__(switches)

    setattr(declaring, name, property(value, slot.__set__))


def reads(plan: Plan, seed: int) -> set[str]:
    """Return the switches that a run reads."""
    _read.clear()
    run_plan(plan, seed)
    return set(_read)


@cache
def unchanged(campaign: str, variant: str | None, seeds: int) -> list[tuple[Plan, int, set[str]]]:
    """Return the unchanged runs of a campaign, with the switches that each one reads."""
    return [
        (plan, seed, reads(plan, seed)) for plan, seed in product(plans_of(campaign, variant), range(seeds))
    ]


def unchanged_of(subject: Subject) -> list[tuple[Plan, int, set[str]]]:
    return unchanged(subject.campaign, subject.variant, subject.seeds)


def is_read(name: str, run: AdvisedRun, subject: Subject) -> bool:
    """Return whether an advised run reads the switch.

    Seeds whose unchanged runs read the switch are tried first.
    """
    likely_first = sorted(unchanged_of(subject), key=lambda read: name not in read[2])
    changed = (
        (replace(plan, behaviours={**plan.behaviours, name: run.value}), seed)
        for plan, seed, _ in likely_first
    )
    return any(name in reads(plan, seed) for plan, seed in changed)


def main() -> None:
    """Print advised runs that do not read their switch, and switches that lack an advised run.

    A switch lacks one if runs of its subject read it.
    """
    for switch in SWITCHES.values():
        watch(type(getattr(Behaviours(), switch.section)), switch.name)
    for name, switch in SWITCHES.items():
        run, subject = advised_run(name), switch.subject
        if run is not None and not is_read(name, run, subject):
            sys.stdout.write(f"not read by {run.command()}\n")
        if run is None and any(name in read for _, _, read in unchanged_of(subject)):
            sys.stdout.write(f"{name} is read by {subject.campaign}\n")


if __name__ == "__main__":
    main()
