"""Judges a run: its verdict is the worst result of any rule, or inconclusive."""

from harrow.checks.evidence import Evidence
from harrow.checks.finding import INCONCLUSIVE, VIOLATED, RuleResult, Verdict, untried_demands, worst
from harrow.checks.index import Index
from harrow.checks.promise import DEMANDED
from harrow.checks.rules.catalogue import rules_for
from harrow.cluster_model.lazy_dataclass import replace


def judge(evidence: Evidence, index: Index | None = None) -> Verdict:
    """Judge a run by the rules that apply to it (`rules_for`), and that it has tried.

    A run in which nothing was tried, or that did not get to its end, is inconclusive, unless it
    broke a promise. So is a run that did not try a demanded rule; a demand for all rules means
    those that the run tries. Pass the *index* of the evidence if there is one already.
    """
    index = Index(evidence) if index is None else index
    rules = rules_for(evidence.invariants, core=evidence.core is not None, in_order=evidence.in_order)
    not_tried = tuple(name for name, rule in rules.items() if not rule.is_tried(index))
    results = {name: rule.judge(index) for name, rule in rules.items() if name not in not_tried}
    for name in evidence.demanded.intersection(results):
        results[name] = _with_demand(results[name], rules[name].promise.orders)
    reasons = _inconclusive_because(index)
    if not evidence.demanded.issuperset(rules):
        reasons += untried_demands(evidence.demanded, results)
    if not any(result.findings for result in results.values()):
        reasons = (*(f"nothing was tried: {line}" for line in evidence.not_struck), *reasons)
    statuses = [result.status for result in results.values()] + [INCONCLUSIVE] * bool(reasons)
    return Verdict(status=worst(statuses), rules=results, reasons=reasons, not_tried=not_tried)


def _with_demand(result: RuleResult, orders: frozenset[str]) -> RuleResult:
    """Return the result of a demanded rule: only an administrator's *orders* permit anomalies."""
    findings = tuple(
        finding if finding.permitted_by in orders else replace(finding, permitted_by=None)
        for finding in sorted(result.findings, key=lambda finding: finding.permitted_by in orders)
    )
    has_broken = any(finding.permitted_by is None for finding in findings)
    return RuleResult(status=VIOLATED if has_broken else result.status, promise=DEMANDED, findings=findings)


def _inconclusive_because(index: Index) -> tuple[str, ...]:
    """Return the reasons why a run proves nothing, unless it broke a promise."""
    reasons: list[str] = []
    if not index.history.sends_total:
        reasons.append("nothing was tried: no record was sent")
    elif not index.acked and not _any_unacknowledged(index):
        reasons.append("nothing was tried: no send was acknowledged")
    reasons += index.evidence.unfinished
    reasons += [
        f"{partition} was not read back to its end after healing" for partition in index.unread_partitions()
    ]
    return tuple(reasons)


def _any_unacknowledged(index: Index) -> bool:
    """Return whether a producer sent with ``acks=0``, which waits for no ack."""
    return any(index.evidence.producers[session.process].acks == "0" for session in index.history.sessions)
