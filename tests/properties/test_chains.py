"""Causal chains of random findings are lawful, nonempty, ordered by time, and plain data."""

import json
from dataclasses import replace
from functools import cache

import pytest

from harrow.campaigns.language.library_index import resolve
from harrow.campaigns.language.loader import load_campaign
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.record.phrases import because, sentence
from harrow.campaigns.record.report import finding_as_mapping
from harrow.campaigns.run.runner import run_plan
from harrow.checks.finding import Finding
from harrow.cluster_model.release.profiles import MUTANTS
from tests.chain_laws import assert_lawful

RULES = (
    *("lost-write", "duplicate", "nonmonotonic-send", "inconsistent-offsets", "unseen"),
    *("read-above-hw", "log-divergence", "two-leaders"),
)
"""Rules whose chains come only from the trace. Other chains start with history operations."""


@cache
def standard_plan() -> Plan:
    return load_campaign(resolve("standard")[0]).plans[0]


@pytest.mark.parametrize("name", MUTANTS)
@pytest.mark.soak(size=1, rounds_in_test=1, rounds_in_soak=90)
def test_chains_of_a_mutant_are_lawful(name: str, numbers: range) -> None:
    mutant = MUTANTS[name]
    plan = standard_plan().flawed(mutant)
    for seed in numbers:
        for rule, result in run_plan(plan, seed).verdict.rules.items():
            for finding in result.findings:
                check(rule, seed, finding)


@pytest.mark.parametrize("release", ["0.10.2", "0.11", "2.0"])
@pytest.mark.soak(size=3, rounds_in_test=1, rounds_in_soak=200)
def test_chains_of_earlier_releases_are_lawful_and_name_a_prevention(release: str, numbers: range) -> None:
    for seed in numbers:
        for rule, result in run_plan(replace(standard_plan(), kafka=release), seed).verdict.rules.items():
            for finding in result.findings:
                check(rule, seed, finding)
                assert finding.prevented_by, f"{rule}, seed {seed}: {because(finding)}"


def check(rule: str, seed: int, finding: Finding) -> None:
    where = f"{rule}, seed {seed}"
    assert finding.chain, where
    # A chain may have any length, because a run may have any number of turning points. But no link
    # may be empty.
    assert_lawful(finding, where)
    assert all(link.event and sentence(link) for link in finding.chain), where
    if rule in RULES:
        times = [link.at_us for link in finding.chain if link.at_us is not None]
        assert times == sorted(times), f"{where}: {because(finding)}"
    mapping = finding_as_mapping(finding)
    assert json.loads(json.dumps(mapping)) == mapping, where
