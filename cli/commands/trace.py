"""`harrow trace`: reads a recorded run, selects a part of its story, and prints it."""

from collections.abc import Sequence
from typing import Final

from rich.console import Console

from harrow.campaigns.language.literals import LiteralError, time_of_run
from harrow.campaigns.language.spelling import counted, listed, nearest, printable, quoted
from harrow.campaigns.record.json_text import json_document
from harrow.campaigns.record.numbered_findings import NumberedFinding
from harrow.campaigns.record.recorded_run import RecordError, find_run
from harrow.campaigns.story.trace_record import RecordStory, story_of_record
from harrow.campaigns.story.trace_selection import (
    Line,
    Row,
    Window,
    readable_rows,
    rows_around,
    selected_rows,
    whole_story,
)
from harrow.campaigns.story.trace_story import TraceStory, read_story
from harrow.cli import exit_code
from harrow.cli.console import message_console, say, show
from harrow.cli.interrupts import Interrupts
from harrow.cli.requests.results import TraceRequest
from harrow.cli.session import Refusal, data, need_file_for_page
from harrow.cli.text import Text
from harrow.cluster_model.lazy_dataclass import dataclass

_FINDINGS_NAMED: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class _Excerpt:
    """The part of a story that is shown, and the finding or the record that it is about."""

    story: TraceStory
    rows: list[Row]
    finding: NumberedFinding | None = None
    record: RecordStory | None = None


def session(request: TraceRequest) -> int:
    with Interrupts():
        window = _window(request)
        excerpt = _excerpt(request, read_story(find_run(request.run, request.results)), window)
        with data(request) as console:
            match request.output_format:
                case "json":
                    from harrow.campaigns.story.trace_document import trace_document

                    document = trace_document(excerpt.story, excerpt.rows, excerpt.record)
                    console.file.write(json_document(document))
                case "mermaid":
                    _write_mermaid(console, excerpt, request)
                case "html":
                    from harrow.cli.page.trace_page import trace_page

                    console.file.write(trace_page(excerpt.story, window))
                case _:
                    _show_text(console, excerpt, request)
    return exit_code.OK


def _window(request: TraceRequest) -> Window:
    if request.record is not None and request.around is not None:
        raise Refusal("--record and --around exclude each other: give one of them")
    if request.output_format == "html":
        need_file_for_page(request)
        if request.around or request.record:
            raise Refusal("an HTML page has the whole story: search the page for records and findings")
    window = Window(from_us=_time("--from", request.begin), to_us=_time("--to", request.end))
    if window.from_us is not None and window.to_us is not None and window.from_us > window.to_us:
        raise Refusal(f"--to {request.end} is before --from {request.begin}")
    return window


def _time(option: str, text: str | None) -> int | None:
    try:
        return None if text is None else time_of_run(text)
    except LiteralError as error:
        raise Refusal(f"{option}: {error}") from None


def _excerpt(request: TraceRequest, story: TraceStory, window: Window) -> _Excerpt:
    if request.record is not None:
        record = story_of_record(story, request.record)
        return _Excerpt(story=story, rows=selected_rows(story, record.texts, window), record=record)
    if request.around is not None:
        finding = _find_finding(story, request.around)
        rows = rows_around(story, finding, window, everything=request.everything)
        return _Excerpt(story=story, rows=rows, finding=finding)
    return _Excerpt(story=story, rows=whole_story(story, window, everything=request.everything))


def _lines(excerpt: _Excerpt, request: TraceRequest) -> Sequence[Line]:
    return excerpt.rows if request.everything else readable_rows(excerpt.rows)


def _find_finding(story: TraceStory, argument: str) -> NumberedFinding:
    """Return the finding that a number, a rule, or ``RULE:VALUE`` names."""
    rule, _, value = argument.partition(":")
    for finding in story.findings:
        if argument == str(finding.number) or (
            finding.rule == rule and (not value or value in finding.values)
        ):
            return finding
    raise RecordError(story.recorded.folder, _no_finding(story, argument))


def _no_finding(story: TraceStory, argument: str) -> str:
    if not story.findings:
        return f"no finding {quoted(argument)}: this run has no findings; its verdict is {story.recorded.verdict}"
    close = nearest(argument, {finding.rule for finding in story.findings})
    hint = "" if close is None else f"; did you mean `{close}`?"
    numbered = [f"{finding.number} ({finding.rule})" for finding in story.findings[:_FINDINGS_NAMED]]
    count = counted(len(story.findings), "finding")
    return f"no finding {quoted(argument)} in this run{hint}; it has {count}: {listed(numbered)}"


def _write_mermaid(console: Console, excerpt: _Excerpt, request: TraceRequest) -> None:
    from harrow.cli.render.mermaid import TEXT_MAX, mermaid

    text = mermaid(excerpt.story, _lines(excerpt, request))
    console.file.write(text)
    if len(text) > TEXT_MAX:
        say(
            message_console(no_color=request.no_color),
            f"the diagram has {len(text)} characters, but Mermaid draws at most {TEXT_MAX} by default: "
            "shorten it with --from, --to, --record or --around",
        )


def _show_text(console: Console, excerpt: _Excerpt, request: TraceRequest) -> None:
    from harrow.cli.render.trace import StoryTable, ending, heading

    finding, record = excerpt.finding, excerpt.record
    show(console, *heading(excerpt.story, finding, record, everything=request.everything))
    if not excerpt.rows:
        show(console, Text("  no events between these times", "dim"))
    is_plain = console.color_system is None or not console.is_terminal
    for line in StoryTable(excerpt.story, _lines(excerpt, request), console).lines():
        if is_plain:
            console.file.write("".join(printable(text) for text, _ in line).rstrip() + "\n")
        else:
            console.print(Text.assemble(*line), soft_wrap=True)
    show(console, *ending(finding, record))
