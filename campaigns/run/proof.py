"""What would have prevented a finding, by trying it: the same run again, with as little changed as is enough.

Tried is what guards against the kind of the finding (`harrow.campaigns.run.remedies`), each alone; of later releases
the next ones, until one holds. Where nothing holds alone, all are tried together, and then what of them can be left
out. What came of each is a `Trial` (`harrow.campaigns.run.trial`).

What is changed can change what happens afterwards, for a fault may then find another leader. So what held is what
would have helped in this run, and no law; what did not hold is refuted.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import Final

from harrow.campaigns.language.plan import Plan
from harrow.campaigns.language.writers.section import UnwritablePlanError
from harrow.campaigns.run.remedies import guarding, kinds_of, later_releases
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import run_plan
from harrow.campaigns.run.trial import Cause, Trials, cause_of
from harrow.checks.finding import Finding, RuleResult
from harrow.checks.prevention import SETTING, TRIED_HELD, Prevention, Trial, by_subject, together

RUNS_MAX: Final = 80
"""How many runs the findings of one run may cost."""


def proven(result: RunResult, run: Callable[[Plan, int], RunResult] = run_plan) -> RunResult:
    """Return a run whose findings say of each remedy that was tried what came of it.

    A remedy costs one run, however many findings it may prevent, and all together no more than `RUNS_MAX`.
    """
    if not any(judged.findings for judged in result.verdict.rules.values()):
        return result
    try:
        search = _Search(result, run)
    except UnwritablePlanError:
        return result
    rules = {name: search.proven(name, rule) for name, rule in result.verdict.rules.items()}
    return replace(result, verdict=replace(result.verdict, rules=rules))


class _Search:
    """The search for what prevents the findings of a run."""

    def __init__(self, result: RunResult, run: Callable[[Plan, int], RunResult]) -> None:
        self._result = result
        self._trials = Trials(result, run, RUNS_MAX)

    def proven(self, name: str, rule: RuleResult) -> RuleResult:
        """Return what a rule says, with remedies that have been tried."""
        by_cause: dict[Cause, list[Finding]] = {}
        for finding in rule.findings:
            by_cause.setdefault(cause_of(finding), []).append(finding)
        tried = {cause: tuple(self._tried(name, findings)) for cause, findings in by_cause.items()}
        findings = tuple(replace(each, prevented_by=tried[cause_of(each)]) for each in rule.findings)
        return replace(rule, findings=findings)

    def _tried(self, rule: str, findings: Sequence[Finding]) -> Iterator[Prevention]:
        """Yield remedies for findings of one cause, with what came of them."""

        def trial(ways: Sequence[Prevention]) -> Trial | None:
            return self._trials.trial(together(ways).remedy, rule, findings)

        held: set[str] = set()
        alone = self._alone(rule, findings)
        for way in alone:
            switches = {name for name, _ in way.remedy.switches}
            # A later repair of the same switch builds on the one that holds.
            shown = None if switches & held else trial([way])
            if shown is not None:
                held.update({way.name, *switches} if _holds(shown) else ())
                yield replace(way, trial=shown)
        if not held and len(alone) > 1 and _holds(trial(alone)):
            fewest = _fewest(alone, lambda ways: _holds(trial(ways)))
            yield replace(together(fewest), trial=trial(fewest))
        for way in self._possible(later_releases(self._result.plan)):
            shown = trial([way])
            if shown is not None:
                yield replace(way, trial=shown)
            if _holds(shown):
                break

    def _alone(self, rule: str, findings: Sequence[Finding]) -> list[Prevention]:
        """Return what guards against findings of one cause, and can be tried, each once."""
        plan, evidence = self._result.plan, self._result.evidence
        proposed = [way for finding in findings for way in finding.prevented_by]
        kinds = kinds_of(rule, findings[0])
        switches = [way for way in proposed if way.kind != SETTING]
        if findings[0].permitted_by is None:
            switches += by_subject(evidence, proposed)
        return self._possible((*guarding(plan, kinds, proposed), *switches))

    def _possible(self, ways: Collection[Prevention] | Iterator[Prevention]) -> list[Prevention]:
        unique = {way.remedy: way for way in reversed(list(ways))}
        return [way for way in reversed(unique.values()) if self._trials.is_possible(way.remedy)]


def _holds(trial: Trial | None) -> bool:
    return trial is not None and trial.outcome == TRIED_HELD


def _fewest(ways: Sequence[Prevention], hold: Callable[[Sequence[Prevention]], bool]) -> list[Prevention]:
    """Return ways that hold together, and of which none can be left out."""
    left = list(ways)
    for way in ways:
        shorter = [each for each in left if each is not way]
        if shorter and hold(shorter):
            left = shorter
    return left
