"""Loads the campaigns that a command line names, and selects their variants."""

import os
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from harrow.campaigns.language.library_index import resolve, shipped_names
from harrow.campaigns.language.loader import (
    Campaign,
    CampaignError,
    check_cluster_file,
    check_workload_file,
    load_campaign,
)
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.language.problem import (
    ClusterFileGivenError,
    PartGivenError,
    Problem,
    UnsuitedError,
    WorkloadFileGivenError,
)
from harrow.campaigns.language.release_options import BrokerRelease
from harrow.campaigns.language.spelling import suggestion
from harrow.campaigns.record.report import BASE, variant_name
from harrow.cli.requests.request import CommandRequest
from harrow.cli.requests.run import RunRequest
from harrow.cli.session import Refusal, need_writable, note
from harrow.cluster_model.lazy_dataclass import dataclass, replace

if TYPE_CHECKING:
    from harrow.cli.requests.real_brokers import ConformRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """A campaign, its plans to run, and a command-line argument that names only this campaign."""

    campaign: Campaign
    argument: str
    plans: tuple[Plan, ...]


def select(
    arguments: Iterable[str],
    overrides: Sequence[str] | None,
    variants: Sequence[str] | None,
    brokers: BrokerRelease | None = None,
) -> list[Selection]:
    """Return the campaigns, each with the plans of its *variants*; by default, of all variants.

    A plan that names no release takes the release of the *brokers*. If an option names a release, a
    campaign that does not suit the release is left out with a note, unless no campaign suits it.

    Raises:
        CampaignError: Files have problems. The error has the problems of all files.

    """
    arguments = list(arguments)
    files, missing = find_campaigns(arguments)
    named = {_real(Path(argument)) for argument in arguments}
    campaigns, mistakes, unsuited = _load_each(files, named, overrides or (), variants or (), brokers)
    has_plans = any(campaign.plans for campaign in campaigns)
    if problems := [*missing, *mistakes, *([] if has_plans else unsuited)]:
        raise CampaignError(dict.fromkeys(problems))
    names = list(dict.fromkeys(variant_name(plan) for campaign in campaigns for plan in campaign.plans))
    check_variants(variants or (), names)
    return [
        Selection(
            campaign=campaign,
            argument=argument,
            plans=tuple(plan for plan in campaign.plans if variant_name(plan) in (variants or names)),
        )
        for campaign, argument in zip(campaigns, files.values(), strict=True)
    ]


def check_variants(variants: Iterable[str], names: Collection[str]) -> None:
    """Refuse variants that are none of *names*."""
    for name in variants:
        if name not in names:
            message = f"no campaign here has a variant `{name}`{suggestion(name, names)}"
            raise typer.BadParameter(message, param_hint="--variant")


def _real(path: Path) -> Path:
    """Return a path without links; in a loop of links, some path (`Path.resolve` may raise)."""
    return Path(os.path.realpath(path))


def select_to_run(
    request: "RunRequest | ConformRequest", brokers: BrokerRelease | None = None
) -> list[Selection]:
    """Select the campaigns of a request, check the folder for results, and print the notes."""
    selections = select(request.campaigns or (), request.overrides, request.variants, brokers)
    if not request.no_results:
        need_writable(request.results)
    print_notes(request, (selection.campaign for selection in selections))
    return selections


def print_notes(request: CommandRequest, campaigns: Iterable[Campaign], more: Iterable[Problem] = ()) -> None:
    """Print notes on keys that have no effect and on campaigns that are left out, each once."""
    for problem in dict.fromkeys([*(each for campaign in campaigns for each in campaign.notes), *more]):
        note(request, f"note: {problem}")


def select_one(argument: str, overrides: Sequence[str] | None, variant: str | None) -> Selection:
    """Return the only campaign of an argument, with the plan of one variant."""
    selections = select([argument], overrides, [variant or BASE])
    if len(selections) != 1:
        raise Refusal(f"{argument} has {len(selections)} campaigns: name one of them")
    return selections[0]


def find_campaigns(arguments: Iterable[str]) -> tuple[dict[Path, str], list[Problem]]:
    """Return the files of *arguments*, each with an argument that names only it, and problems."""
    names: dict[Path, str] = {}
    problems: list[Problem] = []
    for argument in arguments:
        try:
            paths = resolve(argument)
        except CampaignError as error:
            problems += error.problems
            continue
        is_single = not Path(argument).is_dir()
        for path in paths:
            names.setdefault(_relative(path), argument if is_single else _short_name(path))
    return names, problems


def _relative(path: Path) -> Path:
    """Return a path as a person would write it: relative, if it is below the current folder."""
    resolved = _real(path)
    current_folder = Path.cwd()
    return resolved.relative_to(current_folder) if resolved.is_relative_to(current_folder) else path


def _short_name(path: Path) -> str:
    """Return the name of a campaign that ships, and the path of any other."""
    if path.stem in shipped_names() and _real(resolve(path.stem)[0]) == _real(path):
        return path.stem
    return str(path)


def load_all(
    files: Iterable[Path], overrides: Sequence[str]
) -> tuple[list[Campaign], list[Path], list[Path], list[Problem]]:
    """Return valid campaigns, cluster files and workload files, and the problems of other files."""
    campaigns: list[Campaign] = []
    clusters: list[Path] = []
    workloads: list[Path] = []
    problems: list[Problem] = []
    for path in files:
        try:
            try:
                campaigns.append(load_campaign(path, overrides))
            except ClusterFileGivenError:
                check_cluster_file(path)
                clusters.append(path)
            except WorkloadFileGivenError:
                check_workload_file(path)
                workloads.append(path)
        except CampaignError as error:
            problems += error.problems
    return campaigns, clusters, workloads, list(dict.fromkeys(problems))


def _load_each(
    files: Iterable[Path],
    named: Collection[Path],
    overrides: Sequence[str],
    variants: Sequence[str],
    brokers: BrokerRelease | None = None,
) -> tuple[list[Campaign], list[Problem], list[Problem]]:
    """Return the valid campaigns, the mistakes in others, and why campaigns do not suit a release.

    A file that is left out stands in the list as a campaign without plans.
    """
    loaded: list[Campaign] = []
    problems: list[Problem] = []
    unsuited: list[Problem] = []
    for path in files:
        try:
            loaded.append(load_campaign(path, overrides, variants, brokers))
        except PartGivenError as error:
            if _real(path) in named:
                problems += error.problems
            # A folder may contain such files beside the campaigns that use them.
            loaded.append(Campaign(name=path.stem, description="", path=path, plans=()))
        except UnsuitedError as error:
            unsuited += error.problems
            notes = tuple(
                replace(problem, message=f"left out: {problem.message}") for problem in error.problems
            )
            loaded.append(Campaign(name=path.stem, description="", path=path, plans=(), notes=notes))
        except CampaignError as error:
            problems += error.problems
    return loaded, list(dict.fromkeys(problems)), list(dict.fromkeys(unsuited))
