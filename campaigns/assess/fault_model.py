"""Reads fault models: campaigns with faults at random times, which run on any cluster."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from harrow.campaigns.language.library_index import fault_model_names, resolve
from harrow.campaigns.language.loader import load_campaign, plan_without_work
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.language.problem import CampaignError, Problem
from harrow.cluster_model.lazy_dataclass import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultModel:
    """A fault model on a cluster.

    ``argument`` names its campaign on a command line, and ``overrides`` are the options that put it
    on the cluster. ``plan`` is None if the cluster lacks what the model needs; then ``unfit`` says
    what that is. ``changed_plan`` is the plan after a change of settings with which the model fits.
    """

    argument: str
    name: str
    title: str
    description: str
    overrides: tuple[str, ...]
    plan: Plan | None = None
    unfit: str = ""
    changed_plan: Plan | None = None


def fault_models(files: Sequence[Path], overrides: Sequence[str]) -> tuple[FaultModel, ...]:
    """Return the fault models that ship and those in *files*, with *overrides* applied.

    Raises:
        CampaignError: A file or an option has mistakes. Or a file is no fault model, or has the
            title of another.

    """
    plan_without_work(overrides)
    models: dict[str, FaultModel] = {}
    for argument in (*fault_model_names(), *map(str, files)):
        model = _fault_model(argument, tuple(overrides))
        if model.title in models:
            message = f"title: {models[model.title].argument} is called `{model.title}` too"
            raise CampaignError([Problem(argument, 0, 0, message)])
        models[model.title] = model
    return tuple(models.values())


def _fault_model(argument: str, overrides: tuple[str, ...]) -> FaultModel:
    # The model is read without the options first, so that its own mistakes are told apart from
    # what the cluster lacks.
    (path,) = resolve(argument)
    alone = load_campaign(path)
    if reasons := list(_reasons(alone.plans)):
        raise CampaignError([Problem(argument, 0, 0, reason) for reason in reasons])
    model = FaultModel(
        argument=argument,
        name=alone.name,
        title=alone.plans[0].title or alone.name,
        description=alone.description,
        overrides=overrides,
    )
    try:
        campaign = load_campaign(path, overrides)
    except CampaignError as error:
        return replace(model, unfit=_unfit(error.problems[0], str(path)))
    return replace(model, plan=campaign.plans[0])


def _unfit(problem: Problem, model: str) -> str:
    """Return why a cluster is unfit, with the line of the user's file that matters, if one does."""
    if problem.file == model:
        return problem.message
    if problem.line == 0:
        return f"{problem.file} {problem.message}"
    return f"{problem.message} ({problem.file}:{problem.line})"


def _reasons(plans: Sequence[Plan]) -> Iterator[str]:
    """Yield why a campaign is no fault model."""
    if len(plans) > 1:
        yield "a fault model has no variants: write a file for each"
    if not plans[0].faults and plans[0].swarm is None and not plans[0].script:
        yield "a fault model needs `faults`"
