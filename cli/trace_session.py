"""One `harrow trace`: read a recorded run, choose what is shown of it, and show it."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.text import Text

from campaigns.literals import LiteralError, time_of_run
from campaigns.numbered_findings import NumberedFinding
from campaigns.problem import CampaignError, Problem
from campaigns.recorded_run import RecordError, find_run
from campaigns.spelling import counted, listed, quoted, suggestion
from campaigns.trace_record import RecordStory, follow
from campaigns.trace_selection import Row, Window, around, only, readable, whole
from campaigns.trace_story import TraceStory, read_story
from cli import exit_code
from cli.console import data_console, destination, message_console, say, say_written, show
from cli.render_problem import show_problems
from cli.trace import TraceFormat

_FINDINGS_NAMED: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceRequest:
    """What was typed."""

    run: str
    results: Path
    record: str | None
    around: str | None
    begin: str | None
    end: str | None
    everything: bool
    output_format: TraceFormat
    output: Path | None
    quiet: bool
    no_color: bool


class _WrongUsage(Exception):
    """Options that cannot be meant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chosen:
    """What is shown of a story."""

    story: TraceStory
    rows: list[Row]
    finding: NumberedFinding | None = None
    record: RecordStory | None = None


def trace_session(request: TraceRequest) -> int:
    """Tell the story of a run and return the exit code."""
    messages = message_console(no_color=request.no_color)
    try:
        window = _window(request)
        chosen = _choose(request, read_story(find_run(request.run, request.results)), window)
        with destination(request.output) as stream:
            console = data_console(no_color=request.no_color, file=stream)
            _tell(console, messages, chosen, request)
    except _WrongUsage as error:
        say(messages, str(error), style="red")
        return exit_code.USAGE
    except RecordError as error:
        show_problems(messages, [error.problem])
        return exit_code.USAGE
    except CampaignError as error:
        show_problems(messages, error.problems)
        return exit_code.USAGE
    except KeyboardInterrupt:
        say(messages, "interrupted")
        return exit_code.INTERRUPTED
    except BrokenPipeError:
        raise
    except OSError as error:
        say(messages, f"cannot go on: {error.strerror or error}: {error.filename}", style="red")
        return exit_code.USAGE
    except Exception as error:
        error.add_note(f"it happened in: harrow trace {request.run}")
        raise
    say_written(messages, request.output, quiet=request.quiet)
    return exit_code.OK


def _window(request: TraceRequest) -> Window:
    if request.record is not None and request.around is not None:
        raise _WrongUsage("--record and --around are two stories: choose one of them")
    if request.output_format is TraceFormat.HTML:
        if request.output is None and sys.stdout.isatty():
            raise _WrongUsage("a page is for a browser: say where it shall be, as in -o run.html (or -o -)")
        if request.around or request.record:
            raise _WrongUsage("a page has the whole story: look for records and findings in it")
    window = Window(from_us=_time("--from", request.begin), to_us=_time("--to", request.end))
    if window.from_us is not None and window.to_us is not None and window.from_us > window.to_us:
        raise _WrongUsage(
            f"there is nothing from {request.begin} to {request.end}: the end is before the beginning"
        )
    return window


def _time(option: str, text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return time_of_run(text)
    except LiteralError as error:
        raise _WrongUsage(f"{option}: {error}") from None


def _choose(request: TraceRequest, story: TraceStory, window: Window) -> _Chosen:
    if request.record is not None:
        record = follow(story, request.record)
        return _Chosen(story=story, rows=list(only(story, record.texts, window)), record=record)
    if request.around is not None:
        finding = find_finding(story, request.around)
        rows = around(story, finding, window, everything=request.everything)
        return _Chosen(story=story, rows=rows, finding=finding)
    return _Chosen(story=story, rows=whole(story, window, everything=request.everything))


def find_finding(story: TraceStory, argument: str) -> NumberedFinding:
    """Return the finding that a number, the name of a rule, or ``RULE:VALUE`` names.

    Raises:
        RecordError: the run has none like that.

    """
    rule, _, value = argument.partition(":")
    for finding in story.findings:
        if argument == str(finding.number):
            return finding
        if finding.rule == rule and value in ("", finding.value):
            return finding
    raise RecordError(Problem(str(story.recorded.folder), 0, 0, _no_finding(story, argument)))


def _no_finding(story: TraceStory, argument: str) -> str:
    if not story.findings:
        return f"no finding {quoted(argument)}: nothing was found in this run, it is {story.recorded.verdict}"
    rules = list(dict.fromkeys(finding.rule for finding in story.findings))
    numbered = [f"{finding.number} {finding.rule}" for finding in story.findings[:_FINDINGS_NAMED]]
    count = counted(len(story.findings), "finding")
    ending = suggestion(argument, rules) if "did you mean" in suggestion(argument, rules) else ""
    return f"no finding {quoted(argument)} in this run{ending}; it has {count}: {listed(numbered)}"


def _tell(console: Console, messages: Console, chosen: _Chosen, request: TraceRequest) -> None:
    match request.output_format:
        case TraceFormat.JSON:
            from campaigns.trace_document import trace_document

            _write_json(console, trace_document(chosen.story, chosen.rows, chosen.record))
        case TraceFormat.MERMAID:
            _write_mermaid(console, messages, chosen)
        case TraceFormat.HTML:
            from cli.trace_page import trace_page

            console.file.write(trace_page(chosen.story, _window(request)))
        case _:
            _show_text(console, chosen, request)


def _write_json(console: Console, document: dict[str, Any]) -> None:
    console.file.write(json.dumps(document, ensure_ascii=False, indent=1) + "\n")


def _write_mermaid(console: Console, messages: Console, chosen: _Chosen) -> None:
    from cli.render_mermaid import TEXT_MAX, mermaid

    text = mermaid(chosen.story, readable(chosen.rows))
    console.file.write(text)
    if len(text) > TEXT_MAX:
        say(
            messages,
            f"the diagram has {len(text)} characters, Mermaid draws {TEXT_MAX} by default: "
            "--from, --to, --record and --around make it shorter",
        )


def _show_text(console: Console, chosen: _Chosen, request: TraceRequest) -> None:
    from cli.render_trace import StoryTable, ending, heading

    story, finding, record = chosen.story, chosen.finding, chosen.record
    show(console, *heading(story, finding, record, everything=request.everything))
    if not chosen.rows:
        show(console, Text("  nothing happened in this time", "dim"))
    lines = StoryTable(story, readable(chosen.rows), console).lines()
    if console.color_system is None or not console.is_terminal:
        for line in lines:
            console.file.write("".join(text for text, _ in line).rstrip() + "\n")
    else:
        for line in lines:
            console.print(Text.assemble(*line), soft_wrap=True)
    show(console, *ending(finding, record))
