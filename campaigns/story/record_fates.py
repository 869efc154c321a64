"""Lists the findings about a partition's records, and the moments that decided each finding.

Rules judge a run as a whole, so a finding has no time of its own. In a diff, a finding comes about
with the last event of its chain. A diff of an earlier moment lists it as still to come. Only
findings say that a record is lost; this module never concludes that from a log.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from harrow.cluster_model.lazy_dataclass import dataclass, replace

FOLDED_MIN: Final = 4
"""Fewest consecutive records that are written as a range."""
_SHOWN_MAX: Final = 6
"""Most records that are listed one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordMoment:
    """A moment worth looking at, after the event at line ``number`` of ``trace.jsonl``."""

    number: int
    at_us: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordNote:
    """A finding about records of a partition, or about a place in its logs.

    ``kind`` is the fate that its rule declares (`harrow.checks.rule.Rule`). ``at_us`` is the time
    of the last event in its chain, and ``has_come_about`` tells whether the diff's moment is after
    this event. ``places`` are the offsets that the finding lists in its details, if any.
    ``replacements`` are, for lost records, the records that are at their offsets at the diff's
    moment, in the log from which consumers read.
    """

    finding: NumberedFinding
    kind: str
    at_us: int
    has_come_about: bool
    places: tuple[int, ...] = ()
    replacements: tuple[LogEntry, ...] = ()
    moments: tuple[RecordMoment, ...] = ()

    @property
    def values(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.finding.values))

    @property
    def offset(self) -> int | None:
        return self.finding.finding.offset

    @property
    def offsets(self) -> list[int]:
        """The offsets of the records, in order. A record that is stored twice has several."""
        if self.kind == DOUBLED and len(self.values) == 1 and self.places:
            return list(self.places)
        offsets = {finding.offset for finding in self.finding.incident.findings}
        return sorted(offset for offset in offsets if offset is not None)

    @property
    def chain(self) -> Sequence[Link]:
        return self.finding.finding.chain

    def subject(self) -> str:
        """Return the records and their offsets, such as ``m1, offset 1``.

        Many records are shortened to ranges: ``m0..m279, offsets 0..279 (280)``.
        """
        offsets = self.offsets
        words = [_values_text(self.values, offsets)] if self.values else []
        if len(offsets) > 1:
            count = f" ({len(offsets)})" if len(offsets) >= FOLDED_MIN else ""
            words.append(f"offsets {_ranges_text(offsets)}{count}")
        elif offsets:
            words.append(f"offset {offsets[0]}")
        return ", ".join(words)

    def head(self) -> str:
        """Return the subject, its replacements, and the verdict."""
        replacements = ""
        if self.replacements:
            values = _values_text(
                [entry.value for entry in self.replacements], [e.offset for e in self.replacements]
            )
            epochs = sorted({entry.leader_epoch for entry in self.replacements})
            epochs_text = f"epoch {epochs[0]}" if len(epochs) == 1 else f"epochs {_ranges_text(epochs)}"
            replacements = f", replaced by {values} ({epochs_text})"
        return f"{self.subject()}{replacements}: {self.finding.judged()}"


def record_notes(story: TraceStory, state: RunState) -> Mapping[str, list[RecordNote]]:
    """Return the findings about records by partition, in the order of the story.

    *state* is the run at the moment of the diff.
    """
    notes: dict[str, list[RecordNote]] = {}
    for finding in story.findings:
        rule, judged = RULES.get(finding.rule), finding.finding
        if rule is None or not rule.fate:
            continue
        position = story.places.last_position(judged)
        note = RecordNote(
            finding=finding,
            kind=rule.fate,
            at_us=story.run.events[position][0] if story.run.events else 0,
            has_come_about=position < state.event_count,
            places=tuple(dict(judged.details).get("offsets", ())),
            moments=tuple(moments_of(story, finding)),
        )
        if note.kind == LOST and note.has_come_about:
            note = replace(note, replacements=_replacements(note, state.partition(judged.partition)))
        notes.setdefault(judged.partition, []).append(note)
    return notes


def lost_values(notes: Mapping[str, Sequence[RecordNote]]) -> Mapping[str, Sequence[str]]:
    """Return, by partition, the records that were lost up to the moment of the diff."""
    return {
        name: [
            value
            for note in notes_of_partition
            if note.kind == LOST and note.has_come_about
            for value in note.values
        ]
        for name, notes_of_partition in notes.items()
    }


def _replacements(note: RecordNote, partition: PartitionState) -> tuple[LogEntry, ...]:
    """Return the records at the offsets of lost ones.

    They come from the leader's log or, without a leader, from the longest log.
    """
    replicas = partition.replicas
    replica = replicas.get(partition.leader) or max(replicas.values(), key=attrgetter("leo"), default=None)
    replacements = [] if replica is None else [replica.entry(offset) for offset in note.offsets]
    return tuple(entry for entry in replacements if entry is not None and entry.value not in note.values)


def moments_of(story: TraceStory, finding: NumberedFinding) -> Iterator[RecordMoment]:
    """Yield the moments before the events that decided a finding.

    If none is known to have decided it, yield the moment before the last event of its chain.
    """
    chain = finding.finding.chain
    pairs = [
        (link, position)
        for link, position in zip(chain, story.places.positions(finding.finding), strict=True)
        if position is not None
    ]
    for link, position in [pair for pair in pairs if pair[0].decides] or pairs[-1:]:
        at_us, name = story.run.events[position][:2]
        number = story.run.numbers[position] - (name not in HISTORY_EVENTS)
        if number > 0:
            yield RecordMoment(number=number, at_us=at_us, text=f"before {printable(sentence(link))}")


def _values_text(values: Sequence[str], offsets: Sequence[int]) -> str:
    """Return records as text. Many records with consecutive offsets become a range."""
    is_consecutive = bool(offsets) and offsets[-1] - offsets[0] + 1 == len(offsets) == len(values)
    if is_consecutive and len(values) >= FOLDED_MIN:
        return f"{printable(values[0])}..{printable(values[-1])}"
    return shortlist(values, _SHOWN_MAX)


def _ranges_text(numbers: Iterable[int]) -> str:
    """Return ascending numbers as ranges, such as ``0..279, 300``."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and ranges[-1][-1] == number - 1:
            ranges[-1][1:] = [number]
        else:
            ranges.append([number])
    return ", ".join("..".join(map(str, bounds)) for bounds in ranges)
