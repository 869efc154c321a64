"""Runs fault models at points of the lattice, and sums up what the runs showed."""

from collections.abc import Iterable
from dataclasses import field
from statistics import median_low

from harrow.campaigns.advise.harm import Harm, harms_of
from harrow.campaigns.assess.trials import FaultTrial, trial_of
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import collector_off, run_plan
from harrow.campaigns.run.workers.workers import Workers
from harrow.cluster_model.lazy_dataclass import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class PointTrial:
    """What one run showed: its harm, worst first, and its service.

    ``copies`` is how many replicas have a record at the end, on average, times a thousand.
    """

    harms: tuple[Harm, ...]
    run: FaultTrial
    copies: int | None = None

    @property
    def why_not(self) -> str:
        """Why the run shows nothing, and does not count; empty if it does."""
        if self.run.is_conclusive:
            return ""
        return "; ".join(self.run.reasons) or "no fault struck"


def run_trial(plan: Plan, seed: int, workers: Workers) -> PointTrial:
    with collector_off():
        result = run_plan(plan, seed, check=workers.check, measured=True)
        return PointTrial(harms=tuple(harms_of(result)), run=trial_of(result), copies=_copies(result))


def _copies(result: RunResult) -> int | None:
    logs = [
        [log.leo for log in replicas.values()] for replicas in result.evidence.replicas.values() if replicas
    ]
    records = sum(map(max, logs))
    return sum(map(sum, logs)) * 1_000 // records if records else None


@dataclass(frozen=True, slots=True, kw_only=True)
class PointCosts:
    """What a point costs: copies of a record, time to an ack without faults, the longest outage.

    Copies and times are medians of runs without faults. A cost is None if no run could measure it.
    """

    copies: int | None
    ack_p50_us: int | None
    ack_p99_us: int | None
    outage_us: int

    def in_order(self) -> tuple[int, ...]:
        """Return the costs by importance: disks and networks first, then latency, then outages."""
        return tuple(cost or 0 for cost in (self.copies, self.ack_p50_us, self.ack_p99_us, self.outage_us))


def without_faults(plan: Plan) -> Plan:
    """Return a plan with the same work in which nothing breaks."""
    return replace(plan, faults=(), script=())


@dataclass(slots=True)
class PointTally:
    """The trials of a point, by fault model and seed; ``calm`` are runs without faults."""

    trials: dict[tuple[int, int], PointTrial] = field(default_factory=dict)
    calm: list[PointTrial] = field(default_factory=list)

    def tried(self, model: int) -> int:
        return sum(of == model for of, _ in self.trials)

    def counted(self, model: int) -> int:
        """Return how many trials of a fault model showed something."""
        return sum(not trial.why_not for (of, _), trial in self.trials.items() if of == model)

    def why_not(self, model: int) -> str:
        """Return the most frequent reason why trials of a fault model show nothing."""
        reasons = [trial.why_not for (of, _), trial in self.trials.items() if of == model and trial.why_not]
        return max(reasons, key=reasons.count, default="")

    def costs(self, seeds: range) -> PointCosts:
        """Return the costs. Outages count in trials with these seeds, the same for all points."""
        outages = [
            trial.run.outage_us
            for (_, seed), trial in self.trials.items()
            if seed in seeds and not trial.why_not
        ]
        return PointCosts(
            copies=_middle(trial.copies for trial in self.calm),
            ack_p50_us=_middle(trial.run.ack_p50_us for trial in self.calm),
            ack_p99_us=_middle(trial.run.ack_p99_us for trial in self.calm),
            outage_us=max(outages, default=0),
        )


def _middle(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return median_low(known) if known else None
