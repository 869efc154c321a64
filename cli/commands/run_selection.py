"""The campaigns and variants that a command line names."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import typer
from rich.console import Console

from harrow.campaigns.language.library_index import library_names, resolve
from harrow.campaigns.language.loader import Campaign, CampaignError, load_campaign
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.language.problem import Problem, UnsuitedError
from harrow.campaigns.language.release_options import BrokerRelease
from harrow.campaigns.language.spelling import suggestion
from harrow.campaigns.record.report import BASE, variant_name
from harrow.cli.console import say
from harrow.cli.session import Refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """A campaign, those of its plans that are to run, and the argument that names it alone."""

    campaign: Campaign
    argument: str
    plans: tuple[Plan, ...]


def select(
    arguments: Iterable[str],
    overrides: Sequence[str] | None,
    variants: Sequence[str] | None,
    brokers: BrokerRelease | None = None,
) -> list[Selection]:
    """Return the campaigns, each with all its plans or those of the *variants*, of which it may have none.

    For *brokers* what names no release is as of theirs.

    A campaign that cannot be had as of the release that an option names is one without plans, where there are others.

    Raises:
        CampaignError: files are missing or wrong; it has the problems of all.

    """
    files, not_found = find_campaigns(arguments)
    campaigns, mistakes, unsuited = _load_each(files, overrides or (), variants or (), brokers)
    is_anything_left = any(campaign.plans for campaign in campaigns)
    if problems := [*not_found, *mistakes, *([] if is_anything_left else unsuited)]:
        raise CampaignError(dict.fromkeys(problems))
    known = list(dict.fromkeys(variant_name(plan) for campaign in campaigns for plan in campaign.plans))
    for name in variants or ():
        if name not in known:
            message = f"no campaign here has a variant `{name}`{suggestion(name, known)}"
            raise typer.BadParameter(message, param_hint="--variant")
    return [
        Selection(
            campaign=campaign,
            argument=argument,
            plans=tuple(plan for plan in campaign.plans if variant_name(plan) in (variants or known)),
        )
        for campaign, argument in zip(campaigns, files.values(), strict=True)
    ]


def tell_notes(campaigns: Iterable[Campaign], console: Console, more: Iterable[Problem] = ()) -> None:
    """Say what campaigns say in vain, and what is left out of them, each once."""
    for note in dict.fromkeys([*(note for campaign in campaigns for note in campaign.notes), *more]):
        say(console, f"note: {note}")


def select_one(argument: str, overrides: Sequence[str] | None, variant: str | None) -> Selection:
    """Return the only campaign that an argument names, with the plan of one variant.

    Raises:
        CampaignError: files are missing or wrong.
        Refusal: the argument names several campaigns.

    """
    selections = select([argument], overrides, [variant or BASE])
    if len(selections) != 1:
        raise Refusal(f"{argument} has {len(selections)} campaigns: name one of them")
    return selections[0]


def find_campaigns(arguments: Iterable[str]) -> tuple[dict[Path, str], list[Problem]]:
    """Return the files that *arguments* name, each with the argument that names it alone, and what is wrong."""
    found: dict[Path, str] = {}
    problems: list[Problem] = []
    for argument in arguments:
        try:
            paths = resolve(argument)
        except CampaignError as error:
            problems += error.problems
            continue
        alone = not Path(argument).is_dir()
        for path in paths:
            found.setdefault(_from_here(path), argument if alone else _short_name(path))
    return found, problems


def _from_here(path: Path) -> Path:
    """Return the path that a person would write: relative if the file is below this folder."""
    whole = path.resolve()
    here = Path.cwd()
    return whole.relative_to(here) if whole.is_relative_to(here) else path


def _short_name(path: Path) -> str:
    """Return a campaign's name if that is enough to find it, else its path."""
    if path.stem in library_names() and resolve(path.stem)[0].resolve() == path.resolve():
        return path.stem
    return str(path)


def load_all(
    paths: Iterable[Path], overrides: Sequence[str], variants: Sequence[str] = ()
) -> tuple[list[Campaign], list[Problem]]:
    """Load campaign files; return the good ones, and the problems of the others (`load_campaign`)."""
    loaded, problems, unsuited = _load_each(paths, overrides, variants)
    return [campaign for campaign in loaded if campaign.plans], [*problems, *unsuited]


def _load_each(
    paths: Iterable[Path],
    overrides: Sequence[str],
    variants: Sequence[str],
    brokers: BrokerRelease | None = None,
) -> tuple[list[Campaign], list[Problem], list[Problem]]:
    """Load campaign files; return those that are right, what is wrong with the others, and what does not suit a release."""
    loaded: list[Campaign] = []
    problems: list[Problem] = []
    unsuited: list[Problem] = []
    for path in paths:
        try:
            loaded.append(load_campaign(path, overrides, variants, brokers))
        except UnsuitedError as error:
            unsuited += error.problems
            notes = tuple(
                replace(problem, message=f"left out: {problem.message}") for problem in error.problems
            )
            loaded.append(Campaign(name=path.stem, description="", path=path, plans=(), notes=notes))
        except CampaignError as error:
            problems += error.problems
    return loaded, list(dict.fromkeys(problems)), list(dict.fromkeys(unsuited))
