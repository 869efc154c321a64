"""`harrow assess`: tries every fault model on a cluster, and shows what each did."""

import time
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Final

import typer
from rich.console import Console

from harrow.campaigns.assess.assessment import Assessment, Limit, parse_limit
from harrow.campaigns.assess.fault_model import FaultModel, fault_models
from harrow.campaigns.assess.tally import ModelTally
from harrow.campaigns.assess.trials import FaultTrial, trials
from harrow.campaigns.language.literals import LiteralError
from harrow.campaigns.run.workers.workers import Workers
from harrow.checks.finding import INCONCLUSIVE, VIOLATED
from harrow.cli import exit_code
from harrow.cli.assess.cluster_argument import cluster_file, fault_model_named, overrides_of, source_of
from harrow.cli.assess.screen import show_assessment, show_exceeded
from harrow.cli.console import message_console, say
from harrow.cli.interrupts import Interrupts
from harrow.cli.options import refuse
from harrow.cli.progress import ProgressLine
from harrow.cli.requests.assess import AssessRequest
from harrow.cli.session import CI_FORMATS, JSON, data, junit_file, write_json, write_suites
from harrow.cli.spark import engine_of_search, workers_on

if TYPE_CHECKING:
    from harrow.cli.ci.suite import Suite

_INTERRUPTED: Final = "interrupted"


def session(request: AssessRequest) -> int:
    engine = engine_of_search(request)
    limits = _limits(request.limits or ())
    cluster = cluster_file(request, request.sources, request.results)
    models = fault_models(request.fault_models or (), overrides_of(request, cluster, request.overrides or ()))
    if request.shown is not None:
        other = request.output_format if request.output_format != "table" else None
        refuse({"--format": other, "--junit": request.junit}, "has no meaning with --show")
        models = (fault_model_named(request.shown, models, "--show"),)
    with (
        Interrupts() as interrupts,
        data(request) as console,
        junit_file(request) as write_junit,
        ExitStack() as stack,
    ):
        workers = workers_on(engine, request, stack)
        tallies, stopped = _tallies(request, models, workers, interrupts)
        assessment = Assessment(
            cluster=str(cluster),
            tallies=tallies,
            limits=limits,
            stopped=stopped,
            source=source_of(request.sources, cluster),
        )
        if request.shown is None:
            _show(console, request, assessment)
            write_junit(partial(_suites, assessment))
        else:
            from harrow.cli.assess.worst_run import show_worst_run

            show_worst_run(console, request, tallies[0])
            show_exceeded(console, assessment)
    if stopped:
        runs = sum(len(tally.trials) for tally in tallies)
        messages = message_console(no_color=request.no_color)
        say(messages, f"{stopped}: {runs} of {_planned(request, models)} runs finished")
    return exit_code.INTERRUPTED if stopped == _INTERRUPTED else _exit_code(assessment)


def _limits(texts: Sequence[str]) -> tuple[Limit, ...]:
    try:
        return tuple(map(parse_limit, texts))
    except LiteralError as error:
        raise typer.BadParameter(str(error), param_hint="--expect") from None


def _planned(request: AssessRequest, models: Sequence[FaultModel]) -> int:
    return request.runs * sum(model.plan is not None for model in models)


def _tallies(
    request: AssessRequest, models: Sequence[FaultModel], workers: Workers, interrupts: Interrupts
) -> tuple[list[ModelTally], str]:
    """Run the trials. Also return why they ended early: time ran out, or a user interrupted."""
    started_s, stopped = time.monotonic(), ""
    found: dict[str, list[FaultTrial]] = {model.title: [] for model in models}
    plans = {model.title: model.plan for model in models if model.plan is not None}
    order = [*plans] * request.runs
    results = trials([*plans.values()], range(request.runs), workers)
    messages = message_console(no_color=request.no_color)
    progress = ProgressLine(messages, total=len(order), enabled=not request.quiet)
    try:
        for done, title in enumerate(order):
            if request.time_max_s is not None and time.monotonic() - started_s >= request.time_max_s:
                stopped = "--max-time reached"
                break
            progress.update(done, title)
            found[title].append(next(results))
            interrupts.check()
    except KeyboardInterrupt:
        stopped = _INTERRUPTED
    finally:
        interrupts.defer_to_the_end()
        results.close()
        progress.clear()
    return [ModelTally(model=model, trials=tuple(found[model.title])) for model in models], stopped


def _show(console: Console, request: AssessRequest, assessment: Assessment) -> None:
    if request.output_format == JSON:
        write_json(console, assessment.as_mapping())
    elif request.output_format in CI_FORMATS:
        write_suites(console, request, _suites(assessment), "fault model")
    elif request.output_format == "markdown":
        from harrow.cli.assess.markdown import assessment_markdown

        console.file.write(assessment_markdown(assessment))
    elif request.output_format == "html":
        from harrow.cli.assess.page import assessment_page

        console.file.write(assessment_page(assessment))
    elif not request.quiet or _exit_code(assessment):
        show_assessment(console, assessment)


def _suites(assessment: Assessment) -> "list[Suite]":
    from harrow.cli.assess.cases import assessment_suites

    return assessment_suites(assessment)


def _exit_code(assessment: Assessment) -> int:
    if assessment.status == VIOLATED or any(assessment.exceeded()):
        return exit_code.BROKEN
    return exit_code.INCONCLUSIVE if assessment.status == INCONCLUSIVE else exit_code.OK
