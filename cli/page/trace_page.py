"""The story of a run as one HTML page that loads nothing from anywhere."""

import json
from html import escape
from importlib.resources import files
from typing import Any, Final

from harrow.campaigns.story.trace_page_data import page_data
from harrow.campaigns.story.trace_selection import Window
from harrow.campaigns.story.trace_story import TraceStory
from harrow.campaigns.version import version

_IN_SCRIPT: Final = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\x7f": "\\u007f"}
"""What could end a script or begin a comment in one, and the only control character that JSON leaves as it is.

Output replaces control characters by something that is no JSON (`harrow.cli.output_stream`).
"""


def trace_page(story: TraceStory, window: Window) -> str:
    """Return the page of a story; only the events within *window* are on it."""
    page = files("harrow.cli.page")
    parts = {
        "version": escape(version()),
        "title": escape(story.name),
        "css": page.joinpath("trace.css").read_text(encoding="utf-8"),
        "js": page.joinpath("trace.js").read_text(encoding="utf-8"),
        "data": embedded(page_data(story, window)),
    }
    # In one pass over the template, so that a value that looks like a part is left alone.
    template = page.joinpath("trace.html").read_text(encoding="utf-8").split("{{")
    pieces = [template[0]]
    for piece in template[1:]:
        name, _, rest = piece.partition("}}")
        pieces += [parts[name], rest]
    return "".join(pieces)


def embedded(data: Any) -> str:
    """Return data as JSON that may stand in a script of a page, whatever its values are."""
    text = json.dumps(data, separators=(",", ":"))
    for char, code in _IN_SCRIPT.items():
        text = text.replace(char, code)
    return text
