"""Rare states that a campaign requires: ``expect: {probes: [...]}``.

A single run of a plan has to reach every probe by itself. Of several seeds, one is enough for each
probe: a rare state is rare. A probe that no run reached makes the runs inconclusive. Nothing went
wrong, but the campaign never tested the state that it is for.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from harrow.campaigns.language.spelling import run_name
from harrow.campaigns.probes.probes import never_reached
from harrow.campaigns.run.run_result import RunResult
from harrow.checks.finding import INCONCLUSIVE, VIOLATED


def as_only_run(result: RunResult) -> RunResult:
    """Return the only run of its plan, inconclusive if it missed a required probe.

    An unexpected violation stays a violation.
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
    """Required probes that no run of a plan reached."""

    campaign: str
    variant: str | None
    probes: tuple[str, ...]
    runs: int

    def reason(self) -> str:
        return f"{run_name(self.campaign, self.variant)}: {_never_reached(self.probes)} (in {self.runs} {'run' if self.runs == 1 else 'runs'})"


class RequiredProbes:
    """Collects required probes over several runs of each plan."""

    def __init__(self) -> None:
        self._plans: dict[tuple[str, str | None, str], UnreachedProbes] = {}

    def add(self, result: RunResult) -> None:
        campaign, variant, probes = result.plan.campaign, result.plan.variant, result.plan.expect.probes
        # A real cluster does not show all probes, and one that never started shows none.
        if probes and result.target is None:
            key = (campaign, variant, result.plan_digest())
            before = self._plans.get(key)
            self._plans[key] = UnreachedProbes(
                campaign=campaign,
                variant=variant,
                probes=never_reached((result.probes,), before.probes if before else probes),
                runs=before.runs + 1 if before else 1,
            )

    def unreached(self) -> tuple[UnreachedProbes, ...]:
        return tuple(unreached for unreached in self._plans.values() if unreached.probes)


def _never_reached(probes: Iterable[str]) -> str:
    return f"never reached: {', '.join(probes)}"
