"""Selects the events that a story shows one by one. All others are folded and counted."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final

from harrow.campaigns.language.spelling import counted
from harrow.campaigns.record.numbered_findings import NumberedFinding
from harrow.campaigns.record.phrases import in_lane
from harrow.campaigns.story.event_phrases import phrase_of
from harrow.campaigns.story.topics import INVARIANT
from harrow.campaigns.story.trace_story import StoryEvent, TraceStory
from harrow.checks.link import Link
from harrow.cluster_model.events import (
    FetchDelayed,
    FetchExpired,
    HighWatermarkSet,
    MessageRuleApplied,
    kind_of,
)
from harrow.cluster_model.lazy_dataclass import dataclass

TRAFFIC_MAX: Final = 300
"""Above this number of traffic events, the traffic of a run is folded too."""

_AROUND: Final = 3
"""Notable events shown before and after the events of a chain."""
_FOLDED_MIN: Final = 8
"""Fewest consecutive hidden events that get a line of their own."""
_PARTITIONS_COUNTED_MIN: Final = 2
"""Fewest created partitions that are counted in one line."""
_FINDINGS_SHOWN: Final = 3
"""In a long story, traffic is shown only for the records of the first so many findings."""

_EMPTY_FETCHES: Final = frozenset({FetchDelayed.name, FetchExpired.name})
"""The events of a fetch that waits because there is no new record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownRow:
    """An event with a row of its own. ``mark`` is the number of its link in a chain, if any."""

    event: StoryEvent
    text: str
    mark: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldedRow:
    """A row for consecutive events, which are only counted by name."""

    first: StoryEvent
    last: StoryEvent
    counts: Counter[str]

    @property
    def is_short(self) -> bool:
        """Whether the events are too few to get a line of their own."""
        return self.counts.total() < _FOLDED_MIN

    def text(self) -> str:
        """Return the counts in words, the most frequent first.

        Waiting fetches are left out, unless there are no other events.
        """
        counts = {name: count for name, count in self.counts.items() if name not in _EMPTY_FETCHES}
        ordered = sorted((counts or self.counts).items(), key=lambda entry: (-entry[1], entry[0]))
        return ", ".join(phrase_of(kind_of(name)).counted(count) for name, count in ordered)


Row = ShownRow | FoldedRow


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedTopics:
    """One line for the Kafka topics that were created at the start, instead of many events."""

    first: StoryEvent
    summary: str

    def text(self) -> str:
        return f"{self.summary}; --all shows each"


Line = Row | CreatedTopics


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The first and the last time of the events to show. None means that there is no limit."""

    from_us: int | None = None
    to_us: int | None = None

    def has(self, event: StoryEvent) -> bool:
        return (self.from_us is None or event.at_us >= self.from_us) and (
            self.to_us is None or event.at_us <= self.to_us
        )


def whole_story(story: TraceStory, window: Window, *, everything: bool = False) -> list[Row]:
    """Return the whole story. Without *everything*, routine events are folded."""
    if everything:
        return [_shown(event) for event in story.events if window.has(event)]
    is_shown = _notable_filter(story)
    return list(_fold(map(_shown, filter(window.has, story.events)), lambda row: is_shown(row.event)))


def readable_rows(rows: Sequence[Row]) -> list[Line]:
    """Return the rows as lines for people: one line for all created topics, and no short folds.

    If there are only short folds, they are kept.
    """
    lines = list(_with_created_topics(rows))
    return [line for line in lines if not isinstance(line, FoldedRow) or not line.is_short] or lines


def created_topics(events: Iterable[StoryEvent]) -> str | None:
    """Return a text that counts the topics that these events create, or None.

    It is None for fewer than two partitions: their events are shown as they are.
    """
    partitions = {event.partition for event in events if event.partition and event.creates_partition}
    if len(partitions) < _PARTITIONS_COUNTED_MIN:
        return None
    topics = {partition.rpartition("-")[0] for partition in partitions}
    verb = "was" if len(topics) == 1 else "were"
    return f"{counted(len(topics), 'topic')} with {len(partitions)} partitions {verb} created"


def _with_created_topics(rows: Sequence[Row]) -> Iterator[Line]:
    """Replace the events that create topics, and the folds between them, with one line."""
    places = [
        place
        for place, row in enumerate(rows)
        if isinstance(row, ShownRow) and row.mark is None and row.event.creates_partition
    ]
    summary = created_topics(row.event for row in rows if isinstance(row, ShownRow) and row.mark is None)
    if summary is None:
        yield from rows
        return
    first, last, hidden = places[0], places[-1], frozenset(places)
    for place, row in enumerate(rows):
        if place == first and isinstance(row, ShownRow):
            yield CreatedTopics(first=row.event, summary=summary)
        elif place not in hidden and not (first < place < last and isinstance(row, FoldedRow)):
            yield row


def selected_rows(story: TraceStory, texts: Mapping[int, str], window: Window) -> list[Row]:
    """Return rows only for the events at the positions in *texts*, with these texts."""
    return [
        ShownRow(event=event, text=texts[event.position])
        for event in story.events
        if event.position in texts and window.has(event)
    ]


def rows_around(
    story: TraceStory, finding: NumberedFinding, window: Window, *, everything: bool = False
) -> list[Row]:
    """Return the events of a finding's chain and those around it.

    The events of the chain are marked, and their texts say why they matter for the finding.
    """
    marked = _marked(story, finding)
    if not marked:
        return whole_story(story, window, everything=everything)
    notable = _notable_filter(story, finding)
    notable_positions = [
        event.position
        for event in story.events
        if notable(event)
        and event.narration.topic is not INVARIANT
        and event.partition in (None, finding.finding.partition)
    ]
    begin, end = bisect_left(notable_positions, min(marked)), bisect_right(notable_positions, max(marked))
    chosen = {*notable_positions[max(0, begin - _AROUND) : end + _AROUND], *marked}
    events = story.events[min(chosen) : max(chosen) + 1]
    rows = [_shown(event, marked) for event in events if window.has(event)]
    _insert_links(story, finding, rows, marked, window)
    if everything:
        return list(rows)
    return list(_fold(rows, lambda row: row.mark is not None or row.event.position in chosen))


def _insert_links(
    story: TraceStory,
    finding: NumberedFinding,
    rows: list[ShownRow],
    marked: Mapping[int, tuple[int, Link]],
    window: Window,
) -> None:
    """Insert a row, at its time, for each link that has no event of its own."""
    numbers = {number for number, _ in marked.values()}
    insert_at = 0
    for number, link in enumerate(finding.timed(), 1):
        if number in numbers:
            places = [place for place, row in enumerate(rows) if row.mark == number]
            insert_at = places[0] + 1 if places else insert_at
            continue
        event = story.stand_in(link)
        if not window.has(event):
            continue
        while insert_at < len(rows) and rows[insert_at].event.at_us < event.at_us:
            insert_at += 1
        rows.insert(insert_at, ShownRow(event=event, text=event.narration.text, mark=number))
        insert_at += 1


def _marked(story: TraceStory, finding: NumberedFinding) -> dict[int, tuple[int, Link]]:
    """Return the links of a chain with their numbers, by the position of the link's event."""
    pairs = zip(finding.finding.chain, story.places.positions(finding.finding), strict=True)
    timed = enumerate(((link, position) for link, position in pairs if link.at_us is not None), 1)
    marked: dict[int, tuple[int, Link]] = {}
    for number, (link, position) in timed:
        if position is not None:
            marked.setdefault(position, (number, link))
    return marked


def _notable_filter(
    story: TraceStory, finding: NumberedFinding | None = None
) -> Callable[[StoryEvent], bool]:
    """Return a function that tells whether an event gets a line of its own.

    Without *finding*, the records of the story's first findings matter.
    """
    traffic = sum(_is_traffic(event) and not event.narration.routine for event in story.events)
    findings = story.findings[:_FINDINGS_SHOWN] if finding is None else (finding,)
    values = {finding.value for finding in findings if finding.value is not None}
    finding_offsets = {
        (finding.finding.partition, finding.finding.offset)
        for finding in findings
        if finding.finding.offset is not None and finding.value is not None
    }
    is_short = traffic <= TRAFFIC_MAX

    def notable(event: StoryEvent) -> bool:
        if event.narration.routine:
            return False
        if is_short or not _is_traffic(event):
            return True
        return not values.isdisjoint(event.values) or _moves_hw_across(event, finding_offsets)

    return notable


def _is_traffic(event: StoryEvent) -> bool:
    return event.narration.topic.is_traffic or isinstance(event.source, MessageRuleApplied)


def _moves_hw_across(event: StoryEvent, finding_offsets: Iterable[tuple[str, int]]) -> bool:
    """Return whether a high watermark passes one of these offsets, up or down."""
    if not isinstance(event.source, HighWatermarkSet):
        return False
    low, high = sorted((event.hw_before or 0, event.source.hw))
    return any(partition == event.partition and low <= offset < high for partition, offset in finding_offsets)


def _fold(rows: Iterable[ShownRow], is_shown: Callable[[ShownRow], bool]) -> Iterator[Row]:
    for is_kept, group in groupby(rows, is_shown):
        if is_kept:
            yield from group
        else:
            events = [row.event for row in group]
            counts = Counter(event.event for event in events)
            yield FoldedRow(first=events[0], last=events[-1], counts=counts)


def _shown(event: StoryEvent, marked: Mapping[int, tuple[int, Link]] | None = None) -> ShownRow:
    if marked is None or event.position not in marked:
        return ShownRow(event=event, text=event.narration.text)
    number, link = marked[event.position]
    return ShownRow(event=event, text=in_lane(link, event.narration.lane), mark=number)
