"""Tries fault models on a cluster: runs each with many seeds, and keeps what the runs showed."""

from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from typing import Final

from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import collector_off, run_plan
from harrow.campaigns.run.workers.workers import Workers, each_by
from harrow.checks.finding import INCONCLUSIVE
from harrow.checks.promise import G1A, PRECOMMITTED_READ, TORN_TRANSACTION
from harrow.checks.rule import DOUBLED, LOST, REORDERED
from harrow.checks.rules.catalogue import RULES
from harrow.checks.service.outages import OUTAGE_MIN_US
from harrow.cluster_model.lazy_dataclass import dataclass

FATES: Final = (LOST, DOUBLED, REORDERED)
"""What can happen to a record, the worst first."""
UNCOMMITTED: Final = "uncommitted"
KINDS_OF_DAMAGE: Final = (*FATES, UNCOMMITTED)
UNCOMMITTED_RULES: Final = (G1A, PRECOMMITTED_READ, TORN_TRANSACTION)
"""The rules about records that consumers receive although their transaction did not commit."""

Damage = Mapping[str, Mapping[str | None, int]]
"""How many records were lost, for example, by the setting that permits it; None if none does.

If a run shows no damage of these kinds, but other anomalies, the keys are names of rules."""

DAMAGING: Final = {
    **{name: fate for name, rule in RULES.items() if (fate := rule.fate or rule.fate_for_readers) in FATES},
    **dict.fromkeys(UNCOMMITTED_RULES, UNCOMMITTED),
}
"""The rules whose findings are about damaged records, each with what happened to them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultTrial:
    """What one run of a fault model showed.

    ``damage`` counts the records of the findings by the kind of damage and by the setting that
    permits it. ``broken`` are the rules whose promises were broken. ``longest_us`` is the longest
    time without an ack, and ``outage_us`` the same if it was an outage. ``reasons`` say why the run
    is inconclusive.
    """

    seed: int
    status: str
    reasons: tuple[str, ...]
    is_struck: bool
    damage: Damage
    broken: tuple[str, ...]
    longest_us: int
    sent: int
    acked: int
    ack_p50_us: int | None
    ack_p99_us: int | None

    @property
    def is_conclusive(self) -> bool:
        """Whether the fault model struck, and the run could be judged."""
        return self.is_struck and self.status != INCONCLUSIVE

    @property
    def outage_us(self) -> int:
        return self.longest_us if self.longest_us >= OUTAGE_MIN_US else 0

    def count(self, fate: str) -> int:
        """Return how many records had a fate."""
        return sum(self.damage.get(fate, {}).values())


def tried(plan: Plan, seed: int, workers: Workers) -> FaultTrial:
    """Run a fault model once."""
    with collector_off():
        return trial_of(run_plan(plan, seed, check=workers.check, measured=True))


def trial_of(result: RunResult) -> FaultTrial:
    damage = _damage(result, DAMAGING) or _damage(result, {name: name for name in RULES})
    levels = result.measured
    latency = levels.total.ack_latency
    return FaultTrial(
        seed=result.seed,
        status=result.verdict.status,
        reasons=result.verdict.reasons,
        is_struck=_is_struck(result),
        damage={fate: dict(counts) for fate, counts in damage.items()},
        broken=tuple(name for name, judged in result.verdict.rules.items() if judged.broken),
        longest_us=levels.longest_us,
        sent=levels.total.sent,
        acked=levels.total.acked,
        ack_p50_us=None if latency is None else latency.p50_us,
        ack_p99_us=None if latency is None else latency.p99_us,
    )


def _damage(result: RunResult, kinds: Mapping[str, str]) -> dict[str, Counter[str | None]]:
    """Return the damage that a run shows. *kinds* has the kind of damage that each rule finds."""
    damage: dict[str, Counter[str | None]] = {}
    for name, kind in kinds.items():
        judged = result.verdict.rules.get(name)
        for finding in () if judged is None else judged.findings:
            damage.setdefault(kind, Counter())[finding.permitted_by] += 1
    return damage


def _is_struck(result: RunResult) -> bool:
    """Return whether a fault struck that is more than the load under which the others strike.

    A fault has no effect if it finds no victim, such as the leader of a partition without one.
    """
    faults = (fault for injection in result.plan.faults for fault in injection.faults)
    is_load_only = all(fault.is_load for fault in faults)
    return any(is_load_only or struck.origin is None or not struck.origin.is_load for struck in result.faults)


def trials(plans: Sequence[Plan], seeds: range, workers: Workers) -> Generator[FaultTrial]:
    """Yield the trials of the plans of fault models: all with one seed, then the next.

    So all fault models have as many trials if time runs out. Closing the generator stops the
    workers.
    """
    return each_by(tried, ((plan, seed) for seed in seeds for plan in plans), workers)
