"""`harrow conform`: compares campaigns on real brokers with the same campaigns on the model."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import typer
from rich.console import Console

from harrow.campaigns.language.plan import Plan
from harrow.campaigns.language.spelling import counted
from harrow.campaigns.language.units import rough_duration_text
from harrow.campaigns.record.campaign_copy import campaign_copy
from harrow.campaigns.record.markdown import table, text
from harrow.campaigns.record.report import in_short, reproduce_command, run_as_mapping, variant_name
from harrow.campaigns.record.results_folder import write_run
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.workers.runs_meanwhile import RunsMeanwhile
from harrow.campaigns.version import version
from harrow.checks.finding import SKIPPED
from harrow.cli import exit_code
from harrow.cli.commands.brokers import broker_release, real_brokers, stop_if_interrupted
from harrow.cli.commands.conform_requests import requests_session
from harrow.cli.commands.run_selection import Selection, select_to_run
from harrow.cli.console import message_console, show
from harrow.cli.interrupts import Interrupts
from harrow.cli.progress import ProgressLine
from harrow.cli.render.layout import DIM, FAILED, indented
from harrow.cli.requests.real_brokers import ConformRequest
from harrow.cli.session import data, write_json
from harrow.cli.text import Text
from harrow.live_cluster.target.conformity import (
    AGREED,
    DIFFERS,
    NOT_COMPARED,
    Comparison,
    Conformity,
    Service,
    compare_runs,
    run_on_model,
)

if TYPE_CHECKING:
    from harrow.live_cluster.target.live_run import Brokers

_STYLES: Final[dict[Conformity, str]] = {AGREED: "green", DIFFERS: FAILED, NOT_COMPARED: DIM}
_WIDTH: Final = 8
_SEEDS: Final = range(50)


def _duration(us: float) -> str:
    return rough_duration_text(round(us))


_FIGURES: Final[tuple[tuple[str, Callable[[Service], float], Callable[[float], str]], ...]] = (
    ("acked", lambda service: 100 * service.acked / service.sent, "{:.4g}%".format),
    ("time to ack, p50", lambda service: service.ack_p50_us, _duration),
    ("time to ack, p99", lambda service: service.ack_p99_us, _duration),
    ("longest without an ack", lambda service: service.without_ack_us, _duration),
)
_SCHEMA: Final = "harrow.conform/1"


def session(request: ConformRequest) -> int:
    if (request.requests is None) == (not request.campaigns):
        raise typer.BadParameter("give campaigns, or --requests N", param_hint="CAMPAIGN")
    if request.requests is not None:
        return requests_session(request)
    assert request.campaigns is not None
    messages = message_console(no_color=request.no_color)
    selections = select_to_run(request, broker_release(request.target))
    tasks = list(_tasks(selections, request.times))
    progress = ProgressLine(messages, total=len(tasks), enabled=not request.quiet)
    comparisons: list[Comparison] = []
    plans = [plan for selection in selections for plan in selection.plans]
    with (
        Interrupts() as interrupts,
        data(request) as console,
        real_brokers(request, plans, interrupts) as brokers,
    ):
        try:
            for task in tasks:
                comparisons.append(
                    _comparison(request, task, brokers, interrupts, progress, len(comparisons))
                )
                progress.clear()
                if request.output_format == "table":
                    show(console, *_lines(comparisons[-1]))
                    console.file.flush()
        except KeyboardInterrupt:
            _print(request, console, comparisons, brokers)
            return exit_code.INTERRUPTED
        finally:
            progress.clear()
        _print(request, console, comparisons, brokers)
    statuses = {comparison.status for comparison in comparisons}
    if DIFFERS in statuses:
        return exit_code.BROKEN
    return exit_code.OK if AGREED in statuses else exit_code.INCONCLUSIVE


class _Task(NamedTuple):
    """A plan to compare, and the seeds to run on brokers."""

    selection: Selection
    plan: Plan
    seeds: range


def _tasks(selections: Iterable[Selection], times: int) -> Iterator[_Task]:
    """Yield a task for each plan. A swarm has one for each seed, because each seed draws a plan."""
    for selection in selections:
        for plan in selection.plans:
            if plan.swarm is None:
                yield _Task(selection, plan, range(times))
            else:
                yield from (_Task(selection, plan, range(seed, seed + 1)) for seed in range(times))


def _comparison(
    request: ConformRequest,
    task: _Task,
    brokers: "Brokers",
    interrupts: Interrupts,
    progress: ProgressLine,
    finished: int,
) -> Comparison:
    """Compare a plan on brokers and on the model, which runs whenever the brokers start or wait."""
    selection, plan, real_seeds = task
    overrides = request.overrides or ()
    results = None if request.no_results else request.results
    name = f"{selection.argument} {variant_name(plan)}"
    progress.update(finished, name)
    modelled = brokers.modelled_plan(brokers.drawn(plan, real_seeds[0]))
    seeds = request.seeds or _SEEDS
    with RunsMeanwhile(run_on_model, [(modelled, seed) for seed in seeds]) as model:

        def show_wait(condition: Callable[[], str]) -> None:
            model.begin()
            progress.update(finished, lambda: f"{condition()} ({name})")

        real: list[RunResult] = []
        for seed in real_seeds:
            with interrupts.deferred():
                result = brokers.run(plan, seed, results, lambda: stop_if_interrupted(interrupts), show_wait)
            real.append(result)
            if result.verdict.status == SKIPPED:
                return compare_runs(plan, real, ())
            if results is not None:
                reproduce = reproduce_command(
                    selection.argument, seed, plan.variant, overrides, request.target
                )
                copy = campaign_copy(selection.campaign, result.open_plan or plan, seed, overrides)
                with interrupts.shielded():
                    write_run(results, result, run_as_mapping(result, reproduce), copy)
            interrupts.check()
        return compare_runs(plan, real, model)


def _print(
    request: ConformRequest, console: Console, comparisons: list[Comparison], brokers: "Brokers"
) -> None:
    if request.output_format == "json":
        write_json(console, _document(request, comparisons))
    elif request.output_format == "markdown":
        rows = [
            (text(_name(each)), each.status, text("; ".join(_markdown_parts(each)))) for each in comparisons
        ]
        console.file.write(table(("campaign", f"Kafka {brokers.release.name}", "result"), rows) + "\n")
    elif comparisons:
        counts = Counter(comparison.status for comparison in comparisons)
        parts = ", ".join(f"{counts[status]} {status}" for status in _STYLES if counts[status])
        show(console, Text(), Text(f"{counted(len(comparisons), 'campaign')} on {request.target}: {parts}"))


def _lines(comparison: Comparison) -> Iterator[Any]:
    yield Text.assemble(
        (comparison.status.ljust(_WIDTH), _STYLES[comparison.status]), "  ", _name(comparison)
    )
    if comparison.status == AGREED:
        yield indented(_results(comparison), _WIDTH + 2, DIM)
    if comparison.not_tried:
        yield indented(_untried(comparison), _WIDTH + 2, DIM)
    for reason in comparison.reasons:
        yield indented(reason, _WIDTH + 2)
    if comparison.service and comparison.modelled_service:
        for line in _service(comparison):
            yield indented(line, _WIDTH + 2, DIM)
    if comparison.status == DIFFERS:
        for run in comparison.real:
            yield indented(f"brokers: {run.verdict.status}: {in_short(run) or 'nothing'}", _WIDTH + 2, DIM)


def _service(comparison: Comparison) -> Iterator[str]:
    """Yield the service levels of the real runs, each with the range of the model's values."""
    for label, figure, figure_text in _FIGURES:
        real, modelled = (
            sorted(map(figure, runs)) for runs in (comparison.service, comparison.modelled_service)
        )
        on_brokers = ", ".join(map(figure_text, real))
        yield f"{label} {on_brokers} (model {figure_text(modelled[0])} to {figure_text(modelled[-1])})"


def _name(comparison: Comparison) -> str:
    plan = comparison.plan
    name = plan.campaign if plan.variant is None else f"{plan.campaign} {plan.variant}"
    return name if plan.swarm is None else f"{name} seed {comparison.real[0].seed}"


def _results(comparison: Comparison) -> str:
    """Return the results on brokers, each with the number of runs that had it."""
    runs = Counter(f"{run.verdict.status}: {in_short(run) or 'nothing'}" for run in comparison.real)
    return "; ".join(result if count == 1 else f"{result} ({count} times)" for result, count in runs.items())


def _markdown_parts(comparison: Comparison) -> Iterator[str]:
    yield from comparison.reasons or [_results(comparison)]
    if comparison.not_tried:
        yield _untried(comparison)


def _untried(comparison: Comparison) -> str:
    return f"not compared: {counted(len(comparison.not_tried), 'rule')} not tried on both sides"


def _document(request: ConformRequest, comparisons: list[Comparison]) -> dict[str, Any]:
    return {
        "schema": _SCHEMA,
        "version": version(),
        "target": request.target,
        "set": list(request.overrides or ()),
        "comparisons": [
            {
                "campaign": comparison.plan.campaign,
                "variant": comparison.plan.variant,
                "kafka": comparison.plan.kafka,
                "status": comparison.status,
                "reasons": list(comparison.reasons),
                "not_tried": list(comparison.not_tried),
                "real": [
                    {
                        "seed": run.seed,
                        "verdict": run.verdict.status,
                        "found": in_short(run),
                        "began": None if run.target is None else run.target.began,
                        "seconds": run.simulated_us / 1e6,
                        "alike": comparison.count_equal_runs(run),
                    }
                    for run in comparison.real
                ],
                "modelled": sum(count for _, count in comparison.modelled),
                "outcomes": len(comparison.modelled),
                "service": {
                    "real": list(map(asdict, comparison.service)),
                    "model": list(map(asdict, comparison.modelled_service)),
                },
            }
            for comparison in comparisons
        ],
    }
