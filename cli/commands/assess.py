"""`harrow assess`: tries every fault model on a cluster, and shows what each did."""

from harrow.campaigns.assess.fault_model import fault_models
from harrow.campaigns.assess.tally import ModelTally
from harrow.campaigns.assess.trials import FaultTrial, trials
from harrow.campaigns.language.loader import check_cluster_file
from harrow.checks.finding import INCONCLUSIVE, VIOLATED, worst
from harrow.cli import exit_code
from harrow.cli.assess.screen import show_assessment
from harrow.cli.console import message_console, say
from harrow.cli.interrupts import Interrupts
from harrow.cli.progress import ProgressLine
from harrow.cli.requests.assess import AssessRequest
from harrow.cli.session import data
from harrow.cli.worker_processes import workers_of


def session(request: AssessRequest) -> int:
    check_cluster_file(request.cluster)
    models = fault_models(request.fault_models or (), request.overrides or ())
    seeds = range(request.runs)
    messages = message_console(no_color=request.no_color)
    found: dict[str, list[FaultTrial]] = {model.title: [] for model in models}
    fit = [model for model in models if model.plan is not None]
    order = [model.title for model in fit for _ in seeds]
    results = trials(models, seeds, workers_of(request))
    progress = ProgressLine(messages, total=len(order), enabled=not request.quiet)
    with Interrupts() as interrupts, data(request) as console:
        interrupted = False
        try:
            for done, title in enumerate(order):
                progress.update(done, title)
                found[title].append(next(results))
        except KeyboardInterrupt:
            interrupted = True
        finally:
            interrupts.defer_to_the_end()
            results.close()
            progress.clear()
        tallies = [ModelTally(model=model, trials=tuple(found[model.title])) for model in models]
        show_assessment(console, request.cluster, tallies)
    if interrupted:
        say(messages, f"interrupted: {sum(map(len, found.values()))} of {len(order)} runs finished")
        return exit_code.INTERRUPTED
    status = worst(tally.status for tally in tallies if tally.trials)
    return {VIOLATED: exit_code.BROKEN, INCONCLUSIVE: exit_code.INCONCLUSIVE}.get(status, exit_code.OK)
