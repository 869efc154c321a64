"""Find what would have prevented a finding, by running the same plan again with as little changed as possible.

The search tries everything that guards against the kind of finding (`harrow.campaigns.run.remedies`), each remedy alone, and
then later releases until one holds. If nothing holds alone, it tries all of them together, also with the newest release, and
then leaves out whatever is not needed. The outcome of each run is a `Trial` (`harrow.campaigns.run.trial`).

A remedy can change everything that happens after it: a fault may strike another leader, for example. So a remedy that held
would have helped in this run; that is no proof for other runs.
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
from harrow.checks.prevention import (
    RELEASE,
    SETTING,
    TRIED_HELD,
    Prevention,
    Trial,
    by_switches,
    other_switches,
    together,
)

RUNS_MAX: Final = 80
"""How many trials the findings of one run may cost."""


def proven(result: RunResult, run: Callable[[Plan, int], RunResult] = run_plan) -> RunResult:
    """Return the run with the outcome of a trial in each remedy of its findings.

    A remedy costs one trial however many findings it may prevent, and a run costs at most `RUNS_MAX` of them.
    """
    if not any(judged.findings for judged in result.verdict.rules.values()):
        return result
    try:
        search = _Search(result, run)
    except UnwritablePlanError:
        return result
    rules = {name: search.proven(name, rule) for name, rule in result.verdict.rules.items()}
    return replace(result, verdict=replace(result.verdict, rules=rules))


_Try = Callable[[Sequence[Prevention]], Trial | None]
"""Tries remedies together; None if no trial is left."""


class _Search:
    """The search for what prevents the findings of a run."""

    def __init__(self, result: RunResult, run: Callable[[Plan, int], RunResult]) -> None:
        self._result = result
        self._trials = Trials(result, run, RUNS_MAX)

    def proven(self, name: str, rule: RuleResult) -> RuleResult:
        """Return the result of a rule with its remedies tried."""
        by_cause: dict[Cause, list[Finding]] = {}
        for finding in rule.findings:
            by_cause.setdefault(cause_of(finding), []).append(finding)
        tried = {cause: tuple(self._tried(name, findings)) for cause, findings in by_cause.items()}
        findings = tuple(replace(each, prevented_by=tried[cause_of(each)]) for each in rule.findings)
        return replace(rule, findings=findings)

    def _tried(self, rule: str, findings: Sequence[Finding]) -> Iterator[Prevention]:
        """Yield the remedies for findings of one cause, each with its trial."""

        def trial(ways: Sequence[Prevention]) -> Trial | None:
            return self._trials.trial(together(ways).remedy, rule, findings)

        held: set[str] = set()
        alone = self._alone(rule, findings)
        for way in alone:
            switches = {name for name, _ in way.remedy.switches}
            # A later repair of the same switch includes the one that holds.
            shown = None if switches & held else trial([way])
            if shown is not None:
                held.update({way.name, *switches} if _holds(shown) else ())
                yield replace(way, trial=shown)
        fewest = [] if held else _fewest(alone, trial)
        if fewest:
            held.update(way.name for way in fewest)
            yield replace(together(fewest), trial=trial(fewest))
        releases = self._possible(later_releases(self._result.plan))
        for way in releases:
            shown = trial([way])
            if shown is not None:
                yield replace(way, trial=shown)
            if _holds(shown):
                held.add(way.name)
                break
        fewest = [] if held else _fewest_with_release(alone, releases, trial)
        if fewest:
            yield replace(together(fewest), trial=trial(fewest))

    def _alone(self, rule: str, findings: Sequence[Finding]) -> list[Prevention]:
        """Return each remedy for findings of one cause that can be tried alone."""
        plan, evidence = self._result.plan, self._result.evidence
        proposed = [way for finding in findings for way in finding.prevented_by]
        kinds = kinds_of(rule, findings[0])
        switches = [way for way in proposed if way.kind != SETTING]
        if findings[0].permitted_by is None:
            causes = [cause.kind.name for cause in findings[0].causes]
            switches += by_switches(evidence, rule, causes)
            switches += other_switches(evidence, switches)
        return self._possible((*guarding(plan, kinds, proposed), *switches))

    def _possible(self, ways: Collection[Prevention] | Iterator[Prevention]) -> list[Prevention]:
        unique = {way.remedy: way for way in reversed(list(ways))}
        return [way for way in reversed(unique.values()) if self._trials.is_possible(way.remedy)]


def _holds(trial: Trial | None) -> bool:
    return trial is not None and trial.outcome == TRIED_HELD


def _fewest(ways: Sequence[Prevention], trial: _Try) -> list[Prevention]:
    """Return remedies that hold together and that are all needed; none if they do not, or too few trials are left to tell."""
    if len(ways) < 2 or not _holds(trial(ways)):
        return []
    left = list(ways)
    for way in ways:
        shorter = [each for each in left if each is not way]
        shown = trial(shorter) if shorter else None
        if shorter and shown is None:
            return []
        if _holds(shown):
            left = shorter
    return left


def _fewest_with_release(
    ways: Sequence[Prevention], releases: Sequence[Prevention], trial: _Try
) -> list[Prevention]:
    """Return the first release with which others hold together, and those of them that are needed there."""
    fewest = _fewest([*ways, *releases[-1:]], trial) if releases else []
    others = [way for way in fewest if way.kind != RELEASE]
    if len(others) == len(fewest):
        return fewest
    return next(([*others, each] for each in releases if _holds(trial([*others, each]))), [])
