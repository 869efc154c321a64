"""Each "tried: held" of the library rests on a trial in which the same happened, and shows when it is typed."""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from functools import cache
from itertools import chain
from typing import NamedTuple

import pytest

from harrow.campaigns.language.library_index import resolve
from harrow.campaigns.language.loader import load_campaign
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.proof import proven
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import run_plan
from harrow.campaigns.run.trial import cause_of
from harrow.checks.finding import INCONCLUSIVE, Finding
from harrow.checks.incident import incidents
from harrow.checks.link import KINDS
from harrow.checks.prevention import REFUTED, TRIED_HELD, Trial
from tests.scenarios.library_plans import library_plans

SEED = 0


class Claim(NamedTuple):
    """That a remedy prevents a finding: the run with the finding, what a rule found, and the trial with its run."""

    first: RunResult
    rule: str
    finding: Finding
    trial: Trial
    again: RunResult

    def __str__(self) -> str:
        return f"{self.first.plan.campaign}[{self.first.plan.variant}] {self.rule}: {self.trial.options}"


class Tried(NamedTuple):
    """A run with its remedies tried, and the runs of the trials by their digests."""

    first: RunResult
    trials: Mapping[str, RunResult]


def tried(plan: Plan) -> Tried:
    trials: dict[str, RunResult] = {}

    def run(tried: Plan, seed: int) -> RunResult:
        again = run_plan(tried, seed)
        trials[again.trace_digest] = again
        return again

    return Tried(proven(run_plan(plan, SEED), run), trials)


@cache
def library_tried() -> list[Tried]:
    return [tried(plan) for plan in library_plans().values()]


@cache
def claims() -> list[Claim]:
    return [
        Claim(first, rule, incident.first, way.trial, trials[way.trial.digest])
        for first, trials in library_tried()
        for rule, judged in first.verdict.rules.items()
        for incident in incidents(judged.findings)
        for way in incident.first.prevented_by
        if way.trial is not None and way.trial.outcome == TRIED_HELD
    ]


def faults_until_the_damage(claim: Claim) -> Counter[str]:
    """Return the faults that had struck when the last event of a finding's chain happened."""
    times = [link.at_us for link in claim.finding.chain if link.at_us is not None]
    return Counter(fault.fault for fault in claim.first.faults if not times or fault.at_us <= max(times))


def test_every_claim_of_the_library_rests_on_a_trial_in_which_all_faults_of_the_chain_struck() -> None:
    assert len(claims()) >= 150
    for claim in claims():
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


def test_no_claim_of_the_library_rests_on_a_trial_in_which_something_else_breaks() -> None:
    for claim in claims():
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
        ("error-after-deadline[2.4]", "lost-write", ("kafka=2.8",)),
        # The disk failure takes m0, and another record stands at its offset.
        ("disk-loss[base]", "lost-write", ("min.insync.replicas=2",)),
        # m1 is sent again, and doubled.
        ("unclean-election[base]", "lost-write", ("min.insync.replicas=2",)),
        # The consumer skips what was deleted, in place of what came after it.
        ("short-retention[base]", "poll-skip", ("auto.offset.reset=earliest",)),
    ],
)
def test_one_loss_for_another_is_no_remedy(campaign: str, rule: str, options: tuple[str, ...]) -> None:
    judged = proven(run_plan(library_plans()[campaign], SEED)).verdict.rules[rule]
    trials = [way.trial for each in judged.findings for way in each.prevented_by if way.trial is not None]
    outcomes = {trial.outcome for trial in trials if trial.options[: len(options)] == options}
    assert REFUTED in outcomes
    assert TRIED_HELD not in outcomes


def test_no_claim_of_the_library_says_what_its_own_variants_refute() -> None:
    named = {
        (claim.first.plan.campaign, claim.first.plan.variant, claim.rule, str(claim.finding.value)): claim
        for claim in claims()
        if claim.trial.options[:1] == ("min.insync.replicas=2",)
    }
    assert ("disk-loss", None, "lost-write", "m0") not in named
    assert not [key for key in named if key[0] in ("controller-disk-loss", "bit-rot")]


def test_each_cause_of_the_library_has_a_remedy_that_held_or_a_declared_reason_why_there_is_none() -> None:
    """`python -m benchmarks.preventions --library` prints the findings without one."""
    prevented: set[str] = set()
    lacking: dict[str, str] = {}
    for first, _ in library_tried():
        for rule, judged in first.verdict.rules.items():
            for finding in [incident.first for incident in incidents(judged.findings)]:
                causes = {cause.kind.name for cause in finding.causes}
                if any(way.held for way in finding.prevented_by):
                    prevented |= causes
                    continue
                place = f"{first.plan.campaign}[{first.plan.variant or 'base'}] {rule} {finding.value}"
                lacking.update(dict.fromkeys(causes, place))
    assert len(prevented) >= 30
    reasons = {name for name, kind in KINDS.items() if kind.no_remedy}
    assert {name: place for name, place in lacking.items() if name not in prevented | reasons} == {}
    assert reasons & prevented == set(), "a cause with a remedy declares that it has none"


@pytest.mark.soak(size=24, test=1, soak=10)
def test_typing_a_remedy_shows_what_the_line_claims(numbers: range) -> None:
    typed = [claim for claim in claims() if not claim.trial.is_drawn]
    # Spread over the library: the claims of one campaign stand beside each other.
    for number in numbers:
        claim = typed[number * 37 % len(typed)]
        plan = claim.first.plan
        campaign = load_campaign(resolve(plan.campaign)[0], claim.trial.options, [plan.variant or "base"])
        (chosen,) = (each for each in campaign.plans if each.variant == plan.variant)
        again = run_plan(chosen, SEED)
        assert again.trace_digest == claim.trial.digest, claim
        assert again.verdict.status == claim.trial.verdict, claim
        assert claim.finding.value is None or claim.finding.value not in {
            each.value for each in again.verdict.rules[claim.rule].findings
        }, claim
