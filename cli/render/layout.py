"""The colours, signs, margins and tables that all commands share."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal

from rich.console import Console, RenderableType
from rich.padding import Padding

from harrow.campaigns.language.spelling import counted, shortlist
from harrow.campaigns.story import topics
from harrow.checks.finding import HELD, INCONCLUSIVE, PERMITTED, SKIPPED, VIOLATED
from harrow.cli.console import is_unicode
from harrow.cli.text import Text

if TYPE_CHECKING:
    from rich.table import Table

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
"""The colour of each status."""

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
"""The colour of the events of each story topic."""

MARKS: Final = {HELD: "✓", PERMITTED: "~", VIOLATED: "✗", INCONCLUSIVE: "?", SKIPPED: "-"}
"""The sign of each status, so that colour is never alone."""

_ASCII_MARKS: Final = {HELD: "+", PERMITTED: "~", VIOLATED: "x", INCONCLUSIVE: "?", SKIPPED: "-"}
INDENT: Final = 6
_PROBES_SHOWN: Final = 3


def marks(console: Console) -> Mapping[str, str]:
    """Return, for each status, a sign that the console can show."""
    return MARKS if is_unicode(console) else _ASCII_MARKS


def indented(renderable: RenderableType | str, left: int = INDENT, style: str = "") -> Padding:
    """Return a renderable with a left margin on every line, including wrapped lines."""
    shown = Text(renderable, style) if isinstance(renderable, str) else renderable
    return Padding(shown, (0, 0, 0, left), expand=False)


def columns(
    *heads: str | Text, rows: Iterable[Iterable[RenderableType]] = (), header_style: str = DIM
) -> "Table":
    """Return a table without borders, and without a header if no column has a heading."""
    from rich.table import Table

    table = Table(
        box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style=header_style, show_header=any(heads)
    )
    for head in heads:
        # Rich measures an empty column as 0 wide but renders it 1 wide, and folds another column.
        table.add_column(head, overflow="fold", min_width=1)
    for row in rows:
        table.add_row(*row)
    return table


def terms(
    rows: Iterable[Iterable[RenderableType]] = (),
    *,
    style: str = "",
    gap: int = 2,
    justify: Literal["left", "right"] = "left",
    columns_before: int = 1,
) -> "Table":
    """Return a grid of *columns_before* columns and a last column. Only the last one wraps."""
    from rich.table import Table

    table = Table.grid(padding=(0, gap, 0, 0))
    for _ in range(columns_before):
        table.add_column(no_wrap=True, style=style, justify=justify)
    table.add_column(overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


def hidden_items(
    count: int, shown_max: int, noun: str = "", *, hint: str = "--format json shows all", left: int = 2
) -> Iterator[Padding]:
    """Yield a line that counts the items beyond *shown_max*, if there are any."""
    if count > shown_max:
        items = counted(count - shown_max, noun) if noun else str(count - shown_max)
        yield indented(f"and {items} more{f'; {hint}' if hint else ''}", left, DIM)


def unreached_states(probes: Sequence[str], *, verbose: bool) -> Text:
    """Return a line about the rare states that no run reached. *verbose* names all of them."""
    shown_max = len(probes) if verbose else _PROBES_SHOWN
    hint = " (--verbose lists all)" if len(probes) > shown_max else ""
    return Text(f"rare states never reached: {shortlist(probes, shown_max)}{hint}", DIM)
