"""Finds remedies: runs the same plan again, each time with one change that may prevent a finding.

The search tries everything that guards against the kind of finding
(`harrow.campaigns.run.remedies`). First it tries each remedy alone, and then later releases until
one holds: the finding does not occur with it. If nothing holds alone, it tries all remedies
together, without and with the newest release, and then drops each remedy that is not needed. Each
repeated run gives a `Trial` (`harrow.campaigns.run.trial`).

Meanwhile other cores begin the next trials. The search still uses the trials in their order, so it
makes the same trials with any number of cores.

A remedy can change everything that happens after it: for example, a fault may strike another
leader. So a remedy that held would have helped in this run. That proves nothing about other runs.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
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
from harrow.cluster_model.lazy_dataclass import replace

RUNS_MAX: Final = 80
"""The most trials for the findings of one run."""


def proven(
    result: RunResult, workers: Workers | None = None, run: RunOne[RunResult] = run_trial
) -> RunResult:
    """Return the result with a trial of each remedy that may prevent its findings.

    Trials of the same remedy for several findings share one run. Altogether there are at most
    `RUNS_MAX` runs.
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
"""Yields the given groups of remedies, while other cores already try the next ones."""


class _Search:
    """The search for remedies of one run."""

    def __init__(self, result: RunResult, trials: Trials) -> None:
        self._result = result
        self._trials = trials
        self._occurred = frozenset(event[1] for event in result.evidence.trace)

    def proven(self, name: str, rule: RuleResult) -> RuleResult:
        by_cause: dict[Cause, list[Finding]] = {}
        for finding in rule.findings:
            by_cause.setdefault(cause_of(finding), []).append(finding)
        tried = {cause: tuple(self._with_trials(name, findings)) for cause, findings in by_cause.items()}
        findings = tuple(replace(each, prevented_by=tried[cause_of(each)]) for each in rule.findings)
        return replace(rule, findings=findings)

    def _with_trials(self, rule: str, findings: Sequence[Finding]) -> Iterator[Prevention]:
        """Yield each remedy for findings of one cause, with its trial."""

        def try_together(preventions: Sequence[Prevention]) -> Trial | None:
            return self._trials.trial(together(preventions).remedy, rule, findings)

        held: set[str] = set()
        alone = self._single_remedies(rule, findings)
        for (prevention,) in self._trials.ahead([prevention] for prevention in alone):
            switches = {name for name, _ in prevention.remedy.switches}
            # A later repair of the same switch includes the earlier repair that held already.
            trial = None if switches & held else try_together([prevention])
            if trial is not None:
                held.update({prevention.name, *switches} if _holds(trial) else ())
                yield replace(prevention, trial=trial)
        fewest = [] if held else _fewest(alone, try_together, self._trials.ahead)
        if fewest:
            held.update(prevention.name for prevention in fewest)
            yield replace(together(fewest), trial=try_together(fewest))
        releases = self._possible_remedies(later_releases(self._result.plan))
        for (prevention,) in self._trials.ahead([prevention] for prevention in releases):
            trial = try_together([prevention])
            if trial is not None:
                yield replace(prevention, trial=trial)
            if _holds(trial):
                held.add(prevention.name)
                break
        fewest = [] if held else _fewest_with_release(alone, releases, try_together, self._trials.ahead)
        if fewest:
            yield replace(together(fewest), trial=try_together(fewest))

    def _single_remedies(self, rule: str, findings: Sequence[Finding]) -> list[Prevention]:
        """Return the remedies for findings of one cause that can be tried alone."""
        plan, evidence = self._result.plan, self._result.evidence
        proposed = [prevention for finding in findings for prevention in finding.prevented_by]
        kinds = kinds_of(rule, findings[0])
        switches = [prevention for prevention in proposed if prevention.kind != SETTING]
        if findings[0].permitted_by is None:
            causes = [cause.kind.name for cause in findings[0].causes]
            switches += by_switches(evidence, rule, causes)
            switches += other_switches(evidence, switches)
        return self._possible_remedies((*guarding(plan, kinds, proposed, self._occurred), *switches))

    def _possible_remedies(
        self, preventions: Collection[Prevention] | Iterator[Prevention]
    ) -> list[Prevention]:
        unique = {prevention.remedy: prevention for prevention in reversed(list(preventions))}
        return [
            prevention
            for prevention in reversed(unique.values())
            if self._trials.is_possible(prevention.remedy)
        ]


def _holds(trial: Trial | None) -> bool:
    return trial is not None and trial.outcome == TRIED_HELD


def _fewest(preventions: Sequence[Prevention], try_together: _Try, ahead: _Ahead) -> Sequence[Prevention]:
    """Return a minimal subset of *preventions* that prevents the finding.

    It is empty if not even all of them prevent the finding, or if no trials are left.
    """
    if len(preventions) < 2 or not _holds(try_together(preventions)):
        return []
    needed, position = preventions, 0
    while position < len(needed) > 1:
        for fewer in ahead(
            [*needed[:left_out], *needed[left_out + 1 :]] for left_out in range(position, len(needed))
        ):
            trial = try_together(fewer)
            if trial is None:
                return []
            if _holds(trial):
                needed = fewer
                break
            position += 1
    return needed


def _fewest_with_release(
    preventions: Sequence[Prevention], releases: Sequence[Prevention], try_together: _Try, ahead: _Ahead
) -> Sequence[Prevention]:
    """Return a minimal set of remedies and the first release that prevent the finding together."""
    fewest = _fewest([*preventions, *releases[-1:]], try_together, ahead) if releases else []
    others = [prevention for prevention in fewest if prevention.kind != RELEASE]
    if len(others) == len(fewest):
        return fewest
    with_releases = ([*others, each] for each in releases)
    return next(
        (preventions for preventions in ahead(with_releases) if _holds(try_together(preventions))), []
    )
