"""The service levels of a run, and whether they are within the bounds that a campaign expects."""

import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from harrow.campaigns.language.literals import duration_text, field_text
from harrow.campaigns.language.plan import ServiceExpectation
from harrow.campaigns.run.run_result import MissedExpectation, RunResult
from harrow.checks.service.levels import Latency, ServiceLevels
from harrow.cluster_model.fields import CountBoundMarker, DurationBoundMarker, fields_of

_COMPARISONS: Final[Mapping[str, Callable[[int, int], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


Measure = Callable[[ServiceLevels], int | None]


def _latencies(key: str, latency_of: Callable[[ServiceLevels], Latency | None]) -> dict[str, Measure]:
    def measure(percentile: str) -> Measure:
        def value(found: ServiceLevels) -> int | None:
            latency = latency_of(found)
            return None if latency is None else int(getattr(latency, f"{percentile}_us"))

        return value

    return {f"{key}_{percentile}": measure(percentile) for percentile in ("p50", "p99", "max")}


MEASURES: Final[Mapping[str, Measure]] = {
    "outage": lambda found: found.longest_us if found.total.sent else None,
    **_latencies("ack", lambda found: found.total.ack_latency),
    **_latencies("end_to_end", lambda found: found.end_to_end),
    **_latencies("transaction", lambda found: found.transactions),
    "rebalance": lambda found: None if found.rebalances is None else found.rebalances.max_us,
    "unread": lambda found: None if found.unread is None else found.unread.length_us,
    "acked": lambda found: found.acked_millionths,
    "failed": lambda found: found.total.failed if found.total.sent else None,
    "unknown": lambda found: found.total.unknown if found.total.sent else None,
    "lag": lambda found: max((consumer.lag_max for consumer in found.consumers.values()), default=None),
}
"""What a campaign can bound, by the key of `expect.service`; None where there was nothing to measure."""


def missed_bounds(expected: ServiceExpectation | None, result: RunResult) -> Iterator[MissedExpectation]:
    if expected is None:
        return
    for item in fields_of(ServiceExpectation):
        bound = item.of(expected)
        if bound is None:
            continue
        comparison, limit = bound
        value = MEASURES[item.attribute](result.measured)
        wanted = field_text(item.kind, bound)
        kind = f"service.{item.key} {wanted}"
        if value is None:
            message = f"service.{item.key}: there was nothing to measure; expected {wanted}"
            yield MissedExpectation(line=0, message=message, kind=kind)
        elif not _COMPARISONS[comparison](value, limit):
            message = f"service.{item.key} was {_value_text(item.kind, value)}; expected {wanted}"
            yield MissedExpectation(line=0, message=message, kind=kind)


def _value_text(kind: type, value: int) -> str:
    if kind is DurationBoundMarker:
        return duration_text(value)
    return str(value) if kind is CountBoundMarker else f"{value / 10_000:g}%"
