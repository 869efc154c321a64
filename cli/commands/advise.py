"""`harrow advise`: finds the cheapest settings that survive faults."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import typer

from harrow.campaigns.advise.advice import advise
from harrow.campaigns.advise.axes import AXES
from harrow.campaigns.advise.counter_example import Shrinking
from harrow.campaigns.advise.harm import RULES_OF_HARM, UNCOMMITTED, Needs, has_transactions
from harrow.campaigns.advise.lattice import obstacle
from harrow.campaigns.assess.fault_model import FaultModel, fault_models
from harrow.campaigns.language.literals import LiteralError, bound_of, duration
from harrow.campaigns.language.spelling import listed, quoted, suggestion
from harrow.checks.rule import DOUBLED
from harrow.cli import exit_code
from harrow.cli.assess.cluster_argument import cluster_file, fault_model_named, overrides_of
from harrow.cli.console import message_console, say
from harrow.cli.interrupts import Interrupts
from harrow.cli.progress import ProgressLine
from harrow.cli.render.advice import show_advice
from harrow.cli.requests.advise import AdviseRequest
from harrow.cli.session import JSON, Refusal, data, reason_of, write_json
from harrow.cli.worker_processes import workers_of

_FOLDER: Final = "advice"
"""The folder in ``results/`` for shrunk counter-examples."""

_SYNONYMS: Final = {"duplicated": DOUBLED}
"""Kafka's word for what harrow's reports call doubled."""


def session(request: AdviseRequest) -> int:
    messages = message_console(no_color=request.no_color)
    needs = _needs(request)
    for name in request.changeable or ():
        if name not in AXES:
            raise typer.BadParameter(
                f"no setting called {quoted(name)} can be changed{suggestion(name, AXES)}",
                param_hint="--change",
            )
    cluster = cluster_file(request, request.sources, request.results)
    models = _models(request, cluster)
    _check_trials(models, needs, request.changeable or ())
    shrinking = None
    if request.shrink_runs:
        shrinking = Shrinking(
            folder=request.results / _FOLDER,
            runs=request.shrink_runs,
            on_unwritable=lambda error: say(messages, f"cannot write: {reason_of(error)}", style="red"),
        )
        _make_folder(shrinking.folder)
    progress = ProgressLine(messages, total=None, enabled=not request.quiet)
    with Interrupts() as interrupts, data(request) as console, workers_of(request) as workers:

        def on_run(runs: int) -> None:
            interrupts.check()
            progress.update(runs, "runs")

        try:
            advice = advise(
                str(cluster),
                models,
                needs,
                runs=request.runs,
                workers=workers,
                changeable=request.changeable or (),
                shrinking=shrinking,
                on_run=on_run,
            )
        finally:
            progress.clear()
        if request.output_format == JSON:
            write_json(console, advice.as_mapping())
        else:
            show_advice(console, advice)
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


def _check_trials(models: Sequence[FaultModel], needs: Needs, changeable: Sequence[str]) -> None:
    """Refuse harm that no run can show, and settings that cannot change anything."""
    plans = [model.plan for model in models if model.plan is not None]
    if UNCOMMITTED in needs.never and not any(map(has_transactions, plans)):
        titles = listed([model.title for model in models])
        raise typer.BadParameter(
            f"no producer of {titles} uses transactions, so no run can show {quoted(UNCOMMITTED)} records",
            param_hint="--never",
        )
    for name in changeable:
        if reason := obstacle(AXES[name], plans, needs.kinds()):
            raise typer.BadParameter(f"{quoted(name)} {reason}", param_hint="--change")


def _models(request: AdviseRequest, cluster: Path) -> Sequence[FaultModel]:
    """Return the fault models to survive. A model that the cluster does not fit is refused."""
    files = request.fault_models or ()
    models = fault_models(files, overrides_of(request, cluster, request.overrides or ()))
    wanted = [model for model in models if Path(model.argument) in files]
    for name in request.survive or ():
        found = fault_model_named(name, models, "--survive")
        if found not in wanted:
            wanted.append(found)
    if not wanted:
        known = listed([model.title for model in models])
        raise typer.BadParameter(f"say what the cluster is to survive: {known}", param_hint="--survive")
    for model in wanted:
        if model.plan is None:
            raise Refusal(f"{quoted(model.title)} cannot be tried on {cluster}: {model.unfit}")
    return wanted
