"""Renders the story of a run as text: lanes are columns if they fit, else each event is a line."""

from collections.abc import Iterator, Sequence
from typing import Final

from rich.cells import cell_len, chop_cells
from rich.console import Console, RenderableType

from harrow.campaigns.record.numbered_findings import NumberedFinding
from harrow.campaigns.story.narration import FAULTS, broker_of_lane
from harrow.campaigns.story.run_state import initial_state
from harrow.campaigns.story.trace_record import RecordStory
from harrow.campaigns.story.trace_selection import CreatedTopics, FoldedRow, Line, ShownRow
from harrow.campaigns.story.trace_story import TraceStory
from harrow.checks.causes.story import seconds
from harrow.checks.replay.cluster_state import BrokerState
from harrow.checks.replay.partition_state import LEADER
from harrow.cli.console import unbroken
from harrow.cli.render.layout import DIM, EVENT_STYLES, indented, terms
from harrow.cli.render.story import prevention_of
from harrow.cli.text import Text
from harrow.cluster_model.events import ClientSent, ClientStopped
from harrow.cluster_model.lazy_dataclass import dataclass

_LANE_WIDTH_MIN: Final = 20
_TEXT_WIDTH_MIN: Final = 20
_TIME_WIDTH: Final = 10
_GAP: Final = 2
_FINDINGS_LISTED: Final = 6
_COLUMNS_MAX: Final = 1_000
"""Wider output goes to a pipe or file, where columns are not readable."""

Piece = tuple[str, str]
"""Text and its style."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneSigns:
    """The characters for the vertical lines of lanes, for marks, and for folded events."""

    live: str
    leading: str
    paused: str
    mark: str
    ellipsis: str


_UNICODE: Final = LaneSigns(live="│", leading="┃", paused="┊", mark="▶", ellipsis="…")
_ASCII: Final = LaneSigns(live="|", leading="#", paused=":", mark=">", ellipsis="...")


def heading(
    story: TraceStory,
    finding: NumberedFinding | None,
    record: RecordStory | None,
    *,
    everything: bool = False,
) -> Iterator[RenderableType]:
    """Yield the first lines of a story: the run and its findings."""
    verdict = f"Kafka {story.recorded.plan.kafka}, {story.recorded.verdict}"
    yield unbroken(Text.assemble((story.name, "bold"), f": {verdict}"))
    if finding is not None:
        title = f"finding {finding.number}, {finding.title()}: {finding.judged()}"
        yield indented(Text(title, "bold"), 2)
    elif record is None:
        listed = story.findings if everything else story.findings[:_FINDINGS_LISTED]
        if listed:
            rows = ((str(each.number), Text(f"{each.title()}: {each.judged()}")) for each in listed)
            yield indented(terms(rows), 2)
        rest = len(story.findings) - len(listed)
        if rest:
            yield unbroken(Text(f"  and {rest} more findings (--all lists them)", DIM))
    yield Text()


def ending(finding: NumberedFinding | None, record: RecordStory | None) -> Iterator[RenderableType]:
    """Yield the last lines: the fate of a record, or the conclusions of a finding."""
    if record is not None:
        yield Text()
        yield Text(f"What became of {record.value}:", "bold")
        yield from (indented(line, _GAP) for line in record.lines)
    if finding is not None:
        yield Text()
        rows = (("so", Text(text)) for text in finding.conclusions())
        yield indented(terms(rows, style=DIM, gap=1), _GAP)
        yield from prevention_of(finding.finding, _GAP)


def lanes_of(story: TraceStory, rows: Sequence[Line]) -> list[str]:
    """Return the lanes in which rows have events, in the order of the story."""
    used = {row.event.narration.lane for row in rows if isinstance(row, ShownRow)}
    return [lane for lane in story.lanes if lane in used]


class LaneStates:
    """The state of each actor (up, paused, leading) at a moment. It can only move forward."""

    def __init__(self, story: TraceStory) -> None:
        self._story = story
        self._state = initial_state(story.run)
        self._next = 0
        self._stopped_clients: set[str] = set()

    def go_to(self, position: int) -> None:
        """Move to the moment after an event."""
        run = self._story.run
        while self._next <= position:
            self._state.advance(run.events[self._next], run.numbers[self._next])
            event = self._story.events[self._next].source
            if isinstance(event, ClientStopped):
                self._stopped_clients.add(event.client)
            elif isinstance(event, ClientSent):
                # No event reports that a client is back, but its next send shows it.
                self._stopped_clients.discard(event.client)
            self._next += 1

    def is_down(self, lane: str) -> bool:
        broker = self._broker(lane)
        return lane in self._stopped_clients if broker is None else not broker.is_live

    def is_paused(self, lane: str) -> bool:
        broker = self._broker(lane)
        return broker is not None and broker.is_paused

    def is_leading(self, lane: str) -> bool:
        """Return whether the actor is a broker that believes that it leads a partition."""
        broker = self._broker(lane)
        return broker is not None and any(
            partition.replicas[broker.broker].role == LEADER
            for partition in self._state.partitions.values()
            if broker.broker in partition.replicas
        )

    def _broker(self, lane: str) -> BrokerState | None:
        number = broker_of_lane(lane)
        return None if number is None else self._state.brokers.get(number)


class StoryTable:
    """The rows of a story as lines of text for one console."""

    def __init__(self, story: TraceStory, rows: Sequence[Line], console: Console) -> None:
        self._rows = rows
        self._signs = _UNICODE if console.encoding.lower().startswith("utf") else _ASCII
        self._width = console.width
        self._lanes = lanes_of(story, rows)
        self._states = LaneStates(story)
        self._widths = self._lane_widths()

    def lines(self) -> Iterator[list[Piece]]:
        """Yield the lines, each as pieces with their styles."""
        if self._widths is not None:
            yield self._head(self._widths)
        last_us: int | None = None
        for group in self._groups():
            if isinstance(group, FoldedRow | CreatedTopics):
                yield from self._folded(group)
                continue
            at_us = group[0].event.at_us
            time = "" if at_us == last_us else seconds(at_us)
            last_us = at_us
            if self._widths is None:
                yield from self._event_lines(group[0], time)
            else:
                yield from self._event_columns(group, time, self._widths)

    def _groups(self) -> Iterator[FoldedRow | CreatedTopics | list[ShownRow]]:
        """Yield the rows in groups. With columns, events of one time are shown side by side."""
        group: list[ShownRow] = []
        for row in self._rows:
            if isinstance(row, ShownRow) and group and self._is_beside(group[-1], row):
                group.append(row)
                continue
            if group:
                yield group
            group = [row] if isinstance(row, ShownRow) else []
            if not isinstance(row, ShownRow):
                yield row
        if group:
            yield group

    def _is_beside(self, last: ShownRow, row: ShownRow) -> bool:
        return (
            self._widths is not None
            and last.event.at_us == row.event.at_us
            and self._lanes.index(last.event.narration.lane) < self._lanes.index(row.event.narration.lane)
        )

    def _lane_widths(self) -> list[int] | None:
        """Return the width of each lane; None if there are too many lanes for columns."""
        available = self._width - _TIME_WIDTH - _GAP - (_GAP + 1) * len(self._lanes)
        if self._width > _COLUMNS_MAX or not self._lanes:
            return None
        if available < _LANE_WIDTH_MIN * len(self._lanes):
            return None
        widths = [self._natural_width(lane) for lane in self._lanes]
        while sum(widths) > available:
            widest = max(range(len(widths)), key=widths.__getitem__)
            widths[widest] -= 1
        return widths

    def _natural_width(self, lane: str) -> int:
        texts = [
            cell_len(row.text) + (0 if row.mark is None else _GAP)
            for row in self._rows
            if isinstance(row, ShownRow) and row.event.narration.lane == lane
        ]
        return max([*texts, len(lane), _LANE_WIDTH_MIN - 1]) + 1

    def _head(self, widths: Sequence[int]) -> list[Piece]:
        cells = [f"{lane:<{width + _GAP}}" for lane, width in zip(self._lanes, widths, strict=True)]
        return [(" " * (_TIME_WIDTH + _GAP + 1), ""), ("".join(cells).rstrip(), "bold")]

    def _folded(self, row: FoldedRow | CreatedTopics) -> Iterator[list[Piece]]:
        margin = _TIME_WIDTH + _GAP + 1
        begin = f"{self._signs.ellipsis:>{_TIME_WIDTH}}"
        for part in wrapped(row.text(), max(self._width - margin, _TEXT_WIDTH_MIN)):
            yield [(f"{begin:<{margin}}{part}", DIM)]
            begin = ""

    def _event_lines(self, row: ShownRow, time: str) -> Iterator[list[Piece]]:
        name_width = max(len(lane) for lane in self._lanes)
        name = f"{row.event.narration.lane:<{name_width}}"
        margin = _TIME_WIDTH + _GAP + 1 + name_width + _GAP
        first, *rest = wrapped(row.text, max(self._width - margin, _TEXT_WIDTH_MIN))
        mark = self._signs.mark if row.mark is not None else " "
        begin = [(f"{time:>{_TIME_WIDTH}}", DIM), (f" {mark} ", "bold red"), (f"{name}{' ' * _GAP}", DIM)]
        yield [*begin, (first, _style(row))]
        for part in rest:
            yield [(" " * margin, ""), (part, _style(row))]

    def _event_columns(
        self, group: Sequence[ShownRow], time: str, widths: Sequence[int]
    ) -> Iterator[list[Piece]]:
        self._states.go_to(group[-1].event.position)
        cells: dict[int, tuple[list[str], str]] = {}
        for row in group:
            lane = self._lanes.index(row.event.narration.lane)
            text = row.text if row.mark is None else f"{self._signs.mark} {row.text}"
            cells[lane] = (wrapped(text, widths[lane]), _style(row))
        for number in range(max(len(parts) for parts, _ in cells.values())):
            line: list[Piece] = [(f"{time if number == 0 else '':>{_TIME_WIDTH}}{' ' * (_GAP + 1)}", DIM)]
            for lane, width in enumerate(widths):
                parts, style = cells.get(lane, ([], ""))
                if number < len(parts):
                    padding = " " * (width + _GAP - cell_len(parts[number]))
                    line += [(parts[number], style), (padding, "")]
                else:
                    line.append((f"{self._state_sign(self._lanes[lane]):<{width + _GAP}}", DIM))
            yield line

    def _state_sign(self, lane: str) -> str:
        """Return the sign for the state of an actor in a line that shows events of others."""
        if lane == FAULTS or self._states.is_down(lane):
            return ""
        if self._states.is_paused(lane):
            return self._signs.paused
        return self._signs.leading if self._states.is_leading(lane) else self._signs.live


def wrapped(text: str, width: int) -> list[str]:
    """Return a text as lines of at most *width* terminal cells. Longer words are split."""
    if cell_len(text) <= width:
        return [text]
    lines, line = [], ""
    for word in text.split(" "):
        extended = f"{line} {word}" if line else word
        if cell_len(extended) <= width:
            line = extended
            continue
        if line:
            lines.append(line)
        *full, line = chop_cells(word, width) or [""]
        lines += full
    return [*lines, line]


def _style(row: ShownRow) -> str:
    style = EVENT_STYLES.get(row.event.narration.topic, "")
    return f"bold {style}".strip() if row.mark is not None else style
