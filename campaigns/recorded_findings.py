"""Findings as ``run.json`` has them, read back: the way back from `campaigns.report`."""

from collections.abc import Mapping
from typing import Any, Final

from checks.finding import Finding, Link, RuleResult

_US_PER_MS: Final = 1_000
_NAMED: Final = frozenset(
    {"partition", "offset", "value", "because", "chain", "prevented_by", "permitted_by"}
)


def recorded_rules(rules: Any) -> dict[str, RuleResult]:
    """Return what each rule said of a run.

    Raises:
        AttributeError, KeyError, TypeError or ValueError: it is not what `harrow run` writes.

    """
    return {str(name): _rule(judged) for name, judged in ({} if rules is None else rules).items()}


def _rule(judged: Mapping[str, Any]) -> RuleResult:
    findings = tuple(_finding(found) for found in judged.get("findings", ()))
    return RuleResult(status=str(judged["status"]), promise=str(judged.get("promise", "")), findings=findings)


def _finding(found: Mapping[str, Any]) -> Finding:
    return Finding(
        partition=str(found["partition"]),
        chain=tuple(_link(link) for link in found.get("chain", ())),
        offset=found.get("offset"),
        value=found.get("value"),
        permitted_by=found.get("permitted_by"),
        prevented_by=tuple(map(str, found.get("prevented_by", ()))),
        details=tuple((name, value) for name, value in found.items() if name not in _NAMED),
    )


def _link(link: Mapping[str, Any]) -> Link:
    at_ms = link.get("at_ms")
    return Link(
        event=str(link["event"]),
        text=str(link["text"]),
        at_us=None if at_ms is None else round(at_ms * _US_PER_MS),
        broker=link.get("broker"),
        offset=link.get("offset"),
    )
