"""How output looks, the same in all commands: colours, signs, margins, tables."""

from collections.abc import Mapping
from typing import Final, Literal

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table

from harrow.campaigns.story import topics
from harrow.checks.finding import HELD, INCONCLUSIVE, PERMITTED, SKIPPED, VIOLATED
from harrow.cli.console import is_unicode
from harrow.cli.text import Text

DIM: Final = "dim"
FAILED: Final = "bold red"
UNDECIDED: Final = "bold magenta"
STYLES: Final = {
    HELD: "green",
    PERMITTED: "cyan",
    VIOLATED: "yellow",
    INCONCLUSIVE: "magenta",
    SKIPPED: "dim",
}
"""Colours by status."""

EVENT_STYLES: Final = {
    topics.ACK: "green",
    topics.CONTROLLER: "yellow",
    topics.ELECTION: "yellow",
    topics.EPOCH: "cyan",
    topics.FAULT: "red",
    topics.HW: "blue",
    topics.INVARIANT: "red",
    topics.ISR: "magenta",
    topics.PROCESS: "bold",
    topics.TRUNCATION: "bold red",
}
"""Colours by topic."""

_MARKS: Final = {HELD: "✓", PERMITTED: "~", VIOLATED: "✗", INCONCLUSIVE: "?", SKIPPED: "-"}
_ASCII_MARKS: Final = {HELD: "+", PERMITTED: "~", VIOLATED: "x", INCONCLUSIVE: "?", SKIPPED: "-"}
INDENT: Final = 6


def marks(console: Console) -> Mapping[str, str]:
    """Return the sign of each status, as far as a console can show it."""
    return _MARKS if is_unicode(console) else _ASCII_MARKS


def indented(renderable: RenderableType | str, left: int = INDENT, style: str = "") -> Padding:
    """Return something moved to the right; its own lines break there too."""
    shown = Text(renderable, style) if isinstance(renderable, str) else renderable
    return Padding(shown, (0, 0, 0, left), expand=False)


def columns(*heads: str | Text, header_style: str = DIM) -> Table:
    """Return a table without lines, and without a header where no column has a head."""
    table = Table(
        box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style=header_style, show_header=any(heads)
    )
    for head in heads:
        # Rich gives a column in which nothing stands a width of 1, and does not count that when it asks how wide
        # the table is: another column would be folded for it.
        table.add_column(head, overflow="fold", min_width=1)
    return table


def terms(
    *, style: str = "", gap: int = 2, justify: Literal["left", "right"] = "left", before: int = 1
) -> Table:
    """Return a grid whose first columns, *before* the last, stay whole, and whose last breaks its lines."""
    table = Table.grid(padding=(0, gap, 0, 0))
    for _ in range(before):
        table.add_column(no_wrap=True, style=style, justify=justify)
    table.add_column(overflow="fold")
    return table
