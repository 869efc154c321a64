"""A campaign that a test runs, and how one names it on the command line."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harrow.campaigns.language.loader import Campaign, CampaignError, load_campaign
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.language.spelling import suggestion
from harrow.campaigns.record.report import reproduce_command, run_as_mapping, variant_name
from harrow.campaigns.run.proof import proven
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import run_plan
from harrow.cli.commands.run_tally import FinishedRun


class UnknownVariant(Exception):
    """A campaign has no variant of this name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A campaign that has been loaded, with the argument of `harrow run` that names it and the options."""

    campaign: Campaign
    argument: str
    overrides: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.campaign.name

    @property
    def plans(self) -> tuple[Plan, ...]:
        """The base, then each variant."""
        return self.campaign.plans

    def plan(self, variant: str | None) -> Plan:
        """Return the plan of a variant; None and ``base`` are the campaign without one.

        Raises:
            UnknownVariant: there is none of this name.

        """
        names = {variant_name(plan): plan for plan in self.plans}
        wanted = variant_name(self.plans[0]) if variant is None else variant
        if wanted not in names:
            raise UnknownVariant(f"{self.name} has no variant `{wanted}`{suggestion(wanted, names)}")
        return names[wanted]

    def run(self, plan: Plan, seed: int) -> RunResult:
        try:
            return run_plan(plan, seed)
        except Exception as error:
            error.add_note(f"the run that failed: {self.reproduce(plan, seed)}")
            raise

    def reproduce(self, plan: Plan, seed: int) -> str:
        return reproduce_command(self.argument, seed, plan.variant, self.overrides)

    def finished(self, result: RunResult, here: Path) -> FinishedRun:
        """Return a run as reports want it; its file is named as seen from the folder *here*."""
        result = proven(result)
        return FinishedRun(
            result=result,
            mapping=run_as_mapping(result, self.reproduce(result.plan, result.seed)),
            file=as_seen_from(here, self.campaign.path),
            folder=None,
        )


def load_source(path: Path, here: Path, overrides: Sequence[str], argument: str | None = None) -> Source:
    """Return the campaign in a file; messages name the file as seen from the folder *here*.

    Raises:
        CampaignError: the file has mistakes.

    """
    seen = str(as_seen_from(here, path))
    try:
        campaign = load_campaign(path, overrides)
    except CampaignError as error:
        raise CampaignError(
            replace(problem, file=seen) if problem.file == str(path) else problem
            for problem in error.problems
        ) from None
    return Source(campaign=campaign, argument=argument or seen, overrides=tuple(overrides))


def as_seen_from(here: Path, path: Path) -> Path:
    """Return a path as somebody in the folder *here* would write it."""
    return path.relative_to(here) if path.is_relative_to(here) else path
