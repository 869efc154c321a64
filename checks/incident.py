"""Groups findings with one cause: thirty records lost in one truncation are one incident."""

from collections.abc import Hashable, Iterable

from harrow.checks.finding import Finding
from harrow.checks.link import cause_key
from harrow.cluster_model.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Incident:
    """Findings of a rule with the same cause and the same last deciding link.

    Output shows the first finding for all of them.
    """

    findings: tuple[Finding, ...]

    @property
    def first(self) -> Finding:
        """The finding whose chain is shown."""
        return self.findings[0]


def incidents(findings: Iterable[Finding]) -> list[Incident]:
    """Group findings by their causes, in the order of the first finding of each group."""
    groups: dict[Hashable, list[Finding]] = {}
    for number, finding in enumerate(findings):
        groups.setdefault(_incident_key(finding, number), []).append(finding)
    return [Incident(tuple(members)) for members in groups.values()]


def _incident_key(finding: Finding, number: int) -> Hashable:
    """Return a key that is equal for findings with one cause.

    A finding without a deciding link is an incident of its own.
    """
    deciding = [link for link in finding.chain if link.decides]
    if not deciding:
        return number
    last = deciding[-1]
    causes = frozenset(map(cause_key, finding.causes))
    return finding.partition, finding.permitted_by, causes, last.kind.name, last.at_us, last.actor
