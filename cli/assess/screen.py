"""Renders the assessment of a cluster for a terminal."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from rich.console import Console, RenderableType

from harrow.campaigns.assess.tally import FATES, ModelTally
from harrow.campaigns.language.spelling import counted
from harrow.campaigns.language.units import rough_duration_text
from harrow.checks.finding import HELD, INCONCLUSIVE, SKIPPED
from harrow.cli.console import show, unbroken
from harrow.cli.render.layout import DIM, STYLES, columns, indented, marks
from harrow.cli.text import Text

_NONE: Final = "-"


def show_assessment(console: Console, cluster: Path, tallies: Sequence[ModelTally]) -> None:
    show(console, Text(str(cluster), "bold"), _table(console, tallies), *_below(console, tallies))


def _table(console: Console, tallies: Sequence[ModelTally]) -> RenderableType:
    table = columns("", "fault model", *FATES, "outage p50", "worst", "runs")
    for tally in tallies:
        if tally.conclusive:
            table.add_row(*_cells(console, tally))
    return table


def _cells(console: Console, tally: ModelTally) -> Iterator[Text]:
    signs = marks(console)
    yield Text(signs[tally.status], STYLES[tally.status])
    yield Text(tally.model.title)
    for fate in FATES:
        status, records = tally.status_of(fate), tally.records_max(fate)
        yield Text(_NONE, DIM) if status == HELD else Text(f"{signs[status]} {records}", STYLES[status])
    for outage_us in (tally.outage_p50_us, tally.outage_max_us):
        yield Text(rough_duration_text(outage_us)) if outage_us else Text(_NONE, DIM)
    yield Text(
        f"{len(tally.conclusive)} +{tally.inconclusive}{signs[INCONCLUSIVE]}"
        if tally.inconclusive
        else str(len(tally.conclusive))
    )


def _below(console: Console, tallies: Sequence[ModelTally]) -> Iterator[RenderableType]:
    for tally in tallies:
        for damage in tally.damage():
            cause = "no setting permits this" if damage.setting is None else f"permitted by {damage.setting}"
            yield Text(
                f"{damage.fate} by {tally.model.title}: {cause}, in {damage.runs} of "
                f"{counted(len(tally.conclusive), 'run')}, at most {counted(damage.records_max, 'record')}"
            )
            trial = tally.worst()
            if trial is not None:
                yield indented(unbroken(Text(tally.reproduce(trial), DIM)), 2)
    for tally in tallies:
        if tally.not_tried:
            yield Text(f"{marks(console)[SKIPPED]} not tried: {tally.model.title}: {tally.not_tried}", DIM)
