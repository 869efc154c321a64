"""One `harrow run`: every campaign, variant and seed, one after the other."""

import gc
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from rich.console import Console

from campaigns.campaign_copy import campaign_copy
from campaigns.plan import Plan
from campaigns.report import reproduce_command, run_as_mapping
from campaigns.required_probes import as_only_run
from campaigns.results_folder import write_run
from campaigns.run_result import RunResult
from campaigns.runner import run_plan
from cli import exit_code
from cli.ci_output import CI_FORMATS, write_problems
from cli.console import data_console, destination, message_console, say, say_written
from cli.interrupts import Interrupts
from cli.options import RunFormat
from cli.progress import ProgressLine
from cli.render_problem import show_problems
from cli.render_run import RunTable
from cli.run_selection import Selection, choose_variants, find_campaigns, load_all
from cli.run_stream import JsonDocument, NdjsonStream
from cli.run_suites import RunSuites
from cli.run_tally import FinishedRun, Tally


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """What to run, and when to stop; ``play_speed`` is there where somebody watches (`cli.watch_run`)."""

    arguments: tuple[str, ...]
    seeds: range
    overrides: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    results: Path | None = None
    failures_max: int | None = None
    time_max_s: float | None = None
    play_speed: float | None = None


class Printer(Protocol):
    """What prints runs in one format."""

    def begin(self, selection: Selection) -> None:
        """The runs of a campaign begin."""

    def add(self, run: FinishedRun) -> None:
        """A run is finished."""

    def end(self) -> None:
        """The runs of the campaign are over, or were ended."""

    def finish(self, tally: Tally) -> None:
        """All runs are over."""


def run_session(
    request: RunRequest,
    *,
    output_format: RunFormat,
    output: Path | None,
    quiet: bool,
    verbose: bool,
    no_color: bool,
) -> int:
    """Run what was asked for, print it, and return the exit code."""
    messages = message_console(no_color=no_color)
    files, not_found = find_campaigns(request.arguments)
    loaded, mistakes = load_all(files, request.overrides)
    if problems := [*not_found, *mistakes]:
        show_problems(messages, problems)
        return write_problems(problems, output_format, output, messages)
    selections = [
        Selection(campaign=campaign, argument=argument, plans=plans)
        for campaign, argument, plans in zip(
            loaded, files.values(), choose_variants(loaded, request.variants), strict=True
        )
        if plans
    ]
    try:
        with Interrupts() as interrupts, destination(output) as stream:
            console = data_console(no_color=no_color, file=stream)
            printer = _printer(output_format, console, request, messages, quiet=quiet, verbose=verbose)
            total = _count(selections, request.seeds)
            watch = _watch(request.play_speed, messages, interrupts, only=total == 1)
            progress = ProgressLine(messages, total=total, enabled=not quiet and watch is None)
            tally = Session(request, selections, printer, progress, interrupts, watch).run()
    except BrokenPipeError:
        raise
    except OSError as error:
        say(messages, f"cannot go on: {error.strerror or error}: {error.filename}", style="red")
        return exit_code.USAGE
    if output_format is RunFormat.NDJSON:  # Its lines are about single runs.
        for missed in tally.required.unreached():
            say(messages, f"inconclusive: {missed.reason()}")
    _say_how_it_ended(messages, tally, output, quiet=quiet)
    return tally.exit_code()


class Watch(Protocol):
    """What shows runs to somebody before they are printed. ``played_s`` is how long that has taken so far."""

    played_s: float

    def play(self, result: RunResult) -> None:
        """Show a run that is over."""


class Session:
    """The loop over campaigns, variants and seeds."""

    def __init__(
        self,
        request: RunRequest,
        selections: Sequence[Selection],
        printer: Printer,
        progress: ProgressLine,
        interrupts: Interrupts,
        watch: Watch | None = None,
    ) -> None:
        self._request = request
        self._selections = selections
        self._printer = printer
        self._progress = progress
        self._interrupts = interrupts
        self._watch = watch
        self._started_s = time.monotonic()
        self._tally = Tally(planned=_count(selections, request.seeds), several_seeds=len(request.seeds) > 1)

    def run(self) -> Tally:
        """Run everything, and finish the output also when something ends it early."""
        tally = self._tally
        # What has been imported and loaded is not garbage; runs need not look through it.
        gc.freeze()
        try:
            for selection in self._selections:
                self._run_campaign(selection)
        except KeyboardInterrupt:
            tally.interrupted = True
        finally:
            self._interrupts.hold()
            self._progress.clear()
            watched_s = 0.0 if self._watch is None else self._watch.played_s
            tally.wall_s = time.monotonic() - self._started_s - watched_s
            self._printer.finish(tally)
        return tally

    def _run_campaign(self, selection: Selection) -> None:
        self._printer.begin(selection)
        try:
            for plan, seed in self._pairs(selection):
                self._run_one(selection, plan, seed)
        finally:
            with self._interrupts.shielded():
                self._progress.clear()
                self._printer.end()

    def _pairs(self, selection: Selection) -> Iterator[tuple[Plan, int]]:
        for plan in selection.plans:
            for seed in self._request.seeds:
                if self._tally.stopped is None:
                    self._tally.stopped = self._reason_to_stop()
                if self._tally.stopped is not None:
                    return
                yield plan, seed

    def _reason_to_stop(self) -> str | None:
        failures_max, time_max_s = self._request.failures_max, self._request.time_max_s
        if failures_max is not None and len(self._tally.failed) >= failures_max:
            return f"--max-failures {failures_max} reached"
        if time_max_s is not None and time.monotonic() - self._started_s >= time_max_s:
            return "--max-time is over"
        return None

    def _run_one(self, selection: Selection, plan: Plan, seed: int) -> None:
        overrides = self._request.overrides
        reproduce = reproduce_command(selection.argument, seed, plan.variant, overrides)
        self._progress.update(self._tally.finished, reproduce)
        begun_s = time.monotonic()
        try:
            result = run_plan(plan, seed)
        except Exception as error:
            error.add_note(f"it happened in: {reproduce}")
            raise
        if not self._tally.several_seeds:
            result = as_only_run(result)
        result = replace(result, wall_ms=round((time.monotonic() - begun_s) * 1_000))
        mapping = run_as_mapping(result, reproduce)
        with self._interrupts.shielded():
            folder = None
            if self._request.results is not None:
                text = campaign_copy(selection.campaign, plan, seed, overrides)
                folder = write_run(self._request.results, result, mapping, text)
            run = FinishedRun(result=result, mapping=mapping, file=selection.campaign.path, folder=folder)
            self._tally.add(run)
            self._progress.clear()
            if self._watch is not None:
                # Whoever ends the playing has a run that is finished: the end of the block goes on with it.
                with suppress(KeyboardInterrupt):
                    self._watch.play(result)
            self._printer.add(run)


def _watch(speed: float | None, messages: Console, interrupts: Interrupts, *, only: bool) -> Watch | None:
    if speed is None:
        return None
    from cli.watch_run import RunWatch

    return RunWatch(messages, speed=speed, only=only, check=interrupts.check)


def _count(selections: Sequence[Selection], seeds: range) -> int:
    return sum(len(selection.plans) for selection in selections) * len(seeds)


def _printer(
    output_format: RunFormat,
    console: Console,
    request: RunRequest,
    messages: Console,
    *,
    quiet: bool,
    verbose: bool,
) -> Printer:
    if output_format in CI_FORMATS:
        return RunSuites(console, output_format, messages)
    if output_format is RunFormat.JSON:
        return JsonDocument(console.file)
    if output_format is RunFormat.NDJSON:
        return NdjsonStream(console.file)
    return RunTable(console, several_seeds=len(request.seeds) > 1, quiet=quiet, verbose=verbose)


def _say_how_it_ended(messages: Console, tally: Tally, output: Path | None, *, quiet: bool) -> None:
    progress = f"{tally.finished} of {tally.planned} runs are finished"
    if tally.interrupted:
        say(messages, f"interrupted: {progress}; what was finished is written")
    elif tally.stopped is not None and not quiet:
        say(messages, f"{tally.stopped}: {progress}")
    if tally.planned == 0:
        say(messages, "nothing to run")
    say_written(messages, output, quiet=quiet)
