"""The JSON of a story: what `harrow trace --format json` prints."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from campaigns.numbered_findings import NumberedFinding, said
from campaigns.trace_record import RecordStory
from campaigns.trace_selection import Folded, Row
from campaigns.trace_story import StoryEvent, TraceStory
from campaigns.version import VERSION

SCHEMA: Final = "harrow.trace/1"
_US_PER_MS: Final = 1_000


def trace_document(
    story: TraceStory, rows: Sequence[Row], record: RecordStory | None = None
) -> dict[str, Any]:
    """Return a story as JSON has it; what is folded is in ``folded``."""
    return {
        "schema": SCHEMA,
        "version": VERSION,
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


def milliseconds(time_us: int) -> int | float:
    """Return a time as JSON has it."""
    return time_us // _US_PER_MS if time_us % _US_PER_MS == 0 else time_us / _US_PER_MS


def finding_as_mapping(story: TraceStory, numbered: NumberedFinding) -> dict[str, Any]:
    """Return a finding with the position of the event of each link, None where it has none."""
    finding = numbered.finding
    return {
        "number": numbered.number,
        "rule": numbered.rule,
        "partition": finding.partition,
        "offset": finding.offset,
        "value": numbered.value,
        "judged": numbered.judged(),
        "prevented_by": list(finding.prevented_by),
        "chain": [
            {
                "event": link.event,
                "at_ms": None if link.at_us is None else milliseconds(link.at_us),
                "text": said(link),
                "position": position,
            }
            for link, position in zip(finding.chain, story.positions_of(numbered), strict=True)
        ],
    }


def _row(row: Row) -> dict[str, Any]:
    if isinstance(row, Folded):
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
        # Lines of trace.jsonl count from 1; what only the history tells has none.
        "line": None if event.of_client else event.line + 1,
        "at_ms": milliseconds(event.at_us),
        "lane": event.told.lane,
        "to": event.told.to,
        "kind": event.told.kind,
        "event": event.event,
        "partition": event.partition,
        "values": list(event.values),
        "fields": dict(event.fields),
    }
