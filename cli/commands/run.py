"""`harrow run`: runs each campaign, variant and seed, and reports them in this order."""

import gc
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from harrow.campaigns.language.plan import Plan
from harrow.campaigns.language.plan_file import WrittenPlan
from harrow.campaigns.language.writers.section import UnwritablePlanError
from harrow.campaigns.record.report import reproduce_command
from harrow.campaigns.run.release_difference import with_difference
from harrow.campaigns.run.required_probes import as_only_run
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import RunStopped, run_plan
from harrow.campaigns.run.swarm import draw_for_seed
from harrow.campaigns.run.workers.parallel_runs import run_all
from harrow.campaigns.run.workers.workers import Workers
from harrow.campaigns.storage.location import LocalLocation
from harrow.checks.finding import SKIPPED
from harrow.cli.commands.brokers import MODEL, broker_release, real_brokers, stop_if_interrupted
from harrow.cli.commands.run_selection import Selection, select_to_run
from harrow.cli.commands.run_tally import FinishedRun, RunPrinter, SeveralPrinters, Tally
from harrow.cli.console import message_console, say
from harrow.cli.interrupts import Interrupts
from harrow.cli.options import need_terminal, refuse
from harrow.cli.progress import ProgressLine
from harrow.cli.render.run_formats import printer_of
from harrow.cli.requests.run import RunRequest
from harrow.cli.session import data, junit_file, note
from harrow.cli.worker_processes import workers_of
from harrow.cluster_model.lazy_dataclass import replace

if TYPE_CHECKING:
    from harrow.live_cluster.target.live_run import Brokers, ShowWait

_DEFAULT_SPEED: Final = 5.0


def session(request: RunRequest) -> int:
    if request.seed is not None:
        refuse({"--seeds": request.seeds}, "give --seed or --seeds, not both")
    if request.then and (request.seeds is not None or request.target != MODEL or request.engine != "seeds"):
        message = (
            "changes the campaign that one seed draws, on the model: leave out --seeds, --target and --engine"
        )
        raise typer.BadParameter(message, param_hint="--then")
    if not request.watch:
        refuse({"--speed": request.speed}, "has no meaning without --watch")
    if request.engine == "hypothesis":
        others = {"--target": request.target != MODEL, "--seeds": request.seeds, "--jobs": request.jobs}
        limits = {"--max-failures": request.failures_max, "--max-time": request.time_max_s}
        refuse({**others, **limits, "--watch": request.watch}, "has no meaning with Hypothesis")
        from harrow.cli.commands import run_hypothesis

        return run_hypothesis.session(request)
    refuse({"--max-examples": request.examples_max}, "has no meaning without --engine hypothesis")
    jobs = {"--jobs": request.jobs}
    if request.watch:
        need_terminal()
        refuse(jobs, "has no meaning with --watch, which plays one run at a time")
    if request.target != MODEL:
        refuse(jobs, "has no meaning on brokers, which run one campaign at a time")
        _mounted_results(request)
    return _run_all(request)


def _run_all(request: RunRequest) -> int:
    messages = message_console(no_color=request.no_color)
    selections = select_to_run(request, broker_release(request.target))
    if request.then:
        selections = [_with_changes(selection, request.seed or 0, request.then) for selection in selections]
    with (
        Interrupts() as interrupts,
        data(request) as console,
        junit_file(request) as write_junit,
        ExitStack() as stack,
    ):
        brokers = None
        if request.target != MODEL:
            plans = [plan for selection in selections for plan in selection.plans]
            brokers = stack.enter_context(real_brokers(request, plans, interrupts))
        printer = printer_of(request, console, several_seeds=len(_seeds(request)) > 1)
        if request.junit is not None:
            from harrow.cli.ci.run_suites import RunSuites

            printer = SeveralPrinters((printer, RunSuites(lambda suites, _: write_junit(lambda: suites))))
        tally = _RunSession(request, selections, printer, interrupts, brokers).run()
    if request.output_format == "ndjson":  # Each line of the output is about one run.
        for probes in tally.required.unreached():
            say(messages, f"inconclusive: {probes.reason()}")
    progress = f"{tally.finished} of {tally.planned} runs finished"
    if tally.interrupted:
        say(messages, f"interrupted: {progress}, and their results are written")
    elif tally.stopped is not None:
        note(request, f"{tally.stopped}: {progress}")
    if tally.planned == 0:
        say(messages, "nothing to run")
    return tally.exit_code()


def _with_changes(selection: Selection, seed: int, then: Sequence[str]) -> Selection:
    """Return a selection of the plans that a seed draws, with ``--then`` applied to them."""
    drawn_plans = (draw_for_seed(plan, seed).plan for plan in selection.plans)
    try:
        plans = tuple(WrittenPlan(plan).changed_by(then, "--then") for plan in drawn_plans)
    except UnwritablePlanError as error:
        raise typer.BadParameter(str(error), param_hint="--then") from None
    return replace(selection, plans=plans)


class _RunSession:
    """The loop over campaigns, variants and seeds."""

    def __init__(
        self,
        request: RunRequest,
        selections: Sequence[Selection],
        printer: RunPrinter,
        interrupts: Interrupts,
        brokers: "Brokers | None",
    ) -> None:
        self._request = request
        self._selections = selections
        self._interrupts = interrupts
        self._seeds = _seeds(request)
        planned = sum(len(selection.plans) for selection in selections) * len(self._seeds)
        self._tally = Tally(planned=planned, several_seeds=len(self._seeds) > 1)
        self._printer = printer
        messages = message_console(no_color=request.no_color)
        self._watch = None
        if request.watch:
            from harrow.cli.watch.watch_run import RunWatch

            speed = _DEFAULT_SPEED if request.speed is None else request.speed
            self._watch = RunWatch(messages, speed=speed, only=planned == 1, check=interrupts.check)
        enabled = not request.quiet and self._watch is None
        log = brokers is not None and request.verbose
        self._progress = ProgressLine(messages, total=planned, enabled=enabled, log=log)
        self._command = ""
        self._started_s = time.monotonic()
        runs = ((plan, seed) for selection in selections for plan in selection.plans for seed in self._seeds)
        end_s = float("inf") if request.time_max_s is None else self._started_s + request.time_max_s
        if brokers is None:
            workers = Workers(end_s=end_s) if request.watch else workers_of(request, end_s)
            self._results = run_all(runs, workers)
        else:
            self._results = _on_brokers(
                brokers, runs, _mounted_results(request), interrupts, self._show_wait, end_s
            )

    def run(self) -> Tally:
        """Run all plans and seeds. Even if a limit or an error stops them, complete the output."""
        tally = self._tally
        # Imported modules and loaded campaigns are never garbage, so the collector need not scan
        # them.
        gc.freeze()
        try:
            for selection in self._selections:
                if selection.plans:
                    self._run_campaign(selection)
        except KeyboardInterrupt:
            tally.interrupted = True
        finally:
            self._interrupts.defer_to_the_end()
            self._results.close()
            self._progress.clear()
            watched_s = 0.0 if self._watch is None else self._watch.played_s
            tally.wall_s = time.monotonic() - self._started_s - watched_s
            self._printer.finish(tally)
        return tally

    def _run_campaign(self, selection: Selection) -> None:
        self._printer.begin(selection)
        try:
            for plan in selection.plans:
                for seed in self._seeds:
                    if self._must_stop():
                        return
                    self._run_one(selection, plan, seed)
        finally:
            with self._interrupts.shielded():
                self._progress.clear()
                self._printer.end()

    def _show_wait(self, condition: Callable[[], str]) -> None:
        """Show for which condition the current run waits."""
        self._progress.update(self._tally.finished, lambda: f"{condition()} ({self._command})")

    def _must_stop(self) -> bool:
        failures_max, time_max_s = self._request.failures_max, self._request.time_max_s
        if failures_max is not None and len(self._tally.failed) >= failures_max:
            self._tally.stopped = f"--max-failures {failures_max} reached"
        elif time_max_s is not None and time.monotonic() - self._started_s >= time_max_s:
            self._tally.stopped = "--max-time reached"
        return self._tally.stopped is not None

    def _run_one(self, selection: Selection, plan: Plan, seed: int) -> None:
        overrides = self._request.overrides or ()
        target = None if self._request.target == MODEL else self._request.target
        then = self._request.then or ()
        reproduce = reproduce_command(selection.argument, seed, plan.variant, overrides, target, then)
        self._command = reproduce
        self._progress.update(self._tally.finished, reproduce)
        try:
            result = next(self._results)
        except Exception as error:
            error.add_note(f"the run that failed: {reproduce}")
            raise
        if not self._tally.several_seeds:
            result = with_difference(as_only_run(result), partial(run_plan, check=self._interrupts.check))
        with self._interrupts.shielded():
            run = FinishedRun(result=result, reproduce=reproduce, file=selection.campaign.path, folder=None)
            if not self._request.no_results and result.verdict.status != SKIPPED:
                run = self._written(run, selection, result.open_plan or plan)
            self._tally.add(run)
            self._progress.clear()
            if self._watch is not None:
                # Ctrl-C only ends the view here. At its end, the shielded block raises it again.
                with suppress(KeyboardInterrupt):
                    self._watch.play(result)
            self._printer.add(run)

    def _written(self, run: FinishedRun, selection: Selection, plan: Plan) -> FinishedRun:
        """Write the files of a run of a *plan*, and return the run with their folder."""
        from harrow.campaigns.record.campaign_copy import campaign_copy
        from harrow.campaigns.record.results_folder import write_run_to

        overrides = self._request.overrides or ()
        text = campaign_copy(selection.campaign, plan, run.result.seed, overrides)
        folder = write_run_to(self._request.results, run.result, run.as_mapping(), text)
        return replace(run, folder=folder)


def _mounted_results(request: RunRequest) -> Path | None:
    """Return the folder for the files of brokers and clients, which write there while they run."""
    if request.no_results:
        return None
    if isinstance(request.results, LocalLocation):
        return request.results.path
    raise typer.BadParameter("brokers write their files only to mounted folders", param_hint="--results")


def _on_brokers(
    brokers: "Brokers",
    runs: Iterable[tuple[Plan, int]],
    results: Path | None,
    interrupts: Interrupts,
    show_wait: "ShowWait",
    end_s: float,
) -> Generator[RunResult]:
    """Run plans and seeds one after the other, each on new brokers, and yield the results.

    An interrupted run also has a result, because its observations took minutes.
    """

    def check() -> None:
        stop_if_interrupted(interrupts)
        if time.monotonic() >= end_s:
            raise RunStopped("its time was over")

    for plan, seed in runs:
        with interrupts.deferred():
            result = brokers.run(plan, seed, results, check, show_wait)
        yield result


def _seeds(request: RunRequest) -> range:
    seed = request.seed or 0
    return range(seed, seed + 1) if request.seeds is None else request.seeds
