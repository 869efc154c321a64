"""Writes the promises, and the anomalies of a history, as Markdown."""

from collections.abc import Iterable, Sequence

from harrow.checks.history.anomalies import ANOMALIES
from harrow.checks.link import KINDS
from harrow.checks.rules.catalogue import RULES


def promise_table() -> str:
    """Return a row for each rule: what promises it, what permits exceptions, and since when."""
    rows = (
        (f"`{name}`", _listed(promise.promised_by), _listed(promise.permitted_by), promise.releases)
        for name, promise in ((name, rule.promise) for name, rule in RULES.items())
    )
    return _table(("rule", "promised by", "permitted by", "releases"), rows)


def anomaly_table() -> str:
    """Return each anomaly of a history with its definition."""
    return _table(
        ("anomaly", "definition"),
        ((f"`{name}`", anomaly.definition) for name, anomaly in ANOMALIES.items()),
    )


def no_remedy_table() -> str:
    """Return each cause that nothing prevents, with the reason."""
    # Sorted, because the kinds come in the order in which their modules happen to be imported.
    causes = [KINDS[name] for name in sorted(KINDS) if KINDS[name].no_remedy]
    return _table(
        ("cause", "what happened", "why nothing prevents it"),
        ((f"`{kind.name}`", (kind.phrase.__doc__ or "").strip(), kind.no_remedy) for kind in causes),
    )


def _listed(things: Sequence[str]) -> str:
    return "; ".join(things) or "nothing"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
