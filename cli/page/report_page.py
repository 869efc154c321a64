"""The pieces of a report as a page. They need no scripts: headings, tables, verdicts, commands."""

from collections.abc import Iterable, Mapping, Sequence

from harrow.campaigns.version import version
from harrow.cli.page.frame import page
from harrow.cli.page.markup import Markup, Piece, element, joined, text_lines
from harrow.cli.render.layout import MARKS


def report_page(title: str, lead: Iterable[Markup], sections: Mapping[str, Sequence[Markup]]) -> str:
    """Return a page: a heading, what matters most, and sections by their headings.

    A section without pieces is left out. Links at the top lead to the sections.
    """
    shown = {f"section-{number}": each for number, each in enumerate(sections.items(), 1) if each[1]}
    links = (element("a", heading, href=f"#{name}") for name, (heading, _) in shown.items())
    body = (
        element("section", element("h2", heading), *pieces, id=name)
        for name, (heading, pieces) in shown.items()
    )
    main = element("main", element("h1", title), *lead, element("nav", *links, aria_label="sections"), *body)
    footer = element("footer", f"harrow {version()}. This page loads nothing and runs no scripts.")
    return page(title, "report.css", joined(main, footer))


def verdict(status: str, text: str | None = None) -> Markup:
    """Return a verdict, or *text* about it, with its sign and its colour (report.css)."""
    words = status if text is None else text
    return element("b", f"{MARKS[status]} {words}" if status in MARKS else words, class_=status)


def head(*pieces: Piece, columns: int = 1, rows: int = 1, kind: str | None = None) -> Markup:
    """Return the heading of one or several columns. *kind* is ``number`` for columns of numbers."""
    return element(
        "th",
        *pieces,
        scope="col" if columns == 1 else "colgroup",
        colspan=columns if columns > 1 else None,
        rowspan=rows if rows > 1 else None,
        class_=kind,
    )


def row_head(*pieces: Piece) -> Markup:
    return element("th", *pieces, scope="row")


def cell(*pieces: Piece, kind: str | None = None) -> Markup:
    """Return a cell of a table. *kind* has ``number``, or a verdict, or both."""
    return element("td", *pieces, class_=kind or None)


def table(
    caption: str, heads: Iterable[Sequence[Markup]], rows: Iterable[Sequence[Markup]], *, label: str
) -> Markup:
    """Return a table. It scrolls within the page if it is wider; *label* names that region."""
    whole = element(
        "table",
        element("caption", element("span", caption)),
        element("thead", *(element("tr", *line) for line in heads)),
        element("tbody", *(element("tr", *line) for line in rows)),
    )
    return element("div", whole, class_="scroll", role="region", aria_label=label, tabindex=0)


def definitions(pairs: Iterable[tuple[str, Piece]]) -> Markup:
    """Return terms, each with its description."""
    return element("dl", *(joined(element("dt", name), element("dd", piece)) for name, piece in pairs))


def command(line: str) -> Markup:
    """Return a command, which a reader copies."""
    return element("pre", element("code", line))


def folded(summary: str, text: str) -> Markup:
    """Return a text of several lines, which a reader opens. On paper it is open."""
    return element("details", element("summary", summary), element("pre", element("code", text_lines(text))))
