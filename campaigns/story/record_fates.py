"""What became of the records of a partition: the findings of the judge, and the moments that decided them.

The rules judge a run as a whole, so a finding has a moment only through its chain: it has come about with the last event of that.
Until then a diff says what is still to come. Nothing here looks at a log to say what is lost.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Final

from harrow.campaigns.language.spelling import printable, shortlist
from harrow.campaigns.record.numbered_findings import NumberedFinding
from harrow.campaigns.record.phrases import sentence
from harrow.campaigns.story.run_state import RunState
from harrow.campaigns.story.trace_story import TraceStory
from harrow.checks.link import Link
from harrow.checks.replay.partition_state import LogEntry, PartitionState
from harrow.checks.rule import DOUBLED, LOST
from harrow.checks.rules.catalogue import RULES
from harrow.cluster_model.events import HISTORY_EVENTS

FOLDED_MIN: Final = 4
"""So many records in a row are told as one range."""
_SHOWN_MAX: Final = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordMoment:
    """A moment worth looking at: after the event with this line of ``trace.jsonl``."""

    number: int
    at_us: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordNote:
    """A finding about records of a partition, or about a place in its logs.

    ``kind`` is the fate that its rule declares (`harrow.checks.rule.Rule`), ``at_us`` when it comes about, ``places`` the offsets
    to look at. ``has_come_about`` says whether that is so at a moment, ``instead`` what stands then at the offsets of lost
    records, in the log that consumers read.
    """

    finding: NumberedFinding
    kind: str
    at_us: int
    has_come_about: bool
    places: tuple[int, ...] = ()
    instead: tuple[LogEntry, ...] = ()
    moments: tuple[RecordMoment, ...] = ()

    @property
    def values(self) -> tuple[str, ...]:
        """The records, each once."""
        return tuple(dict.fromkeys(self.finding.values))

    @property
    def offset(self) -> int | None:
        return self.finding.finding.offset

    @property
    def offsets(self) -> list[int]:
        """The offsets of the records, in order; of a doubled one all."""
        if self.kind == DOUBLED and len(self.values) == 1 and self.places:
            return list(self.places)
        found = {each.offset for each in self.finding.incident.findings}
        return sorted(offset for offset in found if offset is not None)

    @property
    def chain(self) -> Sequence[Link]:
        """How it came about."""
        return self.finding.finding.chain

    def subject(self) -> str:
        """Return the records and their offsets, as in ``m1, offset 1`` or ``m0..m279, offsets 0..279 (280)``."""
        offsets = self.offsets
        words = [_values_text(self.values, offsets)] if self.values else []
        if len(offsets) > 1:
            count = f" ({len(offsets)})" if len(offsets) >= FOLDED_MIN else ""
            words.append(f"offsets {_ranges_text(offsets)}{count}")
        elif offsets:
            words.append(f"offset {offsets[0]}")
        return ", ".join(words)

    def head(self) -> str:
        """Return the subject, what stands in its place, and what the judge says of it."""
        instead = ""
        if self.instead:
            values = _values_text([entry.value for entry in self.instead], [e.offset for e in self.instead])
            epochs = sorted({entry.leader_epoch for entry in self.instead})
            which = f"epoch {epochs[0]}" if len(epochs) == 1 else f"epochs {_ranges_text(epochs)}"
            instead = f", replaced by {values} ({which})"
        return f"{self.subject()}{instead}: {self.finding.judged()}"


def record_notes(story: TraceStory, state: RunState) -> Mapping[str, list[RecordNote]]:
    """Return the findings about records by partition, as they are at a moment: broken promises first."""
    notes: dict[str, list[RecordNote]] = {}
    for finding in story.findings:
        rule, of = RULES.get(finding.rule), finding.finding
        if rule is None or not rule.fate:
            continue
        decided = story.places.decided(of)
        note = RecordNote(
            finding=finding,
            kind=rule.fate,
            at_us=story.run.events[decided][0] if story.run.events else 0,
            has_come_about=decided < state.taken,
            places=tuple(dict(of.details).get("offsets", ())),
            moments=tuple(moments_of(story, finding)),
        )
        if note.kind == LOST and note.has_come_about:
            note = replace(note, instead=_standing_instead(note, state.partition(of.partition)))
        notes.setdefault(of.partition, []).append(note)
    return notes


def lost_values(notes: Mapping[str, Sequence[RecordNote]]) -> Mapping[str, Sequence[str]]:
    """Return the records that are lost by a moment, by partition."""
    return {
        name: [
            value
            for note in of_partition
            if note.kind == LOST and note.has_come_about
            for value in note.values
        ]
        for name, of_partition in notes.items()
    }


def _standing_instead(note: RecordNote, partition: PartitionState) -> tuple[LogEntry, ...]:
    """Return what stands at the offsets of lost records in the leader's log, or in the longest without a leader."""
    replicas = partition.replicas
    replica = replicas.get(partition.leader) or max(replicas.values(), key=attrgetter("leo"), default=None)
    standing = [] if replica is None else [replica.entry(offset) for offset in note.offsets]
    return tuple(entry for entry in standing if entry is not None and entry.value not in note.values)


def moments_of(story: TraceStory, finding: NumberedFinding) -> Iterator[RecordMoment]:
    """Yield the moments right before the events that decided a finding; where none decides, before the last of its chain."""
    chain = finding.finding.chain
    pairs = [
        (link, position)
        for link, position in zip(chain, story.places.of(finding.finding), strict=True)
        if position is not None
    ]
    for link, position in [pair for pair in pairs if pair[0].decides] or pairs[-1:]:
        at_us, name = story.run.events[position][:2]
        number = story.run.numbers[position] - (name not in HISTORY_EVENTS)
        if number > 0:
            yield RecordMoment(number=number, at_us=at_us, text=f"before {printable(sentence(link))}")


def _values_text(values: Sequence[str], offsets: Sequence[int]) -> str:
    """Return records; many of one run of offsets by the first and the last."""
    is_run = bool(offsets) and offsets[-1] - offsets[0] + 1 == len(offsets) == len(values)
    if is_run and len(values) >= FOLDED_MIN:
        return f"{printable(values[0])}..{printable(values[-1])}"
    return shortlist(values, _SHOWN_MAX)


def _ranges_text(numbers: Iterable[int]) -> str:
    """Return rising numbers as ranges, as in ``0..279, 300``."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and ranges[-1][-1] == number - 1:
            ranges[-1][1:] = [number]
        else:
            ranges.append([number])
    return ", ".join("..".join(map(str, each)) for each in ranges)
