"""Writes the assessment of a cluster as one HTML page."""

from collections.abc import Iterable, Iterator

from harrow.campaigns.assess.assessment import Assessment, reason_text, runs_text
from harrow.campaigns.assess.tally import ModelTally
from harrow.campaigns.assess.trials import FATES
from harrow.campaigns.language.units import rough_duration_text
from harrow.checks.finding import HELD, PERMITTED, VIOLATED
from harrow.cli.page.markup import Markup, element, joined
from harrow.cli.page.report_page import (
    cell,
    command,
    definitions,
    head,
    report_page,
    row_head,
    table,
    verdict,
)

_CAPTION = (
    "The records of the worst run that were lost, doubled or reordered, and whether the settings permit that. "
    "An outage is the longest time in which a partition acknowledged nothing while producers were sending."
)


def assessment_page(assessment: Assessment) -> str:
    """Return a page with a row for each fault model, and the worst run of each."""
    tried = assessment.tried()
    heads = [head("what happens"), *(head(fate, kind="number") for fate in FATES)]
    heads += [head(text, kind="number") for text in ("outage p50", "worst outage", "runs")]
    lead = [table(_CAPTION, [heads], map(_row, tried), label="fault models")] if tried else []
    sections = {
        "Not as expected": _each(assessment.exceeded()),
        "Broken promises": _each(assessment.broken()),
        "What permits it": list(_damage(assessment)),
        "The worst runs": list(map(_worst, tried)),
        "Undecided": _each(assessment.undecided()),
        "Not tried": _not_tried(assessment),
    }
    return report_page(f"What {assessment.heading} survives", lead, sections)


def _row(tally: ModelTally) -> list[Markup]:
    cells = [row_head(verdict(tally.status, tally.model.title))]
    for fate in FATES:
        status, records = tally.status_of(fate), str(tally.records_max(fate))
        shown = _zero() if status == HELD else verdict(status, records)
        cells.append(cell(shown, kind="number"))
    for outage_us in (tally.outage_p50_us, tally.outage_max_us):
        cells.append(cell(rough_duration_text(outage_us) if outage_us else _zero(), kind="number"))
    return [*cells, cell(str(len(tally.conclusive)), kind="number")]


def _zero() -> Markup:
    return element("span", "0", class_="faint")


def _damage(assessment: Assessment) -> Iterator[Markup]:
    for (fate, setting), cases in assessment.damage().items():
        status = VIOLATED if setting is None else PERMITTED
        lines = [element("li", f"{tally.model.title}: {runs_text(damage, tally)}") for tally, damage in cases]
        yield joined(
            element("h3", verdict(status, fate), f", {reason_text(fate, setting)}"), element("ul", *lines)
        )


def _each(texts: Iterable[tuple[ModelTally, str]]) -> list[Markup]:
    items = [(tally.model.title, text) for tally, text in texts]
    return [definitions(items)] if items else []


def _not_tried(assessment: Assessment) -> list[Markup]:
    items = [
        (", ".join(tally.model.title for tally in tallies), reason)
        for reason, tallies in assessment.not_tried()
    ]
    return [definitions(items)] if items else []


def _worst(tally: ModelTally) -> Markup:
    worst = tally.worst()
    assert worst is not None, "a fault model that was tried has trials"
    return joined(
        element("h3", tally.model.title),
        element("p", tally.model.description),
        command(tally.reproduce(worst)),
    )
