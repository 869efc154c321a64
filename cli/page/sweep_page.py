"""The report of a sweep as one HTML page, for people to show around."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import log, sqrt
from typing import Final

from harrow.campaigns.language.spelling import counted, listed
from harrow.campaigns.language.units import rough_duration_text
from harrow.campaigns.storage.location import LocalLocation
from harrow.campaigns.sweep.definition import SweepSource
from harrow.campaigns.sweep.failures import WrittenFailure
from harrow.campaigns.sweep.row import ERROR
from harrow.campaigns.sweep.sweep_report import CellService, FailureGroup, SweepReport
from harrow.checks.finding import HELD, INCONCLUSIVE, PERMITTED, VIOLATED
from harrow.cli.page.markup import Markup, Piece, element, joined
from harrow.cli.page.report_page import (
    cell,
    command,
    definitions,
    folded,
    head,
    report_page,
    row_head,
    table,
    verdict,
)
from harrow.cli.render.figures import grouped, times
from harrow.cli.render.sweep.columns import Column, ColumnGroup, SweepColumns, cell_labels, sweep_columns
from harrow.cli.render.sweep.sentences import (
    durations,
    failure_terms,
    rare_text,
    reliability,
    runs_text,
    skipped,
    undecided,
)
from harrow.cluster_model.lazy_dataclass import dataclass

_BAR_ORDER: Final = (HELD, PERMITTED, INCONCLUSIVE, VIOLATED, ERROR)
_BAR_WIDTH: Final = 110
_PICTURE_WIDTH: Final = 300
_PICTURE_HEIGHT: Final = 30
_DECADES_US: Final = (*(10**power for power in range(8)), 60_000_000, 600_000_000, 3_600_000_000)
_HALVES_US: Final = (*(3 * 10**power for power in range(8)), 180_000_000, 1_800_000_000)
_RATIO_MIN: Final = 10
_HALVES_RATIO_MAX: Final = 300
"""If a scale is longer than this, it has ticks only for whole decades."""

_CELLS_NAMED: Final = 3
_FILE_BYTES_MAX: Final = 1_000_000


def sweep_page(report: SweepReport, written: Sequence[WrittenFailure], sources: Sequence[SweepSource]) -> str:
    """Return the page. *written* are the files of failures, *sources* the campaigns."""
    columns = sweep_columns(report)
    campaigns = listed([source.campaign for source in sources])
    lead = [
        element("p", runs_text(report)),
        _verdict_bar(report.verdicts(), 600),
        *(element("p", sentence.text, class_=sentence.status or None) for sentence in reliability(report)),
    ]
    sections = {
        "Failures by kind": list(_failures(report, written)),
        "Verdicts by settings": list(_verdicts(report, columns)),
        "Longest outage by settings": list(_service(report, columns)),
        "Anomalies by settings": list(_anomalies(columns)),
        "What is not known": list(_unknown(report)),
        "Rare states": list(_rare_states(report)),
        "What ran": list(_definition(report, sources)),
    }
    return report_page(f"Sweep of {campaigns}", lead, sections)


# Failures


def _failures(report: SweepReport, written: Sequence[WrittenFailure]) -> Iterator[Markup]:
    files = {(each.group.campaign, each.group.signature): each for each in written}
    for group in report.failures:
        yield _failure(report, group, files.get((group.campaign, group.signature)))


def _failure(report: SweepReport, group: FailureGroup, written: WrittenFailure | None) -> Markup:
    pairs: list[tuple[str, Piece]] = []
    if group.promise:
        pairs.append(("promised", group.promise))
    if group.chain:
        steps = (element("li", step) for step in group.chain.split(" > "))
        pairs.append(("chain", element("ol", *steps, class_="chain")))
    if len(report.cells) > 1:
        pairs.append(("in", _cells_text(report, group)))
    for label, text in failure_terms(group, written):
        is_command = text.startswith("harrow ")
        pairs.append((label, command(text) if is_command else element("code", text)))
    heading = element("h3", verdict(VIOLATED, group.rule), f" in {group.campaign}, {times(group.failures)}")
    text = "" if written is None else _file_text(written)
    is_shrunk = written is not None and written.shrunk
    noun = "the shrunk campaign" if is_shrunk else "the campaign of the earliest run"
    return element("article", heading, definitions(pairs), *([folded(noun, text)] if text else []))


def _cells_text(report: SweepReport, group: FailureGroup) -> str:
    """Return in how many cells a kind of failure occurred, and where most often."""
    runs = {each.cell: each.runs for each in report.cells if each.campaign == group.campaign}
    names = list(group.cells)[:_CELLS_NAMED]
    most = "; ".join(
        f"{label} ({grouped(group.cells[name])} of {grouped(runs.get(name, 0))} runs)"
        for name, label in zip(names, cell_labels(names), strict=True)
    )
    count = f"{len(group.cells)} of {counted(len(runs), 'cell')}"
    return f"{count}: {most}" if len(group.cells) == len(names) else f"{count}, most often {most}"


def _file_text(written: WrittenFailure) -> str:
    """Return the text of a failure's file; nothing if the page cannot have it.

    A folder may come from anywhere, and the page goes to other people. So a link must not put a
    file from elsewhere on this machine into it.
    """
    place = written.path
    try:
        if isinstance(place, LocalLocation):
            folder = place.path.parents[2]  # the sweep's own, above failures/SIGNATURE/
            if not place.path.resolve(strict=True).is_relative_to(folder.resolve()):
                return ""
        return "" if place.size() > _FILE_BYTES_MAX else place.read_text()
    except (OSError, ValueError):
        return ""  # The page names the file, and the report is valid without its text.


# Tables with a row for each cell


def _verdicts(report: SweepReport, columns: SweepColumns) -> Iterator[Markup]:
    if not columns.rows:
        return
    counts = {(each.campaign, each.cell): each for each in report.cells}
    bars = [counts[row.key].verdicts if row.key in counts else {} for row in columns.rows]
    yield _matrix(
        "How many of all runs ended with each verdict. The intervals are 95% confidence intervals (Wilson).",
        "verdicts by settings",
        columns,
        columns.verdicts,
        [_Picture(heading=Markup("all runs"), cells=[_verdict_bar(bar, _BAR_WIDTH) for bar in bars])],
    )


def _anomalies(columns: SweepColumns) -> Iterator[Markup]:
    if columns.rates:
        yield _matrix(
            "How many of the decided runs showed each anomaly, and whether the settings permit it.",
            "anomalies by settings",
            columns,
            columns.rates,
        )


def _service(report: SweepReport, columns: SweepColumns) -> Iterator[Markup]:
    by_key = {(each.campaign, each.cell): each for each in report.service}
    cells = [by_key.get(row.key) for row in columns.rows]
    scale = _Scale.of([each for each in cells if each is not None])
    if scale is None:
        return
    pictures = [Markup("") if each is None else scale.picture(each) for each in cells]
    yield _matrix(
        "The longest time of each run in which a partition acked nothing although producers sent to it. The "
        "picture shows how many runs had which longest outage: │ median, ┊ 99%, and the worst in red. "
        "Each bar is for outages up to 28% longer than those of the bar before.",
        "longest outage by settings",
        columns,
        columns.service,
        [_Picture(heading=scale.axis(), cells=pictures)],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Picture:
    """A column of pictures."""

    heading: Markup
    cells: Sequence[Markup]


def _matrix(
    caption: str,
    label: str,
    columns: SweepColumns,
    groups: Sequence[ColumnGroup],
    pictures: Sequence[_Picture] = (),
) -> Markup:
    """Return a table with a row for each cell: its settings, pictures, and groups of columns."""
    keys = columns.keys_or_names()
    top = [head(key.head, rows=2) for key in keys]
    top += [head(picture.heading, rows=2) for picture in pictures]
    top += [
        head(verdict(group.status, group.title) if group.status else group.title, columns=len(group.columns))
        for group in groups
    ]
    below = [
        head(column.head, kind="number" if column.right else None)
        for group in groups
        for column in group.columns
    ]
    rows = [
        [
            *(row_head(key.entries[place].text) for key in keys),
            *(cell(picture.cells[place]) for picture in pictures),
            *(_entry(column, place) for group in groups for column in group.columns),
        ]
        for place in range(len(columns.rows))
    ]
    return table(caption, [top, below], rows, label=label)


def _entry(column: Column, place: int) -> Markup:
    entry = column.entries[place]
    return cell(entry.text, kind=f"{'number ' if column.right else ''}{entry.status}".strip())


# Pictures


def _verdict_bar(verdicts: Mapping[str, int], width: int) -> Markup:
    """Return a bar that is divided by verdict. A verdict of any run is at least a line wide."""
    total = sum(verdicts.values())
    if not total:
        return Markup("")
    parts = []
    left = 0.0
    for name in _BAR_ORDER:
        if count := verdicts.get(name, 0):
            part = max(1.5, count / total * width)
            parts.append(element("rect", class_=name, x=f"{left:.1f}", width=f"{part:.1f}", height=12))
            left += part
    words = listed([f"{grouped(count)} {name}" for name, count in verdicts.items() if count])
    return element(
        "svg", *parts, role="img", aria_label=words, viewBox=f"0 0 {left:.1f} 12", width=width, height=12
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scale:
    """The scale that all pictures of outages share: logarithmic in time, linear in runs."""

    begin_us: float
    end_us: float
    share_max: float

    @classmethod
    def of(cls, cells: Iterable[CellService]) -> "_Scale | None":
        bins = [(each, cell.runs) for cell in cells for each in cell.outage_bins]
        if not bins:
            return None
        begin_us = min(each.from_us for each, _ in bins)
        end_us = max(each.to_us for each, _ in bins)
        # Equal outages would otherwise fill the whole width, and the scale would have no tick.
        margin = sqrt(max(1.0, _RATIO_MIN / (end_us / begin_us)))
        return cls(
            begin_us=begin_us / margin,
            end_us=end_us * margin,
            share_max=max(each.runs / runs for each, runs in bins),
        )

    def picture(self, service: CellService) -> Markup:
        floor = _PICTURE_HEIGHT - 1
        bars = []
        for each in service.outage_bins:
            top = floor - max(1.0, each.runs / service.runs / self.share_max * (floor - 2))
            left, right = self._x(each.from_us), self._x(each.to_us)
            bars.append(f"M{left:.1f} {floor}V{top:.1f}H{right:.1f}V{floor}z")
        outage = service.outage
        lines = [
            element("path", class_="axis", d=f"M0 {floor + 0.5}H{_PICTURE_WIDTH}"),
            element("path", class_="area", d="".join(bars)),
            self._line(outage.median_us, "mark"),
            self._line(outage.p99_us, "mark", stroke_dasharray="2 2"),
            self._line(outage.max_us, "worst"),
        ]
        words = ", ".join(
            f"{name} {rough_duration_text(round(us))}"
            for name, us in (("median", outage.median_us), ("99%", outage.p99_us), ("worst", outage.max_us))
        )
        return _svg(words, lines)

    def axis(self) -> Markup:
        """Return the scale of time, for the heading of the pictures."""
        parts = []
        has_halves = self.end_us / self.begin_us < _HALVES_RATIO_MAX
        for tick in (*_DECADES_US, *(_HALVES_US if has_halves else ())):
            if self.begin_us <= tick <= self.end_us:
                x = self._x(tick)
                anchor = "start" if x < 20 else "end" if x > _PICTURE_WIDTH - 20 else "middle"
                parts.append(element("path", class_="axis", d=f"M{x:.1f} 20V30"))
                parts.append(
                    element("text", rough_duration_text(tick), x=f"{x:.1f}", y=15, text_anchor=anchor)
                )
        return joined("longest outage of each run", _svg("time, on a logarithmic scale", parts))

    def _x(self, us: float) -> float:
        share = log(max(us, self.begin_us) / self.begin_us) / log(self.end_us / self.begin_us)
        return min(1.0, share) * _PICTURE_WIDTH

    def _line(self, us: float, kind: str, **attributes: str) -> Markup:
        return element("path", class_=kind, d=f"M{self._x(us):.1f} 0V{_PICTURE_HEIGHT}", **attributes)


def _svg(words: str, parts: Iterable[Markup]) -> Markup:
    size = {"width": _PICTURE_WIDTH, "height": _PICTURE_HEIGHT}
    return element(
        "svg", *parts, role="img", aria_label=words, viewBox=f"0 0 {_PICTURE_WIDTH} {_PICTURE_HEIGHT}", **size
    )


# The rest


def _unknown(report: SweepReport) -> Iterator[Markup]:
    if reasons := list(undecided(report)):
        yield element("p", verdict(INCONCLUSIVE, "These runs reached no verdict:"))
        yield _list(reasons)
    if not_tried := list(skipped(report)):
        yield element("p", "These settings were not tried:")
        yield _list(not_tried)


def _rare_states(report: SweepReport) -> Iterator[Markup]:
    if report.never_reached:
        yield element("p", f"No run reached {', '.join(report.never_reached)}.")
    if report.probes:
        yield element("p", f"Reached, by number of runs: {rare_text(report)}.", class_="faint")


def _definition(report: SweepReport, sources: Sequence[SweepSource]) -> Iterator[Markup]:
    first, end = report.state.get("seeds", (0, 0))
    pairs: list[tuple[str, Piece]] = [
        ("seeds", f"{first}..{end}"),
        ("cells", f"{len(report.state.get('cells', ()))}, for each variant and combination of settings"),
        ("written by", f"harrow {report.state.get('version', '')}"),
    ]
    pairs += [
        (
            f"campaign {source.campaign}",
            " ".join([source.argument, *(f"--set {each}" for each in source.overrides)]),
        )
        for source in sources
    ]
    yield definitions(pairs)
    for source in sources:
        yield folded(f"the campaign {source.campaign}", source.text)
        for file, text in source.cluster_files.items():
            yield folded(f"the cluster file {file}", text)
    yield from (element("p", text, class_="faint") for text in durations(report))


def _list(texts: Iterable[str]) -> Markup:
    return element("ul", *(element("li", text) for text in texts))
