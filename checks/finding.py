"""What rules report: findings, each rule's status, the verdict of a run."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from harrow.checks.link import Link
from harrow.checks.prevention import RELEASE, Prevention

HELD: Final = "held"
PERMITTED: Final = "permitted"
VIOLATED: Final = "violated"
INCONCLUSIVE: Final = "inconclusive"
SKIPPED: Final = "skipped"
"""Of a run that never was: its target cannot do or show what the campaign asks for."""
STATUSES: Final = (HELD, PERMITTED, VIOLATED, INCONCLUSIVE, SKIPPED)

_BETTER_FIRST: Final = (SKIPPED, HELD, PERMITTED, INCONCLUSIVE, VIOLATED)


def worst(statuses: Iterable[str]) -> str:
    """Return the worst of several statuses; without any there was nothing to tell.

    A broken promise stays broken whatever else cannot be told.
    """
    return max(statuses, key=_BETTER_FIRST.index, default=INCONCLUSIVE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One anomaly.

    ``chain`` tells how it came about, in the order of the events, and what follows from them.
    ``permitted_by`` names the setting that never promised otherwise, None when the promise is broken;
    ``prevented_by`` what would have kept it from happening. ``details`` is what only some kinds of
    anomaly have (offsets, operations of the history), as plain data for JSON.
    """

    partition: str
    chain: tuple[Link, ...]
    offset: int | None = None
    value: str | int | None = None
    permitted_by: str | None = None
    prevented_by: tuple[Prevention, ...] = ()
    details: tuple[tuple[str, Any], ...] = ()

    @property
    def causes(self) -> tuple[Link, ...]:
        """Why it came about: one cause, or one for each of the records that it is about."""
        return tuple(link for link in self.chain if link.kind.is_cause)

    @property
    def no_remedy(self) -> tuple[str, ...]:
        """Why nothing that harrow can set prevents it, by its causes; empty if something held or may still hold."""
        if any(way.held or (way.held is None and way.kind != RELEASE) for way in self.prevented_by):
            return ()
        return tuple(dict.fromkeys(cause.kind.no_remedy for cause in self.causes if cause.kind.no_remedy))


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleResult:
    """What one rule says of a run. ``promise`` names what was promised, in settings.

    A history can have millions of anomalies of a kind. ``findings`` are the first ones then, and ``beyond`` counts the
    others, by what permits them.
    """

    status: str
    promise: str
    findings: tuple[Finding, ...] = ()
    beyond: Mapping[str | None, int] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """How many anomalies there are."""
        return len(self.findings) + sum(self.beyond.values())

    @property
    def broken(self) -> int:
        """How many of them break the promise."""
        kept = sum(finding.permitted_by is None for finding in self.findings)
        return kept + self.beyond.get(None, 0)


def worst_first(rules: Mapping[str, RuleResult]) -> dict[str, RuleResult]:
    """Return what rules say, broken promises first; otherwise rules stay in their order."""
    return dict(sorted(rules.items(), key=lambda rule: -_BETTER_FIRST.index(rule[1].status)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The verdict of a run: the worst of its rules, and why it may be inconclusive."""

    status: str
    rules: Mapping[str, RuleResult]
    reasons: tuple[str, ...] = ()
