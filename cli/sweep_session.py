"""One `harrow sweep`: what is asked for, which engine runs it, and what is said of it."""

import json
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console, RenderableType

from campaigns.problem import CampaignError, Problem
from campaigns.report import UNDECIDED
from campaigns.sweep.definition import Definition, VaryError, define, parse_vary
from campaigns.version import VERSION
from cli import exit_code
from cli.ci_output import CI_FORMATS, write_problems, write_suites
from cli.console import data_console, destination, message_console, say
from cli.interrupts import Interrupts
from cli.options import ReportFormat
from cli.progress import ProgressLine
from cli.render_problem import show_problems
from cli.run_selection import choose_variants, find_campaigns, load_all
from cli.run_tally import exit_code_of
from cli.sweep import SweepEngine

if TYPE_CHECKING:
    from campaigns.sweep.failures import WrittenFailure
    from campaigns.sweep.sweep_report import SweepReport

_NEEDED: Final = ("pyarrow", "duckdb")
_LOG: Final = "spark.log"


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepRequest:
    """What was typed."""

    arguments: tuple[str, ...]
    seeds: range | None
    varies: tuple[str, ...]
    overrides: tuple[str, ...]
    variants: tuple[str, ...]
    engine: SweepEngine
    master: str | None
    remote: str | None
    workers: int | None
    out: Path | None
    results: Path
    resume: bool
    failures_max: int | None
    time_max_s: float | None
    shrink_s: float | None
    report: Path | None
    watch: bool
    output_format: ReportFormat
    output: Path | None
    quiet: bool
    verbose: bool
    no_color: bool


class _UsageError(Exception):
    """Something that the user has to change; the message says what."""


def sweep_session(request: SweepRequest) -> int:
    """Run what was asked for, print the report, and return the exit code."""
    messages = message_console(no_color=request.no_color)
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        say(
            messages, f"a sweep needs {' and '.join(missing)}: pip install 'kafka-harrow[sweep]'", style="red"
        )
        return exit_code.USAGE
    from campaigns.sweep.engine import EngineError
    from campaigns.sweep.sweep_folder import SweepFolderError

    try:
        return _Session(request, messages).run()
    except CampaignError as error:
        show_problems(messages, error.problems)
        return write_problems(error.problems, request.output_format, request.output, messages)
    except (_UsageError, EngineError, SweepFolderError, VaryError) as error:
        say(messages, str(error), style="red")
    except KeyboardInterrupt:
        say(messages, "interrupted; what was finished is written")
        return exit_code.INTERRUPTED
    except BrokenPipeError:
        raise
    except OSError as error:
        say(messages, f"cannot go on: {error.strerror or error}: {error.filename}", style="red")
    return exit_code.USAGE


class _Session:
    def __init__(self, request: SweepRequest, messages: Console) -> None:
        self._request = request
        self._messages = messages
        self._spark: Any = None
        self._interrupted = False
        self._spark_is_lost = False

    def run(self) -> int:
        request = self._request
        if request.report is not None:
            from campaigns.sweep.sweep_folder import read_definition

            definition, path = read_definition(request.report), request.report
            with Interrupts() as interrupts, ExitStack() as stack:
                # DuckDB has answered before Spark has started; who wants Spark says so.
                if request.engine is SweepEngine.SPARK or request.master or request.remote:
                    self._chosen_engine()
                    self._start_spark(stack, path)
                return self._report(definition, path, interrupts)
        definition = self._define()
        engine = self._chosen_engine()
        path = self._request.out or self._request.results / definition.name()
        folder = self._folder(definition, path)
        with Interrupts() as interrupts, ExitStack() as stack:
            stack.enter_context(folder.held())
            folder.begin()
            self._sweep(definition, folder, engine, interrupts, stack)
            return self._report(definition, path, interrupts)

    # What is asked for

    def _define(self) -> Definition:
        request = self._request
        varies = [parse_vary(text) for text in request.varies]
        keys = [vary.key for vary in varies]
        for key in keys:
            if keys.count(key) > 1:
                raise _UsageError(f"--vary {key}: give all its values at once")
        files, not_found = find_campaigns(request.arguments)
        loaded, mistakes = load_all(files, request.overrides)
        problems: list[Problem] = [*not_found, *mistakes]
        if problems:
            raise CampaignError(problems)
        choose_variants(loaded, request.variants)  # says which of them nobody has
        assert request.seeds is not None
        definition = define(
            list(zip(loaded, files.values(), strict=True)),
            request.seeds,
            overrides=request.overrides,
            varies=varies,
            variants=request.variants,
        )
        if not definition.cells:
            raise _UsageError("nothing to run")
        return definition

    def _chosen_engine(self) -> SweepEngine:
        """Return what runs it, and say so when nobody chose.

        Raises:
            _UsageError: Spark is wanted and cannot be had.

        """
        from campaigns.sweep.spark_availability import what_is_missing

        request = self._request
        if request.engine is SweepEngine.PROCESS:
            return SweepEngine.PROCESS
        missing = what_is_missing(remote=request.remote is not None)
        if missing is None:
            return SweepEngine.SPARK
        if request.engine is SweepEngine.SPARK or request.master or request.remote:
            raise _UsageError(missing)
        if not request.quiet:
            say(self._messages, f"no Spark ({missing}): a pool of processes runs it")
        return SweepEngine.PROCESS

    def _folder(self, definition: Definition, path: Path) -> Any:
        from campaigns.sweep.sweep_folder import SWEEP, SweepFolder, is_only_begun, read_state

        folder = SweepFolder(path, definition)
        if (path / SWEEP).exists():
            if folder.parts() and not self._request.resume:
                raise _UsageError(
                    f"{path} has this sweep already: --resume goes on with it, `harrow sweep --report {path}` "
                    "prints it, --out names another folder"
                )
            earlier, now = read_state(path), definition.as_mapping()
            if any(earlier.get(key) != now[key] for key in ("version", "cells")):
                raise _UsageError(
                    f"{path} has another sweep: its campaigns, settings or version are not these"
                )
            first, end = earlier["seeds"]
            if first < definition.seeds.start or end > definition.seeds.stop:
                raise _UsageError(f"{path} has the seeds {first}..{end}: go on with these, or with more")
        elif not is_only_begun(path):
            raise _UsageError(f"{path} is no sweep, and not empty")
        elif self._request.resume and not self._request.quiet:
            say(self._messages, f"nothing to resume in {path}: it is begun")
        return folder

    # Running it

    def _start_spark(self, stack: ExitStack, path: Path) -> None:
        from campaigns.sweep.spark_availability import without_token
        from campaigns.sweep.spark_session import DEFAULT_MASTER, start_session, stop_session

        request = self._request
        embedded = f"local[{request.workers}]" if request.workers else DEFAULT_MASTER
        master = request.master or embedded
        if not request.quiet:
            say(self._messages, f"starting Spark ({without_token(request.remote or master)})")
        log = path / _LOG if os.access(path, os.W_OK) else Path(os.devnull)
        self._spark = start_session(master=master, remote=request.remote, log=log)
        stack.callback(stop_session, self._spark)

    def _engine(self, engine: SweepEngine, definition: Definition, path: Path, stack: ExitStack) -> Any:
        if engine is SweepEngine.SPARK:
            self._start_spark(stack, path)
            from campaigns.sweep.spark_engine import SparkEngine

            return SparkEngine(self._spark, definition.cells, self._request.workers)
        from campaigns.sweep.process_engine import ProcessEngine

        return ProcessEngine(definition.cells, self._request.workers)

    def _sweep(
        self,
        definition: Definition,
        folder: Any,
        chosen: SweepEngine,
        interrupts: Interrupts,
        stack: ExitStack,
    ) -> None:
        from campaigns.sweep.spark_availability import without_token
        from campaigns.sweep.sweep import Limits, Sweep, state_of
        from cli.sweep_progress import SweepProgress, progress_line

        request = self._request
        engine = self._engine(chosen, definition, folder.path, stack)
        stack.callback(engine.close)
        picture = self._watched(definition) if request.watch else None
        bar = SweepProgress(self._messages, enabled=request.watch or not request.quiet, picture=picture)
        stack.callback(bar.end)
        limits = Limits(failures_max=request.failures_max, time_max_s=request.time_max_s)
        sweep = Sweep(
            definition, folder, engine, limits=limits, on_progress=bar.show, shielded=interrupts.shielded
        )
        progress = sweep.run()
        if progress.interrupted:
            interrupts.hold()  # from here on there is only writing
        with interrupts.shielded():
            bar.end()
            folder.end(state_of(progress, engine.name))
        self._interrupted = progress.interrupted
        self._spark_is_lost = progress.engine_lost is not None
        in_vain = not progress.already + progress.done
        if not request.quiet and not in_vain:
            say(self._messages, progress_line(progress))
        for why, count in progress.lost.most_common():
            times = "once" if count == 1 else f"{count} times"
            say(self._messages, f"runs were lost and tried again, {times}: {why}")
        if progress.engine_lost is not None:
            say(self._messages, f"Spark is gone: {progress.engine_lost}", style="red")
        if progress.stopped is not None and not progress.is_complete():
            say(self._messages, progress.stopped)
        if not progress.is_complete() and not in_vain:
            again = shlex.join(["harrow", *sys.argv[1:], *([] if request.resume else ["--resume"])])
            say(self._messages, f"what was finished is written; to go on: {without_token(again)}")

    def _watched(self, definition: Definition) -> Callable[[Any], RenderableType]:
        from cli.canvas import canvas_of
        from cli.render_sweep_watch import sweep_frame

        return lambda progress: sweep_frame(progress, definition, canvas_of(self._messages))

    # What is said of it

    def _report(self, definition: Definition, path: Path, interrupts: Interrupts) -> int:
        from campaigns.sweep.failures import WrittenFailure, write_failures
        from campaigns.sweep.sweep_folder import SweepFolder, read_state
        from campaigns.sweep.sweep_report import empty_report, exit_outcome, report_of

        request = self._request
        state = read_state(path)
        if state.get("version") != VERSION:
            say(
                self._messages,
                f"a sweep by harrow {state.get('version')}: with this version, {VERSION}, runs may come out differently",
            )
        has_rows = bool(SweepFolder(path, definition).parts())
        if not has_rows and request.output_format is ReportFormat.TABLE:
            return self._say_that_there_is_none()
        report = report_of(self._sql(path), definition, state) if has_rows else empty_report(state)
        line = ProgressLine(self._messages, total=None, enabled=not request.quiet)
        written: list[WrittenFailure] = []
        try:
            written.extend(
                write_failures(
                    path,
                    definition,
                    report.failures,
                    shrink_s=None if self._interrupted else request.shrink_s,
                    on_shrink=lambda group, runs: line.update(runs, f"runs to shrink {group.signature}"),
                )
            )
        except KeyboardInterrupt:
            self._interrupted = True
        except (
            OSError
        ) as error:  # The folder may be somebody else's, or the disk full: the report is still good.
            say(self._messages, f"cannot write {error.filename}: {error.strerror or error}", style="red")
        finally:
            interrupts.hold()
            line.clear()
        self._print(report, written)
        if not request.quiet:
            say(self._messages, f"the rows are in {path}")
            if request.output is not None:
                say(self._messages, f"wrote {request.output}")
        if self._interrupted:
            return exit_code.INTERRUPTED
        if report.verdict() == "error":
            return exit_code.INTERNAL
        return exit_code_of([exit_outcome(report), *([UNDECIDED] if self._spark_is_lost else [])])

    def _print(self, report: "SweepReport", written: "Sequence[WrittenFailure]") -> None:
        from cli.render_sweep import show_report

        request = self._request
        with destination(request.output) as stream:
            console = data_console(no_color=request.no_color, file=stream)
            if request.output_format is ReportFormat.JSON:
                json.dump(report.as_mapping(), console.file, ensure_ascii=False, indent=2)
                console.file.write("\n")
            elif request.output_format in CI_FORMATS:
                from cli.sweep_cases import sweep_suites

                write_suites(
                    console.file,
                    request.output_format,
                    sweep_suites(report),
                    noun="cell",
                    messages=self._messages,
                )
            else:
                show_report(console, report, written, quiet=request.quiet, verbose=request.verbose)
            console.file.flush()

    def _say_that_there_is_none(self) -> int:
        if self._request.output is not None:
            say(self._messages, f"{self._request.output} is not written")
        if self._interrupted:
            say(self._messages, "interrupted before a run was finished")
            return exit_code.INTERRUPTED
        say(self._messages, "no run is finished")
        return exit_code.INCONCLUSIVE

    def _sql(self, path: Path) -> Any:
        from campaigns.sweep.spark_availability import is_on_this_machine

        if (
            self._spark is not None
            and not self._spark_is_lost
            and not self._interrupted  # whoever has interrupted does not want to wait
            and self._request.remote is None
            and is_on_this_machine(self._request.master)
        ):
            from campaigns.sweep.spark_sql import SparkSql

            return SparkSql(self._spark, path)
        from campaigns.sweep.duck_sql import DuckSql

        return DuckSql(path)
