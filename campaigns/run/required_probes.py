"""Checks that runs reach the rare states that a campaign requires (``expect: {probes: [...]}``).

A probe recognises such a state. If a plan runs only once, that run has to reach every required
probe. If it runs with several seeds, at least one of the runs has to reach each probe, because the
states are rare. If no run reaches a probe, the runs are inconclusive: nothing went wrong, but the
campaign did not test the state that it is about.
"""

from collections.abc import Iterable

from harrow.campaigns.language.spelling import run_name
from harrow.campaigns.probes.probes import never_reached
from harrow.campaigns.run.run_result import RunResult
from harrow.checks.finding import INCONCLUSIVE, VIOLATED
from harrow.cluster_model.lazy_dataclass import dataclass, replace


def as_only_run(result: RunResult) -> RunResult:
    """Judge the only run of a plan: it is inconclusive if it did not reach a required probe.

    An unexpected violation stays a violation.
    """
    verdict = result.verdict
    if not result.probes_missed or (verdict.status == VIOLATED and not result.expected):
        return result
    verdict = replace(
        verdict, status=INCONCLUSIVE, reasons=(*verdict.reasons, _never_reached_text(result.probes_missed))
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
        return f"{run_name(self.campaign, self.variant)}: {_never_reached_text(self.probes)} (in {self.runs} {'run' if self.runs == 1 else 'runs'})"


class RequiredProbes:
    """Collects, over all runs of each plan, the required probes that none of them has reached."""

    def __init__(self) -> None:
        self._plans: dict[tuple[str, str | None, str], UnreachedProbes] = {}

    def add(self, result: RunResult) -> None:
        campaign, variant, probes = result.plan.campaign, result.plan.variant, result.plan.expect.probes
        # The trace of a real cluster cannot show all probes, so such runs do not count.
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


def _never_reached_text(probes: Iterable[str]) -> str:
    return f"never reached: {', '.join(probes)}"
