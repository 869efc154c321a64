"""Numbers the findings of a run, so that users can refer to them."""

from collections.abc import Iterator, Mapping

from harrow.campaigns.language.spelling import printable
from harrow.campaigns.record.phrases import sentence
from harrow.campaigns.record.report import others_of, place
from harrow.checks.finding import Finding, RuleResult
from harrow.checks.incident import Incident, incidents
from harrow.checks.link import Link
from harrow.cluster_model.invariants.catalogue import INVARIANTS
from harrow.cluster_model.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberedFinding:
    """A finding, which represents all findings with the same cause.

    ``number`` counts from 1. Broken promises have the first numbers. Among equals, findings that
    clients observed come before those of invariants.
    """

    number: int
    rule: str
    promise: str
    incident: Incident

    @property
    def finding(self) -> Finding:
        """The finding whose chain is shown."""
        return self.incident.first

    @property
    def values(self) -> tuple[str, ...]:
        """The records of all findings of this cause."""
        return tuple(str(finding.value) for finding in self.incident.findings if finding.value is not None)

    @property
    def value(self) -> str | None:
        """The record that the finding is about, or None."""
        return None if self.finding.value is None else str(self.finding.value)

    def title(self) -> str:
        """Return a title such as ``lost-write m1, t-0 offset 1``."""
        value = "" if self.value is None else f" {printable(self.value)}"
        others = f", {others_of(self.incident)}" if len(self.incident.findings) > 1 else ""
        return printable(f"{self.rule}{value}, {place(self.finding)}{others}")

    def judged(self) -> str:
        """Return the promise that was broken, or the setting that permits the finding."""
        if self.finding.permitted_by is not None:
            return printable(f"permitted by {self.finding.permitted_by}")
        return printable(f"violated, despite {self.promise}") if self.promise else "violated"

    def timed(self) -> Iterator[Link]:
        """Yield the links that have a time."""
        return (link for link in self.finding.chain if link.at_us is not None)

    def conclusions(self) -> Iterator[str]:
        """Yield the sentences of the links without a time."""
        return (printable(sentence(link)) for link in self.finding.chain if link.at_us is None)


def numbered(rules: Mapping[str, RuleResult]) -> tuple[NumberedFinding, ...]:
    """Return the numbered findings of a run."""
    judged_incidents = [
        (name, judged.promise, incident)
        for name, judged in rules.items()
        for incident in incidents(judged.findings)
    ]
    # The sort is stable, so the findings of a rule stay in the order of the report.
    judged_incidents.sort(key=lambda entry: (entry[2].first.permitted_by is not None, entry[0] in INVARIANTS))
    return tuple(
        NumberedFinding(number=number, rule=rule, promise=promise, incident=incident)
        for number, (rule, promise, incident) in enumerate(judged_incidents, 1)
    )
