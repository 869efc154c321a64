"""`harrow advise`: finds the cheapest settings that survive faults."""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import typer
from rich.console import Console

from harrow.campaigns.advise.advice import Advice, advise
from harrow.campaigns.advise.advice_by_release import AdviceByRelease
from harrow.campaigns.advise.axes import AXES
from harrow.campaigns.advise.counter_example import Shrinking
from harrow.campaigns.advise.fitting import changed_to_fit
from harrow.campaigns.advise.harm import RULES_OF_HARM, Needs, has_transactions
from harrow.campaigns.advise.lattice import obstacle
from harrow.campaigns.assess.fault_model import FaultModel, fault_models
from harrow.campaigns.assess.trials import UNCOMMITTED
from harrow.campaigns.language.literals import LiteralError, bound_of, duration, release
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.language.spelling import listed, quoted, suggestion
from harrow.checks.rule import DOUBLED
from harrow.cli import exit_code
from harrow.cli.assess.cluster_argument import cluster_file, fault_model_named, overrides_of, source_of
from harrow.cli.console import message_console, say
from harrow.cli.interrupts import Interrupts
from harrow.cli.progress import ProgressLine
from harrow.cli.render.advice import show_advice, show_advice_by_release
from harrow.cli.requests.advise import AdviseRequest
from harrow.cli.session import JSON, Refusal, data, reason_of, write_json
from harrow.cli.spark import engine_of_search, workers_on
from harrow.cli.worker_processes import workers_of

_FOLDER: Final = "advice"
"""The folder in ``results/`` for shrunk counter-examples."""

_SYNONYMS: Final = {"duplicated": DOUBLED}
"""Kafka's word for what harrow's reports call doubled."""


def session(request: AdviseRequest) -> int:
    engine = engine_of_search(request)
    messages = message_console(no_color=request.no_color)
    needs = _needs(request)
    for name in request.changeable or ():
        if name not in AXES:
            raise typer.BadParameter(
                f"no setting called {quoted(name)} can be changed{suggestion(name, AXES)}",
                param_hint="--change",
            )
    cluster = cluster_file(request, request.sources, request.results)
    options = overrides_of(request, cluster, request.overrides or ())
    releases = _releases(request)
    models_by_release = [
        _models(request, cluster, (*options, *of_release))
        for of_release in [[f"kafka={name}"] for name in releases] or [[]]
    ]
    for models, own_plans in models_by_release:
        _check_trials(models, own_plans, needs, request.changeable or ())
    folder = request.results / _FOLDER
    if request.shrink_runs:
        _make_folder(folder)
    progress = ProgressLine(messages, total=None, enabled=not request.quiet)
    with Interrupts() as interrupts, data(request) as console, ExitStack() as stack:
        workers = workers_on(engine, request, stack)
        shrinking = Shrinking(
            folder=folder,
            runs=request.shrink_runs,
            # Campaigns are written as YAML, which executors of Spark may lack.
            workers=workers if engine == "process" else stack.enter_context(workers_of(request)),
            on_unwritable=lambda error: say(messages, f"cannot write: {reason_of(error)}", style="red"),
        )

        earlier_runs = 0

        def on_run(runs: int) -> None:
            interrupts.check()
            progress.update(earlier_runs + runs, "runs")

        advices: list[Advice] = []
        try:
            for models, own_plans in models_by_release:
                advice = advise(
                    str(cluster),
                    models,
                    needs,
                    source=source_of(request.sources, cluster),
                    own_plans=own_plans,
                    runs=request.runs,
                    workers=workers,
                    changeable=request.changeable or (),
                    shrinking=shrinking if request.shrink_runs else None,
                    on_run=on_run,
                )
                advices.append(advice)
                earlier_runs += advice.runs
                if not advice.complete:
                    break
        finally:
            interrupts.defer_to_the_end()
            progress.clear()
        _show(console, request, advices)
    if not advices[-1].complete:
        say(messages, "interrupted: the answer is not complete")
    codes = [_exit_code(advice) for advice in advices]
    return next(code for code in _CODES if code in codes)


def _show(console: Console, request: AdviseRequest, advices: Sequence[Advice]) -> None:
    """Show the advice on the cluster's release, or where that on several releases differs."""
    answer = AdviceByRelease(advices=advices)
    if request.output_format == JSON:
        write_json(console, (answer if request.releases else advices[0]).as_mapping())
    elif request.releases:
        show_advice_by_release(console, answer)
    else:
        show_advice(console, advices[0])


_CODES: Final = (exit_code.INTERRUPTED, exit_code.BROKEN, exit_code.INCONCLUSIVE, exit_code.OK)
"""The exit codes, the one that decides first."""


def _exit_code(advice: Advice) -> int:
    if not advice.complete:
        return exit_code.INTERRUPTED
    if advice.advised is not None:
        return exit_code.OK
    assert advice.strongest is not None
    return exit_code.INCONCLUSIVE if advice.strongest.refuted_by is None else exit_code.BROKEN


def _make_folder(folder: Path) -> None:
    """Make a folder before the search, whose answer would be lost if that failed afterwards."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Refusal(f"cannot write: {reason_of(error)}") from None


def _needs(request: AdviseRequest) -> Needs:
    allowed, forbidden = _kinds(request.allowed, "--allow"), _kinds(request.never, "--never")
    for kind in allowed:
        if kind in forbidden:
            raise typer.BadParameter(f"{quoted(kind)} is forbidden by --never as well", param_hint="--allow")
        if kind not in Needs().never:
            raise typer.BadParameter(
                f"{quoted(kind)} is allowed unless --never forbids it", param_hint="--allow"
            )
    kinds = dict.fromkeys((*Needs().never, *forbidden))
    never = [kind for kind in kinds if kind not in allowed]
    outage = None
    if request.outage is not None:
        try:
            outage = bound_of(duration)(request.outage)
        except LiteralError as error:
            raise typer.BadParameter(str(error), param_hint="--outage") from None
        if not outage[0].startswith("<"):
            raise typer.BadParameter("an outage is bounded with `<` or `<=`", param_hint="--outage")
    if not never and outage is None:
        raise typer.BadParameter("nothing is left to survive", param_hint="--allow")
    return Needs(never=tuple(never), outage=outage)


def _kinds(names: Sequence[str] | None, option: str) -> Sequence[str]:
    kinds = [_SYNONYMS.get(name, name) for name in names or ()]
    for name in kinds:
        if name not in RULES_OF_HARM:
            known = suggestion(name, RULES_OF_HARM)
            raise typer.BadParameter(f"no harm is called {quoted(name)}{known}", param_hint=option)
    return kinds


def _check_trials(
    models: Sequence[FaultModel], own_plans: Sequence[Plan], needs: Needs, changeable: Sequence[str]
) -> None:
    """Refuse harm that no run can show, and settings that cannot change anything."""
    plans = [*(model.plan for model in models if model.plan is not None), *own_plans]
    changed = [model.changed_plan for model in models if model.changed_plan is not None]
    if UNCOMMITTED in needs.never and not any(map(has_transactions, [*plans, *changed])):
        titles = listed([model.title for model in models])
        raise typer.BadParameter(
            f"no producer of {titles} uses transactions, so no run can show {quoted(UNCOMMITTED)} records",
            param_hint="--never",
        )
    for name in changeable:
        if reason := obstacle(AXES[name], plans, needs.kinds(), changed):
            raise typer.BadParameter(f"{quoted(name)} {reason}", param_hint="--change")


def _releases(request: AdviseRequest) -> Sequence[str]:
    """Return the releases of --kafka, each once; none without the option."""
    try:
        named = [release(name.strip()) for name in (request.releases or "").split(",") if name.strip()]
    except LiteralError as error:
        raise typer.BadParameter(str(error), param_hint="--kafka") from None
    return list(dict.fromkeys(named))


def _models(
    request: AdviseRequest, cluster: Path, options: Sequence[str]
) -> tuple[Sequence[FaultModel], Sequence[Plan]]:
    """Return the fault models to survive, and a plan with the user's settings if one does not fit.

    A model that fits with no settings is refused.
    """
    files = request.fault_models or ()
    models = fault_models(files, options)
    wanted = [model for model in models if Path(model.argument) in files]
    for name in request.survive or ():
        found = fault_model_named(name, models, "--survive")
        if found not in wanted:
            wanted.append(found)
    if not wanted:
        known = listed([model.title for model in models])
        raise typer.BadParameter(f"say what the cluster is to survive: {known}", param_hint="--survive")
    if all(model.plan is not None for model in wanted):
        return wanted, ()
    own_plan = next((model.plan for model in models if model.plan is not None), None)
    axes = [AXES[name] for name in request.changeable or AXES]
    fitting = [model if own_plan is None else changed_to_fit(model, axes, own_plan) for model in wanted]
    for model in fitting:
        if model.plan is None and model.changed_plan is None:
            heading = source_of(request.sources, cluster) or cluster
            raise Refusal(f"{quoted(model.title)} cannot be tried on {heading}: {model.unfit}")
    return fitting, () if own_plan is None else (own_plan,)
