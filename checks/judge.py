"""The verdict of a run: the worst that any rule says, or that it cannot be told."""

from checks.catalogue import rules_for
from checks.evidence import Evidence
from checks.finding import INCONCLUSIVE, Verdict, worst
from checks.index import Index
from checks.rule import demanded


def judge(evidence: Evidence) -> Verdict:
    """Judge a run by all rules, but for those of invariants that were not watched and of a core, if there was none.

    A run in which nothing was tried, or that did not get to its end, is inconclusive; a
    broken promise stays broken all the same.
    """
    index = Index(evidence)
    rules = rules_for(evidence.invariants, core=evidence.core is not None)
    results = {name: rule.judge(evidence, index) for name, rule in rules.items()}
    for name in evidence.demanded & results.keys():
        results[name] = demanded(results[name])
    reasons = _reasons(evidence, index)
    statuses = {result.status for result in results.values()}
    if reasons:
        statuses.add(INCONCLUSIVE)
    status = worst(statuses)
    return Verdict(status=status, rules=results, reasons=reasons)


def _reasons(evidence: Evidence, index: Index) -> tuple[str, ...]:
    """Return why the run cannot tell, if so."""
    reasons: list[str] = []
    if not index.history.sends_total:
        reasons.append("nothing was tried: no record was sent")
    elif not index.acked and not _any_unacknowledged(evidence, index):
        reasons.append("nothing was tried: no send was acknowledged")
    reasons += evidence.unfinished
    reasons += [
        f"{partition} was not read back to its end after healing" for partition in index.unread_partitions()
    ]
    return tuple(reasons)


def _any_unacknowledged(evidence: Evidence, index: Index) -> bool:
    """Return whether a producer sent with ``acks=0``: it waits for no ack."""
    return any(evidence.producers[session.process].acks == "0" for session in index.history.sessions)
