"""Finds a library campaign that shows the effect of one behaviour of a release."""

import shlex
from functools import cache
from typing import Any

from harrow.campaigns.language.library_index import resolve
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.language.units import value_text
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.release.profiles import SWITCHES


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvisedRun:
    """A run of a library campaign with one behaviour switch set to another value."""

    campaign: str
    variant: str | None
    seeds: int
    switch: str
    value: Any

    def command(self) -> str:
        changed = f"behaviours.{self.switch}={value_text(self.value)}"
        variant = ["--variant", self.variant] if self.variant else []
        seeds = ["--seeds", f"0..{self.seeds}"] if self.seeds > 1 else []
        return shlex.join(["harrow", "run", self.campaign, *variant, *seeds, "--set", changed])


def advised_run(switch: str) -> AdvisedRun | None:
    """Return a run that shows the effect of a switch; None if no library campaign does."""
    declared = SWITCHES[switch]
    if not declared.is_read_in_campaign:
        return None
    subject = declared.subject
    plan = plans_of(subject.campaign, subject.variant)[0]
    current = plan.behaviour_switches().value(switch)
    return AdvisedRun(
        campaign=subject.campaign,
        variant=subject.variant,
        seeds=subject.seeds,
        switch=switch,
        value=next(choice for choice in declared.choices if choice != current),
    )


@cache
def plans_of(campaign: str, variant: str | None) -> tuple[Plan, ...]:
    """Return the plans that a command runs: those of all variants, or only of *variant*."""
    from harrow.campaigns.language.loader import load_campaign

    plans = load_campaign(resolve(campaign)[0]).plans
    return tuple(plan for plan in plans if variant in (None, plan.variant))
