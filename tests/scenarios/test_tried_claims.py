"""Each claim "tried: held" in the library rests on a valid trial, which its options reproduce."""

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
    """The claim that a remedy prevents a finding.

    ``first`` is the run with the finding, and ``again`` is the run of the trial.
    """

    first: RunResult
    rule: str
    finding: Finding
    trial: Trial
    again: RunResult

    def __str__(self) -> str:
        return f"{self.first.plan.campaign}[{self.first.plan.variant}] {self.rule}: {self.trial.options}"


def first_findings(result: RunResult) -> Iterator[tuple[str, Finding]]:
    """Yield the first finding of each incident, with its rule."""
    for rule, rule_result in result.verdict.rules.items():
        for incident in incidents(rule_result.findings):
            yield rule, incident.first


def claims(name: str) -> list[Claim]:
    first, trials = tried_library_run(name)
    return [
        Claim(first, rule, finding, way.trial, trials[way.trial.digest])
        for rule, finding in first_findings(first)
        for way in finding.prevented_by
        if way.trial is not None and way.trial.outcome == TRIED_HELD
    ]


def faults_before_the_damage(claim: Claim) -> Counter[str]:
    """Return the faults that struck before the last event of a finding's chain."""
    times = [link.at_us for link in claim.finding.chain if link.at_us is not None]
    return Counter(fault.fault for fault in claim.first.faults if not times or fault.at_us <= max(times))


@each_plan(names_with_findings())
def test_every_claim_rests_on_a_trial_in_which_all_faults_of_the_chain_struck(name: str) -> None:
    for claim in claims(name):
        struck = Counter(fault.fault for fault in claim.again.faults)
        assert faults_before_the_damage(claim) <= struck, claim
        assert claim.again.verdict.status != INCONCLUSIVE, claim
        assert claim.again.is_script_finished, claim
        assert not claim.again.evidence.unfinished, claim


def permissions_and_causes(findings: Sequence[Finding]) -> set[tuple[str | None, Hashable]]:
    """Return the permissions of findings with the kinds of their causes."""
    return {(finding.permitted_by, kind) for finding in findings for kind in cause_of(finding)[1] or (None,)}


def findings_of(result: RunResult) -> dict[str, Sequence[Finding]]:
    return {
        name: rule_result.findings
        for name, rule_result in result.verdict.rules.items()
        if rule_result.findings
    }


@each_plan(names_with_findings())
def test_no_claim_rests_on_a_trial_with_other_findings(name: str) -> None:
    for claim in claims(name):
        first, again = findings_of(claim.first), findings_of(claim.again)
        assert again.keys() <= first.keys(), claim
        of_rule = again.get(claim.rule, ())
        assert claim.finding.permitted_by not in {finding.permitted_by for finding in of_rule}, claim
        assert permissions_and_causes(of_rule) <= permissions_and_causes(first[claim.rule]), claim
        assert permissions_and_causes([*chain(*again.values())]) <= permissions_and_causes(
            [*chain(*first.values())]
        ), claim


@pytest.mark.parametrize(
    ("campaign", "rule", "options"),
    [
        # B is duplicated.
        in_group("error-after-deadline[2.4]", "error-after-deadline[2.4]", "lost-write", ("kafka=2.8",)),
        # The disk failure loses m0, and another record gets its offset.
        in_group("disk-loss[base]", "disk-loss[base]", "lost-write", ("min.insync.replicas=2",)),
        # m1 is sent again, and duplicated.
        in_group(
            "unclean-election[base]", "unclean-election[base]", "lost-write", ("min.insync.replicas=2",)
        ),
        # The consumer skips deleted records instead of later ones.
        in_group(
            "short-retention[base]", "short-retention[base]", "poll-skip", ("auto.offset.reset=earliest",)
        ),
    ],
)
def test_a_remedy_that_causes_another_finding_is_refuted(
    campaign: str, rule: str, options: tuple[str, ...]
) -> None:
    findings = proven_library_run(campaign).verdict.rules[rule].findings
    trials = [way.trial for finding in findings for way in finding.prevented_by if way.trial is not None]
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
def test_no_claim_contradicts_a_variant_of_its_campaign(name: str) -> None:
    refuted = [claim for claim in claims(name) if claim.trial.options[:1] == ("min.insync.replicas=2",)]
    if name == "disk-loss[base]":
        refuted = [claim for claim in refuted if (claim.rule, claim.finding.value) == ("lost-write", "m0")]
    assert refuted == []


def causes_of(finding: Finding) -> set[str]:
    return {cause.kind.name for cause in finding.causes}


@cache
def causes_with_remedy(name: str) -> frozenset[str]:
    """Return the causes of findings with a remedy that held."""
    prevented = (
        finding
        for _, finding in first_findings(proven_library_run(name))
        if any(way.held for way in finding.prevented_by)
    )
    return frozenset().union(*map(causes_of, prevented))


def causes_without_remedy() -> set[str]:
    """Return the causes that declare why there is no remedy."""
    return {name for name, kind in KINDS.items() if kind.no_remedy}


@each_plan(names_with_findings())
def test_no_cause_with_a_remedy_declares_that_there_is_none(name: str) -> None:
    assert causes_with_remedy(name) & causes_without_remedy() == set()


def test_each_cause_in_the_library_has_a_remedy_that_held_or_declares_why_there_is_none() -> None:
    """`python -m benchmarks.preventions --library` prints the findings without a remedy."""
    places: dict[str, list[str]] = {}
    for name in names_with_findings():
        for _, finding in first_findings(library_run(name)):
            for cause in causes_of(finding) - causes_without_remedy():
                places.setdefault(cause, []).append(name)
    lacking = {
        cause: names
        for cause, names in places.items()
        if all(cause not in causes_with_remedy(name) for name in names)
    }
    assert lacking == {}
    assert len(places) >= 30


def unexplained(result: RunResult) -> list[str]:
    """Return findings whose reports have neither a prevention nor a reason for its absence."""
    return [
        f"{rule} {finding.value}"
        for rule, finding in first_findings(result)
        if not [*prevention_lines(finding)]
    ]


@each_plan(names_with_findings())
def test_each_finding_has_a_tried_remedy_or_a_reason_why_there_is_none(name: str) -> None:
    assert unexplained(proven_library_run(name)) == []


@pytest.mark.soak(size=3, rounds_in_test=1, rounds_in_soak=-(-len(BY_LIBRARY) // 3))
def test_each_finding_of_a_mutant_has_a_tried_remedy_or_a_reason(numbers: range) -> None:
    for mutant in list(BY_LIBRARY)[numbers.start : numbers.stop]:
        name, _ = BY_LIBRARY[mutant]
        assert unexplained(proven(run_mutant(library_plans()[name], mutant))) == [], mutant


@pytest.mark.parametrize("variant", ["base", "highest-finished"])
def test_a_remedy_removes_options_that_it_excludes(variant: str) -> None:
    """The campaign sets `workers`, which transactional applications do not have."""
    rules = proven_library_run(f"parallel-workers-watermark[{variant}]").verdict.rules
    for finding in rules["doubled-effect"].findings:
        held = [way.trial.options for way in finding.prevented_by if way.held and way.trial is not None]
        assert held == [("workload.applications.0.delivery=exactly_once",)]


@each_plan(names_with_findings())
def test_typing_the_options_of_a_remedy_reproduces_its_trial(name: str) -> None:
    candidates = [claim for claim in claims(name) if not claim.trial.is_drawn]
    if not candidates:
        return
    # Each plan uses another one of its claims, so that all kinds of remedies occur.
    claim = candidates[names_with_findings().index(name) % len(candidates)]
    plan = claim.first.plan
    campaign = load_campaign(resolve(plan.campaign)[0], claim.trial.options, [plan.variant or "base"])
    (remedied_plan,) = (other for other in campaign.plans if other.variant == plan.variant)
    again = run_plan(remedied_plan, claim.first.seed)
    assert again.trace_digest == claim.trial.digest, claim
    assert again.verdict.status == claim.trial.verdict, claim
    assert claim.finding.value is None or claim.finding.value not in {
        finding.value for finding in again.verdict.rules[claim.rule].findings
    }, claim
