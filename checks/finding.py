"""What rules report: findings, each rule's status, the verdict of a run."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

HELD: Final = "held"
PERMITTED: Final = "permitted"
VIOLATED: Final = "violated"
INCONCLUSIVE: Final = "inconclusive"
STATUSES: Final = (HELD, PERMITTED, VIOLATED, INCONCLUSIVE)

_BETTER_FIRST: Final = (HELD, PERMITTED, INCONCLUSIVE, VIOLATED)


def worst(statuses: Iterable[str]) -> str:
    """Return the worst of several statuses; without any there was nothing to tell.

    A broken promise stays broken whatever else cannot be told.
    """
    return max(statuses, key=_BETTER_FIRST.index, default=INCONCLUSIVE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One event of the chain that led to a finding.

    ``event`` is what kind of event it was, for programs; ``text`` says the same to people.
    ``at_us`` is its time in virtual microseconds, None for what has no moment of its own (a
    conclusion, a setting that decided).
    """

    event: str
    text: str
    at_us: int | None = None
    broker: int | None = None
    offset: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One anomaly.

    ``chain`` tells how it came about, in the order of the events. ``permitted_by`` names the
    setting that never promised otherwise, None when the promise is broken; ``prevented_by``
    the settings and the KIPs (with their releases) that would have kept it from happening.
    ``details`` is what only some kinds of anomaly have (offsets, operations of the history),
    as plain data for JSON.
    """

    partition: str
    chain: tuple[Link, ...]
    offset: int | None = None
    value: str | int | None = None
    permitted_by: str | None = None
    prevented_by: tuple[str, ...] = ()
    details: tuple[tuple[str, Any], ...] = ()

    @property
    def because(self) -> str:
        """How it came about, in one sentence."""
        return "; ".join(link.text for link in self.chain)


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleResult:
    """What one rule says of a run. ``promise`` names what was promised, in settings."""

    status: str
    promise: str
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The verdict of a run: the worst of its rules, and why it may be inconclusive."""

    status: str
    rules: Mapping[str, RuleResult]
    reasons: tuple[str, ...] = ()
