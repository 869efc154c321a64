"""Bounds of service levels that a run misses, as failures that can be shrunk."""

from collections.abc import Collection, Iterator
from typing import Final

from harrow.campaigns.language.plan import Expectation
from harrow.campaigns.language.units import rough_duration_text
from harrow.campaigns.record.service_report import outage_sentence
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.service import Bound, bounds_of, expectation_of
from harrow.checks.finding import Finding
from harrow.checks.link import IN_HISTORY, Link, claim, link
from harrow.checks.service.levels import ServiceLevels
from harrow.checks.service.outages import Outage
from harrow.cluster_model.events import Text
from harrow.cluster_model.history import FAIL, INFO
from harrow.cluster_model.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class MissedBound:
    """A bound of a service level that a run misses.

    ``cause`` says why, without names and numbers. For sends without an ack it is their error. For
    other bounds it is why the longest time without an ack began and how it ended: latency during an
    election is a different failure from latency until the broker is back, or without a fault.
    """

    bound: Bound
    cause: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.bound.key

    def shown_by(self, result: RunResult) -> Finding | None:
        """Return where a run misses the bound for the same cause, None if it does not."""
        missed = _missed(self.bound, result)
        return None if missed is None or missed[0] != self else missed[1]

    def sentence(self, result: RunResult) -> str:
        """Return in words what a run shows."""
        value = self.bound.value(result.service)
        assert value is not None, "the run misses the bound"
        return f"missed {self.name} {self.bound.wanted}, with {self.bound.text(value)}"

    def expectation(self, _: RunResult) -> Expectation:
        """Return what a campaign expects that shows this failure."""
        return Expectation(service=expectation_of([self.bound]))


def bound_failures(result: RunResult) -> dict[MissedBound, Finding]:
    """Return the bounds that a run misses by serving clients too badly, and where.

    Bounds that good service misses are left out: every smaller campaign misses them.
    """
    bounds = bounds_of(result.plan.expect.service)
    found = (_missed(bound, result) for bound in bounds if bound.excludes_bad_service)
    return dict(missed for missed in found if missed is not None)


def _missed(bound: Bound, result: RunResult) -> tuple[MissedBound, Finding] | None:
    levels = result.service
    value = bound.value(levels)
    if value is None or bound.is_kept_by(value):
        return None
    for unacked in _unacked(result, _OUTCOMES.get(bound.measure, ())):
        (ended,) = unacked.chain
        return MissedBound(bound=bound, cause=(ended.operands["error"],)), unacked
    longest = _longest_outage(levels)
    if longest is None:
        return MissedBound(bound=bound), Finding(partition="", chain=())
    chain = _story(longest) if bound.measure == "outage" else ()
    cause = longest.began, longest.ended
    return MissedBound(bound=bound, cause=cause), Finding(partition=longest.partition, chain=chain)


def _longest_outage(levels: ServiceLevels) -> Outage | None:
    outages = (level.longest for level in levels.partitions.values())
    return max(
        (outage for outage in outages if outage is not None), key=lambda each: each.length_us, default=None
    )


def _story(outage: Outage) -> tuple[Link, ...]:
    length = rough_duration_text(outage.length_us)
    return (
        acks_stopped(outage.start_us, None, partition=outage.partition),
        acks_returned(outage.end_us, None, partition=outage.partition, length=length),
        outage_explained.conclude(reasons=outage_sentence(outage)),
    )


_OUTCOMES: Final = {"failed": (FAIL,), "unknown": (INFO,), "acked": (FAIL, INFO)}
"""The outcomes of sends that make a run miss a bound of a measure."""


def _unacked(result: RunResult, outcomes: Collection[str]) -> Iterator[Finding]:
    """Yield the sends with one of the outcomes, each with its error."""
    for operation in result.evidence.operations if outcomes else ():
        if operation.type in outcomes:
            for partition, _, value in operation.sends():
                error = operation.error or operation.type
                ended = send_ended(operation.time_us, None, value=str(value), error=error)
                yield Finding(partition=partition, chain=(ended,))


@link("acks_stopped", impersonal=True, needs_nothing_because=IN_HISTORY)
def acks_stopped(*, partition: Text) -> str:
    """A partition acknowledges nothing from now on."""
    return f"a producer sent to {partition}, and got no ack"


@link("acks_returned", impersonal=True, needs_nothing_because=IN_HISTORY)
def acks_returned(*, partition: Text, length: Text) -> str:
    """The longest time without an ack is over."""
    return f"{partition} had acked nothing for {length}"


@claim("outage_explained")
def outage_explained(*, reasons: Text) -> str:
    """Why an outage began, and how it ended."""
    return reasons


@link("send_ended", impersonal=True, needs_nothing_because=IN_HISTORY)
def send_ended(*, value: Text, error: Text) -> str:
    """A producer gave a send up."""
    return f"{value} ended without an ack: {error}"
