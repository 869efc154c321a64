"""What makes two failures the same failure: the broken rule, and what would have prevented it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from checks.catalogue import RULES
from checks.finding import VIOLATED, Finding, Verdict
from cluster_model.invariants import INVARIANTS

_SEEN_IN_LOGS: Final = frozenset({"log-divergence", "two-leaders", "acked-below-min-isr"})
_ORDER: Final = tuple(RULES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """A kind of failure. ``prevented_by`` stands for the cause: it is what the rules conclude from it."""

    rule: str
    prevented_by: tuple[str, ...] = ()


def signatures(verdict: Verdict) -> dict[Signature, Finding]:
    """Return the broken promises of a run, each with its first finding, the worst for clients first.

    What clients saw comes before what only logs tell, and that before the invariants.
    """
    found: dict[Signature, Finding] = {}
    for signature, finding in sorted(_broken(verdict), key=lambda pair: _rank(pair[0])):
        found.setdefault(signature, finding)
    return found


def _broken(verdict: Verdict) -> Iterator[tuple[Signature, Finding]]:
    for rule, judged in verdict.rules.items():
        if judged.status == VIOLATED:
            for finding in judged.findings:
                if finding.permitted_by is None:
                    yield Signature(rule=rule, prevented_by=finding.prevented_by), finding


def _rank(signature: Signature) -> tuple[int, int]:
    rule = signature.rule
    group = 2 if rule in INVARIANTS else 1 if rule in _SEEN_IN_LOGS else 0
    return group, _ORDER.index(rule) if rule in _ORDER else len(_ORDER)
