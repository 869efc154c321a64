"""Renders the matrix of a sweep on a terminal.

If the terminal has no room for all columns, the remaining columns follow below, with the same rows.
If it has no room even for one group of columns, each cell of the sweep is a block of lines. No
figure or setting is cut off.
"""

from collections.abc import Iterator, Sequence
from itertools import count
from typing import Final

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult

from harrow.campaigns.language.spelling import printable
from harrow.campaigns.sweep.sweep_report import SweepReport
from harrow.checks.finding import VIOLATED
from harrow.cli.console import unbroken
from harrow.cli.render.layout import DIM, FAILED, STYLES
from harrow.cli.render.sweep.columns import Column, sweep_columns
from harrow.cli.text import Text
from harrow.cluster_model.lazy_dataclass import dataclass

_STYLES: Final = {**STYLES, VIOLATED: FAILED}
_GAP: Final = 2
_INDENT: Final = 2
_HEAD_MAX: Final = 12
"""If the name of a setting is longer, its column is headed by a letter that a legend explains."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Strip:
    """A column as printed. Strips with the same title stay together below it."""

    head: str
    cells: tuple[Text, ...]
    right: bool = True

    def width(self) -> int:
        return max(cell_len(self.head), *(text.cell_len for text in self.cells))


@dataclass(frozen=True, slots=True, kw_only=True)
class _StripGroup:
    title: str
    columns: tuple[_Strip, ...]

    def width(self) -> int:
        columns = sum(column.width() for column in self.columns) + _GAP * (len(self.columns) - 1)
        return max(cell_len(self.title), columns)


class Matrix:
    """The matrix of a report. Rich prints it as wide as the console."""

    def __init__(self, report: SweepReport) -> None:
        columns = sweep_columns(report)
        self._legend, self._keys = _key_strips(columns.keys)
        self._groups = [
            _StripGroup(title=printable(group.title), columns=tuple(map(_strip, group.columns)))
            for group in (*columns.service, *columns.rates)
        ]
        self._title = "; ".join(
            [
                *(["service to clients, run by run"] if report.service else []),
                *(["rates, among the decided runs"] if report.rates else []),
            ]
        )
        self._rows = len(columns.rows)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if not self._groups:
            return
        yield Text(f"{self._title[0].upper()}{self._title[1:]}:", "bold")
        for letter, key in self._legend.items():
            yield Text.assemble(" " * _INDENT, (letter, "bold"), f"  {key}", overflow="fold")
        keys = _StripGroup(title="", columns=tuple(self._keys))
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


def _bands(groups: Sequence[_StripGroup], room: int) -> Iterator[list[_StripGroup]]:
    """Yield bands of groups. The groups of a band fit side by side."""
    band: list[_StripGroup] = []
    width = 0
    for group in groups:
        if band and width + _GAP + group.width() > room:
            yield band
            band, width = [], 0
        width += group.width() + (_GAP if band else 0)
        band.append(group)
    yield band


def _band_lines(groups: Sequence[_StripGroup], rows: int) -> Iterator[Text]:
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


def _strip(column: Column, head: str | None = None) -> _Strip:
    cells = tuple(Text(entry.text, _STYLES.get(entry.status, "")) for entry in column.entries)
    return _Strip(head=head or printable(column.head), cells=cells, right=column.right)


def _key_strips(columns: Sequence[Column]) -> tuple[dict[str, str], list[_Strip]]:
    """Return the letters that replace long names, and the strips of the keys."""
    legend: dict[str, str] = {}
    letters = _letters()
    strips = []
    for column in columns:
        letter = next(letters) if cell_len(printable(column.head)) > _HEAD_MAX else None
        if letter is not None:
            legend[letter] = printable(column.head)
        strips.append(_strip(column, letter))
    return legend, strips


def _letters() -> Iterator[str]:
    """Yield A to Z, then A1 and so on."""
    for round_ in count():
        yield from (f"{chr(ord('A') + position)}{round_ or ''}" for position in range(26))
