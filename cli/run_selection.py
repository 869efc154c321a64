"""What `harrow run` was asked to run: campaigns, their variants, and how one types each."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import typer

from campaigns.library_index import library_names, resolve
from campaigns.loader import Campaign, CampaignError, load_campaign
from campaigns.plan import Plan
from campaigns.problem import Problem
from campaigns.report import variant_name
from campaigns.spelling import suggestion


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """A campaign, those of its plans that are to run, and the argument that names it alone."""

    campaign: Campaign
    argument: str
    plans: tuple[Plan, ...]


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
            found.setdefault(_as_seen_from_here(path), argument if alone else _short_name(path))
    return found, problems


def _as_seen_from_here(path: Path) -> Path:
    """Return the path that a person would write: relative when the file is below this folder."""
    whole = path.resolve()
    here = Path.cwd()
    return whole.relative_to(here) if whole.is_relative_to(here) else path


def _short_name(path: Path) -> str:
    """Return a campaign's name when that is enough to find it, else its path."""
    if path.stem in library_names() and resolve(path.stem)[0].resolve() == path.resolve():
        return path.stem
    return str(path)


def load_all(paths: Iterable[Path], overrides: Sequence[str] = ()) -> tuple[list[Campaign], list[Problem]]:
    """Load campaign files; return the good ones, and the problems of the others."""
    loaded: list[Campaign] = []
    problems: list[Problem] = []
    for path in paths:
        try:
            loaded.append(load_campaign(path, overrides=overrides))
        except CampaignError as error:
            problems += error.problems
    return loaded, list(dict.fromkeys(problems))


def choose_variants(campaigns: Sequence[Campaign], names: Sequence[str]) -> list[tuple[Plan, ...]]:
    """Return the plans to run of each campaign: all, or those of the variants *names*."""
    known = list(dict.fromkeys(variant_name(plan) for campaign in campaigns for plan in campaign.plans))
    for name in names:
        if name not in known:
            message = f"no campaign here has a variant `{name}`{suggestion(name, known)}"
            raise typer.BadParameter(message, param_hint="--variant")
    return [
        tuple(plan for plan in campaign.plans if not names or variant_name(plan) in names)
        for campaign in campaigns
    ]
