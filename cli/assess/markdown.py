"""Writes the assessment of a cluster as Markdown, for a report or a pull request."""

from collections.abc import Iterable, Iterator

from harrow.campaigns.assess.assessment import Assessment, reason_text, runs_text
from harrow.campaigns.assess.tally import ModelTally
from harrow.campaigns.assess.trials import FATES
from harrow.campaigns.language.units import rough_duration_text
from harrow.campaigns.record import markdown
from harrow.checks.finding import HELD


def assessment_markdown(assessment: Assessment) -> str:
    """Return a table of the fault models, and lists of what permitted the damage."""
    heads = ("what happens", "verdict", *FATES, "outage p50", "worst outage", "runs", "worst run")
    return markdown.document(
        [
            f"# What {markdown.code(assessment.heading)} survives",
            markdown.table(heads, [[*_row(tally)] for tally in assessment.tried()])
            if assessment.tried()
            else "",
            *_list("Not as expected", _each(assessment.exceeded())),
            *_list("Broken promises", _each(assessment.broken())),
            *_list("What permits it", _damage(assessment)),
            *_list("Undecided", _each(assessment.undecided())),
            *_list("Not tried", _not_tried(assessment)),
        ]
    )


def _row(tally: ModelTally) -> Iterator[str]:
    yield markdown.text(tally.model.title)
    yield tally.status
    for fate in FATES:
        status = tally.status_of(fate)
        yield "0" if status == HELD else f"{tally.records_max(fate)} ({status})"
    yield rough_duration_text(tally.outage_p50_us)
    yield rough_duration_text(tally.outage_max_us)
    yield str(len(tally.conclusive))
    worst = tally.worst()
    yield "" if worst is None else markdown.code(tally.reproduce(worst))


def _damage(assessment: Assessment) -> Iterator[str]:
    for (fate, setting), cases in assessment.damage().items():
        reason = reason_text(fate, setting)
        for tally, damage in cases:
            yield f"{fate}, {reason}: {tally.model.title}, {runs_text(damage, tally)}"


def _not_tried(assessment: Assessment) -> Iterator[str]:
    for reason, tallies in assessment.not_tried():
        yield f"{', '.join(tally.model.title for tally in tallies)}: {reason}"


def _each(texts: Iterable[tuple[ModelTally, str]]) -> Iterator[str]:
    return (f"{tally.model.title}: {text}" for tally, text in texts)


def _list(heading: str, lines: Iterable[str]) -> Iterator[str]:
    items = [f"- {markdown.text(line)}" for line in lines]
    if items:
        yield f"## {heading}"
        yield "\n".join(items)
