"""Reads the findings in ``run.json``, which `harrow.campaigns.record.report` writes."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from harrow.checks.finding import Finding, RuleResult
from harrow.checks.link import KINDS, Link, LinkKind, recorded
from harrow.checks.prevention import REFUTED, TRIED_HELD, Prevention, Refutation, Remedy, Trial
from harrow.cluster_model.lazy_dataclass import replace

_US_PER_MS: Final = 1_000
_KNOWN_KEYS: Final = frozenset(
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
    """Yield the findings of one cause. They all get the chain of the first, which alone has one."""
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
        details=tuple((name, value) for name, value in entry.items() if name not in _KNOWN_KEYS),
    )


def _link(link: Mapping[str, Any]) -> Link:
    at_ms, actor = link.get("at_ms"), link.get("actor")
    at_us = None if at_ms is None else round(at_ms * _US_PER_MS)
    kind = KINDS.get(link["kind"])
    operands = {str(name): as_tuples(value) for name, value in link["operands"].items()}
    if kind is None or not _has_words(kind, operands):
        # A rule that is not installed here, or another release of harrow, wrote this link, so only
        # its text can be shown.
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
    """Convert lists to tuples: links and traces have tuples, but JSON has only lists."""
    return tuple(map(as_tuples, value)) if isinstance(value, list) else value


def _preventions(entry: Mapping[str, Any]) -> tuple[Prevention, ...]:
    kinds = ("preventions", "tried_in_vain", "not_tried")
    preventions: Sequence[Mapping[str, Any]] = [
        prevention for kind in kinds for prevention in entry.get(kind, ())
    ]
    texts: Sequence[str] = entry.get("prevented_by", ())
    return tuple(
        Prevention(
            str(prevention["kind"]),
            str(prevention["name"]),
            prevention["value"],
            # Runs of harrow 0.2 have the texts in a separate list, and no trials.
            str(prevention.get("text", texts[place] if place < len(texts) else prevention["name"])),
            _remedy(prevention.get("remedy", {})),
            trial=_trial(prevention),
            meaning=str(prevention.get("meaning", "")),
        )
        for place, prevention in enumerate(preventions)
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


def _trial(prevention: Mapping[str, Any]) -> Trial | None:
    """Return the trial of a remedy. Older runs recorded only whether the run held with it."""
    trial = prevention.get("trial")
    if trial is not None:
        fields = {name: as_tuples(value) for name, value in trial.items() if name != "refuted_by"}
        return Trial(**fields, refuted_by=_refutation(trial.get("refuted_by")))
    held = prevention.get("held")
    return None if held is None else Trial(outcome=TRIED_HELD if held else REFUTED)
