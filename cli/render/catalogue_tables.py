"""Renders catalogues for people: as a list, or as the explanation of an entry."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table

from harrow.cli.console import unbroken
from harrow.cli.render.catalogue import TRY, CatalogueEntry
from harrow.cli.render.layout import DIM, columns, indented, terms
from harrow.cli.text import Text, lines

_WIDTH_MIN: Final = 40
"""The minimum width of the last column, so that its text is readable."""


def listing(entries: Sequence[CatalogueEntry], width: int) -> Iterator[RenderableType]:
    """Yield a catalogue as a table or, in a narrow terminal, as one block for each entry."""
    columns_width = 2 + max((len(entry.name) for entry in entries), default=0)
    for heading in entries[0].columns if entries else ():
        columns_width += 2 + max(len(heading), *(len(entry.columns[heading]) for entry in entries))
    if width - columns_width >= _WIDTH_MIN:
        yield _table(entries)
        return
    for entry in entries:
        values = "; ".join(f"{heading} {value}" for heading, value in entry.columns.items() if value)
        yield Text.assemble((entry.name, "bold"), (f"  {values}" if values else "", DIM))
        yield indented(_list_text(entry), 4)


def _table(entries: Sequence[CatalogueEntry]) -> Table:
    table = columns()
    table.show_header = True
    # A wrapped name cannot be copied.
    table.add_column("name", no_wrap=True, style="bold")
    for heading in entries[0].columns if entries else ():
        table.add_column(heading, no_wrap=True)
    table.add_column("meaning", overflow="fold")
    for entry in entries:
        table.add_row(entry.name, *entry.columns.values(), _list_text(entry))
    return table


def _list_text(entry: CatalogueEntry) -> Text:
    first = _first_sentence(entry.summary)
    return lines([first, Text(entry.list_note, DIM)]) if entry.list_note else Text(first)


def _first_sentence(text: str) -> str:
    """Return the first sentence, which lists show. `harrow explain` prints all of them."""
    return re.split(r"(?<=[a-z0-9)]\.)\s+(?=[A-Z])", text, maxsplit=1)[0]


def explanation(entry: CatalogueEntry) -> Iterator[RenderableType]:
    yield Text.assemble((entry.name, "bold"), (f"  {entry.kind}", DIM))
    yield indented(entry.summary, 2)
    if entry.about:
        yield Text()
        yield indented(lines(entry.about.split("\n")), 2)
    for heading, section in entry.sections.items():
        yield Text()
        yield indented(heading, 2, DIM)
        if heading == TRY:
            # Lines to copy are not wrapped.
            width = max(map(len, section))
            yield from (
                unbroken(Text.assemble("    ", (term.ljust(width), "bold"), f"  {text}"))
                for term, text in section.items()
            )
            continue
        yield definitions(section)
    yield Text()


def definitions(section: Mapping[str, str]) -> Padding:
    """Return terms in bold, each with its meaning beside it."""
    rows = ((term, lines(meaning.split("\n"))) for term, meaning in section.items())
    return indented(terms(rows, style="bold"), 4)
