"""Renders a story as a Mermaid sequence diagram."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from harrow.campaigns.story.trace_selection import Line, ShownRow
from harrow.campaigns.story.trace_story import TraceStory
from harrow.checks.causes.story import seconds
from harrow.cluster_model.events import BatchAcknowledged, BatchAppended, BatchReplicated

TEXT_MAX: Final = 50_000
"""The longest diagram that Mermaid draws by default (``maxTextSize``)."""

_INBOUND: Final = (BatchAppended, BatchReplicated)
"""Events that happen on the receiver of records. Their arrows point to the event's own lane."""
_HIGHLIGHT: Final = "rect rgba(255, 170, 0, 0.25)"
_SYNTAX: Final = re.compile(r"[^\w .,:()=/\[\]+-]|\bend\b", re.IGNORECASE)


def mermaid(story: TraceStory, rows: Sequence[Line]) -> str:
    """Return the source of a diagram. Each link of the selected chain is in a coloured box."""
    return "".join(f"{line}\n" for line in _lines(story, rows))


def escaped(text: str) -> str:
    """Return a text in which Mermaid's syntax is replaced with character codes."""
    return _SYNTAX.sub(lambda match: "".join(f"#{ord(char)};" for char in match[0]), text)


def _lines(story: TraceStory, rows: Sequence[Line]) -> Iterator[str]:
    used = {
        lane
        for row in rows
        if isinstance(row, ShownRow)
        for lane in (row.event.narration.lane, row.event.narration.to)
    }
    names = {lane: f"L{number}" for number, lane in enumerate(story.lanes) if lane in used}
    yield "sequenceDiagram"
    for lane, name in names.items():
        yield f"    participant {name} as {escaped(lane)}"
    participants = list(names.values())
    for row in rows:
        if not isinstance(row, ShownRow):
            if participants:
                # A note is over one actor, or spans two actors and all those between them.
                over = ",".join(dict.fromkeys((participants[0], participants[-1])))
                yield f"    Note over {over}: {escaped(row.text())}"
        elif row.mark is None:
            yield f"    {_step(row, names)}"
        else:
            yield f"    {_HIGHLIGHT}"
            yield f"        {_step(row, names)}"
            yield "    end"


def _step(row: ShownRow, names: dict[str, str]) -> str:
    narration = row.event.narration
    text = escaped(f"{seconds(row.event.at_us)} {row.text}")
    lane_name = names[narration.lane]
    if narration.to is None or narration.to == narration.lane:
        return f"Note over {lane_name}: {text}"
    other_name = names[narration.to]
    if isinstance(row.event.source, _INBOUND):
        return f"{other_name}->>{lane_name}: {text}"
    arrow = "-->>" if isinstance(row.event.source, BatchAcknowledged) else "->>"
    return f"{lane_name}{arrow}{other_name}: {text}"
