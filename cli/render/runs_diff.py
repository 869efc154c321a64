"""Two runs for people: what they were given, where they part, what became of the logs."""

from collections.abc import Iterator
from itertools import groupby
from typing import Final

from rich.console import Console, RenderableType
from rich.table import Table

from harrow.campaigns.language.spelling import shortlist
from harrow.campaigns.language.units import fields_text
from harrow.campaigns.record.recorded_run import RecordedEvent
from harrow.campaigns.record.report import in_short_by
from harrow.campaigns.story.run_diff import RunDiff, run_title
from harrow.campaigns.story.runs_diff import LogRow, LogsDiff, RunsDiff
from harrow.checks.causes.story import seconds
from harrow.checks.finding import VIOLATED
from harrow.checks.replay.partition_state import ACKED, LogEntry
from harrow.cli.console import show
from harrow.cli.render.diff_rows import FOLDED_MIN, LOST
from harrow.cli.render.layout import DIM, STYLES, columns, indented
from harrow.cli.text import Text

_SIDES: Final = ("A", "B")
_STYLES: Final = ("red", "green")
_KEYS_SHOWN: Final = 16
_ROWS_SHOWN: Final = 40
_VALUES_SHOWN: Final = 8


def show_runs_diff(console: Console, found: RunsDiff, *, only_different: bool) -> None:
    for side, run in zip(_SIDES, found.runs, strict=True):
        show(console, *_title(side, run))
    if found.is_same:
        show(console, Text(), Text("Both have the same trace, event by event.", "bold"))
    show(console, *_plan(found), *_parting(found), *_service(found))
    differing = [logs for logs in found.logs if not logs.is_equal()]
    equal = [logs for logs in found.logs if logs.is_equal()]
    for logs in differing:
        show(console, Text(), *_logs(logs, only_different=only_different))
    if equal:
        names = shortlist([logs.name for logs in equal], _VALUES_SHOWN)
        text = f"The same values in the leaders' logs of {names}, and the same records lost."
        show(console, Text(), Text(text))


def _title(side: str, run: RunDiff) -> Iterator[RenderableType]:
    verdict = run.recorded.verdict
    where = "" if run.at.is_end else f", at {seconds(run.state.at_us)} (event {run.state.number})"
    yield Text.assemble(
        (f"{side}  ", _STYLES[_SIDES.index(side)]),
        (run_title(run.recorded, run.run), "bold"),
        f"{where}: ",
        (verdict, STYLES.get(verdict, STYLES[VIOLATED])),
    )
    if what := in_short_by(run.recorded.rules):
        yield indented(what, 3)


def _plan(found: RunsDiff) -> Iterator[RenderableType]:
    yield Text()
    if not found.plan:
        yield Text("Their plans are the same.")
        return
    yield Text("What they were given:", "bold")
    table = columns("", *_SIDES)
    for key, one, other in found.plan[:_KEYS_SHOWN]:
        table.add_row(key, *("-" if value is None else value for value in (one, other)))
    yield indented(table, 2)
    if len(found.plan) > _KEYS_SHOWN:
        yield indented(f"and {len(found.plan) - _KEYS_SHOWN} more; --format json has all", 2, DIM)


def _service(found: RunsDiff) -> Iterator[RenderableType]:
    if not found.service:
        return
    yield Text()
    yield Text("What clients got:", "bold")
    table = columns("", *_SIDES)
    for row in found.service:
        table.add_row(*("-" if value is None else value for value in row))
    yield indented(table, 2)


def _parting(found: RunsDiff) -> Iterator[RenderableType]:
    difference = found.difference
    if difference is None:
        return
    yield Text()
    yield Text(f"They part at event {difference.position + 1}:", "bold")
    table = columns("", "")
    for earlier in difference.before[-2:]:
        table.add_row("", Text(_words(earlier), DIM))
    for side, event, style in zip(_SIDES, (difference.recorded, difference.replayed), _STYLES, strict=True):
        table.add_row(side, Text(_words(event), style))
    yield indented(table, 2)
    telling = found.telling_difference
    if telling == (None, None):
        yield indented("Only times and traffic differ: the same things happened in the same order.", 2, DIM)
    elif any(which is not None and which[0] != difference.position + 1 for which in telling):
        yield Text("What happens is first different at:", "bold")
        table = columns("", "", "")
        for side, which, style in zip(_SIDES, telling, _STYLES, strict=True):
            words = "the trace has ended" if which is None else _words(which[1])
            number = "" if which is None else f"event {which[0]}"
            table.add_row(Text(side, style), number, words)
        yield indented(table, 2)


def _words(event: RecordedEvent | None) -> str:
    if event is None:
        return "the trace has ended"
    fields = fields_text(tuple(event.fields.items()))
    return f"{event.at_us / 1_000_000:.6f}s {event.event} {fields}".rstrip()


def _logs(logs: LogsDiff, *, only_different: bool) -> Iterator[RenderableType]:
    yield Text.assemble((logs.name, "bold"), "  the logs that consumers read from the leaders")
    heads = [
        f"{side}: {'no replica' if broker is None else f'broker {broker}'}"
        for side, broker in zip(_SIDES, logs.brokers, strict=True)
    ]
    table = columns("offset", *heads, "acked in A", "in B")
    shown: list[tuple[LogRow, LogRow]] = []
    for is_equal, group in groupby(logs.rows, LogRow.is_equal):
        rows = list(group)
        is_folded = is_equal and (only_different or len(rows) >= FOLDED_MIN)
        shown += [(rows[0], rows[-1])] if is_folded else [(row, row) for row in rows]
    for first, last in shown[:_ROWS_SHOWN]:
        _add(table, first, last)
    yield indented(table, 2)
    if len(shown) > _ROWS_SHOWN:
        after = shown[_ROWS_SHOWN - 1][1].offset
        yield indented(f"and {len(logs.rows) - after - 1} more offsets; --format json has all", 2, DIM)
    for side, style, values in zip(_SIDES, _STYLES, logs.lost, strict=True):
        if values:
            names = shortlist(values, _VALUES_SHOWN)
            yield indented(Text.assemble((f"{side}  ", style), (f"{LOST} ", "bold red"), names), 2)


def _add(table: Table, first: LogRow, last: LogRow) -> None:
    is_one = first is last
    entries = [
        _record(entry, None if is_one else until)
        for entry, until in zip(first.entries, last.entries, strict=True)
    ]
    acked = []
    for fate in first.fates:
        word = "-" if fate.status is None else "yes" if fate.status == ACKED else "no"
        acked.append(Text.assemble(word, (f" {LOST}" if fate.is_lost else "", "bold red")))
    offsets = str(first.offset) if is_one else f"{first.offset}..{last.offset}"
    table.add_row(offsets, *entries, *acked, style="" if first.is_equal() else "bold")


def _record(entry: LogEntry | None, until: LogEntry | None) -> str:
    if entry is None:
        return "-"
    last = "" if until is None else f"..{until.value}"
    return f"{entry.value}{last} e{entry.leader_epoch}"
