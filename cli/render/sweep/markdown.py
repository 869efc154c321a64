"""The report of a sweep in Markdown, short enough for a comment on a pull request."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from harrow.campaigns.language.spelling import counted, shortlist
from harrow.campaigns.record.markdown import code, document, folded, table, text
from harrow.campaigns.sweep.failures import WrittenFailure
from harrow.campaigns.sweep.sweep_report import SweepReport
from harrow.checks.finding import VIOLATED
from harrow.cli.render.figures import times
from harrow.cli.render.layout import MARKS
from harrow.cli.render.sweep.columns import ColumnGroup, SweepColumns, sweep_columns
from harrow.cli.render.sweep.sentences import (
    failure_terms,
    reliability,
    runs_text,
    skipped,
    undecided,
)

_KINDS_MAX: Final = 20
_CAMPAIGNS_MAX: Final = 3
_ROWS_MAX: Final = 100
_LINES_MAX: Final = 10
"""GitHub refuses a comment with more than 65 536 characters."""


def sweep_markdown(report: SweepReport, written: Sequence[WrittenFailure]) -> str:
    """Return the report: failures first, then tables with a row for each cell."""
    columns = sweep_columns(report)
    campaigns = [entry["campaign"] for entry in report.state.get("campaigns", ())]
    sentences = [text(runs_text(report)), *(text(sentence.text) for sentence in reliability(report))]
    return document(
        [
            f"### harrow: sweep of {text(shortlist(campaigns, _CAMPAIGNS_MAX))}",
            "\n".join(f"{sentence}  " for sentence in sentences),
            "\n".join(_failures(report, written)),
            _matrix("Verdicts and service by settings", columns, (*columns.verdicts, *columns.service)),
            _matrix("Anomalies by settings", columns, columns.rates),
            "\n".join(_unknown(report)),
        ]
    )


def _failures(report: SweepReport, written: Sequence[WrittenFailure]) -> Iterator[str]:
    files = {(each.group.campaign, each.group.signature): each for each in written}
    for group in report.failures[:_KINDS_MAX]:
        promise = f", despite {text(group.promise)}" if group.promise else ""
        yield f"- {MARKS[VIOLATED]} **{text(group.rule)}** in {text(group.campaign)}, {times(group.failures)}{promise}"
        if group.chain:
            yield f"  - chain: {text(group.chain)}"
        for label, line in failure_terms(group, files.get((group.campaign, group.signature))):
            yield f"  - {label}: {code(line)}"
    if more := len(report.failures[_KINDS_MAX:]):
        yield f"- and {counted(more, 'more kind')} of failures"


def _matrix(heading: str, columns: SweepColumns, groups: Sequence[ColumnGroup]) -> str:
    """Return a table that a reader opens, with a column for each group; nothing without groups."""
    if not groups or not columns.rows:
        return ""
    keys = columns.keys_or_names()
    heads = [text(column.head) for column in keys]
    for group in groups:
        names = [] if group.status else [column.head for column in group.columns]
        heads.append(text(f"{group.title} {', '.join(names)}".strip()))
    rows = []
    for place in range(min(_ROWS_MAX, len(columns.rows))):
        cells = [text(column.entries[place].text) for column in keys]
        for group in groups:
            entries = [column.entries[place].text for column in group.columns]
            cells.append(text((" " if group.status else ", ").join(filter(None, entries))))
        rows.append(cells)
    more = len(columns.rows) - len(rows)
    below = f"\n\nand {counted(more, 'more cell')}" if more else ""
    meaning = "Each verdict or anomaly has its rate, the 95% interval of the rate, and the number of runs."
    return folded(heading, f"{meaning}\n\n{table(heads, rows)}{below}")


def _unknown(report: SweepReport) -> Iterator[str]:
    for label, lines in (("inconclusive", undecided(report)), ("skipped", skipped(report))):
        yield from (f"- {label}: {text(line)}" for line in islice(lines, _LINES_MAX))
    if report.never_reached:
        yield f"- rare states never reached: {text(shortlist(report.never_reached, _LINES_MAX))}"
