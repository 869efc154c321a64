"""The catalogues for people."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from cli.catalogue import Entry
from cli.layout import DIM, indented

_WIDTH_MIN: Final = 40
"""The least width in which a text is readable beside other columns."""


def listing(entries: Sequence[Entry], width: int) -> Iterator[RenderableType]:
    """Yield a catalogue: a table, or in a narrow terminal an entry below the other."""
    before_last = 2 + max((len(entry.name) for entry in entries), default=0)
    for column, (heading, _) in enumerate(entries[0].columns if entries else ()):
        before_last += 2 + max(len(heading), *(len(entry.columns[column][1]) for entry in entries))
    if width - before_last >= _WIDTH_MIN:
        yield _table(entries)
    else:
        for entry in entries:
            yield from _stacked(entry)


def _table(entries: Sequence[Entry]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style=DIM)
    # A name that is broken over two lines cannot be copied.
    table.add_column("name", no_wrap=True, style="bold")
    for heading, _ in entries[0].columns if entries else ():
        table.add_column(heading, no_wrap=True)
    table.add_column("what it is", overflow="fold")
    for entry in entries:
        table.add_row(entry.name, *(value for _, value in entry.columns), _first_sentence(entry.summary))
    return table


def _stacked(entry: Entry) -> Iterator[RenderableType]:
    columns = "; ".join(f"{heading} {value}" for heading, value in entry.columns if value)
    yield Text.assemble((entry.name, "bold"), (f"  {columns}" if columns else "", DIM))
    yield indented(Text(_first_sentence(entry.summary)), 4)


def _first_sentence(text: str) -> str:
    """Return the first sentence: a list is for finding, `harrow explain` has the rest."""
    return re.split(r"(?<=[a-z0-9)]\.)\s+(?=[A-Z])", text, maxsplit=1)[0]


def explanation(entry: Entry) -> Iterator[RenderableType]:
    """Yield what there is to say about one entry."""
    yield Text.assemble((entry.name, "bold"), (f"  {entry.kind}", DIM))
    yield indented(Text(entry.summary), 2)
    if entry.about:
        yield Text()
        yield indented(Text(entry.about), 2)
    for part in entry.parts:
        yield Text()
        yield indented(Text(part.heading, DIM), 2)
        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_column(no_wrap=True, style="bold")
        table.add_column(overflow="fold")
        for term, meaning in part.items:
            table.add_row(term, meaning)
        yield indented(table, 4)
    yield Text()
