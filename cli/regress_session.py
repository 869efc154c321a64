"""One `harrow regress`: run every entry of a corpus, or put one into it."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

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
from campaigns.problem import CampaignError
from campaigns.spelling import printable
from cli import exit_code
from cli.console import data_console, message_console, say, show, unbroken
from cli.options import ListFormat
from cli.render_problem import show_problems
from cli.run_selection import choose_variants, find_campaigns, load_all

_STYLES: Final = {STILL_FAILING: "yellow", FIXED: "green", CHANGED: "red", ERROR: "magenta"}
_OUTCOME_WIDTH: Final = max(map(len, OUTCOMES)) + 2
_STATUS_WIDTH: Final = 8


def regress_session(place: Path, *, output_format: ListFormat, quiet: bool, no_color: bool) -> int:
    """Run a corpus, print how each entry came out, and return the exit code."""
    messages, console = message_console(no_color=no_color), data_console(no_color=no_color)
    try:
        files = corpus_files(place)
    except CampaignError as error:
        show_problems(messages, error.problems)
        return exit_code.USAGE
    found: list[Checked] = []
    interrupted = False
    try:
        for file in files:
            for item in check_file(file):
                found.append(item)
                if output_format is ListFormat.TABLE and not (quiet and item.as_recorded):
                    _show(console, item)
    except KeyboardInterrupt:
        interrupted = True
    if output_format is ListFormat.JSON:
        console.file.write(json.dumps(document(found), ensure_ascii=False, indent=2) + "\n")
    elif found and not (quiet and all(item.as_recorded for item in found)):
        show(console, Text(), _summary(found))
    if interrupted:
        say(messages, f"interrupted: {len(found)} entries were run")
        return exit_code.INTERRUPTED
    if not found:
        say(messages, f"nothing to run: there are no campaign files (*.yaml) in {place}")
    return _code(found)


def add_session(
    argument: str,
    place: Path,
    *,
    seed: int,
    variant: str | None,
    name: str | None,
    overrides: tuple[str, ...],
    output_format: ListFormat,
    quiet: bool,
    no_color: bool,
) -> int:
    """Put a failing campaign into the corpus, and return the exit code."""
    messages = message_console(no_color=no_color)
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
        name, text = entry_text(plan, seed, name)
        path = place / f"{name}.yaml"
        place.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
    except NotFailingError as error:
        say(messages, f"{argument} is not put into the corpus: {error}", style="red")
        return exit_code.BROKEN
    except FileExistsError:
        say(messages, f"{place / f'{name}.yaml'} exists already and is left as it is", style="red")
        return exit_code.USAGE
    except OSError as error:
        say(messages, f"cannot write {error.filename}: {error.strerror or error}", style="red")
        return exit_code.USAGE
    found = list(check_file(path))
    console = data_console(no_color=no_color)
    if output_format is ListFormat.JSON:
        console.file.write(json.dumps(document(found), ensure_ascii=False, indent=2) + "\n")
    elif not quiet:
        for item in found:
            _show(console, item)
    return _code(found)


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
    name = str(item.file) if item.plan.variant is None else f"{item.file}[{item.plan.variant}]"
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
