"""Sums up the trials of a fault model."""

from collections import Counter
from functools import cached_property

from harrow.campaigns.assess.fault_model import FaultModel
from harrow.campaigns.assess.trials import KINDS_OF_DAMAGE, FaultTrial
from harrow.campaigns.record.report import reproduce_command
from harrow.checks.finding import HELD, INCONCLUSIVE, PERMITTED, VIOLATED, worst
from harrow.checks.service.levels import percentile
from harrow.cluster_model.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PermittedDamage:
    """What a setting permitted, or, if ``setting`` is None, what broke a promise.

    ``runs`` counts the trials with such records, and ``records_max`` the records in the worst one.
    """

    fate: str
    setting: str | None
    runs: int
    records_max: int


@dataclass(frozen=True, kw_only=True)
class ModelTally:
    """The trials of one fault model. It has none if the model does not fit the cluster."""

    model: FaultModel
    trials: tuple[FaultTrial, ...] = ()

    @cached_property
    def conclusive(self) -> tuple[FaultTrial, ...]:
        return tuple(trial for trial in self.trials if trial.is_conclusive)

    @property
    def inconclusive(self) -> int:
        """The number of trials in which no fault struck, or that could not be judged."""
        return len(self.trials) - len(self.conclusive)

    @property
    def status(self) -> str:
        """The worst status of the conclusive trials; inconclusive without any."""
        return worst(trial.status for trial in self.conclusive)

    @property
    def not_tried(self) -> str:
        """Why the cluster was not tried; empty if it was."""
        if self.model.plan is None:
            return self.model.unfit
        if not self.trials:
            return "no run finished"
        return "" if self.conclusive else self.usual_reason()

    def usual_reason(self) -> str:
        """Return the most frequent reason why a trial is inconclusive."""
        reasons = Counter(trial.reasons[0] for trial in self.trials if trial.reasons)
        return reasons.most_common(1)[0][0] if reasons else "no fault struck"

    def records_max(self, fate: str) -> int:
        """Return how many records had a fate in the worst trial."""
        return max((trial.count(fate) for trial in self.conclusive), default=0)

    def status_of(self, fate: str) -> str:
        """Return whether a fate broke a promise, was permitted, or did not occur."""
        settings = {setting for trial in self.conclusive for setting in trial.damage.get(fate, {})}
        if not self.conclusive:
            return INCONCLUSIVE
        return VIOLATED if None in settings else PERMITTED if settings else HELD

    def damage(self) -> tuple[PermittedDamage, ...]:
        """Return what each setting permitted, and what broke a promise."""
        found: dict[tuple[str, str | None], list[int]] = {}
        for trial in self.conclusive:
            for fate, by_setting in trial.damage.items():
                for setting, records in by_setting.items():
                    found.setdefault((fate, setting), []).append(records)
        return tuple(
            PermittedDamage(fate=fate, setting=setting, runs=len(records), records_max=max(records))
            for (fate, setting), records in found.items()
        )

    def broken(self) -> Counter[str]:
        """Return the rules whose promises were broken, with the number of trials."""
        return Counter(rule for trial in self.conclusive for rule in trial.broken)

    @property
    def outage_p50_us(self) -> int:
        """The median of the longest outages of the trials."""
        return percentile(sorted(trial.outage_us for trial in self.conclusive) or [0], 50)

    @property
    def outage_max_us(self) -> int:
        return max((trial.outage_us for trial in self.conclusive), default=0)

    @property
    def longest_max_us(self) -> int:
        """The longest time without an ack, even if it was too short for an outage."""
        return max((trial.longest_us for trial in self.conclusive), default=0)

    def worst(self) -> FaultTrial | None:
        """Return the worst trial: the one that broke most, lost most, or had the longest outage."""
        candidates = self.conclusive or self.trials
        return max(candidates, key=_badness, default=None)

    def reproduce(self, trial: FaultTrial) -> str:
        """Return the command that repeats a trial."""
        return reproduce_command(self.model.argument, trial.seed, None, self.model.overrides)


def _badness(trial: FaultTrial) -> tuple[int, ...]:
    # Seeds are compared last, so that the answer does not depend on the order of the trials.
    return (len(trial.broken), *map(trial.count, KINDS_OF_DAMAGE), trial.outage_us, -trial.seed)
