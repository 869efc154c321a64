"""One `harrow regress`: run every entry of a corpus, or put one into it."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import typer
from rich.console import Console
from rich.text import Text

from campaigns.corpus import (
    CHANGED,
    ERROR,
    FIXED,
    OUTCOMES,
    STILL_FAILING,
    Checked,
    NotFailingError,
    check_file,
    corpus_files,
    entry_text,
)
from campaigns.corpus import regress_document as document
from campaigns.literals import LiteralError, campaign_name
from campaigns.problem import CampaignError
from campaigns.spelling import printable, run_name
from cli import exit_code
from cli.ci_output import CI_FORMATS, write_problems, write_suites
from cli.console import data_console, destination, message_console, say, say_written, show, unbroken
from cli.interrupts import Interrupts
from cli.options import ReportFormat
from cli.progress import ProgressLine
from cli.regress_cases import corpus_suites
from cli.render_problem import show_problems
from cli.run_selection import choose_variants, find_campaigns, load_all

_STYLES: Final = {STILL_FAILING: "yellow", FIXED: "green", CHANGED: "red", ERROR: "magenta"}
_OUTCOME_WIDTH: Final = max(map(len, OUTCOMES)) + 2
_STATUS_WIDTH: Final = 8


def regress_session(
    place: Path, *, output_format: ReportFormat, output: Path | None, quiet: bool, no_color: bool
) -> int:
    """Run a corpus, print how each entry came out, and return the exit code."""
    messages = message_console(no_color=no_color)
    try:
        files = corpus_files(place)
    except CampaignError as error:
        show_problems(messages, error.problems)
        return write_problems(error.problems, output_format, output, messages)
    found: list[Checked] = []
    try:
        with Interrupts() as interrupts, destination(output) as stream:
            console = data_console(no_color=no_color, file=stream)
            shown = _Shown(console, output_format, messages, quiet=quiet)
            progress = ProgressLine(messages, total=len(files), enabled=not quiet)
            interrupted = _check_all(files, found, shown, progress, interrupts)
            shown.end(found, interrupted=interrupted)
    except BrokenPipeError:
        raise
    except OSError as error:
        return _cannot_go_on(messages, error)
    if not files:
        say(messages, f"nothing to run: there are no campaign files (*.yaml) in {place}")
    say_written(messages, output, quiet=quiet)
    if interrupted:
        say(messages, f"interrupted: {len(found)} entries of {len(files)} files were run")
        return exit_code.INTERRUPTED
    return _code(found)


def add_session(
    argument: str,
    place: Path,
    *,
    seed: int,
    variant: str | None,
    name: str | None,
    overrides: tuple[str, ...],
    output_format: ReportFormat,
    output: Path | None,
    quiet: bool,
    no_color: bool,
) -> int:
    """Put a failing campaign into the corpus, and return the exit code."""
    messages = message_console(no_color=no_color)
    _check_place(place, name)
    files, problems = find_campaigns([argument])
    loaded, mistakes = load_all(files, overrides)
    if problems := [*problems, *mistakes]:
        show_problems(messages, problems)
        return exit_code.USAGE
    if len(loaded) != 1:
        say(messages, f"{argument} has {len(loaded)} campaigns: name one of them", style="red")
        return exit_code.USAGE
    plan = choose_variants(loaded, [] if variant is None else [variant])[0][0]
    try:
        with Interrupts() as interrupts:
            name, text = entry_text(plan, seed, name, loaded[0].heading())
            path = place / f"{name}.yaml"
            interrupts.hold()
            _write_new(path, text)
            found = list(check_file(path))
        with destination(output) as stream:
            console = data_console(no_color=no_color, file=stream)
            shown = _Shown(console, output_format, messages, quiet=quiet)
            for item in found:
                shown.add(item)
            shown.end(() if output_format is ReportFormat.TABLE else found)
    except KeyboardInterrupt:
        say(messages, f"interrupted: {argument} is not put into the corpus")
        return exit_code.INTERRUPTED
    except NotFailingError as error:
        say(messages, f"{argument} is not put into the corpus: {error}", style="red")
        return exit_code.BROKEN
    except FileExistsError as error:
        say(messages, f"{error.filename} exists already and is left as it is", style="red")
        return exit_code.USAGE
    except BrokenPipeError:
        raise
    except OSError as error:
        return _cannot_go_on(messages, error)
    say_written(messages, output, quiet=quiet)
    return _code(found)


class _Shown:
    """What is printed: in a table each entry when it is over, else all at the end."""

    def __init__(
        self, console: Console, output_format: ReportFormat, messages: Console, *, quiet: bool
    ) -> None:
        self._console = console
        self._messages = messages
        self._format = output_format
        self._is_table = output_format is ReportFormat.TABLE
        self._quiet = quiet

    def add(self, item: Checked) -> None:
        """An entry is over."""
        if self._is_table and not (self._quiet and item.as_recorded):
            _show(self._console, item)

    def end(self, found: Sequence[Checked], *, interrupted: bool = False) -> None:
        """All of them are over, or were ended."""
        if self._format in CI_FORMATS:
            suites = corpus_suites(found, interrupted=interrupted)
            write_suites(self._console.file, self._format, suites, noun="entry", messages=self._messages)
        elif not self._is_table:
            text = json.dumps(document(found, interrupted=interrupted), ensure_ascii=False, indent=2)
            self._console.file.write(f"{text}\n")
        elif found and not (self._quiet and all(item.as_recorded for item in found)):
            show(self._console, Text(), _summary(found))


def _check_all(
    files: Sequence[Path],
    found: list[Checked],
    shown: _Shown,
    progress: ProgressLine,
    interrupts: Interrupts,
) -> bool:
    """Run all entries, and return whether that was interrupted; what is over by then is in *found*."""
    try:
        for number, file in enumerate(files):
            progress.update(number, str(file))
            for item in check_file(file):
                with interrupts.shielded():
                    found.append(item)
                    progress.clear()
                    shown.add(item)
    except KeyboardInterrupt:
        return True
    finally:
        interrupts.hold()
        progress.clear()
    return False


def _check_place(place: Path, name: str | None) -> None:
    if place.exists() and not place.is_dir():
        raise typer.BadParameter(
            f"{place} is no folder: with --add it is where the entry goes", param_hint="DIR"
        )
    if name is not None:
        try:
            campaign_name(name)
        except LiteralError as error:
            raise typer.BadParameter(str(error), param_hint="--name") from None


def _write_new(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("x", encoding="utf-8", newline="\n") as stream:
        stream.write(text)


def _cannot_go_on(messages: Console, error: OSError) -> int:
    say(messages, f"cannot go on: {error.strerror or error}: {error.filename}", style="red")
    return exit_code.USAGE


def _code(found: Sequence[Checked]) -> int:
    if not found:
        return exit_code.INCONCLUSIVE
    if any(item.outcome == ERROR for item in found):
        return exit_code.USAGE
    return exit_code.OK if all(item.as_recorded for item in found) else exit_code.BROKEN


def _show(console: Console, item: Checked) -> None:
    if item.problems:
        for problem in item.problems:
            line = Text.assemble((f"{item.outcome:{_OUTCOME_WIDTH}}", _STYLES[item.outcome]), str(problem))
            show(console, unbroken(line))
        return
    assert item.plan is not None
    assert item.plan.found is not None
    name = run_name(str(item.file), item.plan.variant)
    show(
        console,
        unbroken(
            Text.assemble(
                (f"{item.outcome:{_OUTCOME_WIDTH}}", _STYLES[item.outcome]),
                f"{item.plan.found.status:{_STATUS_WIDTH}}",
                (printable(name), "bold"),
                f"  {item.plan.found.rule}: {item.why}",
            )
        ),
    )
    if not item.as_recorded:
        show(console, unbroken(Text(f"{'':{_OUTCOME_WIDTH}}{item.reproduce()}", "dim")))
    console.file.flush()


def _summary(found: Sequence[Checked]) -> Text:
    counts = Counter(item.outcome for item in found)
    parts = ", ".join(f"{counts[outcome]} {outcome}" for outcome in OUTCOMES if counts[outcome])
    wrong = sum(not item.as_recorded for item in found)
    entries = "1 entry" if len(found) == 1 else f"{len(found)} entries"
    return unbroken(Text(f"{entries}: {parts}; {f'{wrong} not as recorded' if wrong else 'all as recorded'}"))
