"""Runs fault models at points of the lattice, and sums up what the runs showed."""

from dataclasses import field
from statistics import median_low

from harrow.campaigns.advise.harm import Harm, harms_of
from harrow.campaigns.assess.trials import FaultTrial, trial_of
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import collector_off, run_plan
from harrow.campaigns.run.workers.workers import Workers
from harrow.cluster_model.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
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


def run_trial(plan: Plan, seed: int, workers: Workers) -> Trial:
    with collector_off():
        result = run_plan(plan, seed, check=workers.check, measured=True)
        return Trial(harms=tuple(harms_of(result)), run=trial_of(result), copies=_copies(result))


def _copies(result: RunResult) -> int | None:
    logs = [
        [log.leo for log in replicas.values()] for replicas in result.evidence.replicas.values() if replicas
    ]
    records = sum(map(max, logs))
    return sum(map(sum, logs)) * 1_000 // records if records else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """What a point costs, in its trials: the medians of its runs, and the longest outage of all.

    A cost is None if no trial could measure it.
    """

    copies: int | None
    ack_p50_us: int | None
    ack_p99_us: int | None
    outage_us: int

    def in_order(self) -> tuple[int, ...]:
        """Return the costs by importance: disks and networks first, then latency, then outages."""
        return tuple(cost or 0 for cost in (self.copies, self.ack_p50_us, self.ack_p99_us, self.outage_us))


@dataclass(slots=True)
class Tally:
    """The trials of a point, by fault model and seed."""

    trials: dict[tuple[int, int], Trial] = field(default_factory=dict)

    def tried(self, model: int) -> int:
        return sum(of == model for of, _ in self.trials)

    def counted(self, model: int) -> int:
        """Return how many trials of a fault model showed something."""
        return sum(not trial.why_not for (of, _), trial in self.trials.items() if of == model)

    def why_not(self, model: int) -> str:
        """Return the most frequent reason why trials of a fault model show nothing."""
        reasons = [trial.why_not for (of, _), trial in self.trials.items() if of == model and trial.why_not]
        return max(reasons, key=reasons.count, default="")

    def costs(self, seeds: range) -> Costs:
        """Return the costs in the trials of these seeds. Points are compared on the same ones."""
        trials = [trial for (_, seed), trial in self.trials.items() if seed in seeds and not trial.why_not]

        def middle(values: list[int | None]) -> int | None:
            return median_low([value for value in values if value is not None] or [0]) or None

        return Costs(
            copies=middle([trial.copies for trial in trials]),
            ack_p50_us=middle([trial.run.ack_p50_us for trial in trials]),
            ack_p99_us=middle([trial.run.ack_p99_us for trial in trials]),
            outage_us=max((trial.run.outage_us for trial in trials), default=0),
        )
