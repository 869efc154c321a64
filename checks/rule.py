"""A rule: its name, what it means, what promises otherwise, and the function that finds what breaks it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

from harrow.checks.causes.metadata_loss import excused_by_metadata_loss
from harrow.checks.finding import HELD, INCONCLUSIVE, PERMITTED, VIOLATED, Finding, RuleResult
from harrow.checks.index import Index
from harrow.checks.permission import Promise
from harrow.checks.prevention import by_switches

SEEN_BY_CLIENTS: Final = 0
SEEN_IN_LOGS: Final = 1
SEEN_IN_CLUSTER: Final = 2
"""Where an anomaly shows: the lower, the worse for the users of the cluster."""

LOST: Final = "lost"
DOUBLED: Final = "doubled"
REORDERED: Final = "reordered"
DIVERGED: Final = "diverged"
"""What can become of records in logs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A rule.

    ``definition`` says what the anomaly is, ``source`` who says that it is one, ``promise`` what
    promises that there is none. ``find`` yields the anomalies of a run; ``is_undecided`` says whether
    it got far enough to tell when there are none. ``verb`` says what has become of the records that
    the findings are about, or of the ``place`` in a log. One that ``goes_by_order`` compares events of one moment in the trace,
    so it needs a trace that has them in the order in which they happened. ``fate`` is what its findings say of records in logs
    (`LOST` and so on), empty where they are about something else.
    """

    name: str
    definition: str
    source: str
    promise: Promise
    find: Callable[[Index], Iterable[Finding]]
    is_undecided: Callable[[Index], bool] = lambda _: False
    verb: str = ""
    is_about_place: bool = False
    seen_in: int = SEEN_BY_CLIENTS
    goes_by_order: bool = False
    fate: str = ""

    @property
    def doc(self) -> str:
        """The rule explained: definition, what promises it and what permits it, since when, source."""
        promise = self.promise
        lines = [self.definition, "", f"Promised by: {'; '.join(promise.promised_by) or 'nothing'}."]
        if promise.permitted_by:
            lines.append(f"Permitted by: {'; '.join(promise.permitted_by)}.")
        if promise.releases:
            lines.append(f"Releases: {promise.releases}.")
        return "\n".join([*lines, f"Source: {self.source}"])

    def judge(self, index: Index) -> RuleResult:
        """Return what the rule says of a run: the worst of its findings, and of what it could not judge.

        Broken promises come first.
        """
        found = [
            self._guarded(index, excused_by_metadata_loss(index, finding)) for finding in self.find(index)
        ]
        findings = tuple(sorted(found, key=lambda finding: finding.permitted_by is not None))
        if any(finding.permitted_by is None for finding in findings):
            status = VIOLATED
        elif self.is_undecided(index):
            status = INCONCLUSIVE
        else:
            status = PERMITTED if findings else HELD
        return RuleResult(status=status, promise=self.promise.held_to(index.evidence), findings=findings)

    def _guarded(self, index: Index, finding: Finding) -> Finding:
        """Return a finding; a broken promise of brokers with the switches that guard against it and are not safe in this run."""
        if finding.permitted_by is not None or any(cause.kind.is_of_client for cause in finding.causes):
            return finding
        causes = [cause.kind.name for cause in finding.causes]
        switches = by_switches(index.evidence, self.name, causes)
        return replace(finding, prevented_by=(*finding.prevented_by, *switches))
