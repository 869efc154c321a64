"""One `harrow replay`: read a recorded run, run it again, say whether they are the same."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from rich.text import Text

from campaigns.problem import CampaignError
from campaigns.recorded_run import RecordedEvent, RecordError, find_run, read_run
from campaigns.replay import Difference, Replay, replay, replay_document, replayed_name
from campaigns.spelling import printable
from cli import exit_code
from cli.ci_output import CI_FORMATS, write_problems, write_suites
from cli.console import (
    data_console,
    destination,
    message_console,
    plain_text,
    say,
    say_written,
    show,
    unbroken,
)
from cli.options import ReportFormat
from cli.render_problem import show_problems
from cli.replay_cases import replay_suite
from cluster_model.virtual_time import US_PER_SECOND

_SIDE_WIDTH: Final = 10


def replay_session(
    argument: str,
    results: Path,
    *,
    output_format: ReportFormat,
    output: Path | None,
    quiet: bool,
    no_color: bool,
) -> int:
    """Replay a run, print how it went, and return the exit code."""
    messages = message_console(no_color=no_color)
    try:
        found = replay(read_run(find_run(argument, results)))
        with destination(output) as stream:
            console = data_console(no_color=no_color, file=stream)
            if output_format is ReportFormat.JSON:
                console.file.write(json.dumps(replay_document(found), ensure_ascii=False, indent=2) + "\n")
            elif output_format in CI_FORMATS:
                suites = [replay_suite(found, plain_text(*_lines(found)))]
                write_suites(console.file, output_format, suites, noun="replay", messages=messages)
            elif not (quiet and found.is_same()):
                show(console, *_lines(found))
    except RecordError as error:
        show_problems(messages, [error.problem])
        return write_problems([error.problem], output_format, output, messages)
    except CampaignError as error:
        show_problems(messages, error.problems)
        return write_problems(error.problems, output_format, output, messages)
    except KeyboardInterrupt:
        say(messages, "interrupted: a run is replayed as a whole or not at all")
        return exit_code.INTERRUPTED
    except BrokenPipeError:
        raise
    except OSError as error:
        say(messages, f"cannot go on: {error.strerror or error}: {error.filename}", style="red")
        return exit_code.USAGE
    except Exception as error:
        error.add_note(f"it happened in: harrow replay {argument}")
        raise
    say_written(messages, output, quiet=quiet)
    return exit_code.OK if found.is_same() else exit_code.BROKEN


def _lines(found: Replay) -> Iterator[Text]:
    if found.is_same():
        notes = [f"the {name} was {then}, is {now} now" for name, then, now in found.changes()]
        words = "; ".join([f"the same {len(found.recorded.events)} events as recorded", *notes])
        yield unbroken(Text(f"{replayed_name(found)}: {words} ({found.result.trace_digest})"))
        return
    yield unbroken(Text(f"{replayed_name(found)}: DIFFERENT from what was recorded", "bold red"))
    pairs = [
        ("trace digest", found.recorded.trace_digest, found.result.trace_digest),
        *found.changes(),
    ]
    for name, then, now in pairs:
        yield unbroken(Text(f"  {name}: recorded {printable(then)}, now {now}"))
    unchanged = {"version", "plan digest"} - {name for name, _, _ in found.changes()}
    if unchanged:
        verb = "is" if len(unchanged) == 1 else "are"
        yield unbroken(Text(f"  the {' and the '.join(sorted(unchanged))} {verb} the same"))
    if found.difference is None:
        yield unbroken(Text("  every line of the trace reads the same; only its digest is another"))
    else:
        yield from _difference(found.difference)


def _difference(difference: Difference) -> Iterator[Text]:
    yield unbroken(Text(f"  they part at line {difference.position + 1} of trace.jsonl:"))
    for event in difference.before:
        yield unbroken(Text(f"    {'':{_SIDE_WIDTH}}{_words(event)}", "dim"))
    for side, shown, style in (
        ("recorded", difference.recorded, "red"),
        ("now", difference.replayed, "green"),
    ):
        what = "the trace has ended" if shown is None else _words(shown)
        yield unbroken(Text.assemble(f"    {side:{_SIDE_WIDTH}}", (what, style)))
    if difference.fields:
        yield unbroken(
            Text(f"    {'':{_SIDE_WIDTH}}different: {', '.join(map(printable, difference.fields))}")
        )


def _words(event: RecordedEvent) -> str:
    """Return an event with its time to the microsecond, and all its fields."""
    return " ".join([f"{event.at_us / US_PER_SECOND:.6f}s", printable(event.event), *_fields(event.fields)])


def _fields(fields: Mapping[str, Any]) -> Iterator[str]:
    for name, value in fields.items():
        yield f"{printable(name)}={json.dumps(value, ensure_ascii=True, separators=(',', ':'))}"
