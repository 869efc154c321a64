"""Runs for CI systems, when all are over: a suite for each campaign and variant.

With several seeds a case is about all of them together: one that failed outweighs the others, and
the first of those is told. How many failed in all is said of the suite: seeds break different rules.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from rich.console import Console

from campaigns.plan import Plan
from campaigns.report import AS_EXPECTED
from campaigns.required_probes import UnreachedProbes
from campaigns.spelling import counted, run_name
from cli.ci_output import write_suites
from cli.ci_suite import (
    EXPECTATIONS,
    MS_PER_S,
    Case,
    Status,
    Suite,
    by_outcome,
    note_suite,
    worst_status,
)
from cli.run_cases import cases_of, told_of
from cli.run_selection import Selection
from cli.run_tally import FinishedRun, Tally

_WHAT_TELLS_MORE: Final = (Status.ERROR, Status.FAILED, Status.PASSED, Status.SKIPPED)
"""Of a rule: that some seeds could not tell is said by the case of the expectations alone."""
_NOT_PASSED: Final = {Status.FAILED: "failed", Status.SKIPPED: "undecided"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Words:
    """What is said of a variant whatever its runs do."""

    campaign: str
    variant: str | None
    file: str
    kafka: str
    plan_digest: str


@dataclass(slots=True)
class _Seeds:
    """The runs of one variant so far: each case as that run has it which tells most of it."""

    first: _Words
    seeds: list[int] = field(default_factory=list)
    cases: dict[str, Case] = field(default_factory=dict)
    seeds_of: dict[tuple[str, Status], list[int]] = field(default_factory=dict)
    by_status: dict[Status, list[int]] = field(default_factory=dict)
    status: Status = Status.PASSED
    told: str = ""
    reproduce: str = ""
    wall_ms: int = 0

    def add(self, run: FinishedRun) -> None:
        """Count a run."""
        cases = list(cases_of(run))
        status = Suite(name="", cases=tuple(cases)).status
        if not self.seeds or worst_status((status, self.status)) is not self.status:
            self.status, self.told = status, told_of(run)
            self.reproduce = str(run.mapping["reproduce"])
        self.seeds.append(run.result.seed)
        self.by_status.setdefault(status, []).append(run.result.seed)
        self.wall_ms += run.result.wall_ms
        for case in cases:
            known = self.cases.setdefault(case.name, case)
            if _tells_more(case, known):
                self.cases[case.name] = case
            self.seeds_of.setdefault((case.name, case.status), []).append(run.result.seed)

    def suite(self, unreached: str | None) -> Suite:
        """Return the suite; *unreached* says which required probes none of the runs reached."""
        first, several = self.first, len(self.seeds) > 1
        # Of several seeds the cases tell, each of the first that failed it.
        told = "" if several else self.told
        if unreached is not None and self.status is Status.PASSED:
            told = unreached
        seeds = f"{self.seeds[0]}..{self.seeds[-1] + 1}" if several else str(self.seeds[0])
        return Suite(
            name=run_name(first.campaign, first.variant),
            file=first.file,
            cases=tuple(self._together(case, unreached) for case in self.cases.values()),
            told=told,
            total=self._total() if several else "",
            reproduce=self.reproduce,
            properties=(
                ("campaign", first.campaign),
                ("variant", first.variant or ""),
                ("kafka", first.kafka),
                ("plan_digest", first.plan_digest),
                ("seeds" if several else "seed", seeds),
            ),
        )

    def _total(self) -> str:
        """Return how many of the seeds did not pass, as in ``15 of 40 seeds failed, first 3``."""
        parts: list[str] = []
        for status, word in _NOT_PASSED.items():
            if seeds := self.by_status.get(status):
                of = f" of {len(self.seeds)} seeds" if not parts else ""
                parts.append(f"{len(seeds)}{of} {word}, first {seeds[0]}")
        return "; ".join(parts)

    def _together(self, case: Case, unreached: str | None) -> Case:
        if len(self.seeds) > 1 and case.status is not Status.PASSED:
            alike = self.seeds_of[case.name, case.status]
            case = replace(
                case,
                message=f"{len(alike)} of {len(self.seeds)} seeds, first {alike[0]}: {case.message}",
                seeds=len(alike),
            )
        if case.name != EXPECTATIONS:
            return case
        if unreached is not None and case.status is Status.PASSED:
            case = replace(case, status=Status.SKIPPED, message=f"inconclusive: {unreached}")
        return replace(case, time_s=self.wall_ms / MS_PER_S)


class RunSuites:
    """Prints runs in a format of CI systems when all are over; no trace is kept until then."""

    def __init__(self, console: Console, output_format: str, messages: Console) -> None:
        self._console = console
        self._format = output_format
        self._messages = messages
        self._by_variant: dict[tuple[Path, str | None], _Seeds] = {}

    def begin(self, selection: Selection) -> None:
        """A campaign begins; its runs say themselves to which they belong."""

    def add(self, run: FinishedRun) -> None:
        """Take what is said of a run."""
        key = (run.file, run.result.plan.variant)
        if key not in self._by_variant:
            self._by_variant[key] = _Seeds(_words(run))
        self._by_variant[key].add(run)

    def end(self) -> None:
        """The runs of a campaign are over."""

    def finish(self, tally: Tally) -> None:
        """Print all of them, and what is to be known of the whole."""
        unreached = {(each.campaign, each.variant): each.reason() for each in tally.required.unreached()}
        suites = self.suites(unreached)
        progress = f"{tally.finished} of {tally.planned} runs are finished"
        if tally.interrupted:
            suites.append(note_suite("complete", f"interrupted: {progress}"))
        elif tally.stopped is not None:
            suites.append(note_suite("complete", f"{tally.stopped}: {progress}"))
        elif not suites:
            suites.append(note_suite("complete", "nothing ran"))
        write_suites(
            self._console.file,
            self._format,
            suites,
            noun="campaign",
            messages=self._messages,
            total=self._total(tally),
        )

    def _total(self, tally: Tally) -> str:
        """Return how the runs came out; variants are runs of one campaign, as the table counts them too."""
        statuses = Counter[Status]()
        for each in self._by_variant.values():
            statuses.update({status: len(seeds) for status, seeds in each.by_status.items()})
        runs = f"{counted(tally.finished, 'run')} of {counted(len(tally.campaigns), 'campaign')}"
        missed = "; required probes were never reached" if tally.required.unreached() else ""
        cut_short = "; not complete" if tally.finished < tally.planned else ""
        return f"{runs}: {by_outcome(statuses.elements())}{missed}{cut_short}"

    def suites(self, unreached: Mapping[tuple[str, str | None], str]) -> list[Suite]:
        """Return the suites; *unreached* are required probes by campaign and variant."""
        return [
            seeds.suite(unreached.get((seeds.first.campaign, seeds.first.variant)))
            for seeds in self._by_variant.values()
        ]


def search_suites(
    finished: Iterable[tuple[Plan, Mapping[str, int], FinishedRun | None]], missed: Iterable[UnreachedProbes]
) -> list[Suite]:
    """Return a suite for each search: its plan, how many examples had which outcome, and the run that it found."""
    unreached = {(each.campaign, each.variant): each.reason() for each in missed}
    suites: list[Suite] = []
    for plan, outcomes, run in finished:
        counts = ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items()))
        if run is not None:
            seeds = _Seeds(_words(run))
            seeds.add(run)
            suites.append(seeds.suite(None))
            continue
        reason = unreached.get((plan.campaign, plan.variant))
        if reason is None and (set(outcomes) - {AS_EXPECTED} or not outcomes):
            reason = counts or "nothing was tried"
        case = Case(name=EXPECTATIONS, message=f"no failure: {counts}")
        if reason is not None:
            case = replace(case, status=Status.SKIPPED, message=f"inconclusive: {reason}")
        suites.append(Suite(name=run_name(plan.campaign, plan.variant), cases=(case,), told=case.message))
    return suites


def _words(run: FinishedRun) -> _Words:
    plan = run.result.plan
    return _Words(
        campaign=plan.campaign,
        variant=plan.variant,
        file=str(run.file),
        kafka=plan.kafka,
        plan_digest=run.result.plan_digest(),
    )


def _tells_more(case: Case, known: Case) -> bool:
    if case.name == EXPECTATIONS:
        return worst_status((known.status, case.status)) is not known.status
    return _WHAT_TELLS_MORE.index(case.status) < _WHAT_TELLS_MORE.index(known.status)
