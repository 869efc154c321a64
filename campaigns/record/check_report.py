"""Reports on a recorded history: the JSON of `harrow check`, and the size of the history."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

from harrow.campaigns.record.report import finding_as_mapping
from harrow.campaigns.version import version
from harrow.checks.finding import Finding, Verdict
from harrow.checks.history.index import NO_PROCESS, HistoryIndex
from harrow.cluster_model.lazy_dataclass import dataclass

SCHEMA: Final = "harrow.check/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class HistorySize:
    """The size of a history. ``lines`` counts invocations and completions of operations.

    ``sent``, ``acked`` and ``polled`` count records.
    """

    lines: int
    processes: int
    partitions: int
    sent: int
    acked: int
    polled: int


def size_of(history: HistoryIndex) -> HistorySize:
    """Return the size of a history. A record that was polled repeatedly counts once."""
    removed = history.removed
    return HistorySize(
        lines=len(history.processes) if removed is None else removed.lines,
        processes=len(set(history.processes) - {NO_PROCESS}) if removed is None else removed.processes,
        partitions=len(history.partitions),
        sent=history.sends_total,
        acked=history.acked_total,
        polled=history.polled_total,
    )


def check_document(verdict: Verdict, size: HistorySize, name: str) -> dict[str, Any]:
    """Return the JSON document. Its ``anomalies`` include those that are permitted.

    If a rule has very many anomalies, some are not listed, but ``count`` includes them.
    """
    return {
        "schema": SCHEMA,
        "version": version(),
        "verdict": verdict.status,
        "reasons": list(verdict.reasons),
        "history": {"file": name, **asdict(size)},
        "anomalies": {
            rule: [_anomaly(finding) for finding in judged.findings]
            for rule, judged in verdict.rules.items()
            if judged.findings
        },
        "rules": {
            rule: {
                "status": judged.status,
                "count": judged.count,
                "listed": len(judged.findings),
                "promise": judged.promise,
            }
            for rule, judged in verdict.rules.items()
        },
    }


def _anomaly(finding: Finding) -> Mapping[str, Any]:
    """Return a finding, with its partition under the name that Jepsen uses: ``key``."""
    mapping = finding_as_mapping(finding)
    return {"key": mapping.pop("partition"), **mapping}
