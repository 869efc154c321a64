"""Finds the one behaviour of a release that makes a campaign for another release end differently.

The search makes trials, so it never names a behaviour without a run that shows it. It reverts the
behaviours in which the two releases differ: first all, then halves, until one is left that is
enough. A behaviour is enough if the run then has the outcome that the campaign expects, or else if
the script gets past the step where it waited in vain. If only several behaviours together help, or
none, the search names no behaviour.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.run_result import ReleaseDifference, RunResult
from harrow.campaigns.run.runner import run_plan
from harrow.checks.finding import INCONCLUSIVE
from harrow.cluster_model.release.profiles import RELEASES, REPAIRS, SWITCHES
from harrow.cluster_model.release.switch import version_of
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND

_EVENTS_MAX: Final = 100_000
_SCRIPT_US: Final = 60 * US_PER_SECOND
"""How long the script of a trial may take beyond its own times. A script that waits in vain shows
nothing."""


def with_difference(result: RunResult, run: Callable[[Plan, int], RunResult] = run_plan) -> RunResult:
    """Return the result with the behaviour that changes its outcome, if trials show one."""
    plan = result.plan
    if plan.written_release is None or result.target is not None or _is_as_written(result):
        return result
    return replace(result, difference=_Trials(result, plan.written_release, run).difference())


def _is_as_written(result: RunResult) -> bool:
    expects_nothing = result.plan.expect.is_empty()
    decided = result.verdict.status != INCONCLUSIVE or result.plan.expect.verdict == INCONCLUSIVE
    return expects_nothing or (decided and result.expected and not result.missed)


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
        """Return the behaviour that is enough alone.

        With it the run ends as expected, or, if no behaviour does that, the script gets further.
        """
        for step, is_enough in ((None, _is_as_written), (self._result.steps_taken + 1, self._gets_further)):
            if step is not None and step > len(self._result.plan.script):
                return None
            switch = self._switch(is_enough)
            if switch is not None:
                since = self._since(switch, is_enough)
                return ReleaseDifference(
                    switch=switch, value=self._written_values[switch], since=since, step=step
                )
        return None

    def _switch(self, is_enough: Callable[[RunResult], bool]) -> str | None:
        names = tuple(self._written_values)
        if not names or not is_enough(self._with(names)):
            # All behaviours together may change the cluster too much, so try each repair alone.
            repaired = dict.fromkeys(repair.switch for repair in REPAIRS.values())
            return next(
                (
                    name
                    for name in repaired
                    if name in self._written_values and is_enough(self._with((name,)))
                ),
                None,
            )
        while len(names) > 1:
            middle = len(names) // 2
            halves = (names[:middle], names[middle:])
            names = next((half for half in halves if is_enough(self._with(half))), ())
        return names[0] if names else None

    def _gets_further(self, trial: RunResult) -> bool:
        return trial.steps_taken > self._result.steps_taken

    def _since(self, switch: str, is_enough: Callable[[RunResult], bool]) -> str | None:
        """Return the first release whose value of a switch is not enough.

        None if the campaign is for the later of the two releases.
        """
        first, last = version_of(self._written_release), version_of(self._result.plan.kafka)
        for release, value in SWITCHES[switch].history():
            is_between = release and first < version_of(release) <= last
            if is_between and not is_enough(self._trial({switch: value})):
                return release
        return None

    def _with(self, names: Sequence[str]) -> RunResult:
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
    """Return how long a script takes if each condition holds at once."""
    now_us = 0
    for step in plan.script:
        now_us = max(now_us + (step.after_us or 0), step.at_us or 0)
    return now_us


def _differing_behaviours(plan: Plan, written_release: str) -> dict[str, Any]:
    """Return the behaviours in which two releases differ, with the values of *written_release*."""
    if written_release not in RELEASES:
        return {}
    return {
        name: switch.value_in(written_release)
        for name, switch in SWITCHES.items()
        if name not in plan.behaviours and switch.value_in(written_release) != switch.value_in(plan.kafka)
    }
