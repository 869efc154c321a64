"""The story of a run as one HTML page that needs no network."""

import json
from html import escape
from typing import Any, Final

from harrow.campaigns.story.trace_page_data import page_data
from harrow.campaigns.story.trace_selection import Window
from harrow.campaigns.story.trace_story import TraceStory
from harrow.cli.page.frame import filled, page, resource
from harrow.cli.page.markup import Markup

_IN_SCRIPT: Final = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\x7f": "\\u007f"}
"""JSON escapes for characters that could end a script or begin a comment in it, and for DEL.

DEL is the only control character that JSON leaves unescaped. `harrow.cli.output_stream` would
replace it with an escape that is not JSON.
"""


def trace_page(story: TraceStory, window: Window) -> str:
    """Return the page of a story, with only the events in *window*."""
    parts = {
        "title": escape(story.name),
        "js": resource("trace.js"),
        "data": embedded(page_data(story, window)),
    }
    return page(story.name, "trace.css", Markup(filled("trace.html", parts)), has_scripts=True)


def embedded(data: Any) -> str:
    """Return data as JSON that is safe inside a script of a page, whatever its values."""
    text = json.dumps(data, separators=(",", ":"))
    for char, code in _IN_SCRIPT.items():
        text = text.replace(char, code)
    return text
