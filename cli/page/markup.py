"""HTML that is built from pieces: text from data is escaped before it is joined."""

from html import escape
from typing import Final

from harrow.campaigns.language.spelling import printable
from harrow.cluster_model.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Markup:
    """HTML that needs no escape."""

    html: str


Piece = Markup | str
"""A part of an element. A string is text and is escaped."""

_VOID: Final = frozenset({"br", "col", "wbr"})


def element(name: str, *pieces: Piece, **attributes: str | float | None) -> Markup:
    """Return an element. An attribute that is None is left out.

    An underscore at the end of a name avoids a word of Python, as in ``class_``; another one stands
    for a hyphen.
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(printable(str(value)))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID:
        return Markup(f"<{name}{written}>")
    return Markup(f"<{name}{written}>{joined(*pieces).html}</{name}>")


def joined(*pieces: Piece) -> Markup:
    """Return pieces one after the other."""
    return Markup("".join(_html(piece) for piece in pieces))


def text_lines(text: str) -> Markup:
    """Return a text of several lines, for an element that keeps line breaks."""
    return Markup("\n".join(escape(printable(line)) for line in text.splitlines()))


def _html(piece: Piece) -> str:
    return piece.html if isinstance(piece, Markup) else escape(printable(piece))
