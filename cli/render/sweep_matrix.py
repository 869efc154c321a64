"""Renders the matrix of a sweep: a row for each cell, with its settings and then its results.

If the terminal has no room for all columns, the remaining columns follow below, with the same rows.
If it has no room even for one group of columns, each cell of the sweep is a block of lines. No
figure or setting is cut off.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import count, starmap
from typing import Any, Final

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult

from harrow.campaigns.language.spelling import printable
from harrow.campaigns.language.units import rough_duration_text
from harrow.campaigns.sweep.confidence import wilson
from harrow.campaigns.sweep.sweep_report import CellCount, CellService, SweepReport
from harrow.checks.finding import HELD, INCONCLUSIVE, PERMITTED, VIOLATED
from harrow.cli.console import unbroken
from harrow.cli.render.figures import grouped, interval, percent
from harrow.cli.render.layout import DIM, FAILED, STYLES
from harrow.cli.text import Text
from harrow.cluster_model.lazy_dataclass import dataclass

_GAP: Final = 2
_INDENT: Final = 2
_HEAD_MAX: Final = 12
"""If the name of a setting is longer, its column is headed by a letter that a legend explains."""

_KAFKA: Final = "kafka"
_RELEASE: Final = re.compile(r"\d+(\.\d+)*")
_QUANTITY: Final = re.compile(r"(?P<number>[+-]?\d+(?:\.\d+)?) ?(?P<unit>[A-Za-z]*)")
_UNITS: Final[Mapping[str, Fraction]] = {
    "": Fraction(1),
    "us": Fraction(1, 1_000_000),
    "ms": Fraction(1, 1_000),
    "s": Fraction(1),
    "m": Fraction(60),
    "min": Fraction(60),
    "h": Fraction(3_600),
    "d": Fraction(86_400),
    **{unit: Fraction(1024**power) for power, unit in enumerate(("B", "KiB", "MiB", "GiB", "TiB"))},
    **{unit: Fraction(1000**power) for power, unit in enumerate(("kB", "MB", "GB", "TB"), 1)},
}
_STATUSES: Final = (VIOLATED, PERMITTED, INCONCLUSIVE)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    head: str
    cells: tuple[Text, ...]
    right: bool = True

    def width(self) -> int:
        return max(cell_len(self.head), *(text.cell_len for text in self.cells))


@dataclass(frozen=True, slots=True, kw_only=True)
class _ColumnGroup:
    """Columns that stay together below a title."""

    title: str
    columns: tuple[_Column, ...]

    def width(self) -> int:
        columns = sum(column.width() for column in self.columns) + _GAP * (len(self.columns) - 1)
        return max(cell_len(self.title), columns)


class Matrix:
    """The matrix of a report. Rich prints it as wide as the console."""

    def __init__(self, report: SweepReport) -> None:
        rows = _rows(report)
        self._legend, self._keys = _key_columns(rows)
        self._groups = [*_service_groups(report.service, rows), *_rate_groups(report, rows)]
        self._title = "; ".join(
            [
                *(["service to clients, run by run"] if report.service else []),
                *(["rates, among the decided runs"] if report.rates else []),
            ]
        )
        self._rows = len(rows)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if not self._groups:
            return
        yield Text(f"{self._title[0].upper()}{self._title[1:]}:", "bold")
        for letter, key in self._legend.items():
            yield Text.assemble(" " * _INDENT, (letter, "bold"), f"  {key}", overflow="fold")
        keys = _ColumnGroup(title="", columns=tuple(self._keys))
        room = options.max_width - _INDENT - (keys.width() + _GAP if self._keys else 0)
        if any(group.width() > room for group in self._groups):
            yield from self._stacked_lines()
        else:
            for band in _bands(self._groups, room):
                yield from _band_lines([keys, *band] if self._keys else band, self._rows)
        yield Text()

    def _stacked_lines(self) -> Iterator[Text]:
        for row in range(self._rows):
            yield Text()
            for column in self._keys:
                yield Text.assemble((column.head, "bold"), " ", column.cells[row])
            for group in self._groups:
                for column in group.columns:
                    if column.cells[row].plain:
                        head = " ".join(filter(None, (group.title, column.head)))
                        yield Text.assemble((f"{head}: ", DIM), column.cells[row])


def _bands(groups: Sequence[_ColumnGroup], room: int) -> Iterator[list[_ColumnGroup]]:
    """Yield bands of groups. The groups of a band fit side by side."""
    band: list[_ColumnGroup] = []
    width = 0
    for group in groups:
        if band and width + _GAP + group.width() > room:
            yield band
            band, width = [], 0
        width += group.width() + (_GAP if band else 0)
        band.append(group)
    yield band


def _band_lines(groups: Sequence[_ColumnGroup], rows: int) -> Iterator[Text]:
    gap = " " * _GAP
    if any(group.title for group in groups):
        titles = gap.join(_padded(Text(group.title), group.width()).plain for group in groups)
        yield unbroken(Text(f"{' ' * _INDENT}{titles.rstrip()}", "bold"))
    for row in (None, *range(rows)):
        parts = []
        for group in groups:
            texts = [
                _padded(
                    Text(column.head, "bold") if row is None else column.cells[row],
                    column.width(),
                    right=column.right,
                )
                for column in group.columns
            ]
            parts.append(_padded(Text.assemble(Text(gap).join(texts)), group.width()))
        line = Text(gap).join(parts)
        line.rstrip()
        yield unbroken(Text.assemble(" " * _INDENT, line))


def _padded(text: Text, width: int, *, right: bool = False) -> Text:
    blanks = " " * max(0, width - text.cell_len)
    return Text.assemble(blanks, text) if right else Text.assemble(text, blanks)


# Rows, and columns for the keys that differ


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    campaign: str
    cell: str
    variant: str
    settings: Mapping[str, str]

    @property
    def key(self) -> tuple[str, str]:
        return self.campaign, self.cell


def _rows(report: SweepReport) -> list[_Row]:
    """Return the cells by campaign and variant, as in the sweep, then by the values of settings."""
    definitions = {(cell["campaign"], cell["cell"]): cell for cell in report.state.get("cells", ())}
    cells = dict.fromkeys(
        [
            *((each.campaign, each.cell) for each in report.cells),
            *((each.campaign, each.cell) for each in report.rates),
            *((each.campaign, each.cell) for each in report.service),
        ]
    )
    rows = []
    for campaign, cell in cells:
        definition = definitions.get((campaign, cell), {})
        variant, settings = definition.get("variant", cell), definition.get("settings", {})
        rows.append(_Row(campaign=campaign, cell=cell, variant=variant, settings=settings))
    campaigns = _positions([row.campaign for row in rows])
    variants = _positions([row.variant for row in rows])
    values = {
        key: _value_positions(key, [row.settings[key] for row in rows if key in row.settings])
        for key in _setting_keys(rows)
    }

    def position(row: _Row) -> tuple[int, int, list[int]]:
        setting_positions = [order.get(row.settings.get(key, ""), -1) for key, order in values.items()]
        return campaigns[row.campaign], variants[row.variant], setting_positions

    return sorted(rows, key=position)


def _setting_keys(rows: Sequence[_Row]) -> list[str]:
    return list(dict.fromkeys(key for row in rows for key in row.settings))


def _positions(names: Sequence[str]) -> dict[str, int]:
    return {name: position for position, name in enumerate(dict.fromkeys(names))}


def _value_positions(key: str, values: Sequence[str]) -> dict[str, int]:
    """Return the position of each value of a setting: numbers by size, then words as they occur."""
    first_uses = _positions(values)
    is_release = key == _KAFKA and all(map(_RELEASE.fullmatch, first_uses))

    def position(value: str) -> tuple[int, Any]:
        if is_release:
            return 0, tuple(map(int, value.split(".")))
        amount = _amount(value)
        return (1, first_uses[value]) if amount is None else (0, amount)

    return _positions(sorted(first_uses, key=position))


def _amount(value: str) -> Fraction | None:
    """Return a value as a number, with times in seconds and sizes in bytes; None for a word."""
    match = _QUANTITY.fullmatch(value.strip())
    unit = None if match is None else _UNITS.get(match["unit"])
    return None if match is None or unit is None else Fraction(match["number"]) * unit


def _key_columns(rows: Sequence[_Row]) -> tuple[dict[str, str], list[_Column]]:
    """Return the letters for long names, and a column for each key that differs between rows."""
    columns = []
    if len({row.campaign for row in rows}) > 1:
        columns.append(_key_column("campaign", [row.campaign for row in rows]))
    if len({row.variant for row in rows}) > 1:
        columns.append(_key_column("variant", [row.variant for row in rows]))
    legend: dict[str, str] = {}
    letters = _letters()
    for key in _setting_keys(rows):
        values = [row.settings.get(key, "") for row in rows]
        if len(set(values)) == 1 and len(rows) > 1:
            continue
        head = printable(key)
        if cell_len(head) > _HEAD_MAX:
            head = next(letters)
            legend[head] = printable(key)
        columns.append(_key_column(head, values))
    return legend, columns


def _letters() -> Iterator[str]:
    """Yield A to Z, then A1 and so on."""
    for round_ in count():
        yield from (f"{chr(ord('A') + position)}{round_ or ''}" for position in range(26))


def _key_column(head: str, values: Sequence[str]) -> _Column:
    return _Column(head=head, cells=tuple(Text(value) for value in values), right=False)


# Results


def _service_groups(service: Sequence[CellService], rows: Sequence[_Row]) -> Iterator[_ColumnGroup]:
    if not service:
        return
    by_key = {(cell.campaign, cell.cell): cell for cell in service}
    cells = [by_key.get(row.key) for row in rows]

    def column(head: str, text: Callable[[CellService], str]) -> _Column:
        return _Column(head=head, cells=tuple(Text("" if cell is None else text(cell)) for cell in cells))

    def time_column(head: str, of: Callable[[CellService], float | None]) -> _Column:
        def text(cell: CellService) -> str:
            us = of(cell)
            return "" if us is None else rough_duration_text(round(us))

        return column(head, text)

    def times(title: str, *columns: tuple[str, Callable[[CellService], float | None]]) -> _ColumnGroup:
        return _ColumnGroup(title=title, columns=tuple(starmap(time_column, columns)))

    yield _ColumnGroup(title="", columns=(column("acked", lambda cell: percent(cell.acked / cell.sent)),))
    yield times(
        "longest outage",
        ("median", lambda cell: cell.outage.median_us),
        ("99%", lambda cell: cell.outage.p99_us),
        ("worst", lambda cell: cell.outage.max_us),
    )
    yield times(
        "99% acked within",
        ("median", lambda cell: cell.ack_p99.median_us if cell.ack_p99 else None),
        ("worst", lambda cell: cell.ack_p99.max_us if cell.ack_p99 else None),
    )


def _rate_groups(report: SweepReport, rows: Sequence[_Row]) -> Iterator[_ColumnGroup]:
    """Yield a group for each anomaly and status, violations first."""
    rates = {(rate.rule, rate.status, rate.campaign, rate.cell): rate for rate in report.rates}
    tries = {(cell.campaign, cell.cell): _decided_runs(cell) for cell in report.cells}
    tries.update({(rate.campaign, rate.cell): rate.runs for rate in report.rates})
    pairs = dict.fromkeys((rate.rule, rate.status) for rate in report.rates if rate.status is not None)
    for rule, status in sorted(pairs, key=lambda each: _STATUSES.index(each[1] or HELD)):
        style = FAILED if status == VIOLATED else STYLES.get(status or HELD, "")
        columns: list[list[Text]] = [[], [], []]
        for row in rows:
            rate = rates.get((rule, status, *row.key))
            runs = tries.get(row.key, 0)
            hits = 0 if rate is None else rate.hits
            low, high = wilson(hits, runs)
            texts: tuple[str, ...] = (percent(hits / runs), interval(low, high)) if runs else ("", "")
            texts = (*texts, f"{grouped(hits)} of {grouped(runs)}")
            for column, text in zip(columns, texts, strict=True):
                column.append(Text(text, style if hits else ""))
        heads = ("rate", "95% interval", "runs")
        yield _ColumnGroup(
            title=f"{rule}, {status}",
            columns=tuple(
                _Column(head=head, cells=tuple(cells), right=head != "95% interval")
                for head, cells in zip(heads, columns, strict=True)
            ),
        )


def _decided_runs(cell: CellCount) -> int:
    return sum(cell.verdicts.get(verdict, 0) for verdict in (HELD, PERMITTED, VIOLATED))
