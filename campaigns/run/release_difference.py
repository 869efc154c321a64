"""Finds the behaviour because of which a campaign ends differently on another release.

A campaign is written for one release, and runs on another with an unexpected outcome. The search
repeats the run with behaviours reverted to their values in the first release: first all in which
the two releases differ, then half of these, and so on, until one behaviour is left. To revert it is
enough if the run then ends as the campaign expects, or else if the script gets past the step at
which it waited in vain. So the search never names a behaviour without a run that shows its effect.
If no single behaviour is enough, it names none.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.run_result import ReleaseDifference, RunResult
from harrow.campaigns.run.runner import run_plan
from harrow.checks.finding import INCONCLUSIVE
from harrow.cluster_model.lazy_dataclass import replace
from harrow.cluster_model.release.profiles import RELEASES, REPAIRS, SWITCHES
from harrow.cluster_model.release.switch import version_of
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND

_EVENTS_MAX: Final = 100_000
_SCRIPT_US: Final = 60 * US_PER_SECOND
"""How long the script of a trial may wait in addition to the times that its steps set. A longer
wait is probably in vain, and then the trial shows nothing."""


def with_difference(result: RunResult, run: Callable[[Plan, int], RunResult] = run_plan) -> RunResult:
    """Return the result with the behaviour that explains its outcome, if trials show one."""
    plan = result.plan
    if plan.written_release is None or result.target is not None or _ends_as_expected(result):
        return result
    return replace(result, difference=_Trials(result, plan.written_release, run).difference())


def _ends_as_expected(result: RunResult) -> bool:
    expects_nothing = result.plan.expect.is_empty()
    is_decided = result.verdict.status != INCONCLUSIVE or result.plan.expect.verdict == INCONCLUSIVE
    return expects_nothing or (is_decided and result.expected and not result.missed)


class _Trials:
    """Runs of a plan with some behaviours reverted."""

    def __init__(
        self, result: RunResult, written_release: str, run: Callable[[Plan, int], RunResult]
    ) -> None:
        self._result = result
        self._run = run
        self._written_release = written_release
        self._written_values = _differing_behaviours(result.plan, written_release)
        self._results: dict[frozenset[tuple[str, Any]], RunResult] = {}

    def difference(self) -> ReleaseDifference | None:
        """Return the one behaviour that is enough to revert, if there is one.

        With it the run ends as expected or, if no behaviour achieves that, the script gets further.
        """
        for step, is_enough in (
            (None, _ends_as_expected),
            (self._result.steps_taken + 1, self._gets_further),
        ):
            if step is not None and step > len(self._result.plan.script):
                return None
            switch = self._sufficient_switch(is_enough)
            if switch is not None:
                since = self._since(switch, is_enough)
                return ReleaseDifference(
                    switch=switch, value=self._written_values[switch], since=since, step=step
                )
        return None

    def _sufficient_switch(self, is_enough: Callable[[RunResult], bool]) -> str | None:
        names = tuple(self._written_values)
        if not names or not is_enough(self._trial_with(names)):
            # To revert all behaviours may change the run too much, so try each repair alone.
            repair_switches = dict.fromkeys(repair.switch for repair in REPAIRS.values())
            return next(
                (
                    name
                    for name in repair_switches
                    if name in self._written_values and is_enough(self._trial_with((name,)))
                ),
                None,
            )
        while len(names) > 1:
            middle = len(names) // 2
            halves = (names[:middle], names[middle:])
            names = next((half for half in halves if is_enough(self._trial_with(half))), ())
        return names[0] if names else None

    def _gets_further(self, trial: RunResult) -> bool:
        return trial.steps_taken > self._result.steps_taken

    def _since(self, switch: str, is_enough: Callable[[RunResult], bool]) -> str | None:
        """Return the first release after the campaign's whose value of *switch* is not enough.

        None if the run was on an earlier release than the campaign's.
        """
        first, last = version_of(self._written_release), version_of(self._result.plan.kafka)
        for release, value in SWITCHES[switch].history():
            is_between = release and first < version_of(release) <= last
            if is_between and not is_enough(self._trial({switch: value})):
                return release
        return None

    def _trial_with(self, names: Sequence[str]) -> RunResult:
        return self._trial({name: self._written_values[name] for name in names})

    def _trial(self, behaviours: Mapping[str, Any]) -> RunResult:
        key = frozenset(behaviours.items())
        if key not in self._results:
            plan = self._result.plan
            trial = replace(
                plan,
                behaviours={**plan.behaviours, **behaviours},
                events_limit=min(plan.events_limit, _EVENTS_MAX),
                script_limit_us=min(plan.script_limit_us, _script_time_us(plan) + _SCRIPT_US),
            )
            self._results[key] = self._run(trial, self._result.seed)
        return self._results[key]


def _script_time_us(plan: Plan) -> int:
    """Return how long the script takes if no step has to wait for its condition."""
    now_us = 0
    for step in plan.script:
        now_us = max(now_us + (step.after_us or 0), step.at_us or 0)
    return now_us


def _differing_behaviours(plan: Plan, written_release: str) -> dict[str, Any]:
    """Return how behaviours of *written_release* differ from the plan's release: name and value."""
    if written_release not in RELEASES:
        return {}
    return {
        name: switch.value_in(written_release)
        for name, switch in SWITCHES.items()
        if name not in plan.behaviours and switch.value_in(written_release) != switch.value_in(plan.kafka)
    }
