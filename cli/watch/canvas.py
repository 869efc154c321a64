"""What a live view is drawn on: so many columns and lines, in so many signs, and how a line is made to fit."""

from dataclasses import dataclass
from typing import Final

from rich.cells import cell_len, set_cell_size
from rich.console import Console

from harrow.cli.console import is_unicode
from harrow.cli.render.layout import DIM
from harrow.cli.text import Text

BAD: Final = "bold red"
WARNED: Final = "yellow"
GOOD: Final = "green"
PAUSED: Final = "magenta"
HEADING: Final = "bold"
"""How things look in a live view; each of them is said in words or signs, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Canvas:
    """What there is to draw on: columns, lines, and whether the terminal can show more than ASCII."""

    width: int
    height: int
    is_unicode: bool = True

    @property
    def cut(self) -> str:
        """The sign that something was cut off."""
        return "…" if self.is_unicode else "~"


def canvas_of(console: Console) -> Canvas:
    """Return what a console has to draw on now: its user may change its size at any time."""
    width, height = console.size
    return Canvas(width=width, height=height, is_unicode=is_unicode(console))


def fitted(line: Text, canvas: Canvas) -> Text:
    """Return a line that is one line of the terminal; where some of it is cut off, that can be seen."""
    line.no_wrap = True
    if line.cell_len > canvas.width:
        line.truncate(max(0, canvas.width - 1))
        line.append(canvas.cut, DIM)
    return line


def shortened(text: str, room: int, canvas: Canvas) -> str:
    """Return a text that is no wider than *room*; where some of it is cut off, that can be seen."""
    if cell_len(text) <= room:
        return text
    return f"{set_cell_size(text, max(0, room - 1))}{canvas.cut}"


def bar(share: float, canvas: Canvas) -> Text:
    """Return a bar over the whole width, of which a share is done."""
    done = round(max(0.0, min(1.0, share)) * canvas.width)
    full, empty = ("━", "─") if canvas.is_unicode else ("=", "-")
    return Text.assemble((full * done, GOOD), (empty * (canvas.width - done), DIM))
