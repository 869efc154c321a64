"""The columns of a sweep's matrix, whatever prints it.

Each row is a cell of the sweep. Its settings come first, then its results.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import starmap
from typing import Any, Final

from harrow.campaigns.language.units import rough_duration_text
from harrow.campaigns.record.report import BASE
from harrow.campaigns.sweep.confidence import wilson
from harrow.campaigns.sweep.row import ERROR
from harrow.campaigns.sweep.sweep_report import CellCount, CellService, SweepReport
from harrow.checks.finding import HELD, INCONCLUSIVE, PERMITTED, VIOLATED
from harrow.cli.render.figures import grouped, interval, percent
from harrow.cli.render.sweep.sentences import FAINT
from harrow.cluster_model.lazy_dataclass import dataclass

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
class SweepRow:
    """A row of the matrix: a cell of the sweep."""

    campaign: str
    cell: str
    variant: str
    settings: Mapping[str, str]

    @property
    def key(self) -> tuple[str, str]:
        return self.campaign, self.cell


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What one cell of the matrix says. ``status`` decides its colour."""

    text: str = ""
    status: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of the matrix: its heading, and an entry for each row."""

    head: str
    entries: tuple[Entry, ...]
    right: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnGroup:
    """Columns that stay together below a title. ``status`` is the verdict that they count."""

    title: str
    columns: tuple[Column, ...]
    status: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepColumns:
    """The whole matrix. ``keys`` has a column for each setting that differs between rows."""

    rows: tuple[SweepRow, ...]
    keys: tuple[Column, ...]
    verdicts: tuple[ColumnGroup, ...]
    service: tuple[ColumnGroup, ...]
    rates: tuple[ColumnGroup, ...]

    def keys_or_names(self) -> tuple[Column, ...]:
        """Return the keys; if nothing differs, the names of campaigns, so that rows have a head."""
        return self.keys or (_key_column("campaign", (row.campaign for row in self.rows)),)


def sweep_columns(report: SweepReport) -> SweepColumns:
    rows = _rows(report)
    return SweepColumns(
        rows=tuple(rows),
        keys=tuple(_keys(rows)),
        verdicts=tuple(_verdict_groups(report, rows)),
        service=tuple(_service_groups(report.service, rows)),
        rates=tuple(_rate_groups(report, rows)),
    )


def _rows(report: SweepReport) -> list[SweepRow]:
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
        rows.append(SweepRow(campaign=campaign, cell=cell, variant=variant, settings=settings))
    campaigns = _positions([row.campaign for row in rows])
    variants = _positions([row.variant for row in rows])
    values = {
        key: _value_positions(key, [row.settings[key] for row in rows if key in row.settings])
        for key in _setting_keys(rows)
    }

    def position(row: SweepRow) -> tuple[int, int, list[int]]:
        setting_positions = [order.get(row.settings.get(key, ""), -1) for key, order in values.items()]
        return campaigns[row.campaign], variants[row.variant], setting_positions

    return sorted(rows, key=position)


def cell_labels(cells: Sequence[str]) -> list[str]:
    """Return the names of cells, without `base` if no cell is a variant."""
    prefix = f"{BASE} "
    is_grid_alone = all(cell.startswith(prefix) for cell in cells)
    return [cell.removeprefix(prefix) if is_grid_alone else cell for cell in cells]


def _setting_keys(rows: Sequence[SweepRow]) -> list[str]:
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


def _keys(rows: Sequence[SweepRow]) -> Iterator[Column]:
    """Yield a column for each key that differs between rows."""
    if len({row.campaign for row in rows}) > 1:
        yield _key_column("campaign", (row.campaign for row in rows))
    if len({row.variant for row in rows}) > 1:
        yield _key_column("variant", (row.variant for row in rows))
    for key in _setting_keys(rows):
        values = [row.settings.get(key, "") for row in rows]
        if len(set(values)) > 1 or len(rows) == 1:
            yield _key_column(key, values)


def _key_column(head: str, values: Iterable[str]) -> Column:
    return Column(head=head, entries=tuple(Entry(text=value) for value in values), right=False)


# Results


def _service_groups(service: Sequence[CellService], rows: Sequence[SweepRow]) -> Iterator[ColumnGroup]:
    if not service:
        return
    by_key = {(cell.campaign, cell.cell): cell for cell in service}
    cells = [by_key.get(row.key) for row in rows]

    def column(head: str, text: Callable[[CellService], str]) -> Column:
        return Column(
            head=head, entries=tuple(Entry() if cell is None else Entry(text=text(cell)) for cell in cells)
        )

    def time_column(head: str, of: Callable[[CellService], float | None]) -> Column:
        def text(cell: CellService) -> str:
            us = of(cell)
            return "" if us is None else rough_duration_text(round(us))

        return column(head, text)

    def times(title: str, *columns: tuple[str, Callable[[CellService], float | None]]) -> ColumnGroup:
        return ColumnGroup(title=title, columns=tuple(starmap(time_column, columns)))

    yield ColumnGroup(title="", columns=(column("acked", lambda cell: percent(cell.acked / cell.sent)),))
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


def _verdict_groups(report: SweepReport, rows: Sequence[SweepRow]) -> Iterator[ColumnGroup]:
    """Yield a group for each verdict, among all runs; for errors only if there are any."""
    cells = {(cell.campaign, cell.cell): cell for cell in report.cells}
    for verdict in (HELD, PERMITTED, VIOLATED, INCONCLUSIVE, ERROR):
        counts = [
            (cell.verdicts.get(verdict, 0), cell.runs) if (cell := cells.get(row.key)) else (0, 0)
            for row in rows
        ]
        if verdict != ERROR or any(hits for hits, _ in counts):
            yield _frequency_group(verdict, verdict, counts)


def _rate_groups(report: SweepReport, rows: Sequence[SweepRow]) -> Iterator[ColumnGroup]:
    """Yield a group for each anomaly and status, violations first, among the decided runs."""
    rates = {(rate.rule, rate.status, rate.campaign, rate.cell): rate for rate in report.rates}
    tries = {(cell.campaign, cell.cell): _decided_runs(cell) for cell in report.cells}
    tries.update({(rate.campaign, rate.cell): rate.runs for rate in report.rates})
    pairs = dict.fromkeys((rate.rule, rate.status) for rate in report.rates if rate.status is not None)
    for rule, status in sorted(pairs, key=lambda each: _STATUSES.index(each[1])):
        counts = [
            (
                rates[rule, status, *row.key].hits if (rule, status, *row.key) in rates else 0,
                tries.get(row.key, 0),
            )
            for row in rows
        ]
        yield _frequency_group(f"{rule}, {status}", status, counts)


def _frequency_group(title: str, status: str, counts: Iterable[tuple[int, int]]) -> ColumnGroup:
    """Return how often something happened, as columns. *counts* has hits and runs for each row."""
    lines = []
    for hits, runs in counts:
        shares = (percent(hits / runs), interval(*wilson(hits, runs))) if runs else ("", "")
        texts = (*shares, f"{grouped(hits)} of {grouped(runs)}")
        lines.append([Entry(text=text, status=status if hits else FAINT) for text in texts])
    heads = ("rate", "95% interval", "runs")
    return ColumnGroup(
        title=title,
        status=status,
        columns=tuple(
            Column(head=head, entries=tuple(line[place] for line in lines), right=head != "95% interval")
            for place, head in enumerate(heads)
        ),
    )


def _decided_runs(cell: CellCount) -> int:
    return sum(cell.verdicts.get(verdict, 0) for verdict in (HELD, PERMITTED, VIOLATED))
