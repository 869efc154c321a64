"""Compares two runs for people: their plans, where they diverge, and their logs at the end."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Final

from rich.console import Console, RenderableType
from rich.padding import Padding
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
from harrow.cli.render.layout import DIM, STYLES, columns, hidden_items, indented
from harrow.cli.text import Text

_SIDES: Final = ("A", "B")
_STYLES: Final = ("red", "green")
_KEYS_SHOWN: Final = 16
_ROWS_SHOWN: Final = 40
_VALUES_SHOWN: Final = 8


def show_runs_diff(console: Console, diff: RunsDiff, *, only_different: bool) -> None:
    for side, run in zip(_SIDES, diff.runs, strict=True):
        show(console, *_title(side, run))
    if diff.is_same:
        show(console, Text(), Text("Both runs have the same trace, event by event.", "bold"))
    show(console, *_plan(diff), *_divergence(diff), *_service(diff))
    equal = [logs for logs in diff.logs if logs.is_equal()]
    for logs in (logs for logs in diff.logs if not logs.is_equal()):
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
    if anomalies := in_short_by(run.recorded.rules):
        yield indented(anomalies, 3)


def _plan(diff: RunsDiff) -> Iterator[RenderableType]:
    yield Text()
    if not diff.plan:
        yield Text("The plans are the same.")
        return
    yield Text("The plans differ:", "bold")
    yield _side_table(diff.plan[:_KEYS_SHOWN])
    yield from hidden_items(len(diff.plan), _KEYS_SHOWN)


def _service(diff: RunsDiff) -> Iterator[RenderableType]:
    if diff.service:
        yield Text()
        yield Text("Service to clients:", "bold")
        yield _side_table(diff.service)


def _side_table(rows: Iterable[tuple[str | None, ...]]) -> Padding:
    cells = (("-" if value is None else value for value in row) for row in rows)
    return indented(columns("", *_SIDES, rows=cells), 2)


def _divergence(diff: RunsDiff) -> Iterator[RenderableType]:
    difference = diff.difference
    if difference is None:
        return
    yield Text()
    yield Text(f"The runs diverge at event {difference.position + 1}:", "bold")
    table = columns("", "")
    for earlier in difference.before[-2:]:
        table.add_row("", Text(_event_text(earlier), DIM))
    for side, event, style in zip(_SIDES, (difference.recorded, difference.replayed), _STYLES, strict=True):
        table.add_row(side, Text(_event_text(event), style))
    yield indented(table, 2)
    telling = diff.telling_difference
    if telling == (None, None):
        yield indented(
            "Only times and traffic differ: the same other events happened in the same order.", 2, DIM
        )
    elif any(event is not None and event[0] != difference.position + 1 for event in telling):
        yield Text("The first difference beyond times and traffic:", "bold")
        table = columns("", "", "")
        for side, numbered, style in zip(_SIDES, telling, _STYLES, strict=True):
            number = "" if numbered is None else f"event {numbered[0]}"
            table.add_row(Text(side, style), number, _event_text(None if numbered is None else numbered[1]))
        yield indented(table, 2)


def _event_text(event: RecordedEvent | None) -> str:
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
        _add_row(table, first, last)
    yield indented(table, 2)
    if len(shown) > _ROWS_SHOWN:
        after = shown[_ROWS_SHOWN - 1][1].offset
        yield indented(f"and {len(logs.rows) - after - 1} more offsets; --format json shows all", 2, DIM)
    for side, style, values in zip(_SIDES, _STYLES, logs.lost, strict=True):
        if values:
            names = shortlist(values, _VALUES_SHOWN)
            yield indented(Text.assemble((f"{side}  ", style), (f"{LOST} ", "bold red"), names), 2)


def _add_row(table: Table, first: LogRow, last: LogRow) -> None:
    is_one = first is last
    entries = [
        _record(entry, None if is_one else last_entry)
        for entry, last_entry in zip(first.entries, last.entries, strict=True)
    ]
    acked = []
    for fate in first.fates:
        word = "-" if fate.status is None else "yes" if fate.status == ACKED else "no"
        acked.append(Text.assemble(word, (f" {LOST}" if fate.is_lost else "", "bold red")))
    offsets = str(first.offset) if is_one else f"{first.offset}..{last.offset}"
    table.add_row(offsets, *entries, *acked, style="" if first.is_equal() else "bold")


def _record(entry: LogEntry | None, last_entry: LogEntry | None) -> str:
    if entry is None:
        return "-"
    last = "" if last_entry is None else f"..{last_entry.value}"
    return f"{entry.value}{last} e{entry.leader_epoch}"
