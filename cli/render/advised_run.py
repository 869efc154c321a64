"""The run that shows a reader what one behaviour of a release is for."""

import shlex
from dataclasses import dataclass
from functools import cache
from typing import Any

from harrow.campaigns.language.library_index import resolve
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.language.units import value_text
from harrow.cluster_model.release.profiles import SWITCHES


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvisedRun:
    """A campaign of the library with one switch set to a value that it does not have there."""

    campaign: str
    variant: str | None
    seeds: int
    switch: str
    value: Any

    def command(self) -> str:
        """Return the line to type."""
        changed = f"behaviours.{self.switch}={value_text(self.value)}"
        variant = ["--variant", self.variant] if self.variant else []
        seeds = ["--seeds", f"0..{self.seeds}"] if self.seeds > 1 else []
        return shlex.join(["harrow", "run", self.campaign, *variant, *seeds, "--set", changed])


def advised_run(switch: str) -> AdvisedRun | None:
    """Return the run to try a switch with; None where no campaign meets it. It reads the campaign's file."""
    declared = SWITCHES[switch]
    if not declared.is_met:
        return None
    subject = declared.of
    plan = plans_of(subject.campaign, subject.variant)[0]
    present = plan.behaviour_switches().value(switch)
    return AdvisedRun(
        campaign=subject.campaign,
        variant=subject.variant,
        seeds=subject.seeds,
        switch=switch,
        value=next(choice for choice in declared.choices if choice != present),
    )


@cache
def plans_of(campaign: str, variant: str | None) -> tuple[Plan, ...]:
    """Return the plans that the command changes: those of all variants, or of the one that it names."""
    from harrow.campaigns.language.loader import load_campaign

    plans = load_campaign(resolve(campaign)[0]).plans
    return tuple(plan for plan in plans if variant in (None, plan.variant))
