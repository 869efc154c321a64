"""The JSON of a story, as `harrow trace --format json` prints it."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from harrow.campaigns.language.spelling import printable
from harrow.campaigns.language.units import milliseconds
from harrow.campaigns.record.numbered_findings import NumberedFinding
from harrow.campaigns.record.phrases import preventions, sentence
from harrow.campaigns.story.trace_record import RecordStory
from harrow.campaigns.story.trace_selection import FoldedRow, Row
from harrow.campaigns.story.trace_story import StoryEvent, TraceStory
from harrow.campaigns.version import version

SCHEMA: Final = "harrow.trace/1"


def trace_document(
    story: TraceStory, rows: Sequence[Row], record: RecordStory | None = None
) -> dict[str, Any]:
    """Return a story as JSON. A row for folded events counts them by name, as ``folded``."""
    return {
        "schema": SCHEMA,
        "version": version(),
        "run": {
            "campaign": story.recorded.plan.campaign,
            "variant": story.recorded.variant,
            "run_id": story.run_id.rpartition("/")[2],
            "seed": story.recorded.seed,
            "kafka": story.recorded.plan.kafka,
            "verdict": story.recorded.verdict,
            "trace_digest": story.recorded.trace_digest,
        },
        "lanes": list(story.lanes),
        "findings": [finding_as_mapping(story, finding) for finding in story.findings],
        "record": None if record is None else {"value": record.value, "became": list(record.lines)},
        "events": [_row(row) for row in rows],
    }


def finding_as_mapping(story: TraceStory, numbered: NumberedFinding) -> dict[str, Any]:
    """Return a finding with the event position of each link, None for a link without one."""
    finding = numbered.finding
    return {
        "number": numbered.number,
        "rule": numbered.rule,
        "partition": finding.partition,
        "offset": finding.offset,
        "value": numbered.value,
        "values": list(numbered.values),
        "judged": numbered.judged(),
        "prevented_by": list(preventions(finding)),
        "chain": [
            {
                "event": link.event,
                "at_ms": None if link.at_us is None else milliseconds(link.at_us),
                "text": printable(sentence(link)),
                "position": position,
            }
            for link, position in zip(finding.chain, story.places.positions(finding), strict=True)
        ],
    }


def _row(row: Row) -> dict[str, Any]:
    if isinstance(row, FoldedRow):
        first, last = row.first, row.last
        return {
            "folded": dict(row.counts),
            "from_ms": milliseconds(first.at_us),
            "to_ms": milliseconds(last.at_us),
            "positions": [first.position, last.position],
        }
    return {**_event(row.event), "text": row.text, **({} if row.mark is None else {"link": row.mark})}


def _event(event: StoryEvent) -> Mapping[str, Any]:
    return {
        "position": event.position,
        "line": None if event.is_client_event else event.number,
        "at_ms": milliseconds(event.at_us),
        "lane": event.narration.lane,
        "to": event.narration.to,
        "kind": event.narration.topic.name,
        "event": event.event,
        "partition": event.partition,
        "values": list(event.values),
        "fields": dict(event.fields),
    }
