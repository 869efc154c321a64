"""Defines what rules report: findings, the status of each rule, the verdict of a run."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, Final

from harrow.checks.link import Link
from harrow.checks.prevention import RELEASE, Prevention
from harrow.cluster_model.lazy_dataclass import dataclass

HELD: Final = "held"
PERMITTED: Final = "permitted"
VIOLATED: Final = "violated"
INCONCLUSIVE: Final = "inconclusive"
SKIPPED: Final = "skipped"
"""The run never took place, because its target cannot do or show what the campaign requires. Or the
history that a rule judges has nothing that could break the rule."""
STATUSES: Final = (HELD, PERMITTED, VIOLATED, INCONCLUSIVE, SKIPPED)

_BETTER_FIRST: Final = (SKIPPED, HELD, PERMITTED, INCONCLUSIVE, VIOLATED)


def worst(statuses: Iterable[str]) -> str:
    """Return the worst of several statuses; `INCONCLUSIVE` if there are none.

    `VIOLATED` is worse than `INCONCLUSIVE`: a broken promise stays broken.
    """
    return max(statuses, key=_BETTER_FIRST.index, default=INCONCLUSIVE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One anomaly.

    ``chain`` explains how it came about, in the order of the events, with the conclusions at the
    end. ``permitted_by`` names the setting that allows it, None if the anomaly breaks a promise.
    ``prevented_by`` lists what would have prevented the anomaly. ``details`` are further data for
    JSON, such as offsets or operations of the history, which only some kinds of anomaly have.
    """

    partition: str
    chain: Sequence[Link]
    offset: int | None = None
    value: str | int | None = None
    permitted_by: str | None = None
    prevented_by: tuple[Prevention, ...] = ()
    details: tuple[tuple[str, Any], ...] = ()

    @property
    def causes(self) -> tuple[Link, ...]:
        """The causes of the anomaly: one cause, or one for each record of the anomaly."""
        return tuple(link for link in self.chain if link.kind.is_cause)

    @property
    def no_remedy(self) -> tuple[str, ...]:
        """Why no setting that harrow can change prevents the anomaly: one reason for each cause."""
        if any(way.held or (way.held is None and way.kind != RELEASE) for way in self.prevented_by):
            return ()
        return tuple(dict.fromkeys(cause.kind.no_remedy for cause in self.causes if cause.kind.no_remedy))


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleResult:
    """The result of one rule in a run. ``promise`` names the settings that make the rule's promise.

    A history can have millions of anomalies of a kind. Then ``findings`` has the first ones, and
    ``beyond`` counts the others by the setting that permits them, or None if they break a promise.
    """

    status: str
    promise: str
    findings: tuple[Finding, ...] = ()
    beyond: Mapping[str | None, int] = field(default_factory=dict)

    @property
    def count(self) -> int:
        return len(self.findings) + sum(self.beyond.values())

    @property
    def broken(self) -> int:
        """The number of anomalies that break the promise."""
        reported = sum(finding.permitted_by is None for finding in self.findings)
        return reported + self.beyond.get(None, 0)


def worst_first(rules: Mapping[str, RuleResult]) -> dict[str, RuleResult]:
    """Return the results with the worst status first, and otherwise in their order."""
    return dict(sorted(rules.items(), key=lambda rule: -_BETTER_FIRST.index(rule[1].status)))


def untried_demands(demanded: Iterable[str], rules: Mapping[str, RuleResult]) -> tuple[str, ...]:
    """Return a reason why the verdict is inconclusive for each demanded rule that nothing tried."""
    return tuple(
        f"{name} is demanded, and nothing tried it"
        for name in sorted(demanded)
        if name not in rules or rules[name].status == SKIPPED
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The verdict of a run: the worst status of its rules, and why it may be inconclusive.

    ``not_tried`` are the rules without a result, because nothing in the run could have broken them.
    """

    status: str
    rules: Mapping[str, RuleResult]
    reasons: tuple[str, ...] = ()
    not_tried: tuple[str, ...] = ()

    def build_chains(self) -> None:
        """Build the chains of all findings, which otherwise are built when they are first read."""
        for result in self.rules.values():
            for finding in result.findings:
                tuple(finding.chain)
