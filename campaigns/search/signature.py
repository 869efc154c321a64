"""What makes two failures the same failure: the rule, the promise and the cause.

What would have prevented it is no part of that: it takes runs to know (`harrow.campaigns.run.proof`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from harrow.campaigns.run.run_result import RunResult
from harrow.checks.evidence import Evidence
from harrow.checks.finding import VIOLATED, Finding
from harrow.checks.link import cause_key
from harrow.checks.rule import SEEN_BY_CLIENTS
from harrow.checks.rules.catalogue import RULES


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """A kind of failure.

    ``promise`` is the promise to the producer of the record, empty where no producer's settings decide.
    ``permitted_by`` is the setting that permits the anomaly, None for a broken promise. ``cause`` has the kinds of
    the causes, without names and numbers: the loss of a committed record is another failure than that of a record
    acked too early.
    """

    rule: str
    promise: str = ""
    permitted_by: str | None = None
    cause: frozenset[tuple[str | bool, ...]] = frozenset()

    def covers(self, other: "Signature") -> bool:
        """Return whether another failure is the same, or a part of this one.

        A finding about several records can have several causes, and one of them will do.
        """
        return (
            (other.rule, other.promise, other.permitted_by) == (self.rule, self.promise, self.permitted_by)
            and other.cause <= self.cause
            and bool(other.cause) == bool(self.cause)
        )


def signatures(result: RunResult, *, permitted: bool = False) -> dict[Signature, Finding]:
    """Return the broken promises of a run, each with its first finding, the worst for clients first.

    What clients saw comes before what only logs tell, and that before the invariants. With
    *permitted*, what the settings permit follows in the same order.
    """
    found: dict[Signature, Finding] = {}
    for signature, finding in sorted(_anomalies(result), key=lambda pair: _rank(pair[0])):
        if permitted or signature.permitted_by is None:
            found.setdefault(signature, finding)
    return found


def same_failure(result: RunResult, wanted: Signature) -> Finding | None:
    """Return the first finding of a run that is the failure that is *wanted*, None without one."""
    for signature, finding in signatures(result, permitted=wanted.permitted_by is not None).items():
        if wanted.covers(signature):
            return finding
    return None


def _anomalies(result: RunResult) -> Iterator[tuple[Signature, Finding]]:
    found = {rule: judged for rule, judged in result.verdict.rules.items() if judged.findings}
    senders = _senders(result.evidence) if found else {}
    for rule, judged in found.items():
        for finding in judged.findings:
            if finding.permitted_by is not None or judged.status == VIOLATED:
                yield _signature(rule, finding, result.evidence, senders), finding


def _senders(evidence: Evidence) -> Mapping[str | int, int]:
    """Return the process that first sent each record."""
    senders: dict[str | int, int] = {}
    for operation in evidence.operations:
        if not operation.is_completion:
            for _, _, value in operation.sends():
                senders.setdefault(value, operation.process)
    return senders


def _signature(
    rule: str, finding: Finding, evidence: Evidence, senders: Mapping[str | int, int]
) -> Signature:
    sender = None if finding.value is None else senders.get(finding.value)
    to_producer = RULES[rule].promise.to_producer if rule in RULES else None
    return Signature(
        rule=rule,
        promise="" if sender is None or to_producer is None else to_producer(evidence.producers[sender]),
        permitted_by=finding.permitted_by,
        cause=frozenset(map(cause_key, finding.causes)),
    )


def _rank(signature: Signature) -> tuple[bool, int, int]:
    rule = RULES.get(signature.rule)
    seen_in = SEEN_BY_CLIENTS if rule is None else rule.seen_in
    place = list(RULES).index(signature.rule) if rule is not None else len(RULES)
    return signature.permitted_by is not None, seen_in, place
