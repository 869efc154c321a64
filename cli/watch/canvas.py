"""The terminal area of a live view, and functions that fit a line into it."""

from typing import Final

from rich.cells import cell_len, set_cell_size
from rich.console import Console

from harrow.cli.console import is_unicode
from harrow.cli.render.layout import DIM
from harrow.cli.text import Text
from harrow.cluster_model.lazy_dataclass import dataclass

BAD: Final = "bold red"
WARNED: Final = "yellow"
GOOD: Final = "green"
PAUSED: Final = "magenta"
HEADING: Final = "bold"
"""Colours of a live view. Words or signs also say what each colour means."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Canvas:
    """The columns and lines of a terminal, and whether it can show more than ASCII."""

    width: int
    height: int
    is_unicode: bool = True

    @property
    def truncation_sign(self) -> str:
        """The sign at the end of a truncated text."""
        return "…" if self.is_unicode else "~"


def canvas_of(console: Console) -> Canvas:
    """Return the current size of a console, which the user may resize at any time."""
    width, height = console.size
    return Canvas(width=width, height=height, is_unicode=is_unicode(console))


def fitted(line: Text, canvas: Canvas) -> Text:
    """Return a line that fits one line of the terminal, with a sign if it is truncated."""
    line.no_wrap = True
    if line.cell_len > canvas.width:
        line.truncate(max(0, canvas.width - 1))
        line.append(canvas.truncation_sign, DIM)
    return line


def shortened(text: str, room: int, canvas: Canvas) -> str:
    """Return a text no wider than *room*, with a sign if it is truncated."""
    if cell_len(text) <= room:
        return text
    return f"{set_cell_size(text, max(0, room - 1))}{canvas.truncation_sign}"


def bar(fraction: float, canvas: Canvas) -> Text:
    """Return a progress bar that is as wide as the canvas, with *fraction* of it filled."""
    done = round(max(0.0, min(1.0, fraction)) * canvas.width)
    full, empty = ("━", "─") if canvas.is_unicode else ("=", "-")
    return Text.assemble((full * done, GOOD), (empty * (canvas.width - done), DIM))
