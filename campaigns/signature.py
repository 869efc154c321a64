"""What makes two failures the same failure: the rule, the promise, the cause, and what would have prevented it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from campaigns.run_result import RunResult
from checks.catalogue import RULES
from checks.evidence import Evidence
from checks.finding import VIOLATED, Finding
from checks.promise import promise_to
from cluster_model.history import INVOKE
from cluster_model.invariants import INVARIANTS

_SEEN_IN_LOGS: Final = frozenset({"log-divergence", "two-leaders", "acked-below-min-isr"})
_ORDER: Final = tuple(RULES)
_CONCLUSION: Final = "conclusion"
_CLAIM: Final = re.compile(r"offset \d+ is ")
"""Begins a conclusion that says who has what, instead of why."""
_NAME: Final = re.compile(r"[^\s=]*\d[^\s=]*(?![^\s]*=)")
"""A record, a broker, an offset, an epoch; a setting with its value is none."""
_SEVERAL: Final = re.compile(r"_(?: _)+")
_PLACES: Final = re.compile(r"(at offset _ of broker _)(?: and \1)+")
_PLURAL: Final = re.compile(r"\b(broker|offset|record|replica)s\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """A kind of failure.

    ``promise`` is what the producer of the record was promised, empty where no producer's settings
    decide. ``permitted_by`` is the setting that permits the anomaly, None for a broken promise.
    ``cause`` is what the rule concludes, without names and numbers, and without whether of one or
    several: a record that was lost after it had been committed is another failure than one that was
    acked too early, although the same switch would have prevented both. ``prevented_by`` is what would
    have kept it from happening.
    """

    rule: str
    promise: str = ""
    permitted_by: str | None = None
    cause: frozenset[str] = frozenset()
    prevented_by: tuple[str, ...] = ()

    def covers(self, other: "Signature") -> bool:
        """Return whether another failure is the same, or a part of this one.

        A finding about several records can have several causes, and one of them will do.
        """
        return (
            (other.rule, other.promise, other.permitted_by, other.prevented_by)
            == (self.rule, self.promise, self.permitted_by, self.prevented_by)
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
    for rule, judged in result.verdict.rules.items():
        for finding in judged.findings:
            if finding.permitted_by is not None or judged.status == VIOLATED:
                yield _signature(rule, finding, result.evidence), finding


def _signature(rule: str, finding: Finding, evidence: Evidence) -> Signature:
    return Signature(
        rule=rule,
        promise=_promise(rule, finding, evidence),
        permitted_by=finding.permitted_by,
        cause=frozenset(_causes(finding)),
        prevented_by=finding.prevented_by,
    )


def _promise(rule: str, finding: Finding, evidence: Evidence) -> str:
    """Return what was promised to the first who sent the record."""
    for operation in evidence.operations:
        if operation.type == INVOKE and operation.f == "send":
            _, _, value = operation.value[0]
            if value == finding.value:
                return promise_to(rule, evidence.producers[operation.process])
    return ""


def _causes(finding: Finding) -> Iterator[str]:
    for link in finding.chain:
        if link.event == _CONCLUSION and not _CLAIM.match(link.text):
            without_names = _SEVERAL.sub("_", _NAME.sub("_", link.text))
            yield _PLACES.sub(r"\1", _PLURAL.sub(r"\1", without_names))


def _rank(signature: Signature) -> tuple[bool, int, int]:
    rule = signature.rule
    group = 2 if rule in INVARIANTS else 1 if rule in _SEEN_IN_LOGS else 0
    return signature.permitted_by is not None, group, _ORDER.index(rule) if rule in _ORDER else len(_ORDER)
