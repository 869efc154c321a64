"""Finds remedies: runs the same plan again, each time with one change that may prevent a finding.

The search tries everything that guards against the kind of finding
(`harrow.campaigns.run.remedies`), each remedy alone, and then later releases until one holds. If
nothing holds alone, it tries all of them together, also with the newest release, and then drops
each remedy that is not needed. Each run gives a `Trial` (`harrow.campaigns.run.trial`).

Other cores begin with the next trials meanwhile. The search decides by each trial in its order, so
it tries the same with any number of cores.

A remedy can change everything that happens after it: a fault may strike another leader, for
example. So a remedy that held would have helped in this run. That proves nothing about other runs.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from harrow.campaigns.language.writers.section import UnwritablePlanError
from harrow.campaigns.run.remedies import guarding, kinds_of, later_releases
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.trial import Cause, Trials, cause_of, run_trial
from harrow.campaigns.run.workers.workers import RunOne, Workers
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
"""Most trials that the findings of one run may cost."""


def proven(
    result: RunResult, workers: Workers | None = None, run: RunOne[RunResult] = run_trial
) -> RunResult:
    """Return the result with a trial of each remedy of its findings.

    A remedy takes one trial, even if it may prevent many findings. A run takes at most `RUNS_MAX`
    trials.
    """
    if not any(judged.findings for judged in result.verdict.rules.values()):
        return result
    try:
        search = _Search(result, Trials(result, RUNS_MAX, workers or Workers(), run))
    except UnwritablePlanError:
        return result
    rules = {name: search.proven(name, rule) for name, rule in result.verdict.rules.items()}
    return replace(result, verdict=replace(result.verdict, rules=rules))


_Try = Callable[[Sequence[Prevention]], Trial | None]
"""Tries remedies together. Returns None if no trial is left."""

_Ahead = Callable[[Iterable[Sequence[Prevention]]], Iterator[Sequence[Prevention]]]
"""Passes on what is tried next, unless something holds (`Trials.ahead`)."""


class _Search:
    """The search for remedies of one run."""

    def __init__(self, result: RunResult, trials: Trials) -> None:
        self._result = result
        self._trials = trials

    def proven(self, name: str, rule: RuleResult) -> RuleResult:
        by_cause: dict[Cause, list[Finding]] = {}
        for finding in rule.findings:
            by_cause.setdefault(cause_of(finding), []).append(finding)
        tried = {cause: tuple(self._with_trials(name, findings)) for cause, findings in by_cause.items()}
        findings = tuple(replace(each, prevented_by=tried[cause_of(each)]) for each in rule.findings)
        return replace(rule, findings=findings)

    def _with_trials(self, rule: str, findings: Sequence[Finding]) -> Iterator[Prevention]:
        """Yield each remedy for findings of one cause, with its trial."""

        def trial(ways: Sequence[Prevention]) -> Trial | None:
            return self._trials.trial(together(ways).remedy, rule, findings)

        held: set[str] = set()
        alone = self._single_remedies(rule, findings)
        for (way,) in self._trials.ahead([way] for way in alone):
            switches = {name for name, _ in way.remedy.switches}
            # A later repair of the same switch includes the repair that already helped.
            shown = None if switches & held else trial([way])
            if shown is not None:
                held.update({way.name, *switches} if _holds(shown) else ())
                yield replace(way, trial=shown)
        fewest = [] if held else _fewest(alone, trial, self._trials.ahead)
        if fewest:
            held.update(way.name for way in fewest)
            yield replace(together(fewest), trial=trial(fewest))
        releases = self._possible_remedies(later_releases(self._result.plan))
        for (way,) in self._trials.ahead([way] for way in releases):
            shown = trial([way])
            if shown is not None:
                yield replace(way, trial=shown)
            if _holds(shown):
                held.add(way.name)
                break
        fewest = [] if held else _fewest_with_release(alone, releases, trial, self._trials.ahead)
        if fewest:
            yield replace(together(fewest), trial=trial(fewest))

    def _single_remedies(self, rule: str, findings: Sequence[Finding]) -> list[Prevention]:
        """Return the remedies for findings of one cause that can be tried alone."""
        plan, evidence = self._result.plan, self._result.evidence
        proposed = [way for finding in findings for way in finding.prevented_by]
        kinds = kinds_of(rule, findings[0])
        switches = [way for way in proposed if way.kind != SETTING]
        if findings[0].permitted_by is None:
            causes = [cause.kind.name for cause in findings[0].causes]
            switches += by_switches(evidence, rule, causes)
            switches += other_switches(evidence, switches)
        return self._possible_remedies((*guarding(plan, kinds, proposed), *switches))

    def _possible_remedies(self, ways: Collection[Prevention] | Iterator[Prevention]) -> list[Prevention]:
        unique = {way.remedy: way for way in reversed(list(ways))}
        return [way for way in reversed(unique.values()) if self._trials.is_possible(way.remedy)]


def _holds(trial: Trial | None) -> bool:
    return trial is not None and trial.outcome == TRIED_HELD


def _fewest(ways: Sequence[Prevention], trial: _Try, ahead: _Ahead) -> Sequence[Prevention]:
    """Return a minimal set of remedies that prevent the finding together.

    It is empty if they do not prevent it, or if no trials are left.
    """
    if len(ways) < 2 or not _holds(trial(ways)):
        return []
    needed, place = ways, 0
    while place < len(needed) > 1:
        for rest in ahead(
            [*needed[:left_out], *needed[left_out + 1 :]] for left_out in range(place, len(needed))
        ):
            shown = trial(rest)
            if shown is None:
                return []
            if _holds(shown):
                needed = rest
                break
            place += 1
    return needed


def _fewest_with_release(
    ways: Sequence[Prevention], releases: Sequence[Prevention], trial: _Try, ahead: _Ahead
) -> Sequence[Prevention]:
    """Return the first release that prevents the finding with other remedies, and these."""
    fewest = _fewest([*ways, *releases[-1:]], trial, ahead) if releases else []
    others = [way for way in fewest if way.kind != RELEASE]
    if len(others) == len(fewest):
        return fewest
    with_releases = ([*others, each] for each in releases)
    return next((ways for ways in ahead(with_releases) if _holds(trial(ways))), [])
