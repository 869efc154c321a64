"""What a search for a smaller failure preserves: an anomaly of a rule, or a missed bound."""

from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.search.missed_bound import MissedBound, bound_failures
from harrow.campaigns.search.signature import Signature, signatures
from harrow.checks.finding import Finding

Failure = Signature | MissedBound


def failures(result: RunResult, *, permitted: bool = False) -> dict[Failure, Finding]:
    """Return the failures of a run, each with its first finding; missed bounds come last."""
    anomalies, bounds = signatures(result, permitted=permitted), bound_failures(result)
    found: list[tuple[Failure, Finding]] = [*anomalies.items(), *bounds.items()]
    return dict(found)
