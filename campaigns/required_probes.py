"""Rare states that a campaign requires: ``expect: {probes: [...]}``.

A run that is the only one of its plan has to reach all of them by itself. Of several seeds one is
enough for each probe: a rare state is rare. What has not been reached makes the run, or the seeds
together, inconclusive: nothing was wrong, yet what the campaign is there to test never happened.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from campaigns.probes import never_reached
from campaigns.run_result import RunResult
from campaigns.spelling import run_name
from checks.finding import INCONCLUSIVE, VIOLATED


def as_only_run(result: RunResult) -> RunResult:
    """Return the only run of its plan, inconclusive if it missed a probe that is required.

    A violation that nobody expected remains one.
    """
    verdict = result.verdict
    if not result.probes_missed or (verdict.status == VIOLATED and not result.expected):
        return result
    verdict = replace(
        verdict, status=INCONCLUSIVE, reasons=(*verdict.reasons, _never_reached(result.probes_missed))
    )
    return replace(
        result,
        verdict=verdict,
        missed=tuple(missed for missed in result.missed if missed.line),
        expected=result.plan.expect.verdict == INCONCLUSIVE and result.expected,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreachedProbes:
    """Required probes that none of the runs of a plan reached."""

    campaign: str
    variant: str | None
    probes: tuple[str, ...]
    runs: int

    def reason(self) -> str:
        """Return it as a sentence."""
        return f"{run_name(self.campaign, self.variant)}: {_never_reached(self.probes)} (in {self.runs} {'run' if self.runs == 1 else 'runs'})"


@dataclass(slots=True)
class _Seeds:
    """The runs of one plan so far: how many, and which required probes none of them reached."""

    runs: int
    missed: tuple[str, ...]


@dataclass(slots=True)
class RequiredProbes:
    """The probes that are required of several runs, plan by plan."""

    _plans: dict[tuple[str, str | None, str], _Seeds] = field(default_factory=dict)

    def add(self, result: RunResult) -> None:
        """Count a run."""
        plan = result.plan
        if plan.expect.probes:
            key = (plan.campaign, plan.variant, result.plan_digest())
            seeds = self._plans.setdefault(key, _Seeds(0, plan.expect.probes))
            seeds.runs += 1
            seeds.missed = never_reached((result.probes,), seeds.missed)

    def unreached(self) -> tuple[UnreachedProbes, ...]:
        """Return what no run of its plan reached."""
        return tuple(
            UnreachedProbes(campaign=campaign, variant=variant, probes=seeds.missed, runs=seeds.runs)
            for (campaign, variant, _), seeds in self._plans.items()
            if seeds.missed
        )


def _never_reached(probes: Iterable[str]) -> str:
    return f"never reached: {', '.join(probes)}"
