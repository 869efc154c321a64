"""Two runs for people: what they were given, where they part, what became of the logs."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from campaigns.recorded_run import RecordedEvent
from campaigns.replica_states import ACKED, LogEntry
from campaigns.report import in_short_by
from campaigns.run_diff import RunDiff, run_title
from campaigns.runs_diff import LogRow, LogsDiff, RunsDiff
from campaigns.spelling import printable
from campaigns.units import fields_text
from checks.finding import VIOLATED
from checks.story import seconds
from cli.console import show
from cli.diff_rows import FOLDED_MIN, LOST
from cli.render_run import STYLES
from cli.render_story import DIM, indented

_SIDES: Final = ("A", "B")
_STYLES: Final = ("red", "green")
_KEYS_SHOWN: Final = 16
_ROWS_SHOWN: Final = 40
_VALUES_SHOWN: Final = 8


def show_runs_diff(console: Console, found: RunsDiff, *, only_different: bool) -> None:
    """Print two runs side by side."""
    for side, run in zip(_SIDES, found.runs, strict=True):
        show(console, *_title(side, run))
    if found.is_same:
        show(console, Text(), Text("Both have the same trace, event by event.", "bold"))
    show(console, *_plan(found), *_parting(found))
    differing = [logs for logs in found.logs if not logs.is_equal()]
    equal = [logs for logs in found.logs if logs.is_equal()]
    for logs in differing:
        show(console, Text(), *_logs(logs, only_different=only_different))
    if equal:
        names = ", ".join(printable(logs.name) for logs in equal[:_VALUES_SHOWN])
        more = ", ..." if len(equal) > _VALUES_SHOWN else ""
        text = f"The same values in the leaders' logs of {names}{more}, and the same records lost."
        show(console, Text(), Text(text))


def _title(side: str, run: RunDiff) -> Iterator[RenderableType]:
    verdict = run.recorded.verdict
    what = in_short_by(run.recorded.rules)
    where = "" if run.at.is_end else f", at {seconds(run.state.at_us)} (event {run.state.number})"
    line = Text.assemble(
        (f"{side}  ", _STYLES[_SIDES.index(side)]),
        (run_title(run.recorded, run.run), "bold"),
        f"{where}: ",
        (verdict, STYLES.get(verdict, STYLES[VIOLATED])),
    )
    yield line
    if what:
        yield indented(Text(what), 3)


def _plan(found: RunsDiff) -> Iterator[RenderableType]:
    yield Text()
    if not found.plan:
        yield Text("Their plans are the same.")
        return
    yield Text("What they were given:", "bold")
    table = _columns("", *_SIDES)
    for part in found.plan[:_KEYS_SHOWN]:
        table.add_row(printable(part.key), _word(part.one), _word(part.other))
    yield indented(table, 2)
    if len(found.plan) > _KEYS_SHOWN:
        yield indented(Text(f"and {len(found.plan) - _KEYS_SHOWN} more; --format json has all", DIM), 2)


def _parting(found: RunsDiff) -> Iterator[RenderableType]:
    parted = found.parted
    if parted is None:
        return
    yield Text()
    yield Text(f"They part at event {parted.position + 1}:", "bold")
    before = [(" ", event, DIM) for event in parted.before[-2:]]
    pair = zip(_SIDES, (parted.recorded, parted.replayed), _STYLES, strict=True)
    yield indented(_events([*before, *pair]), 2)
    told = found.told_apart
    if told == (None, None):
        yield indented(
            Text("Only times and traffic differ: the same things happened in the same order.", DIM), 2
        )
    elif any(which is not None and which[0] != parted.position + 1 for which in told):
        yield Text("What happens is first different at:", "bold")
        table = _columns()
        for side, which, style in zip(_SIDES, told, _STYLES, strict=True):
            words = "the trace has ended" if which is None else _words(which[1])
            number = "" if which is None else f"event {which[0]}"
            table.add_row(Text(side, style), number, words)
        yield indented(table, 2)


def _events(events: Sequence[tuple[str, RecordedEvent | None, str]]) -> Table:
    table = _columns()
    for side, event, style in events:
        table.add_row(side, Text("the trace has ended" if event is None else _words(event), style))
    return table


def _words(event: RecordedEvent) -> str:
    fields = printable(fields_text(tuple(event.fields.items())))
    return f"{event.at_us / 1_000_000:.6f}s {event.event} {fields}".rstrip()


def _logs(logs: LogsDiff, *, only_different: bool) -> Iterator[RenderableType]:
    yield Text.assemble((printable(logs.name), "bold"), "  the logs that consumers read from the leaders")
    heads = [
        f"{side}: {'no replica' if broker is None else f'broker {broker}'}"
        for side, broker in zip(_SIDES, logs.brokers, strict=True)
    ]
    table = _columns("offset", *heads, "acked in A", "in B")
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
        yield indented(Text(f"and {len(logs.rows) - after - 1} more offsets; --format json has all", DIM), 2)
    for side, style, values in zip(_SIDES, _STYLES, logs.lost, strict=True):
        if values:
            names = ", ".join(map(printable, values[:_VALUES_SHOWN]))
            more = f" and {len(values) - _VALUES_SHOWN} more" if len(values) > _VALUES_SHOWN else ""
            text = Text.assemble(
                (f"{side}  ", style), (f"{LOST} ", "bold red"), f"{names}{more}: acked, not on the leader"
            )
            yield indented(text, 2)


def _add(table: Table, first: LogRow, last: LogRow) -> None:
    is_one = first is last
    offsets = str(first.offset) if is_one else f"{first.offset}..{last.offset}"
    style = "" if first.is_equal() else "bold"
    entries = [
        _record(entry, None if is_one else until)
        for entry, until in zip(first.entries, last.entries, strict=True)
    ]
    acked = []
    for fate in first.fates:
        word = "-" if fate is None or fate.status is None else "yes" if fate.status == ACKED else "no"
        acked.append(
            Text.assemble(word, (f" {LOST}" if fate is not None and fate.is_lost else "", "bold red"))
        )
    table.add_row(offsets, *entries, *acked, style=style)


def _record(entry: LogEntry | None, until: LogEntry | None) -> str:
    if entry is None:
        return "-"
    last = "" if until is None else f"..{printable(until.value)}"
    return f"{printable(entry.value)}{last} e{entry.leader_epoch}"


def _word(value: str | None) -> str:
    return "-" if value is None else printable(value)


def _columns(*heads: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style=DIM, show_header=bool(heads))
    for head in heads:
        table.add_column(head, overflow="fold")
    return table
