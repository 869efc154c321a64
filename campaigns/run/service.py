"""Checks the service levels of a run against the bounds in `expect.service`."""

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Final

from harrow.campaigns.language.literals import duration_text, field_text
from harrow.campaigns.language.plan import ServiceExpectation
from harrow.campaigns.run.run_result import MissedExpectation, RunResult
from harrow.checks.service.levels import Latency, ServiceLevels
from harrow.cluster_model.fields import CountBoundMarker, DeclaredField, DurationBoundMarker, fields_of
from harrow.cluster_model.lazy_dataclass import dataclass

_COMPARISONS: Final[Mapping[str, Callable[[int, int], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


_ValueOf = Callable[[ServiceLevels], int | None]


@dataclass(frozen=True, slots=True)
class ServiceMeasure:
    """A measure of service levels. Its value is None if there was nothing to measure."""

    value: _ValueOf
    more_is_better: bool = False


def _latencies(key: str, latency_of: Callable[[ServiceLevels], Latency | None]) -> dict[str, ServiceMeasure]:
    def measure(percentile: str) -> _ValueOf:
        def value(levels: ServiceLevels) -> int | None:
            latency = latency_of(levels)
            return None if latency is None else int(getattr(latency, f"{percentile}_us"))

        return value

    return {
        f"{key}_{percentile}": ServiceMeasure(measure(percentile)) for percentile in ("p50", "p99", "max")
    }


MEASURES: Final[Mapping[str, ServiceMeasure]] = {
    "outage": ServiceMeasure(lambda levels: levels.longest_us if levels.total.sent else None),
    **_latencies("ack", lambda levels: levels.total.ack_latency),
    **_latencies("end_to_end", lambda levels: levels.end_to_end),
    **_latencies("transaction", lambda levels: levels.transactions),
    "rebalance": ServiceMeasure(
        lambda levels: None if levels.rebalances is None else levels.rebalances.max_us
    ),
    "unread": ServiceMeasure(lambda levels: None if levels.unread is None else levels.unread.length_us),
    "acked": ServiceMeasure(lambda levels: levels.acked_millionths, more_is_better=True),
    "failed": ServiceMeasure(lambda levels: levels.total.failed if levels.total.sent else None),
    "unknown": ServiceMeasure(lambda levels: levels.total.unknown if levels.total.sent else None),
    "lag": ServiceMeasure(
        lambda levels: max((consumer.lag_max for consumer in levels.consumers.values()), default=None)
    ),
}
"""The measures that `expect.service` can bound, by key."""


@cache
def _fields() -> Mapping[str, DeclaredField]:
    return {item.attribute: item for item in fields_of(ServiceExpectation)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A bound of a measure: its key, a comparison, and a limit in the unit of the measure."""

    measure: str
    comparison: str
    limit: int

    @property
    def key(self) -> str:
        return f"service.{_fields()[self.measure].key}"

    @property
    def wanted(self) -> str:
        """The comparison and the limit as campaigns write them."""
        return str(field_text(_fields()[self.measure].kind, (self.comparison, self.limit)))

    @property
    def excludes_bad_service(self) -> bool:
        """Whether a run misses the bound by serving clients too badly, not too well."""
        return self.comparison.startswith(">" if MEASURES[self.measure].more_is_better else "<")

    def value(self, levels: ServiceLevels) -> int | None:
        return MEASURES[self.measure].value(levels)

    def is_kept_by(self, value: int) -> bool:
        return _COMPARISONS[self.comparison](value, self.limit)

    def text(self, value: int) -> str:
        """Return a value of the measure as text."""
        return _value_text(_fields()[self.measure].kind, value)

    def option(self) -> str:
        """Return the argument of `--set` with which a campaign expects this."""
        return f"expect.{self.key}={self.wanted}"


def expectation_of(bounds: Iterable[Bound]) -> ServiceExpectation:
    """Return the expectation of only these bounds."""
    return ServiceExpectation(**{bound.measure: (bound.comparison, bound.limit) for bound in bounds})


def bounds_of(expected: ServiceExpectation | None) -> Iterator[Bound]:
    for measure, item in _fields().items() if expected is not None else ():
        bound = item.value_in(expected)
        if bound is not None:
            yield Bound(measure=measure, comparison=bound[0], limit=bound[1])


def missed_bounds(expected: ServiceExpectation | None, result: RunResult) -> Iterator[MissedExpectation]:
    for bound in bounds_of(expected):
        value = bound.value(result.measured)
        kind = f"{bound.key} {bound.wanted}"
        if value is None:
            message = f"{bound.key}: there was nothing to measure; expected {bound.wanted}"
            yield MissedExpectation(line=0, message=message, kind=kind)
        elif not bound.is_kept_by(value):
            message = f"{bound.key} was {bound.text(value)}; expected {bound.wanted}"
            yield MissedExpectation(line=0, message=message, kind=kind)


def _value_text(kind: type, value: int) -> str:
    if kind is DurationBoundMarker:
        return duration_text(value)
    return str(value) if kind is CountBoundMarker else f"{value / 10_000:g}%"
