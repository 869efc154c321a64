"""The findings of a run with a number each, by which somebody can name one."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from harrow.campaigns.language.spelling import printable
from harrow.campaigns.record.phrases import sentence
from harrow.campaigns.record.report import others_of, place
from harrow.checks.finding import Finding, RuleResult
from harrow.checks.incident import Incident, incidents
from harrow.checks.link import Link
from harrow.cluster_model.invariants.catalogue import INVARIANTS


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberedFinding:
    """A finding, and the others of the same cause, for which it tells.

    ``number`` counts from 1: broken promises first, what clients saw before invariants.
    """

    number: int
    rule: str
    promise: str
    incident: Incident

    @property
    def finding(self) -> Finding:
        """The finding whose chain is told."""
        return self.incident.first

    @property
    def values(self) -> tuple[str, ...]:
        """The records that it and the others are about."""
        return tuple(str(each.value) for each in self.incident.findings if each.value is not None)

    @property
    def value(self) -> str | None:
        """The record that it is about, None if it is about none."""
        return None if self.finding.value is None else str(self.finding.value)

    def title(self) -> str:
        """Return what it is about, as in ``lost-write m1, t-0 offset 1``."""
        about = "" if self.value is None else f" {printable(self.value)}"
        others = f", {others_of(self.incident)}" if len(self.incident.findings) > 1 else ""
        return printable(f"{self.rule}{about}, {place(self.finding)}{others}")

    def judged(self) -> str:
        """Return whether a promise was broken, or what permits it."""
        if self.finding.permitted_by is not None:
            return printable(f"permitted by {self.finding.permitted_by}")
        return printable(f"violated, despite {self.promise}") if self.promise else "violated"

    def timed(self) -> Iterator[Link]:
        """Yield the links that have a moment of their own."""
        return (link for link in self.finding.chain if link.at_us is not None)

    def conclusions(self) -> Iterator[str]:
        """Yield what the other links say."""
        return (printable(sentence(link)) for link in self.finding.chain if link.at_us is None)


def numbered(rules: Mapping[str, RuleResult]) -> tuple[NumberedFinding, ...]:
    """Return the findings of a run."""
    found = [
        (name, judged.promise, incident)
        for name, judged in rules.items()
        for incident in incidents(judged.findings)
    ]
    # Sorting is stable, so findings of a rule stay in the order of the report.
    found.sort(key=lambda entry: (entry[2].first.permitted_by is not None, entry[0] in INVARIANTS))
    return tuple(
        NumberedFinding(number=number, rule=rule, promise=promise, incident=incident)
        for number, (rule, promise, incident) in enumerate(found, 1)
    )
