"""Opens the worst run of a fault model: its story, and the replicas at its end."""

import shlex

from rich.console import Console

from harrow.campaigns.assess.tally import ModelTally
from harrow.campaigns.assess.trials import DAMAGING
from harrow.campaigns.language.library_index import resolve
from harrow.campaigns.language.loader import load_campaign
from harrow.campaigns.record.campaign_copy import campaign_copy
from harrow.campaigns.record.recorded_run import read_run
from harrow.campaigns.record.report import run_as_mapping
from harrow.campaigns.record.results_folder import write_run
from harrow.campaigns.run.workers.parallel_runs import timed_run
from harrow.campaigns.storage.location import LocalLocation
from harrow.campaigns.story.run_diff import DiffMoment, diff_run
from harrow.cli.commands.run_tally import FinishedRun
from harrow.cli.console import show, unbroken
from harrow.cli.render.diff import show_run_diff
from harrow.cli.render.layout import DIM, STYLES, indented, marks
from harrow.cli.render.story import chosen_story, whole_story
from harrow.cli.requests.assess import AssessRequest
from harrow.cli.session import Refusal
from harrow.cli.text import Text
from harrow.cli.worker_processes import workers_of


def show_worst_run(console: Console, request: AssessRequest, tally: ModelTally) -> None:
    """Run the worst trial again, record the run, and print its story and its replicas.

    Raises:
        Refusal: The cluster lacks what the fault model needs.

    """
    model, trial = tally.model, tally.worst()
    if model.plan is None or trial is None:
        raise Refusal(f"{model.title}: not tried: {tally.not_tried or 'no run finished'}")
    with workers_of(request) as workers:
        result = timed_run(model.plan, trial.seed, workers)
    (path,) = resolve(model.argument)
    campaign = load_campaign(path, model.overrides)
    reproduce = tally.reproduce(trial)
    text = campaign_copy(campaign, model.plan, trial.seed, model.overrides)
    folder = write_run(request.results, result, run_as_mapping(result, reproduce), text)
    run = FinishedRun(result=result, reproduce=reproduce, file=path, folder=LocalLocation(folder))
    status = result.verdict.status
    heading = f"{marks(console)[status]} {status}"
    show(
        console,
        Text.assemble((model.title, "bold"), "  ", (heading, STYLES[status])),
        indented(model.description.strip(), 2, DIM),
        unbroken(Text(f"  {reproduce}")),
        *(whole_story(run) if request.verbose else chosen_story(run, DAMAGING)),
    )
    rules = result.verdict.rules
    places = [finding.partition for name in DAMAGING if name in rules for finding in rules[name].findings]
    partitions = list(dict.fromkeys(filter(None, places)))
    if partitions:
        # One partition fills a screen. `harrow diff` shows the others.
        show(console, Text())
        show_run_diff(
            console,
            diff_run(read_run(folder), DiffMoment(), partitions[:1]),
            shlex.quote(str(folder)),
            only_different=True,
        )
