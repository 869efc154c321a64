"""The verdict on a history of which nothing is known but what somebody states about the settings."""

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Final

from checks.finding import HELD, INCONCLUSIVE, PERMITTED, VIOLATED, Finding, RuleResult, Verdict
from checks.history.anomalies import ANOMALIES
from checks.history.index import HistoryIndex
from checks.history.version_order import VersionOrders
from checks.promise import DEMANDED, PROMISES, UNSEEN, permission
from checks.stated_settings import StatedSettings

ALLOWED: Final = "--allow"
"""What permits an anomaly that the user does not mind."""

_WORST_FIRST: Final = (VIOLATED, INCONCLUSIVE, PERMITTED, HELD)
_STRICTEST: Final = StatedSettings()


def judge_history(
    history: HistoryIndex,
    settings: StatedSettings = _STRICTEST,
    *,
    allowed: Collection[str] = (),
    demanded: Collection[str] = (),
) -> Verdict:
    """Judge a history by every anomaly.

    What *settings* do not promise is permitted, and so are the *allowed* anomalies; of the
    *demanded* ones nothing is, whatever Kafka promises. A history in which nothing was sent
    or nothing came back is inconclusive.
    """
    orders = VersionOrders(history)
    rules = {
        name: _result(
            name, anomaly.find(orders), settings, allowed=name in allowed, demanded=name in demanded
        )
        for name, anomaly in ANOMALIES.items()
    }
    reasons = _reasons(history, rules[UNSEEN])
    statuses = {result.status for result in rules.values()}
    if reasons:
        statuses.add(INCONCLUSIVE)
    return Verdict(
        status=next(status for status in _WORST_FIRST if status in statuses), rules=rules, reasons=reasons
    )


def _result(
    rule: str, found: Iterable[Finding], settings: StatedSettings, *, allowed: bool, demanded: bool
) -> RuleResult:
    by_settings = ALLOWED if allowed else permission(rule, settings)
    findings = tuple(
        _judged(finding, rule, None if demanded else by_settings or finding.permitted_by) for finding in found
    )
    return RuleResult(
        status=_status(rule, findings),
        promise=_promise(rule, by_settings, demanded=demanded),
        findings=findings,
    )


def _judged(finding: Finding, rule: str, permitted_by: str | None) -> Finding:
    """Return a finding with what permits it, and what would not have; a broken promise had no help."""
    prevented_by = () if permitted_by in (None, ALLOWED) else PROMISES[rule].prevented_by
    return replace(finding, permitted_by=permitted_by, prevented_by=prevented_by)


def _status(rule: str, findings: tuple[Finding, ...]) -> str:
    broken = [finding for finding in findings if finding.permitted_by is None]
    if rule == UNSEEN and broken and not any(dict(finding.details)["read_on"] for finding in broken):
        return INCONCLUSIVE
    if broken:
        return VIOLATED
    return PERMITTED if findings else HELD


def _promise(rule: str, permitted_by: str | None, *, demanded: bool) -> str:
    if demanded:
        return DEMANDED
    if permitted_by is not None:
        return f"nothing ({permitted_by})"
    return " and ".join(PROMISES[rule].promised_by[:1]) or "nothing"


def _reasons(history: HistoryIndex, unseen: RuleResult) -> tuple[str, ...]:
    """Return why the history cannot tell, if so."""
    reasons = []
    if not history.sends_total:
        reasons.append("nothing was tried: no record was sent")
    elif not any(partition.acked or partition.polled for partition in history.partitions.values()):
        reasons.append("nothing was tried: no send was acknowledged and no poll returned a record")
    if unseen.status == INCONCLUSIVE:
        count = len(unseen.findings)
        records = "1 acked record was" if count == 1 else f"{count} acked records were"
        reasons.append(f"{records} not polled, and nobody polled on after the ack: read to the end")
    return tuple(reasons)
