"""Loads campaigns for tests, with the arguments that name them on the command line."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harrow.campaigns.language.loader import Campaign, CampaignError, load_campaign
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.language.spelling import suggestion
from harrow.campaigns.record.report import reproduce_command, variant_name
from harrow.campaigns.run.proof import proven
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import run_plan
from harrow.cli.commands.run_tally import FinishedRun


class UnknownVariant(Exception):
    """A campaign has no variant of this name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A loaded campaign, with the argument and options that reproduce it with `harrow run`."""

    campaign: Campaign
    argument: str
    overrides: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.campaign.name

    @property
    def plans(self) -> tuple[Plan, ...]:
        """The base and the variants."""
        return self.campaign.plans

    def plan(self, variant: str | None) -> Plan:
        """Return the plan of a variant. None and ``base`` select the base.

        Raises:
            UnknownVariant: No variant has this name.

        """
        names = {variant_name(plan): plan for plan in self.plans}
        name = variant_name(self.plans[0]) if variant is None else variant
        if name not in names:
            raise UnknownVariant(f"{self.name} has no variant `{name}`{suggestion(name, names)}")
        return names[name]

    def run(self, plan: Plan, seed: int) -> RunResult:
        try:
            return run_plan(plan, seed)
        except Exception as error:
            error.add_note(f"the run that failed: {self.reproduce(plan, seed)}")
            raise

    def reproduce(self, plan: Plan, seed: int) -> str:
        return reproduce_command(self.argument, seed, plan.variant, self.overrides)

    def finished(self, result: RunResult, here: Path) -> FinishedRun:
        """Return a run for reports, with its campaign file relative to the folder *here*."""
        result = proven(result)
        return FinishedRun(
            result=result,
            reproduce=self.reproduce(result.plan, result.seed),
            file=as_seen_from(here, self.campaign.path),
            folder=None,
        )


def load_source(path: Path, here: Path, overrides: Sequence[str], argument: str | None = None) -> Source:
    """Load a campaign. Messages name its file relative to the folder *here*.

    Raises:
        CampaignError: The file has mistakes.

    """
    shown = str(as_seen_from(here, path))
    try:
        campaign = load_campaign(path, overrides)
    except CampaignError as error:
        raise CampaignError(
            replace(problem, file=shown) if problem.file == str(path) else problem
            for problem in error.problems
        ) from None
    return Source(campaign=campaign, argument=argument or shown, overrides=tuple(overrides))


def as_seen_from(here: Path, path: Path) -> Path:
    """Return a path relative to the folder *here* if it is below that folder."""
    return path.relative_to(here) if path.is_relative_to(here) else path
