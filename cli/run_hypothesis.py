"""One `harrow run --engine hypothesis`: Hypothesis decides what campaigns leave open, and shrinks what fails."""

import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.text import Text

from campaigns.plan import Plan
from campaigns.plan_file import UnwritablePlanError, campaign_text
from campaigns.report import document, in_short, reproduce_command, run_as_mapping, run_id
from campaigns.required_probes import UnreachedProbes
from campaigns.results_folder import json_line, whole_file, write_run
from campaigns.run_result import RunResult
from campaigns.spelling import run_name
from campaigns.strategies import Search, drawn_from, search, without_folder
from cli import exit_code
from cli.ci_output import CI_FORMATS, write_problems, write_suites
from cli.ci_suite import note_suite
from cli.console import data_console, message_console, say, show, unbroken
from cli.interrupts import Interrupts
from cli.layout import indented
from cli.options import RunFormat
from cli.progress import ProgressLine
from cli.render_problem import show_problems
from cli.render_run import STYLES, marks
from cli.render_story import FAILED, short_story
from cli.run_selection import Selection, choose_variants, find_campaigns, load_all
from cli.run_suites import search_suites
from cli.run_tally import FinishedRun, exit_code_of


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """What to search, and where what is found is written."""

    arguments: tuple[str, ...]
    seed: int
    examples_max: int
    overrides: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    results: Path | None = None
    output: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Finished:
    """A search that is over; ``text`` is the campaign file of what it found."""

    plan: Plan
    search: Search
    run: FinishedRun | None
    text: str

    def as_mapping(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            "campaign": self.plan.campaign,
            "variant": self.plan.variant,
            "examples": self.search.examples,
            "shrinks": self.search.shrinks,
            "outcomes": dict(sorted(self.search.outcomes.items())),
            "found": None if self.run is None else self.run.mapping["run_id"],
        }


def search_session(
    request: SearchRequest, *, output_format: RunFormat, quiet: bool, verbose: bool, no_color: bool
) -> int:
    """Search, print what was found, and return the exit code."""
    messages = message_console(no_color=no_color)
    console = data_console(no_color=no_color, file=None)
    files, not_found = find_campaigns(request.arguments)
    loaded, mistakes = load_all(files, request.overrides)
    if problems := [*not_found, *mistakes]:
        show_problems(messages, problems)
        return write_problems(problems, output_format, None, messages)
    chosen = zip(loaded, files.values(), choose_variants(loaded, request.variants), strict=True)
    selections = [Selection(campaign=c, argument=argument, plans=plans) for c, argument, plans in chosen]
    _check_open(selections)
    finished: list[_Finished] = []
    interrupted = False
    try:
        with Interrupts() as interrupts, without_folder():
            try:
                for selection in selections:
                    for plan in selection.plans:
                        one = _search(request, selection, plan, messages, interrupts, quiet=quiet)
                        finished.append(one)
                        if output_format is RunFormat.TABLE:
                            _show(console, one, request, quiet=quiet, verbose=verbose)
            except KeyboardInterrupt:
                interrupted = True
    except BrokenPipeError:
        raise
    except OSError as error:
        say(messages, f"cannot go on: {error.strerror or error}: {error.filename}", style="red")
        return exit_code.USAGE
    _print(console, messages, finished, output_format, interrupted=interrupted)
    if interrupted:
        say(messages, f"interrupted: {len(finished)} searches are finished")
        return exit_code.INTERRUPTED
    return _exit_code(messages, finished)


def _print(
    console: Console,
    messages: Console,
    finished: Sequence[_Finished],
    output_format: RunFormat,
    *,
    interrupted: bool,
) -> None:
    """Print what nobody has been shown while it went on."""
    if output_format in CI_FORMATS:
        suites = search_suites(
            [(one.plan, one.search.outcomes, one.run) for one in finished], _unreached(finished)
        )
        if interrupted:
            suites.append(note_suite("complete", f"interrupted: {len(finished)} searches are finished"))
        write_suites(console.file, output_format, suites, noun="search", messages=messages)
    elif output_format is not RunFormat.TABLE:
        _print_for_programs(console, finished, output_format)


def _check_open(selections: Sequence[Selection]) -> None:
    for selection in selections:
        for plan in selection.plans:
            if plan.swarm is None:
                message = (
                    f"{run_name(plan.campaign, plan.variant)} leaves nothing open for Hypothesis to decide: "
                    "it has no `swarm`"
                )
                raise typer.BadParameter(message, param_hint="--engine")


def _search(
    request: SearchRequest,
    selection: Selection,
    plan: Plan,
    messages: Console,
    interrupts: Interrupts,
    *,
    quiet: bool,
) -> _Finished:
    progress = ProgressLine(messages, total=request.examples_max, enabled=not quiet)

    def told(examples: int, shrinks: int) -> None:
        interrupts.check()
        progress.update(min(examples, request.examples_max), f"{plan.campaign}, {shrinks} shrinks")

    begun_s = time.monotonic()
    try:
        # Hypothesis has the garbage collector call it, and what is raised there gets lost.
        with interrupts.shielded():
            done = search(
                drawn_from(plan), seed=request.seed, examples_max=request.examples_max, given=plan, told=told
            )
    finally:
        progress.clear()
    if done.found is None:
        return _Finished(plan=plan, search=done, run=None, text="")
    found = replace(done.found, wall_ms=round((time.monotonic() - begun_s) * 1_000))
    with interrupts.shielded():
        return _written(request, selection, plan, done, found)


def _written(
    request: SearchRequest, selection: Selection, plan: Plan, done: Search, found: RunResult
) -> _Finished:
    """Write the campaign of what was found, and say how to run it again."""
    what = in_short(found) or "an expectation was missed"
    drawn_plans = f"{done.examples} drawn from {run_name(plan.campaign, plan.variant)}"
    comments = [
        f"The smallest campaign that Hypothesis found to fail, of {drawn_plans}: {what}.",
        f"Again: harrow run FILE --seed {request.seed}",
    ]
    try:
        text = campaign_text(found.plan, comments=comments)
    except UnwritablePlanError as error:
        text = f"# {error}\n"
    file = Path("campaign.yaml")
    if request.output is not None:
        file = request.output
    elif request.results is not None:
        file = request.results / found.plan.campaign / run_id(found) / "campaign.yaml"
    mapping = run_as_mapping(found, reproduce_command(str(file), request.seed, None))
    folder = None
    if request.results is not None:
        folder = write_run(request.results, found, mapping, text)
    if request.output is not None:
        with whole_file(request.output) as stream:
            stream.write(text)
    run = FinishedRun(result=found, mapping=mapping, file=selection.campaign.path, folder=folder)
    return _Finished(plan=plan, search=done, run=run, text=text)


def _show(console: Console, one: _Finished, request: SearchRequest, *, quiet: bool, verbose: bool) -> None:
    done = one.search
    name = run_name(one.plan.campaign, one.plan.variant)
    if one.run is None:
        if not quiet:
            counts = ", ".join(f"{count} {outcome}" for outcome, count in sorted(done.outcomes.items()))
            show(console, Text(f"{name}: no failure in {done.examples} examples ({counts})"))
        return
    result = one.run.result
    status = result.verdict.status
    show(console, Text(name, "bold"))
    line = Text.assemble((f"  {marks(console)[status]} {status}", FAILED), f"  {in_short(result)}")
    show(console, line)
    faults = len(result.plan.faults)
    how = (
        f"example {done.examples} failed; the smallest like it, after {done.shrinks} shrinks, has "
        f"{faults} {'fault' if faults == 1 else 'faults'} on {len(result.plan.cluster.brokers)} brokers"
    )
    show(console, indented(Text(how)))
    show(console, *short_story(one.run))
    if request.output is not None:
        show(console, unbroken(Text(f"      campaign  {request.output}")))
    elif request.results is None or verbose:
        show(console, Text(), *(unbroken(Text(text)) for text in one.text.splitlines()))
    console.file.flush()


def _print_for_programs(console: Console, finished: Sequence[_Finished], output_format: RunFormat) -> None:
    runs: list[Mapping[str, Any]] = [one.run.mapping for one in finished if one.run is not None]
    if output_format is RunFormat.NDJSON:
        for run in runs:
            console.file.write(json_line(run) + "\n")
    else:
        searches = [one.as_mapping() for one in finished]
        json.dump(
            {**document(runs, _unreached(finished)), "searches": searches},
            console.file,
            ensure_ascii=False,
            indent=2,
        )
        console.file.write("\n")
    console.file.flush()


def _unreached(finished: Sequence[_Finished]) -> list[UnreachedProbes]:
    return [
        missed
        for one in finished
        if one.run is None  # A search that found something ended early.
        for missed in one.search.required.unreached()
    ]


def _exit_code(messages: Console, finished: Sequence[_Finished]) -> int:
    unreached = _unreached(finished)
    for missed in unreached:
        say(messages, f"inconclusive: {missed.reason()}", style=STYLES["inconclusive"])
    outcomes: Counter[str] = Counter()
    for one in finished:
        outcomes += one.search.outcomes
    code = exit_code_of(outcomes)
    return exit_code.INCONCLUSIVE if unreached and code == exit_code.OK else code
