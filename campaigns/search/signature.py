"""The signature of a failure: its rule, promise and cause. It identifies equal failures.

Remedies are not part of a signature, because it takes runs to find them
(`harrow.campaigns.run.proof`).
"""

from collections.abc import Iterator, Mapping

from harrow.campaigns.language.plan import Expectation
from harrow.campaigns.record.report import anomalies
from harrow.campaigns.run.run_result import RunResult
from harrow.checks.evidence import Evidence
from harrow.checks.finding import PERMITTED, VIOLATED, Finding
from harrow.checks.link import cause_key
from harrow.checks.rule import SEEN_BY_CLIENTS
from harrow.checks.rules.catalogue import RULES
from harrow.cluster_model.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """A kind of failure.

    ``promise`` is what the producer of the record was promised; empty if that does not matter.
    ``permitted_by`` is the setting that permits the anomaly, None for a broken promise. ``cause``
    has the kinds of the causes, without names and numbers: losing a committed record is a different
    failure from losing a record that was acked too early.
    """

    rule: str
    promise: str = ""
    permitted_by: str | None = None
    cause: frozenset[tuple[str | bool, ...]] = frozenset()

    @property
    def name(self) -> str:
        return self.rule

    def shown_by(self, result: RunResult) -> Finding | None:
        """Return a run's first finding of this failure, None if there is none."""
        for signature, finding in signatures(result, permitted=self.permitted_by is not None).items():
            if self.covers(signature):
                return finding
        return None

    def sentence(self, result: RunResult) -> str:
        """Return in words what a run shows."""
        same = [anomaly for anomaly in anomalies(result) if anomaly.rule == self.rule]
        return next(anomaly.sentence() for anomaly in same if anomaly.permitted_by == self.permitted_by)

    def expectation(self, result: RunResult) -> Expectation:
        """Return what a campaign expects that shows this failure in a run.

        A broken promise is never expected.
        """
        if self.permitted_by is None:
            return Expectation()
        statuses = {name: judged.status for name, judged in result.verdict.rules.items()}
        return Expectation(
            rules=tuple(
                (name, PERMITTED if name == self.rule else status)
                for name, status in statuses.items()
                if name == self.rule or status == VIOLATED
            )
        )

    def covers(self, other: "Signature") -> bool:
        """Return whether another failure is the same as this one, or part of it.

        A finding about several records can have several causes, and one of them is enough.
        """
        return (
            (other.rule, other.promise, other.permitted_by) == (self.rule, self.promise, self.permitted_by)
            and other.cause <= self.cause
            and bool(other.cause) == bool(self.cause)
        )


def signatures(result: RunResult, *, permitted: bool = False) -> dict[Signature, Finding]:
    """Return a run's failures, each with its first finding.

    Anomalies that clients observed come first, then those that only logs show, then broken
    invariants. With *permitted*, permitted anomalies follow in the same order.
    """
    by_signature: dict[Signature, Finding] = {}
    for signature, finding in sorted(_anomalies(result), key=lambda pair: _rank(pair[0])):
        if permitted or signature.permitted_by is None:
            by_signature.setdefault(signature, finding)
    return by_signature


def _anomalies(result: RunResult) -> Iterator[tuple[Signature, Finding]]:
    rules = {rule: judged for rule, judged in result.verdict.rules.items() if judged.findings}
    senders = _senders(result.evidence) if rules else {}
    for rule, judged in rules.items():
        for finding in judged.findings:
            if finding.permitted_by is not None or judged.status == VIOLATED:
                yield _signature(rule, finding, result.evidence, senders), finding


def _senders(evidence: Evidence) -> Mapping[str | int, int]:
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
