"""Reads the findings in ``run.json``, the inverse of `harrow.campaigns.record.report`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from harrow.checks.finding import Finding, RuleResult
from harrow.checks.link import KINDS, Link, LinkKind, recorded
from harrow.checks.prevention import REFUTED, TRIED_HELD, Prevention, Refutation, Remedy, Trial

_US_PER_MS: Final = 1_000
_NAMED: Final = frozenset(
    {
        *("partition", "offset", "value", "because", "chain", "causes"),
        *("prevented_by", "preventions", "tried_in_vain", "not_tried", "no_remedy", "permitted_by"),
        *("count", "members"),
    }
)


def recorded_rules(rules: Any) -> dict[str, RuleResult]:
    """Return the result of each rule.

    Raises:
        ArithmeticError, AttributeError, LookupError, TypeError or ValueError: `harrow run` did not
        write this.

    """
    return {str(name): _rule(judged) for name, judged in ({} if rules is None else rules).items()}


def _rule(judged: Mapping[str, Any]) -> RuleResult:
    findings = tuple(finding for entry in judged.get("findings", ()) for finding in _findings(entry))
    return RuleResult(status=str(judged["status"]), promise=str(judged.get("promise", "")), findings=findings)


def _findings(entry: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield the findings of one cause; the others share the chain of the first."""
    first = _finding(entry)
    yield first
    for member in entry.get("members", ())[1:]:
        yield replace(
            first, partition=str(member["partition"]), offset=member["offset"], value=member["value"]
        )


def _finding(entry: Mapping[str, Any]) -> Finding:
    return Finding(
        partition=str(entry["partition"]),
        chain=tuple(_link(link) for link in entry.get("chain", ())),
        offset=entry.get("offset"),
        value=entry.get("value"),
        permitted_by=entry.get("permitted_by"),
        prevented_by=_preventions(entry),
        details=tuple((name, value) for name, value in entry.items() if name not in _NAMED),
    )


def _link(link: Mapping[str, Any]) -> Link:
    at_ms, actor = link.get("at_ms"), link.get("actor")
    at_us = None if at_ms is None else round(at_ms * _US_PER_MS)
    kind = KINDS.get(link["kind"])
    operands = {str(name): as_tuples(value) for name, value in link["operands"].items()}
    if kind is None or not _has_words(kind, operands):
        # A rule that is not installed here, or another release of harrow, wrote it: only its text
        # can be shown.
        return recorded.conclude(text=str(link["text"]))
    if not isinstance(actor, int | str | None):
        raise TypeError(f"no actor is called {actor}")
    return Link(
        kind=kind,
        at_us=at_us,
        actor=actor,
        operands=operands,
        decides=bool(link.get("decides")),
        strike=link.get("strike"),
    )


def _has_words(kind: LinkKind[...], operands: Mapping[str, Any]) -> bool:
    """Return whether a kind's phrase accepts these operands.

    A compiled phrase has no signature to inspect, so it is called.
    """
    try:
        kind.phrase(**operands)
    except TypeError:
        return False
    return True


def as_tuples(value: Any) -> Any:
    """Convert lists to tuples, as links and traces have them; JSON has only lists."""
    return tuple(map(as_tuples, value)) if isinstance(value, list) else value


def _preventions(entry: Mapping[str, Any]) -> tuple[Prevention, ...]:
    kinds = ("preventions", "tried_in_vain", "not_tried")
    ways: Sequence[Mapping[str, Any]] = [way for kind in kinds for way in entry.get(kind, ())]
    texts: Sequence[str] = entry.get("prevented_by", ())
    return tuple(
        Prevention(
            str(way["kind"]),
            str(way["name"]),
            way["value"],
            # Runs of 0.2 have the texts in a list of their own, and no trials.
            str(way.get("text", texts[place] if place < len(texts) else way["name"])),
            _remedy(way.get("remedy", {})),
            trial=_trial(way),
            meaning=str(way.get("meaning", "")),
        )
        for place, way in enumerate(ways)
    )


def _remedy(recorded: Mapping[str, Any]) -> Remedy:
    return Remedy(
        settings=tuple(recorded.get("settings", {}).items()),
        release=recorded.get("release"),
        switches=tuple(recorded.get("switches", {}).items()),
        fields=tuple((name, as_tuples(value)) for name, value in recorded.get("fields", {}).items()),
    )


def _refutation(recorded: Mapping[str, Any] | None) -> Refutation | None:
    if recorded is None:
        return None
    return Refutation(**{name: as_tuples(value) for name, value in recorded.items()})


def _trial(way: Mapping[str, Any]) -> Trial | None:
    """Return the trial of a remedy; older runs recorded only whether the remedy held."""
    trial = way.get("trial")
    if trial is not None:
        fields = {name: as_tuples(value) for name, value in trial.items() if name != "refuted_by"}
        return Trial(**fields, refuted_by=_refutation(trial.get("refuted_by")))
    held = way.get("held")
    return None if held is None else Trial(outcome=TRIED_HELD if held else REFUTED)
