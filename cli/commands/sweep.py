"""`harrow sweep`: defines the sweep, chooses the engine, runs it, and prints the report."""

import shlex
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer
from rich.console import Console

from harrow.campaigns.language.spelling import printable
from harrow.campaigns.record.report import UNDECIDED
from harrow.campaigns.storage.location import LocalLocation, Location, location
from harrow.campaigns.sweep.definition import Definition, VaryError, define, parse_vary
from harrow.campaigns.version import another_harrow
from harrow.cli import exit_code
from harrow.cli.commands.run_selection import print_notes, select
from harrow.cli.commands.run_tally import exit_code_of
from harrow.cli.console import message_console, say
from harrow.cli.extras import need
from harrow.cli.interrupts import Interrupts
from harrow.cli.options import SweepEngine, need_terminal, parse_time_s, refuse
from harrow.cli.progress import ProgressLine
from harrow.cli.requests.sweep import SweepRequest
from harrow.cli.session import Refusal, need_file_for_page, need_writable, note, publish
from harrow.cli.spark import (
    address_of,
    available_engine,
    check_engine,
    extra_of_engine,
    need_shared,
    program_words,
    spark_engine,
    start_spark,
    wants_spark,
)

if TYPE_CHECKING:
    from harrow.campaigns.sweep.sweep import Progress
    from harrow.campaigns.sweep.sweep_folder import SweepFolder
    from harrow.campaigns.sweep.sweep_report import SweepReport

_SPARK_ROWS_MIN: Final = 1_000_000
"""If a sweep has fewer rows, DuckDB finishes before Spark SQL has warmed up."""


def session(request: SweepRequest) -> int:
    _check(request)
    need(extra_of_engine(request))
    from harrow.campaigns.sweep.engine import EngineError
    from harrow.campaigns.sweep.sweep_folder import SweepFolderError

    try:
        return _SweepSession(request).run()
    except (EngineError, SweepFolderError, VaryError) as error:
        raise Refusal(str(error)) from None


def _by_other_models(path: Path) -> Iterator[str]:
    """Yield the default folders where other versions of the model ran the same sweep."""
    from harrow.campaigns.sweep.part_file import SWEEP
    from harrow.campaigns.sweep.sweep_folder import SweepFolderError, read_state

    for file in sorted(path.parent.glob(f"{path.name.rpartition('-')[0]}-*/{SWEEP}")):
        with suppress(SweepFolderError):
            state = read_state(file.parent)
            if other := another_harrow(state["version"], state.get("model")):
                yield f"{file.parent} was {printable(other)}"


def is_for_spark(state: Mapping[str, Any]) -> bool:
    """Return whether a sweep has enough rows for Spark SQL, if Spark is already running."""
    return int(state.get("rows", 0)) >= _SPARK_ROWS_MIN


def _check(request: SweepRequest) -> None:
    need_file_for_page(request)
    check_engine(request)
    if request.report is not None:
        refuse({"--watch": request.watch}, "has no meaning with --report: nothing runs")
    if request.watch:
        need_terminal()
    definition = (request.campaigns, request.seeds, request.varies, request.overrides, request.variants)
    if request.report is not None and any((*definition, request.out, request.resume)):
        message = "the folder already defines the sweep: omit campaigns, seeds, settings and folders"
        raise typer.BadParameter(message, param_hint="--report")
    if request.report is None and not request.campaigns:
        message = "give a campaign, as in `harrow sweep swarm --seeds 0..1000`"
        raise typer.BadParameter(message, param_hint="CAMPAIGN")
    if request.report is None and request.seeds is None:
        raise typer.BadParameter("give the seeds, as in --seeds 0..1000", param_hint="--seeds")


class _SweepSession:
    def __init__(self, request: SweepRequest) -> None:
        self._request = request
        self._messages = message_console(no_color=request.no_color)
        self._shrink_s = parse_time_s(request.shrink_time) if request.shrink else None
        self._by = [] if request.by is None else [*dict.fromkeys(map(str.strip, request.by.split(",")))]
        self._spark: Any = None
        self._address: Any = None
        self._interrupted = False
        self._spark_is_lost = False

    def _note(self, message: str) -> None:
        note(self._request, message)

    def run(self) -> int:
        request = self._request
        if request.report is not None:
            from harrow.campaigns.sweep.sweep_folder import SweepFolder, read_definition

            definition = read_definition(request.report)
            self._check_keys(definition)
            folder = SweepFolder(request.report, definition)
            folder.check()  # The folder may come from another machine.
            with Interrupts() as interrupts, ExitStack() as stack:
                # DuckDB finishes before Spark has started, so use Spark only on request.
                if wants_spark(request):
                    available_engine(request)
                    self._start_spark(stack, folder)
                return self._report(definition, folder, interrupts)
        definition = self._define()
        self._check_keys(definition)
        engine = available_engine(request)
        place = request.out or location(request.results / definition.name())
        need_writable(place)
        folder = self._folder(definition, place)
        with Interrupts() as interrupts, ExitStack() as stack:
            stack.enter_context(folder.exclusively(self._note))
            folder.begin()
            self._sweep(definition, folder, engine, interrupts, stack)
            return self._report(definition, folder, interrupts)

    # The definition, the engine and the folder

    def _define(self) -> Definition:
        request = self._request
        varies = [parse_vary(text) for text in request.varies or ()]
        keys = [vary.key for vary in varies]
        for key in keys:
            if keys.count(key) > 1:
                raise Refusal(f"--vary {key}: give all its values in one option")
        selections = select(request.campaigns or (), request.overrides, request.variants)
        assert request.seeds is not None
        start_s = time.monotonic()

        def check(count: int, total: int) -> None:
            if request.time_max_s is not None and time.monotonic() - start_s >= request.time_max_s:
                raise Refusal(
                    f"--max-time reached: {count} of {total} combinations of values were loaded, and nothing ran",
                    code=exit_code.INCONCLUSIVE,
                )

        definition = define(
            [(each.campaign, each.argument) for each in selections if each.campaign.plans],
            request.seeds,
            overrides=tuple(request.overrides or ()),
            varies=varies,
            variants=tuple(request.variants or ()),
            cells_max=request.cells_max,
            check=check,
        )
        print_notes(request, (each.campaign for each in selections), definition.notes)
        if not definition.cells:
            raise Refusal("nothing to run")
        return definition

    def _check_keys(self, definition: Definition) -> None:
        """Refuse an unknown key of ``--by`` before anything runs."""
        from harrow.campaigns.sweep.grouping import Grouping

        Grouping(definition.cells, self._by)

    def _folder(self, definition: Definition, path: Location) -> "SweepFolder":
        from harrow.campaigns.sweep.part_file import SWEEP
        from harrow.campaigns.sweep.sweep_folder import SweepFolder, is_only_begun, read_state

        folder = SweepFolder(path, definition)
        if (path / SWEEP).exists():
            if folder.has_rows() and not self._request.resume:
                raise Refusal(
                    f"{path} already has this sweep: --resume continues it, `harrow sweep --report {path}` "
                    "prints it, --out chooses another folder"
                )
            earlier, now = read_state(path), definition.as_mapping()
            if other := another_harrow(earlier["version"], earlier.get("model")):
                raise Refusal(f"{path} was {printable(other)}: choose another folder with --out")
            if earlier["cells"] != now["cells"]:
                raise Refusal(f"{path} has another sweep: its campaigns or settings differ")
            first, end = earlier["seeds"]
            if first < definition.seeds.start or end > definition.seeds.stop:
                raise Refusal(f"{path} has the seeds {first}..{end}: resume with --seeds that contain them")
            folder.check()
        elif not is_only_begun(path):
            raise Refusal(f"{path} is not empty and has no sweep")
        elif self._request.resume:
            if self._request.out is None and isinstance(path, LocalLocation):
                for other in _by_other_models(path.path):
                    self._note(other)
            self._note(f"nothing to resume in {path}: starting a new sweep")
        return folder

    # The runs

    def _start_spark(self, stack: ExitStack, folder: "SweepFolder") -> None:
        self._address = address_of(self._request, self._request.workers)
        need_shared(folder.location, self._address)
        self._spark = start_spark(self._request, self._address, stack, folder.location)

    def _start(
        self, choice: SweepEngine, definition: Definition, folder: "SweepFolder", stack: ExitStack
    ) -> Any:
        workers, place = self._request.workers, folder.location
        if choice == "spark":
            self._start_spark(stack, folder)
            return spark_engine(
                self._request,
                self._spark,
                self._address,
                stack,
                cells=definition.cells,
                workers=workers,
                folder=place,
            )
        from harrow.campaigns.sweep.process_engine import ProcessEngine

        engine = ProcessEngine(definition.cells, workers, place)
        stack.callback(engine.close)
        return engine

    def _sweep(
        self,
        definition: Definition,
        folder: "SweepFolder",
        engine_choice: SweepEngine,
        interrupts: Interrupts,
        stack: ExitStack,
    ) -> None:
        from harrow.campaigns.sweep.sweep import Limits, Sweep, state_of
        from harrow.cli.sweep_progress import SweepProgress

        request = self._request
        engine = self._start(engine_choice, definition, folder, stack)
        picture = None
        if request.watch:
            from harrow.cli.watch.canvas import canvas_of
            from harrow.cli.watch.sweep_screen import sweep_frame

            picture = lambda progress: sweep_frame(progress, definition, canvas_of(self._messages))  # noqa: E731 - its use gives its type
        bar = SweepProgress(self._messages, enabled=request.watch or not request.quiet, picture=picture)
        stack.callback(bar.end)
        limits = Limits(failures_max=request.failures_max, time_max_s=request.time_max_s)
        sweep = Sweep(
            definition, folder, engine, limits=limits, on_progress=bar.show, shielded=interrupts.shielded
        )
        progress = sweep.run()
        if progress.interrupted:
            interrupts.defer_to_the_end()  # From here on, harrow only writes results.
        with interrupts.shielded():
            bar.end()
            folder.end(state_of(progress, engine.name))
        self._interrupted = progress.interrupted
        self._spark_is_lost = progress.engine_lost is not None
        self._print_ending(progress)

    def _print_ending(self, progress: "Progress") -> None:
        from harrow.campaigns.record.redaction import without_secrets
        from harrow.cli.render.figures import times
        from harrow.cli.sweep_progress import progress_line

        has_runs = bool(progress.already + progress.done)
        if has_runs:
            self._note(progress_line(progress))
        for reason, count in progress.lost.most_common():
            say(self._messages, f"lost runs and repeated them, {times(count)}: {reason}")
        if progress.engine_lost is not None:
            say(self._messages, f"lost Spark: {progress.engine_lost}", style="red")
        if progress.is_complete():
            return
        if progress.stopped is not None:
            say(self._messages, progress.stopped)
        if has_runs:
            resume = [] if self._request.resume else ["--resume"]
            command = without_secrets(shlex.join([*program_words(self._address), *sys.argv[1:], *resume]))
            say(self._messages, f"finished runs are written; to continue: {command}")

    # The report

    def _report(self, definition: Definition, folder: "SweepFolder", interrupts: Interrupts) -> int:
        from harrow.campaigns.run.workers.available_workers import available_workers
        from harrow.campaigns.run.workers.workers import Workers
        from harrow.campaigns.sweep.failures import WrittenFailure, known_failures, write_failures
        from harrow.campaigns.sweep.sweep_folder import read_state
        from harrow.campaigns.sweep.sweep_report import SweepReport, exit_outcome, report_of

        request, path = self._request, folder.location
        state = read_state(path)
        if other := another_harrow(state["version"], state.get("model")):
            say(self._messages, f"{path} was {printable(other)}: its runs may differ here")
        has_rows = bool(folder.parts())
        if not has_rows and request.output_format == "table":
            return self._end_without_report()
        report = (
            report_of(self._sql(folder, state), definition, state, self._by)
            if has_rows
            else SweepReport(state=state, never_reached=definition.probes())
        )
        line = ProgressLine(self._messages, total=None, enabled=not request.quiet)
        written: list[WrittenFailure] = []
        try:
            with Workers(request.workers or available_workers()) as workers:
                written.extend(
                    known_failures(path, report.failures)
                    if request.report is not None and not request.shrink
                    else write_failures(
                        path,
                        definition,
                        report.failures,
                        workers=workers,
                        shrink_s=None if self._interrupted else self._shrink_s,
                        on_shrink=lambda group, runs: line.update(runs, f"runs, shrinking {group.signature}"),
                    )
                )
        except KeyboardInterrupt:
            self._interrupted = True
        except OSError as error:  # The disk may be full or the folder read-only; the report is still valid.
            say(self._messages, f"cannot write {error.filename}: {error.strerror or error}", style="red")
        finally:
            interrupts.defer_to_the_end()
            line.clear()
        self._publish(report, written, definition)
        self._note(f"the rows are in {path}")
        if self._interrupted:
            return exit_code.INTERRUPTED
        if report.verdict() == "error":
            return exit_code.INTERNAL
        return exit_code_of([exit_outcome(report), *([UNDECIDED] if self._spark_is_lost else [])])

    def _publish(self, report: "SweepReport", written: list[Any], definition: Definition) -> None:
        def show(console: Console) -> None:
            from harrow.cli.render.sweep.report import show_report

            show_report(console, report, written, quiet=self._request.quiet, verbose=self._request.verbose)
            console.file.flush()

        def page() -> str:
            from harrow.cli.page.sweep_page import sweep_page

            return sweep_page(report, written, definition.sources)

        def markdown() -> str:
            from harrow.cli.render.sweep.markdown import sweep_markdown

            return sweep_markdown(report, written)

        from harrow.cli.ci.sweep_cases import sweep_suites

        publish(
            self._request,
            document=report.as_mapping,
            suites=lambda: sweep_suites(report),
            noun="cell",
            show=show,
            texts={"html": page, "markdown": markdown},
        )

    def _end_without_report(self) -> int:
        if self._request.output is not None:
            say(self._messages, f"{self._request.output} is not written")
        if self._interrupted:
            say(self._messages, "interrupted before a run finished")
            return exit_code.INTERRUPTED
        say(self._messages, "no run finished")
        return exit_code.INCONCLUSIVE

    def _sql(self, folder: "SweepFolder", state: Mapping[str, Any]) -> Any:
        if (
            self._spark is not None
            and isinstance(folder.location, LocalLocation)
            and (self._request.report is not None or is_for_spark(state))
            and not self._spark_is_lost
            and not self._interrupted  # After Ctrl-C the user does not want to wait.
            and self._address.is_here
            and not self._address.is_connect
        ):
            from harrow.campaigns.sweep.spark_session import spark_sql

            return spark_sql(self._spark, folder.location.path)
        from harrow.campaigns.sweep.queries import duck_sql

        return duck_sql(folder)
