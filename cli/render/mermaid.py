"""A story as a Mermaid sequence diagram."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from harrow.campaigns.story.trace_selection import Folded, Row, Shown
from harrow.campaigns.story.trace_story import TraceStory
from harrow.checks.causes.story import seconds
from harrow.cluster_model.events import BatchAcknowledged, BatchAppended, BatchReplicated

TEXT_MAX: Final = 50_000
"""The longest diagram that Mermaid draws by default (``maxTextSize``)."""

_INBOUND: Final = (BatchAppended, BatchReplicated)
"""Events of the actor that receives something from the other."""
_MARKED: Final = "rect rgba(255, 170, 0, 0.25)"
_ESCAPED: Final = re.compile(r"[^\w .,:()=/\[\]+-]|\bend\b", re.IGNORECASE)


def mermaid(story: TraceStory, rows: Sequence[Row]) -> str:
    """Return the source of a diagram, with the links of the selected chain on coloured ground."""
    return "".join(f"{line}\n" for line in _lines(story, rows))


def escaped(text: str) -> str:
    """Return text with the syntax of Mermaid as character codes."""
    return _ESCAPED.sub(lambda match: "".join(f"#{ord(char)};" for char in match[0]), text)


def _lines(story: TraceStory, rows: Sequence[Row]) -> Iterator[str]:
    used = {
        lane
        for row in rows
        if isinstance(row, Shown)
        for lane in (row.event.narration.lane, row.event.narration.to)
    }
    names = {lane: f"L{number}" for number, lane in enumerate(story.lanes) if lane in used}
    yield "sequenceDiagram"
    for lane, name in names.items():
        yield f"    participant {name} as {escaped(lane)}"
    participants = list(names.values())
    for row in rows:
        if isinstance(row, Folded):
            if participants:
                # A note spans one actor, or two and all between them.
                over = ",".join(dict.fromkeys((participants[0], participants[-1])))
                yield f"    Note over {over}: {escaped(row.text())}"
        elif row.mark is None:
            yield f"    {_step(row, names)}"
        else:
            yield f"    {_MARKED}"
            yield f"        {_step(row, names)}"
            yield "    end"


def _step(row: Shown, names: dict[str, str]) -> str:
    narration = row.event.narration
    text = escaped(f"{seconds(row.event.at_us)} {row.text}")
    own = names[narration.lane]
    if narration.to is None or narration.to == narration.lane:
        return f"Note over {own}: {text}"
    other = names[narration.to]
    if isinstance(row.event.source, _INBOUND):
        return f"{other}->>{own}: {text}"
    arrow = "-->>" if isinstance(row.event.source, BatchAcknowledged) else "->>"
    return f"{own}{arrow}{other}: {text}"
