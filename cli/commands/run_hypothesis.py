"""`harrow run --engine hypothesis`: Hypothesis makes the open choices and shrinks failures."""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import typer
from rich.console import Console, RenderableType

from harrow.campaigns.language.plan import Plan
from harrow.campaigns.language.plan_file import UnwritablePlanError, campaign_text
from harrow.campaigns.language.problem import FileError
from harrow.campaigns.language.spelling import counted, run_name
from harrow.campaigns.record.json_text import json_line
from harrow.campaigns.record.report import document, in_short, reproduce_command, run_as_mapping, run_id
from harrow.campaigns.record.results_folder import write_run_to
from harrow.campaigns.run.proof import proven
from harrow.campaigns.run.required_probes import UnreachedProbes
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.search.strategies import Search, drawn_from, search, without_folder
from harrow.campaigns.storage.location import Location
from harrow.campaigns.storage.whole_file import whole_file
from harrow.cli import exit_code
from harrow.cli.ci.run_suites import search_suites
from harrow.cli.ci.suite import Suite, note_suite
from harrow.cli.commands.run_selection import Selection, select_to_run
from harrow.cli.commands.run_tally import FinishedRun, exit_code_of
from harrow.cli.console import data_console, message_console, say, show, unbroken
from harrow.cli.interrupts import Interrupts
from harrow.cli.progress import ProgressLine
from harrow.cli.render.layout import FAILED, STYLES, indented, marks
from harrow.cli.render.story import short_story
from harrow.cli.requests.run import RunRequest
from harrow.cli.session import CI_FORMATS, junit_file, refuse_files, write_json, write_suites
from harrow.cli.text import Text
from harrow.cluster_model.lazy_dataclass import dataclass, replace

_DEFAULT_EXAMPLES: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class _FinishedSearch:
    """A finished search. ``text`` is the campaign file of its failure, if it found one."""

    plan: Plan
    search: Search
    run: FinishedRun | None = None
    text: str = ""

    def counts(self) -> str:
        return ", ".join(f"{count} {outcome}" for outcome, count in sorted(self.search.outcomes.items()))

    def as_mapping(self) -> dict[str, Any]:
        return {
            "campaign": self.plan.campaign,
            "variant": self.plan.variant,
            "examples": self.search.examples,
            "shrinks": self.search.shrinks,
            "outcomes": dict(sorted(self.search.outcomes.items())),
            "found": None if self.run is None else run_id(self.run.result),
        }


def session(request: RunRequest) -> int:
    messages = message_console(no_color=request.no_color)
    console = data_console(no_color=request.no_color)
    try:
        selections = select_to_run(request)
    except FileError as error:
        refuse_files(replace(request, output=None), error.problems)  # --output is for the campaign.
        return exit_code.USAGE
    _check_open(selections)
    finished: list[_FinishedSearch] = []
    interrupted = False
    with junit_file(request) as write_junit, Interrupts() as interrupts, without_folder():
        try:
            for selection in selections:
                for plan in selection.plans:
                    finished.append(_search(request, selection, plan, messages, interrupts))
                    if request.output_format == "table":
                        show(console, *_lines(finished[-1], console, request))
                        console.file.flush()
        except KeyboardInterrupt:
            interrupted = True
        write_junit(lambda: _suites(finished, interrupted=interrupted))
    _write(console, finished, request, interrupted=interrupted)
    if interrupted:
        say(messages, f"interrupted: {len(finished)} searches finished")
        return exit_code.INTERRUPTED
    unreached = _unreached(finished)
    for probes in unreached:
        say(messages, f"inconclusive: {probes.reason()}", style=STYLES["inconclusive"])
    code = exit_code_of(
        outcome for finished_search in finished for outcome in +finished_search.search.outcomes
    )
    return exit_code.INCONCLUSIVE if unreached and code == exit_code.OK else code


def _check_open(selections: Sequence[Selection]) -> None:
    for selection in selections:
        for plan in selection.plans:
            if plan.swarm is None:
                name = run_name(plan.campaign, plan.variant)
                message = f"{name} leaves Hypothesis nothing to choose: it has no `swarm`"
                raise typer.BadParameter(message, param_hint="--engine")


def _search(
    request: RunRequest, selection: Selection, plan: Plan, messages: Console, interrupts: Interrupts
) -> _FinishedSearch:
    examples_max = request.examples_max or _DEFAULT_EXAMPLES
    progress = ProgressLine(messages, total=examples_max, enabled=not request.quiet)

    def on_run(examples: int, shrinks: int) -> None:
        interrupts.check()
        progress.update(min(examples, examples_max), f"{plan.campaign}, {shrinks} shrinks")

    start_s = time.monotonic()
    try:
        # The garbage collector calls into Hypothesis, where an interrupt would get lost.
        with interrupts.shielded():
            result = search(
                drawn_from(plan), seed=request.seed or 0, examples_max=examples_max, base=plan, on_run=on_run
            )
    finally:
        progress.clear()
    if result.found is None:
        return _FinishedSearch(plan=plan, search=result)
    failure = replace(proven(result.found), wall_ms=round((time.monotonic() - start_s) * 1_000))
    with interrupts.shielded():
        text = _campaign_text(request, plan, result, failure)
        run = _write_files(request, selection, failure, text)
        return _FinishedSearch(plan=plan, search=result, run=run, text=text)


def _campaign_text(request: RunRequest, plan: Plan, result: Search, failure: RunResult) -> str:
    """Return the campaign file of a failure, with the command to run it again."""
    why = in_short(failure) or "it misses an expectation"
    examples = f"{result.examples} examples of {run_name(plan.campaign, plan.variant)}"
    comments = [
        f"The smallest failing campaign that Hypothesis found in {examples}: {why}.",
        f"Reproduce: harrow run FILE --seed {request.seed or 0}",
    ]
    try:
        return campaign_text(failure.plan, comments=comments)
    except UnwritablePlanError as error:
        return f"# {error}\n"


def _write_files(request: RunRequest, selection: Selection, failure: RunResult, text: str) -> FinishedRun:
    results = None if request.no_results else request.results
    file: Path | Location = Path("campaign.yaml")
    if request.output is not None:
        file = request.output
    elif results is not None:
        file = results / f"{failure.plan.campaign}/{run_id(failure)}/campaign.yaml"
    reproduce = reproduce_command(str(file), request.seed or 0, None)
    folder = (
        None if results is None else write_run_to(results, failure, run_as_mapping(failure, reproduce), text)
    )
    if request.output is not None:
        with whole_file(request.output) as stream:
            stream.write(text)
    return FinishedRun(result=failure, reproduce=reproduce, file=selection.campaign.path, folder=folder)


def _lines(
    finished_search: _FinishedSearch, console: Console, request: RunRequest
) -> Iterator[RenderableType]:
    search_result = finished_search.search
    name = run_name(finished_search.plan.campaign, finished_search.plan.variant)
    if finished_search.run is None:
        if not request.quiet:
            yield Text(
                f"{name}: no failure in {search_result.examples} examples ({finished_search.counts()})"
            )
        return
    result = finished_search.run.result
    status = result.verdict.status
    yield Text(name, "bold")
    yield Text.assemble((f"  {marks(console)[status]} {status}", FAILED), f"  {in_short(result)}")
    size = f"{counted(len(result.plan.faults), 'fault')} on {counted(len(result.plan.cluster.brokers), 'broker')}"
    yield indented(
        f"example {search_result.examples} failed; after {search_result.shrinks} shrinks it has {size}"
    )
    yield from short_story(finished_search.run)
    if request.output is not None:
        yield unbroken(Text(f"      campaign  {request.output}"))
    elif request.no_results or request.verbose:
        yield Text()
        yield from (unbroken(Text(line)) for line in finished_search.text.splitlines())


def _suites(finished: Sequence[_FinishedSearch], *, interrupted: bool) -> list[Suite]:
    suites = search_suites(
        [
            (finished_search.plan, finished_search.search.outcomes, finished_search.run)
            for finished_search in finished
        ],
        _unreached(finished),
    )
    if interrupted:
        suites.append(note_suite("complete", f"interrupted: {len(finished)} searches finished"))
    return suites


def _write(
    console: Console, finished: Sequence[_FinishedSearch], request: RunRequest, *, interrupted: bool
) -> None:
    """Write the document of a format. The table is printed earlier, as searches finish."""
    runs = [
        finished_search.run.as_mapping() for finished_search in finished if finished_search.run is not None
    ]
    unreached = _unreached(finished)
    if request.output_format in CI_FORMATS:
        write_suites(console, request, _suites(finished, interrupted=interrupted), "search")
    elif request.output_format == "json":
        searches = [finished_search.as_mapping() for finished_search in finished]
        write_json(console, {**document(runs, unreached), "searches": searches})
    elif request.output_format == "ndjson":
        console.file.writelines(f"{json_line(run)}\n" for run in runs)
        console.file.flush()


def _unreached(finished: Sequence[_FinishedSearch]) -> list[UnreachedProbes]:
    return [
        probes
        for finished_search in finished
        if finished_search.run is None  # A search that found a failure ended early.
        for probes in finished_search.search.required.unreached()
    ]
