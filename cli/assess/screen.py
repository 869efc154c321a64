"""Renders the assessment of a cluster for a terminal."""

from collections.abc import Iterator
from typing import Final

from rich.console import Console, RenderableType
from rich.table import Table

from harrow.campaigns.assess.assessment import Assessment, reason_text, runs_text
from harrow.campaigns.assess.tally import ModelTally
from harrow.campaigns.assess.trials import FATES
from harrow.campaigns.language.spelling import listed, printable
from harrow.campaigns.language.units import rough_duration_text
from harrow.checks.finding import HELD, INCONCLUSIVE, PERMITTED, SKIPPED, VIOLATED
from harrow.cli.console import show, unbroken
from harrow.cli.render.layout import DIM, FAILED, STYLES, columns, indented, marks, terms
from harrow.cli.text import Text

_NONE: Final = "-"
_MODELS_SHOWN: Final = 3


def show_assessment(console: Console, assessment: Assessment) -> None:
    """Print a row for each fault model, what permitted the damage, and what was not tried."""
    show(console, Text(printable(assessment.heading), "bold"), _table(console, assessment))
    if assessment.tried():
        show(console, Text(), Text(_legend(console, assessment), DIM))
    for part in (_damage(console, assessment), _broken(assessment), _undecided(console, assessment)):
        lines = list(part)
        if lines:
            show(console, Text(), *lines)
    show_exceeded(console, assessment)
    example = next((tally for tally in assessment.tried() if tally.status != HELD), None)
    if example is not None:
        words = f"--show {example.model.name}"
        show(console, Text(), Text(f"{words} opens the worst run of a fault model", DIM))


def show_exceeded(console: Console, assessment: Assessment) -> None:
    """Print which limits the fault models exceed."""
    exceeded = [f"{tally.model.title}: {message}" for tally, message in assessment.exceeded()]
    if exceeded:
        show(console, Text(), *(Text(f"not as expected: {line}", FAILED) for line in exceeded))


def _legend(console: Console, assessment: Assessment) -> str:
    signs = marks(console)
    others = {kind for kind, _ in assessment.damage()} - {*FATES}
    return (
        f"Records of the worst run: {signs[PERMITTED]} your settings permit it, {signs[VIOLATED]} a promise is "
        f"broken. Outage: the longest time without acks in a run, at the median and in the worst run."
        + (f" What has no column is below: {listed(sorted(others))}." if others else "")
    )


def _table(console: Console, assessment: Assessment) -> Table:
    table = columns("", "what happens", *FATES, "outage", "worst", "runs")
    for column in table.columns[2:]:
        column.justify, column.no_wrap = "right", True
    for tally in assessment.tried():
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
    yield Text(str(len(tally.conclusive)))


def _damage(console: Console, assessment: Assessment) -> Iterator[RenderableType]:
    signs = marks(console)
    for (fate, setting), cases in assessment.damage().items():
        status = VIOLATED if setting is None else PERMITTED
        reason = reason_text(fate, setting)
        yield _line(signs[status], status, fate, f", {reason}:")
        worst_first = sorted(cases, key=lambda case: -case[1].records_max)
        for tally, damage in worst_first[:_MODELS_SHOWN]:
            yield indented(f"{tally.model.title}: {runs_text(damage, tally)}", 4)
        rest = [tally.model.title for tally, _ in worst_first[_MODELS_SHOWN:]]
        if rest:
            yield indented(f"and {', '.join(rest)}", 4, DIM)


def _broken(assessment: Assessment) -> Iterator[RenderableType]:
    for tally, text in assessment.broken():
        yield Text(f"{tally.model.title}: {text}", STYLES[VIOLATED])


def _undecided(console: Console, assessment: Assessment) -> Iterator[RenderableType]:
    signs = marks(console)
    for tally, text in assessment.undecided():
        yield _line(signs[INCONCLUSIVE], INCONCLUSIVE, "undecided", f", {tally.model.title}: {text}")
    for reason, tallies in assessment.not_tried():
        status, word = (INCONCLUSIVE, "undecided") if tallies[0].trials else (SKIPPED, "not tried")
        titles = ", ".join(tally.model.title for tally in tallies)
        yield _line(signs[status], status, word, f", {titles}: {reason}")


def _line(sign: str, status: str, word: str, text: str) -> RenderableType:
    """Return a line that begins with a sign, and is indented by it where it is wrapped."""
    style = STYLES[status]
    return terms([(Text(sign, style), Text.assemble((word, style), text))], gap=1)


def show_command(console: Console, command: str) -> None:
    """Print a command on a line of its own, so that a user can copy it."""
    show(console, unbroken(Text(f"  {command}")))
