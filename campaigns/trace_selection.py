"""Which events of a story are shown one by one, and which are folded and only counted."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from campaigns.numbered_findings import NumberedFinding, said
from campaigns.spelling import counted
from campaigns.trace_story import StoryEvent, TraceStory, without_actor
from checks.finding import Link

TRAFFIC_MAX: Final = 300
"""Of a run with more records sent, copied, acked and read than this, they are folded too."""

_TRAFFIC_KINDS: Final = frozenset({"log", "hw", "ack", "send", "read", "request"})
_MESSAGES: Final = frozenset({"message_rule"})
_AROUND: Final = 3
"""How many events before a chain and after it are shown."""
_FOLDED_MIN: Final = 8
"""How many events in a row are worth a line that says that they are not shown."""
_FINDINGS_SHOWN: Final = 3
"""Of how many findings the records are shown in a long story."""

_NOUNS: Final = {
    "acknowledged": "ack",
    "append": "append",
    "broker_registered": "registration",
    "broker_started": "start",
    "checkpoint": "checkpoint",
    "client_ended": "ended send",
    "client_polled": "read",
    "client_sent": "send",
    "duplicate_batch": "suppressed duplicate",
    "fetch": "fetch",
    "fetch_expired": "expired fetch",
    "fetch_waits": "waiting fetch",
    "flush": "flush",
    "follower": "new follower",
    "hw": "HW move",
    "invariant_broken": "broken invariant",
    "isr": "ISR change",
    "isr_written": "written ISR",
    "message_rule": "touched message",
    "recover": "opened log",
    "rejected": "refusal",
    "replicate": "copy",
    "send_failed": "failed request",
    "sent_again": "retry",
    "served": "answer to a consumer",
}
_OF_FETCHES: Final = frozenset({"fetch_waits", "fetch_expired"})
"""What becomes of a fetch that finds nothing new."""
_PLURALS: Final = {
    "answer to a consumer": "answers to consumers",
    "copy": "copies",
    "fetch": "fetches",
    "flush": "flushes",
    "expired fetch": "expired fetches",
    "retry": "retries",
    "waiting fetch": "waiting fetches",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """An event that is shown. ``mark`` is the number of its link, from 1, in the chain that is looked at.

    ``text`` is what is said of it: the link's words where there are any.
    """

    event: StoryEvent
    text: str
    mark: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    """Events in a row that are only counted, by name: all that stands between the rows before and after."""

    first: StoryEvent
    last: StoryEvent
    counts: Counter[str]

    @property
    def is_short(self) -> bool:
        """Whether there are too few for a line that says that they are not shown."""
        return self.counts.total() < _FOLDED_MIN

    def text(self) -> str:
        """Return how many there are of what, the most frequent first."""
        counts = {name: count for name, count in self.counts.items() if name not in _OF_FETCHES}
        ordered = sorted((counts or self.counts).items(), key=lambda entry: (-entry[1], entry[0]))
        return ", ".join(_counted(count, name) for name, count in ordered)


Row = Shown | Folded


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The times between which events are shown, both included; None is no limit."""

    from_us: int | None = None
    to_us: int | None = None

    def has(self, event: StoryEvent) -> bool:
        """Return whether an event is within."""
        return (self.from_us is None or event.at_us >= self.from_us) and (
            self.to_us is None or event.at_us <= self.to_us
        )


def whole(story: TraceStory, window: Window, *, everything: bool = False) -> list[Row]:
    """Return the whole story; what is routine is folded unless *everything* is wanted."""
    if everything:
        return [_shown(event) for event in story.events if window.has(event)]
    is_shown = _notable(story)
    return list(_fold(map(_shown, filter(window.has, story.events)), lambda row: is_shown(row.event)))


def readable(rows: Sequence[Row]) -> list[Row]:
    """Return the rows that people read: without short folds, unless there is nothing else."""
    return [row for row in rows if isinstance(row, Shown) or not row.is_short] or list(rows)


def only(story: TraceStory, texts: Mapping[int, str], window: Window) -> list[Row]:
    """Return the events at some positions with these texts; those between them are not even counted."""
    return [
        Shown(event=event, text=texts[event.position])
        for event in story.events
        if event.position in texts and window.has(event)
    ]


def around(
    story: TraceStory, finding: NumberedFinding, window: Window, *, everything: bool = False
) -> list[Row]:
    """Return the events around a finding's chain; its links are marked and say why they matter."""
    marked = _marked(story, finding)
    if not marked:
        return whole(story, window, everything=everything)
    notable = _notable(story, finding)
    beside = [
        event.position
        for event in story.events
        if notable(event)
        and event.told.kind != "invariant"
        and event.partition in (None, finding.finding.partition)
    ]
    begin, end = min(marked), max(marked)
    before = [position for position in beside if position < begin][-_AROUND:]
    after = [position for position in beside if position > end][:_AROUND]
    chosen = {*before, *(position for position in beside if begin <= position <= end), *after, *marked}
    first, last = min(chosen), max(chosen)
    events = [event for event in story.events[first : last + 1] if window.has(event)]
    rows = [_shown(event, marked) for event in events]
    _put_the_rest(story, finding, rows, marked, window)
    if everything:
        return list(rows)
    return list(_fold(rows, lambda row: row.mark is not None or row.event.position in chosen))


def _put_the_rest(
    story: TraceStory,
    finding: NumberedFinding,
    rows: list[Shown],
    marked: Mapping[int, tuple[int, Link]],
    window: Window,
) -> None:
    """Put the links among the rows that are about no event of their own."""
    told = {number for number, _ in marked.values()}
    after = 0
    for number, link in enumerate(finding.timed(), 1):
        if number in told:
            places = [place for place, row in enumerate(rows) if row.mark == number]
            after = places[0] + 1 if places else after
            continue
        event = story.stand_in(link)
        if not window.has(event):
            continue
        while after < len(rows) and rows[after].event.at_us < event.at_us:
            after += 1
        rows.insert(after, Shown(event=event, text=event.told.text, mark=number))
        after += 1


def _marked(story: TraceStory, finding: NumberedFinding) -> dict[int, tuple[int, Link]]:
    """Return the links of a chain, with their numbers, by the position of their events."""
    marked: dict[int, tuple[int, Link]] = {}
    timed = [
        (link, position)
        for link, position in zip(finding.finding.chain, story.positions_of(finding), strict=True)
        if link.at_us is not None
    ]
    for number, (link, position) in enumerate(timed, 1):
        if position is not None:
            marked.setdefault(position, (number, link))
    return marked


def _notable(story: TraceStory, finding: NumberedFinding | None = None) -> Callable[[StoryEvent], bool]:
    """Return what tells the events that are worth a line of their own."""
    traffic = sum(1 for event in story.events if _is_traffic(event) and not event.told.routine)
    findings = story.findings[:_FINDINGS_SHOWN] if finding is None else (finding,)
    values = {finding.value for finding in findings if finding.value is not None}
    heights = {
        (finding.finding.partition, finding.finding.offset)
        for finding in findings
        if finding.finding.offset is not None and finding.value is not None
    }
    is_short = traffic <= TRAFFIC_MAX

    def notable(event: StoryEvent) -> bool:
        if event.told.routine:
            return False
        if is_short or not _is_traffic(event):
            return True
        return not values.isdisjoint(event.values) or _crosses(event, heights)

    return notable


def _is_traffic(event: StoryEvent) -> bool:
    return event.told.kind in _TRAFFIC_KINDS or event.event in _MESSAGES


def _crosses(event: StoryEvent, heights: Iterable[tuple[str, int]]) -> bool:
    """Return whether a high watermark passes one of some offsets, up or down."""
    if event.event != "hw":
        return False
    before, now = event.told.moved or (0, 0)
    low, high = sorted((before, now))
    return any(partition == event.partition and low <= offset < high for partition, offset in heights)


def _fold(rows: Iterable[Shown], is_shown: Callable[[Shown], bool]) -> Iterator[Row]:
    for is_kept, group in groupby(rows, is_shown):
        if is_kept:
            yield from group
        else:
            yield _folded([row.event for row in group])


def _folded(events: Sequence[StoryEvent]) -> Folded:
    return Folded(first=events[0], last=events[-1], counts=Counter(event.event for event in events))


def _shown(event: StoryEvent, marked: Mapping[int, tuple[int, Link]] | None = None) -> Shown:
    if marked is None or event.position not in marked:
        return Shown(event=event, text=event.told.text)
    number, link = marked[event.position]
    return Shown(event=event, text=without_actor(said(link), event.told.lane), mark=number)


def _counted(count: int, name: str) -> str:
    noun = _NOUNS.get(name, name.replace("_", " "))
    return f"{count} {_PLURALS.get(noun, noun + 's')}" if count != 1 else counted(1, noun)
