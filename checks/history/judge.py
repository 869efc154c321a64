"""Judges a history without a trace, given the settings that a user states."""

# Plain Python: this code runs once for each history, so compiling it gains nothing.

from collections import Counter
from collections.abc import Collection, Iterable
from typing import Final

from harrow.checks.finding import (
    HELD,
    INCONCLUSIVE,
    PERMITTED,
    SKIPPED,
    VIOLATED,
    Finding,
    RuleResult,
    Verdict,
    untried_demands,
    worst,
)
from harrow.checks.history.anomalies import ANOMALIES
from harrow.checks.history.index import HistoryIndex
from harrow.checks.history.sighting import Sighting
from harrow.checks.history.version_order import VersionOrders
from harrow.checks.promise import DEMANDED, LOST_WRITE, UNSEEN, prevention
from harrow.checks.rules.catalogue import RULES
from harrow.checks.stated_settings import StatedSettings
from harrow.cluster_model.lazy_dataclass import replace

ALLOWED: Final = "--allow"
"""The permission for an anomaly that the user accepts."""

FINDINGS_MAX: Final = 1_000
"""The maximal number of findings that a rule keeps for each setting that permits them."""

_STRICTEST: Final = StatedSettings()


def judge_history(
    history: HistoryIndex,
    settings: StatedSettings = _STRICTEST,
    *,
    allowed: Collection[str] = (),
    demanded: Collection[str] = (),
    not_shown: Collection[str] = (),
    findings_max: int = FINDINGS_MAX,
) -> Verdict:
    """Judge a history by the rules of all anomalies.

    Anomalies that *settings* do not rule out are permitted, and so are the *allowed* anomalies.
    *demanded* anomalies are never permitted, whatever Kafka promises. A rule is skipped if the
    history has nothing that could break it (`Anomaly.needs`), or if the source of the history
    cannot show the anomaly (*not_shown*). A history is inconclusive if it skips a demanded rule,
    or has no sends or no answers. The first *findings_max* findings of each kind are kept, the
    others are only counted.
    """
    orders = VersionOrders(history)
    rules = {
        name: _result(
            name,
            anomaly.find(orders),
            settings,
            is_tried=name not in not_shown and anomaly.is_tried(orders),
            allowed=name in allowed,
            demanded=name in demanded,
            findings_max=findings_max,
        )
        for name, anomaly in ANOMALIES.items()
    }
    reasons = (*_inconclusive_because(history, rules[UNSEEN]), *untried_demands(demanded, rules))
    statuses = [result.status for result in rules.values()] + [INCONCLUSIVE] * bool(reasons)
    return Verdict(status=worst(statuses), rules=rules, reasons=reasons)


def _result(
    rule: str,
    sightings: Iterable[Sighting],
    settings: StatedSettings,
    *,
    is_tried: bool,
    allowed: bool,
    demanded: bool,
    findings_max: int,
) -> RuleResult:
    by_settings = ALLOWED if allowed else RULES[rule].promise.permission(settings)
    findings: list[Finding] = []
    kinds: Counter[tuple[str | None, bool]] = Counter()
    beyond: Counter[str | None] = Counter()
    for sighting in sightings:
        permitted_by = None if demanded else by_settings or _permission_of(sighting, settings)
        kind = permitted_by, sighting.is_undecided
        kinds[kind] += 1
        if kinds[kind] <= findings_max:
            findings.append(_with_permission(sighting.finding(), rule, permitted_by))
        else:
            beyond[permitted_by] += 1
    return RuleResult(
        status=_status(kinds, is_tried=is_tried),
        promise=_promise(rule, by_settings, demanded=demanded),
        findings=tuple(findings),
        beyond=dict(beyond),
    )


def _permission_of(sighting: Sighting, settings: StatedSettings) -> str | None:
    """Return what permits this particular anomaly, or the loss that it follows from."""
    if sighting.permitted_by is None and sighting.is_after_loss:
        return RULES[LOST_WRITE].promise.permission(settings)
    return sighting.permitted_by


def _with_permission(finding: Finding, rule: str, permitted_by: str | None) -> Finding:
    prevented_by = () if permitted_by is None else prevention(RULES[rule].promise, permitted_by)
    return replace(finding, permitted_by=permitted_by, prevented_by=prevented_by)


def _status(kinds: Collection[tuple[str | None, bool]], *, is_tried: bool) -> str:
    """Return the status of a rule from the (permission, is undecided) pairs of its findings."""
    if (None, False) in kinds:
        return VIOLATED
    if (None, True) in kinds:
        return INCONCLUSIVE
    if kinds:
        return PERMITTED
    return HELD if is_tried else SKIPPED


def _promise(rule: str, permitted_by: str | None, *, demanded: bool) -> str:
    if demanded:
        return DEMANDED
    if permitted_by is not None:
        return f"nothing ({permitted_by})"
    return RULES[rule].promise.in_short


def _inconclusive_because(history: HistoryIndex, unseen: RuleResult) -> tuple[str, ...]:
    reasons = []
    if not history.sends_total:
        named = f", and {history.passed_over} lines are of named processes" if history.passed_over else ""
        reasons.append(f"nothing was tried: no record was sent{named}")
    elif not history.acked_total and not history.polled_total:
        reasons.append("nothing was tried: no send was acknowledged and no poll returned a record")
    if unseen.status == INCONCLUSIVE:
        count = unseen.count
        records = "1 acked record was" if count == 1 else f"{count} acked records were"
        reasons.append(f"{records} not polled, and no process polled to the end after the ack")
    return tuple(reasons)
