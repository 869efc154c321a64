"""Each "tried: held" of the library rests on a trial in which the same happened, and shows when it is typed."""

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from functools import cache
from itertools import chain
from typing import NamedTuple

import pytest

from harrow.campaigns.language.library_index import resolve
from harrow.campaigns.language.loader import load_campaign
from harrow.campaigns.record.phrases import prevention_lines
from harrow.campaigns.run.proof import proven
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import run_plan
from harrow.campaigns.run.trial import cause_of
from harrow.checks.finding import INCONCLUSIVE, Finding
from harrow.checks.incident import incidents
from harrow.checks.link import KINDS
from harrow.checks.prevention import REFUTED, TRIED_HELD, Trial
from tests.scenarios.library_plans import (
    each_plan,
    in_group,
    library_plans,
    library_run,
    names_with_findings,
    proven_library_run,
    tried_library_run,
)
from tests.scenarios.test_mutants import BY_LIBRARY, run_mutant


class Claim(NamedTuple):
    """That a remedy prevents a finding: the run with the finding, what a rule found, and the trial with its run."""

    first: RunResult
    rule: str
    finding: Finding
    trial: Trial
    again: RunResult

    def __str__(self) -> str:
        return f"{self.first.plan.campaign}[{self.first.plan.variant}] {self.rule}: {self.trial.options}"


def firsts(result: RunResult) -> Iterator[tuple[str, Finding]]:
    """Yield the first finding of each incident, with its rule."""
    for rule, judged in result.verdict.rules.items():
        for incident in incidents(judged.findings):
            yield rule, incident.first


def claims(name: str) -> list[Claim]:
    first, trials = tried_library_run(name)
    return [
        Claim(first, rule, finding, way.trial, trials[way.trial.digest])
        for rule, finding in firsts(first)
        for way in finding.prevented_by
        if way.trial is not None and way.trial.outcome == TRIED_HELD
    ]


def faults_until_the_damage(claim: Claim) -> Counter[str]:
    """Return the faults that had struck when the last event of a finding's chain happened."""
    times = [link.at_us for link in claim.finding.chain if link.at_us is not None]
    return Counter(fault.fault for fault in claim.first.faults if not times or fault.at_us <= max(times))


@each_plan(names_with_findings())
def test_every_claim_rests_on_a_trial_in_which_all_faults_of_the_chain_struck(name: str) -> None:
    for claim in claims(name):
        struck = Counter(fault.fault for fault in claim.again.faults)
        assert faults_until_the_damage(claim) <= struck, claim
        assert claim.again.verdict.status != INCONCLUSIVE, claim
        assert claim.again.is_script_finished, claim
        assert not claim.again.evidence.unfinished, claim


def whys(findings: Sequence[Finding]) -> set[tuple[str | None, Hashable]]:
    """Return what permits findings, with the kinds of their causes."""
    return {(finding.permitted_by, kind) for finding in findings for kind in cause_of(finding)[1] or (None,)}


def found(result: RunResult) -> dict[str, Sequence[Finding]]:
    return {name: judged.findings for name, judged in result.verdict.rules.items() if judged.findings}


@each_plan(names_with_findings())
def test_no_claim_rests_on_a_trial_in_which_something_else_breaks(name: str) -> None:
    for claim in claims(name):
        first, again = found(claim.first), found(claim.again)
        assert again.keys() <= first.keys(), claim
        of_rule = again.get(claim.rule, ())
        assert claim.finding.permitted_by not in {each.permitted_by for each in of_rule}, claim
        assert whys(of_rule) <= whys(first[claim.rule]), claim
        assert whys([*chain(*again.values())]) <= whys([*chain(*first.values())]), claim


@pytest.mark.parametrize(
    ("campaign", "rule", "options"),
    [
        # B is doubled.
        in_group("error-after-deadline[2.4]", "error-after-deadline[2.4]", "lost-write", ("kafka=2.8",)),
        # The disk failure takes m0, and another record stands at its offset.
        in_group("disk-loss[base]", "disk-loss[base]", "lost-write", ("min.insync.replicas=2",)),
        # m1 is sent again, and doubled.
        in_group(
            "unclean-election[base]", "unclean-election[base]", "lost-write", ("min.insync.replicas=2",)
        ),
        # The consumer skips what was deleted, in place of what came after it.
        in_group(
            "short-retention[base]", "short-retention[base]", "poll-skip", ("auto.offset.reset=earliest",)
        ),
    ],
)
def test_one_loss_for_another_is_no_remedy(campaign: str, rule: str, options: tuple[str, ...]) -> None:
    judged = proven_library_run(campaign).verdict.rules[rule]
    trials = [way.trial for each in judged.findings for way in each.prevented_by if way.trial is not None]
    outcomes = {trial.outcome for trial in trials if trial.options[: len(options)] == options}
    assert REFUTED in outcomes
    assert TRIED_HELD not in outcomes


@each_plan(
    [
        name
        for name, plan in library_plans().items()
        if name == "disk-loss[base]" or plan.campaign in ("controller-disk-loss", "bit-rot")
    ]
)
def test_no_claim_says_what_a_variant_of_its_campaign_refutes(name: str) -> None:
    refuted = [claim for claim in claims(name) if claim.trial.options[:1] == ("min.insync.replicas=2",)]
    if name == "disk-loss[base]":
        refuted = [claim for claim in refuted if (claim.rule, claim.finding.value) == ("lost-write", "m0")]
    assert refuted == []


def causes_of(finding: Finding) -> set[str]:
    return {cause.kind.name for cause in finding.causes}


@cache
def remedied(name: str) -> frozenset[str]:
    """Return the causes of findings for which a remedy held."""
    found = (
        finding
        for _, finding in firsts(proven_library_run(name))
        if any(way.held for way in finding.prevented_by)
    )
    return frozenset().union(*map(causes_of, found))


def without_remedy() -> set[str]:
    """Return the causes that declare why there is no remedy."""
    return {name for name, kind in KINDS.items() if kind.no_remedy}


@each_plan(names_with_findings())
def test_no_cause_with_a_remedy_declares_that_it_has_none(name: str) -> None:
    assert remedied(name) & without_remedy() == set()


def test_each_cause_of_the_library_has_a_remedy_that_held_or_a_declared_reason_why_there_is_none() -> None:
    """`python -m benchmarks.preventions --library` prints the findings without one."""
    places: dict[str, list[str]] = {}
    for name in names_with_findings():
        for _, finding in firsts(library_run(name)):
            for cause in causes_of(finding) - without_remedy():
                places.setdefault(cause, []).append(name)
    lacking = {
        cause: names for cause, names in places.items() if all(cause not in remedied(name) for name in names)
    }
    assert lacking == {}
    assert len(places) >= 30


def unexplained(result: RunResult) -> list[str]:
    """Return the findings below which no report says what prevents them, or why nothing does."""
    return [f"{rule} {finding.value}" for rule, finding in firsts(result) if not [*prevention_lines(finding)]]


@each_plan(names_with_findings())
def test_each_finding_has_a_remedy_that_was_tried_or_a_reason_why_there_is_none(name: str) -> None:
    assert unexplained(proven_library_run(name)) == []


@pytest.mark.soak(size=3, test=1, soak=-(-len(BY_LIBRARY) // 3))
def test_each_finding_of_the_zoo_has_a_remedy_that_was_tried_or_a_reason(numbers: range) -> None:
    for mutant in list(BY_LIBRARY)[numbers.start : numbers.stop]:
        name, _ = BY_LIBRARY[mutant]
        assert unexplained(proven(run_mutant(library_plans()[name], mutant))) == [], mutant


@pytest.mark.parametrize("variant", ["base", "highest-finished"])
def test_a_remedy_sets_aside_what_says_nothing_with_it(variant: str) -> None:
    """The campaign gives `workers`, which an application that commits in transactions does not have."""
    rules = proven_library_run(f"parallel-workers-watermark[{variant}]").verdict.rules
    for finding in rules["doubled-effect"].findings:
        held = [way.trial.options for way in finding.prevented_by if way.held and way.trial is not None]
        assert held == [("workload.applications.0.delivery=exactly_once",)]


@each_plan(names_with_findings())
def test_typing_a_remedy_shows_what_the_line_claims(name: str) -> None:
    typed = [claim for claim in claims(name) if not claim.trial.is_drawn]
    if not typed:
        return
    # The first, the second or another one, so that all kinds of remedies are typed.
    claim = typed[names_with_findings().index(name) % len(typed)]
    plan = claim.first.plan
    campaign = load_campaign(resolve(plan.campaign)[0], claim.trial.options, [plan.variant or "base"])
    (chosen,) = (each for each in campaign.plans if each.variant == plan.variant)
    again = run_plan(chosen, claim.first.seed)
    assert again.trace_digest == claim.trial.digest, claim
    assert again.verdict.status == claim.trial.verdict, claim
    assert claim.finding.value is None or claim.finding.value not in {
        each.value for each in again.verdict.rules[claim.rule].findings
    }, claim
