"""A rule: its name, what it means, and the function that judges a run by it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from checks.evidence import Evidence
from checks.finding import HELD, INCONCLUSIVE, PERMITTED, VIOLATED, Finding, RuleResult
from checks.index import Index
from checks.promise import DEMANDED, PROMISES, promise


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A rule. ``definition`` says what the anomaly is, ``source`` who says that it is one."""

    name: str
    definition: str
    source: str
    judge: Callable[[Evidence, Index], RuleResult]

    @property
    def doc(self) -> str:
        """The rule explained: definition, what promises it and what permits it, since when, source."""
        promised = PROMISES[self.name]
        lines = [self.definition, "", f"Promised by: {'; '.join(promised.promised_by) or 'nothing'}."]
        if promised.permitted_by:
            lines.append(f"Permitted by: {'; '.join(promised.permitted_by)}.")
        if promised.releases:
            lines.append(f"Releases: {promised.releases}.")
        return "\n".join([*lines, f"Source: {self.source}"])


def demanded(result: RuleResult) -> RuleResult:
    """Return what a rule says when none of its anomalies is permitted, whatever Kafka promises."""
    findings = tuple(replace(finding, permitted_by=None) for finding in result.findings)
    return RuleResult(status=VIOLATED if findings else result.status, promise=DEMANDED, findings=findings)


def rule_result(
    rule: str, evidence: Evidence, findings: Iterable[Finding], *, inconclusive: bool = False
) -> RuleResult:
    """Return what a rule says: the worst of its findings, and of what it could not judge."""
    found = tuple(findings)
    if any(finding.permitted_by is None for finding in found):
        status = VIOLATED
    elif inconclusive:
        status = INCONCLUSIVE
    else:
        status = PERMITTED if found else HELD
    return RuleResult(status=status, promise=promise(rule, evidence), findings=found)
