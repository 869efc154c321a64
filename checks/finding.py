"""What rules report: findings, each rule's status, the verdict of a run."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

HELD: Final = "held"
PERMITTED: Final = "permitted"
VIOLATED: Final = "violated"
INCONCLUSIVE: Final = "inconclusive"
STATUSES: Final = (HELD, PERMITTED, VIOLATED, INCONCLUSIVE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One anomaly.

    ``because`` tells how it came about; ``permitted_by`` names the setting that never
    promised otherwise, None when the promise is broken.
    """

    partition: str
    because: str
    offset: int | None = None
    value: str | None = None
    permitted_by: str | None = None


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
