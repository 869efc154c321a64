"""`harrow regress`: runs every entry of a corpus, or adds an entry to it."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import typer
from rich.console import Console

from harrow.campaigns.language.literals import LiteralError, campaign_name
from harrow.campaigns.language.spelling import option_words, run_name
from harrow.campaigns.record.report import run_id
from harrow.campaigns.search import corpus
from harrow.campaigns.search.corpus import ERROR, CorpusFile, EntryResult
from harrow.campaigns.storage.location import LocalLocation, Location
from harrow.cli import exit_code
from harrow.cli.ci.suite import MS_PER_S, REPRODUCE, Case, Status, Suite, note_suite, problem_suites
from harrow.cli.commands.run_selection import select_one
from harrow.cli.console import message_console, say, show, unbroken
from harrow.cli.interrupts import Interrupts
from harrow.cli.options import refuse
from harrow.cli.progress import ProgressLine
from harrow.cli.requests.failures import RegressRequest
from harrow.cli.session import CI_FORMATS, Refusal, data, junit_file, write_json, write_new, write_suites
from harrow.cli.text import Text
from harrow.cli.worker_processes import workers_of

_STYLES: Final = {
    corpus.STILL_FAILING: "yellow",
    corpus.FIXED: "green",
    corpus.CHANGED: "red",
    corpus.ERROR: "magenta",
}
_OUTCOME_WIDTH: Final = max(map(len, corpus.OUTCOMES)) + 2
_STATUS_WIDTH: Final = 8


def session(request: RegressRequest) -> int:
    if request.added is not None:
        refuse({"--jobs": request.jobs, "--junit": request.junit}, "has no meaning with --add")
        return _add(request, request.added)
    only_with_add = {"--seed": request.seed, "--variant": request.variant, "--name": request.name}
    typed = {option_words(text)[0]: text for text in request.overrides or ()}
    refuse({**only_with_add, **typed}, "needs --add")
    messages = message_console(no_color=request.no_color)
    files = _files(request.corpus)
    entries: list[EntryResult] = []
    results = corpus.check_files(files, workers_of(request))
    with Interrupts() as interrupts, data(request) as console, junit_file(request) as write_junit:
        progress = ProgressLine(messages, total=len(files), enabled=not request.quiet)
        interrupted = False
        try:
            for item in results:
                with interrupts.shielded():
                    entries.append(item)
                    progress.clear()
                    _show_entry(console, item, request)
                done = files.index(item.file) + 1
                progress.update(done, str(files[min(done, len(files) - 1)]))
        except KeyboardInterrupt:
            interrupted = True
        finally:
            interrupts.defer_to_the_end()
            results.close()
            progress.clear()
        _show_all(console, entries, request, interrupted=interrupted)
        write_junit(lambda: corpus_suites(entries, interrupted=interrupted))
    if not files:
        say(messages, f"nothing to run: {request.corpus} has no campaign files (*.yaml)")
    if interrupted:
        say(messages, f"interrupted: {len(entries)} of {len(files)} files ran")
        return exit_code.INTERRUPTED
    return _exit_code(entries)


def _files(place: Location) -> Sequence[CorpusFile]:
    if isinstance(place, LocalLocation):
        return corpus.corpus_files(place.path)
    return corpus.stored_corpus_files(place)


def _write(place: Location, text: str) -> CorpusFile:
    """Write a new entry."""
    if isinstance(place, LocalLocation):
        place.path.parent.mkdir(parents=True, exist_ok=True)
        write_new(place.path, text)
        return place.path
    if place.exists():
        raise Refusal(f"{place} already exists; harrow does not overwrite it")
    place.write_text(text)
    return place


def _add(request: RegressRequest, argument: str) -> int:
    """Add a failing campaign to the corpus, and return the exit code."""
    _check_destination(request)
    selection = select_one(argument, request.overrides, request.variant)
    messages = message_console(no_color=request.no_color)
    try:
        with Interrupts() as interrupts:
            name, text = corpus.entry_text(
                selection.plans[0], request.seed or 0, request.name, selection.campaign.heading()
            )
            interrupts.defer_to_the_end()
            file = _write(request.corpus / f"{name}.yaml", text)
            entries = list(corpus.check_files([file]))
    except KeyboardInterrupt:
        say(messages, f"interrupted: {argument} is not in the corpus")
        return exit_code.INTERRUPTED
    except corpus.NotFailingError as error:
        say(messages, f"{argument} was not added to the corpus: {error}", style="red")
        return exit_code.BROKEN
    with data(request) as console:
        for item in entries:
            _show_entry(console, item, request)
        if request.output_format != "table":
            _show_all(console, entries, request)
    return _exit_code(entries)


def _check_destination(request: RegressRequest) -> None:
    if request.corpus.exists() and not request.corpus.is_folder():
        message = f"{request.corpus} is not a folder; --add writes the entry into a folder"
        raise typer.BadParameter(message, param_hint="DIR")
    if request.name is not None:
        try:
            campaign_name(request.name)
        except LiteralError as error:
            raise typer.BadParameter(str(error), param_hint="--name") from None


def _exit_code(entries: Sequence[EntryResult]) -> int:
    if not entries:
        return exit_code.INCONCLUSIVE
    if any(item.outcome == corpus.ERROR for item in entries):
        return exit_code.USAGE
    return exit_code.OK if all(item.as_recorded for item in entries) else exit_code.BROKEN


def _show_entry(console: Console, item: EntryResult, request: RegressRequest) -> None:
    """Print an entry as a line of the table as soon as the entry has run."""
    if request.output_format == "table" and not (request.quiet and item.as_recorded):
        show(console, *map(unbroken, _lines(item)))
        console.file.flush()


def _show_all(
    console: Console, entries: Sequence[EntryResult], request: RegressRequest, *, interrupted: bool = False
) -> None:
    """Print a document with all entries, or, for the table, its summary."""
    if request.output_format in CI_FORMATS:
        write_suites(console, request, corpus_suites(entries, interrupted=interrupted), "entry")
    elif request.output_format == "json":
        write_json(console, corpus.regress_document(entries, interrupted=interrupted))
    elif entries and not (request.quiet and all(item.as_recorded for item in entries)):
        show(console, Text(), unbroken(_summary(entries)))


def _lines(item: EntryResult) -> Iterator[Text]:
    outcome = (f"{item.outcome:{_OUTCOME_WIDTH}}", _STYLES[item.outcome])
    if item.problems:
        for problem in item.problems:
            yield Text.assemble(outcome, str(problem))
        return
    assert item.plan is not None
    assert item.plan.found is not None
    name = run_name(str(item.file), item.plan.variant)
    status = f"{item.plan.found.status:{_STATUS_WIDTH}}"
    reason = f"  {item.plan.found.rule}: {item.why}"
    yield Text.assemble(outcome, status, (name, "bold"), reason)
    if not item.as_recorded:
        yield Text(f"{'':{_OUTCOME_WIDTH}}{item.reproduce()}", "dim")


def _summary(entries: Sequence[EntryResult]) -> Text:
    counts = Counter(item.outcome for item in entries)
    parts = ", ".join(f"{counts[outcome]} {outcome}" for outcome in corpus.OUTCOMES if counts[outcome])
    wrong = sum(not item.as_recorded for item in entries)
    count = "1 entry" if len(entries) == 1 else f"{len(entries)} entries"
    return Text(f"{count}: {parts}; {f'{wrong} not as recorded' if wrong else 'all as recorded'}")


# For CI systems


def corpus_suites(entries: Iterable[EntryResult], *, interrupted: bool = False) -> list[Suite]:
    """Return the suites of a corpus, and one more if not all entries ran."""
    suites = [suite for item in entries for suite in _suites(item)]
    if interrupted:
        suites.append(note_suite("complete", "interrupted: not all entries ran"))
    elif not suites:
        suites.append(note_suite("complete", "there are no entries"))
    return suites


def _suites(item: EntryResult) -> list[Suite]:
    if item.plan is None or item.plan.found is None or item.outcome == ERROR:
        return problem_suites(item.problems)
    plan, recorded = item.plan, item.plan.found
    summary, reproduce = f"{item.outcome}: {item.why}", item.reproduce() or ""
    properties = [("seed", str(recorded.seed)), ("status", recorded.status), ("outcome", item.outcome)]
    properties.append((REPRODUCE, reproduce))
    if item.result is not None:
        properties += [("run_id", run_id(item.result)), ("trace_digest", item.result.trace_digest)]
    case = Case(
        name=recorded.rule,
        status=Status.PASSED if item.as_recorded else Status.FAILED,
        message=summary,
        line=recorded.line,
        time_s=0.0 if item.result is None else item.result.wall_ms / MS_PER_S,
        properties=tuple(properties),
    )
    return [
        Suite(
            name=run_name(str(item.file), plan.variant),
            file=str(item.file),
            cases=(case,),
            summary=summary,
            reproduce=reproduce,
            properties=(("campaign", plan.campaign), ("variant", plan.variant or ""), ("kafka", plan.kafka)),
        )
    ]
