"""Findings as ``run.json`` has them, read back: the way back from `harrow.campaigns.record.report`."""

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
    """Return what each rule said of a run.

    Raises:
        ArithmeticError, AttributeError, LookupError, TypeError or ValueError: it is not what `harrow run` writes.

    """
    return {str(name): _rule(judged) for name, judged in ({} if rules is None else rules).items()}


def _rule(judged: Mapping[str, Any]) -> RuleResult:
    findings = tuple(each for found in judged.get("findings", ()) for each in _findings(found))
    return RuleResult(status=str(judged["status"]), promise=str(judged.get("promise", "")), findings=findings)


def _findings(found: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield the findings of one cause; that of the first tells for all."""
    first = _finding(found)
    yield first
    for member in found.get("members", ())[1:]:
        yield replace(
            first, partition=str(member["partition"]), offset=member["offset"], value=member["value"]
        )


def _finding(found: Mapping[str, Any]) -> Finding:
    return Finding(
        partition=str(found["partition"]),
        chain=tuple(_link(link) for link in found.get("chain", ())),
        offset=found.get("offset"),
        value=found.get("value"),
        permitted_by=found.get("permitted_by"),
        prevented_by=_preventions(found),
        details=tuple((name, value) for name, value in found.items() if name not in _NAMED),
    )


def _link(link: Mapping[str, Any]) -> Link:
    at_ms, actor = link.get("at_ms"), link.get("actor")
    at_us = None if at_ms is None else round(at_ms * _US_PER_MS)
    kind = KINDS.get(link["kind"])
    operands = {str(name): as_tuples(value) for name, value in link["operands"].items()}
    if kind is None or not _has_words(kind, operands):
        # A rule that is not installed here wrote it, or another release of harrow: only its words are left.
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
    """Return whether today's phrase of a kind takes these operands. A compiled phrase has no signature to ask."""
    try:
        kind.phrase(**operands)
    except TypeError:
        return False
    return True


def as_tuples(value: Any) -> Any:
    """Return plain data as links and traces have it: JSON knows lists, and no tuples."""
    return tuple(map(as_tuples, value)) if isinstance(value, list) else value


def _preventions(found: Mapping[str, Any]) -> tuple[Prevention, ...]:
    kinds = ("preventions", "tried_in_vain", "not_tried")
    ways: Sequence[Mapping[str, Any]] = [way for kind in kinds for way in found.get(kind, ())]
    texts: Sequence[str] = found.get("prevented_by", ())
    return tuple(
        Prevention(
            str(way["kind"]),
            str(way["name"]),
            way["value"],
            # Runs of 0.2 have the words beside the data, and had tried nothing.
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
    """Return what came of a trial; older runs have no more of it than whether the remedy held."""
    trial = way.get("trial")
    if trial is not None:
        known = {name: as_tuples(value) for name, value in trial.items() if name != "refuted_by"}
        return Trial(**known, refuted_by=_refutation(trial.get("refuted_by")))
    held = way.get("held")
    return None if held is None else Trial(outcome=TRIED_HELD if held else REFUTED)
