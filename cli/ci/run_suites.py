"""Turns finished runs into test suites for CI systems: one for each campaign and variant.

With several seeds, a case combines all of them. If seeds failed, the case is a failure, and reports
the first of them. The suite counts the failed seeds, because different seeds may break different
rules.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from harrow.campaigns.language.plan import Plan
from harrow.campaigns.language.spelling import counted, run_name
from harrow.campaigns.record.report import AS_EXPECTED
from harrow.campaigns.run.required_probes import UnreachedProbes
from harrow.cli.ci.run_cases import cases_of, summary_of
from harrow.cli.ci.suite import (
    EXPECTATIONS,
    MS_PER_S,
    Case,
    Status,
    Suite,
    by_outcome,
    note_suite,
    worst_status,
)
from harrow.cli.commands.run_tally import FinishedRun, RunPrinter, Tally
from harrow.cluster_model.lazy_dataclass import replace

_BY_WEIGHT: Final = (Status.ERROR, Status.FAILED, Status.PASSED, Status.SKIPPED)
"""The statuses of a rule, the most important first. Undecided seeds come last, because the case for
the expectations reports them."""
_NOT_PASSED: Final = {Status.FAILED: "failed", Status.SKIPPED: "undecided"}


class _VariantRuns:
    """The finished runs of one variant. Each case is that of a run with the worst status for it."""

    def __init__(self, run: FinishedRun) -> None:
        self.plan = run.result.plan
        self._file = str(run.file)
        self._plan_digest = run.result.plan_digest()
        self._seeds: list[int] = []
        self._cases: dict[str, Case] = {}
        self._seeds_by_case: dict[tuple[str, Status], list[int]] = {}
        self.by_status: dict[Status, list[int]] = {}
        self._status = Status.PASSED
        self._summary = ""
        self._reproduce = ""
        self._wall_ms = 0

    def add(self, run: FinishedRun) -> None:
        cases = list(cases_of(run))
        status = Suite(name="", cases=tuple(cases)).status
        if not self._seeds or worst_status((status, self._status)) is not self._status:
            self._status, self._summary = status, summary_of(run)
            self._reproduce = run.reproduce
        self._seeds.append(run.result.seed)
        self.by_status.setdefault(status, []).append(run.result.seed)
        self._wall_ms += run.result.wall_ms
        for case in cases:
            previous = self._cases.setdefault(case.name, case)
            if _outweighs(case, previous):
                self._cases[case.name] = case
            self._seeds_by_case.setdefault((case.name, case.status), []).append(run.result.seed)

    def suite(self, unreached: str | None) -> Suite:
        """Return the suite. *unreached* names the required probes that no run reached."""
        several = len(self._seeds) > 1
        # With several seeds, each case has a summary of its own, of the first seed that failed it.
        summary = "" if several else self._summary
        if unreached is not None and self._status is Status.PASSED:
            summary = unreached
        seeds = f"{self._seeds[0]}..{self._seeds[-1] + 1}" if several else str(self._seeds[0])
        return Suite(
            name=run_name(self.plan.campaign, self.plan.variant),
            file=self._file,
            cases=tuple(self._combined(case, unreached) for case in self._cases.values()),
            summary=summary,
            total=self._total() if several else "",
            reproduce=self._reproduce,
            properties=(
                ("campaign", self.plan.campaign),
                ("variant", self.plan.variant or ""),
                ("kafka", self.plan.kafka),
                ("plan_digest", self._plan_digest),
                ("seeds" if several else "seed", seeds),
            ),
        )

    def _total(self) -> str:
        """Return the seeds that did not pass, as in ``15 of 40 seeds failed, first 3``."""
        parts: list[str] = []
        for status, word in _NOT_PASSED.items():
            if seeds := self.by_status.get(status):
                of = f" of {len(self._seeds)} seeds" if not parts else ""
                parts.append(f"{len(seeds)}{of} {word}, first {seeds[0]}")
        return "; ".join(parts)

    def _combined(self, case: Case, unreached: str | None) -> Case:
        if len(self._seeds) > 1 and case.status is not Status.PASSED:
            same_status_seeds = self._seeds_by_case[case.name, case.status]
            message = f"{len(same_status_seeds)} of {len(self._seeds)} seeds, first {same_status_seeds[0]}: {case.message}"
            case = replace(case, message=message, seeds=len(same_status_seeds))
        if case.name != EXPECTATIONS:
            return case
        if unreached is not None and case.status is Status.PASSED:
            case = replace(case, status=Status.SKIPPED, message=f"inconclusive: {unreached}")
        return replace(case, time_s=self._wall_ms / MS_PER_S)


class RunSuites(RunPrinter):
    """Collects the suites of all runs, without their traces, and writes them at the end."""

    def __init__(self, write: Callable[[Sequence[Suite], str], None]) -> None:
        self._write = write
        self._by_variant: dict[tuple[Path, str | None], _VariantRuns] = {}

    def add(self, run: FinishedRun) -> None:
        key = (run.file, run.result.plan.variant)
        if key not in self._by_variant:
            self._by_variant[key] = _VariantRuns(run)
        self._by_variant[key].add(run)

    def finish(self, tally: Tally) -> None:
        """Write all suites, and one more if not all runs finished."""
        unreached = _reasons(tally.required.unreached())
        suites = [
            seeds.suite(unreached.get((seeds.plan.campaign, seeds.plan.variant)))
            for seeds in self._by_variant.values()
        ]
        progress = f"{tally.finished} of {tally.planned} runs finished"
        if tally.interrupted or tally.stopped is not None:
            reason = "interrupted" if tally.interrupted else tally.stopped
            suites.append(note_suite("complete", f"{reason}: {progress}"))
        elif not suites:
            suites.append(note_suite("complete", "nothing ran"))
        self._write(suites, self._total(tally))

    def _total(self, tally: Tally) -> str:
        """Return the number of runs by outcome. As in the table, variants are not campaigns."""
        statuses = Counter[Status]()
        for each in self._by_variant.values():
            statuses.update({status: len(seeds) for status, seeds in each.by_status.items()})
        runs = f"{counted(tally.finished, 'run')} of {counted(len(tally.campaigns), 'campaign')}"
        missed = "; required probes were never reached" if tally.required.unreached() else ""
        cut_short = "; not complete" if tally.finished < tally.planned else ""
        return f"{runs}: {by_outcome(statuses.elements())}{missed}{cut_short}"


def search_suites(
    finished: Iterable[tuple[Plan, Mapping[str, int], FinishedRun | None]], missed: Iterable[UnreachedProbes]
) -> list[Suite]:
    """Return a suite for each search: its plan, its examples by outcome, and its failing run."""
    unreached = _reasons(missed)
    suites: list[Suite] = []
    for plan, outcomes, run in finished:
        if run is not None:
            seeds = _VariantRuns(run)
            seeds.add(run)
            suites.append(seeds.suite(None))
            continue
        counts = ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items()))
        reason = unreached.get((plan.campaign, plan.variant))
        if reason is None and set(outcomes) != {AS_EXPECTED}:
            reason = counts or "nothing was tried"
        case = Case(name=EXPECTATIONS, message=f"no failure: {counts}")
        if reason is not None:
            case = replace(case, status=Status.SKIPPED, message=f"inconclusive: {reason}")
        name = run_name(plan.campaign, plan.variant)
        suites.append(Suite(name=name, cases=(case,), summary=case.message))
    return suites


def _reasons(missed: Iterable[UnreachedProbes]) -> dict[tuple[str, str | None], str]:
    return {(each.campaign, each.variant): each.reason() for each in missed}


def _outweighs(case: Case, previous: Case) -> bool:
    if case.name == EXPECTATIONS:
        return worst_status((previous.status, case.status)) is not previous.status
    return _BY_WEIGHT.index(case.status) < _BY_WEIGHT.index(previous.status)
