"""Findings of one cause: thirty records that one truncation cut off are one story, told once."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from harrow.checks.finding import Finding
from harrow.checks.link import cause_key


@dataclass(frozen=True, slots=True)
class Incident:
    """Findings of a rule with the same cause and the same last link that decides. The first one tells for all."""

    findings: tuple[Finding, ...]

    @property
    def first(self) -> Finding:
        """The finding whose chain is told."""
        return self.findings[0]


def incidents(findings: Iterable[Finding]) -> list[Incident]:
    """Return findings by what brought them about, in the order of the first of each."""
    found: dict[Hashable, list[Finding]] = {}
    for number, finding in enumerate(findings):
        found.setdefault(_decision(finding, number), []).append(finding)
    return [Incident(tuple(members)) for members in found.values()]


def _decision(finding: Finding, number: int) -> Hashable:
    """Return what two findings of one cause have in common; one of which no link decides stands alone."""
    deciding = [link for link in finding.chain if link.decides]
    if not deciding:
        return number
    last = deciding[-1]
    causes = frozenset(map(cause_key, finding.causes))
    return finding.partition, finding.permitted_by, causes, last.kind.name, last.at_us, last.actor
