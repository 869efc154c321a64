"""Checks the service levels of a run against the bounds in `expect.service`."""

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
        def value(levels: ServiceLevels) -> int | None:
            latency = latency_of(levels)
            return None if latency is None else int(getattr(latency, f"{percentile}_us"))

        return value

    return {f"{key}_{percentile}": measure(percentile) for percentile in ("p50", "p99", "max")}


MEASURES: Final[Mapping[str, Measure]] = {
    "outage": lambda levels: levels.longest_us if levels.total.sent else None,
    **_latencies("ack", lambda levels: levels.total.ack_latency),
    **_latencies("end_to_end", lambda levels: levels.end_to_end),
    **_latencies("transaction", lambda levels: levels.transactions),
    "rebalance": lambda levels: None if levels.rebalances is None else levels.rebalances.max_us,
    "unread": lambda levels: None if levels.unread is None else levels.unread.length_us,
    "acked": lambda levels: levels.acked_millionths,
    "failed": lambda levels: levels.total.failed if levels.total.sent else None,
    "unknown": lambda levels: levels.total.unknown if levels.total.sent else None,
    "lag": lambda levels: max((consumer.lag_max for consumer in levels.consumers.values()), default=None),
}
"""The measures that `expect.service` can bound, by key. A measure is None if there is no value."""


def missed_bounds(expected: ServiceExpectation | None, result: RunResult) -> Iterator[MissedExpectation]:
    if expected is None:
        return
    for item in fields_of(ServiceExpectation):
        bound = item.value_in(expected)
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
