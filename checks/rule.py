"""Defines a rule: its name, its meaning, its promise, and the function that finds anomalies."""

from collections.abc import Callable, Iterable
from typing import Final

from harrow.checks import promise
from harrow.checks.causes import catalogue
from harrow.checks.finding import HELD, INCONCLUSIVE, PERMITTED, VIOLATED, Finding, RuleResult
from harrow.checks.index import Index
from harrow.checks.permission import Promise
from harrow.checks.prevention import by_switches
from harrow.cluster_model.lazy_dataclass import dataclass, replace

SEEN_BY_CLIENTS: Final = 0
SEEN_IN_LOGS: Final = 1
SEEN_IN_CLUSTER: Final = 2
"""Who can observe an anomaly: clients, readers of the logs, or only an observer of the cluster. A
lower number is worse for the users of the cluster."""

LOST: Final = "lost"
DOUBLED: Final = "doubled"
REORDERED: Final = "reordered"
DIVERGED: Final = "diverged"
"""What an anomaly did to the records of a finding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A rule, which looks for one kind of anomaly.

    ``definition`` defines the anomaly, ``source`` is its origin in Kafka or Jepsen, and ``promise``
    says which settings promise that it never happens. ``find`` yields the anomalies of a run.
    ``is_tried`` says whether a run has what the rule is about, such as a group; without it, the
    rule is not judged. ``is_undecided`` says whether a run without anomalies ended too early to
    decide. ``verb`` says what happened to the records of the findings; if the rule
    ``is_about_place``, it says what happened at an offset. A rule that ``goes_by_order`` compares
    events with equal timestamps, so the trace must list them as they happened. ``fate`` is what the
    anomaly did to the records of the findings (`LOST` and so on), empty if the findings are not
    about records. ``fate_for_readers`` is the fate that readers see, if the logs do not show it.
    """

    name: str
    definition: str
    source: str
    promise: Promise
    find: Callable[[Index], Iterable[Finding]]
    is_tried: Callable[[Index], bool] = lambda _: True
    is_undecided: Callable[[Index], bool] = lambda _: False
    verb: str = ""
    is_about_place: bool = False
    seen_in: int = SEEN_BY_CLIENTS
    goes_by_order: bool = False
    fate: str = ""
    fate_for_readers: str = ""

    def judge(self, index: Index) -> RuleResult:
        """Judge a run by the rule. In the result, findings that break a promise come first."""
        judged = [
            self._with_guards(index, _excused_by_metadata_loss(index, finding))
            for finding in self.find(index)
        ]
        judged.sort(key=lambda finding: finding.permitted_by is not None)
        if judged and judged[0].permitted_by is None:
            status = VIOLATED
        elif self.is_undecided(index):
            status = INCONCLUSIVE
        else:
            status = PERMITTED if judged else HELD
        words = self.promise.words_for(index.evidence)
        return RuleResult(status=status, promise=words, findings=tuple(judged))

    def _with_guards(self, index: Index, finding: Finding) -> Finding:
        """Add the unsafe switches that guard against a finding, if brokers broke the promise."""
        if finding.permitted_by is not None or any(cause.kind.is_of_client for cause in finding.causes):
            return finding
        causes = [cause.kind.name for cause in finding.causes]
        switches = by_switches(index.evidence, self.name, causes)
        return replace(finding, prevented_by=(*finding.prevented_by, *switches))


def _excused_by_metadata_loss(index: Index, finding: Finding) -> Finding:
    """Permit a finding that came about after the KRaft quorum had lost committed metadata.

    Brokers then return to an older cluster state: replicas are back in ISRs that they had left,
    former leaders lead again, and epochs are assigned twice. Kafka promises nothing after such a
    loss, because a quorum relies on the disks of its majority. So the permission is disk failure.
    """
    lost_us = index.metadata_lost_us
    if lost_us is None or finding.permitted_by is not None:
        return finding
    latest_us = max((link.at_us for link in finding.chain if link.at_us is not None), default=lost_us)
    if latest_us < lost_us:
        return finding
    # This conclusion says that no setting permits the loss, but disk failure does.
    kept_links = (link for link in finding.chain if link.kind is not catalogue.committed_record_lost)
    chain = (*kept_links, catalogue.metadata_lost.conclude())
    return replace(finding, chain=chain, permitted_by=promise.DISK_FAILURE, prevented_by=())
