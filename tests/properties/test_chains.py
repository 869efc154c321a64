"""Chains of whatever random schedules find in flawed models: never empty, in order of time, plain data."""

import json
from dataclasses import replace
from functools import cache

import pytest

from campaigns.library_index import resolve
from campaigns.loader import load_campaign
from campaigns.plan import Plan
from campaigns.report import finding_as_mapping
from campaigns.runner import run_plan
from checks.finding import Finding
from cluster_model.mutants import MUTANTS

SEEDS = range(6)
LINKS_MAX = 14
RULES = (
    *("lost-write", "duplicate", "nonmonotonic-send", "inconsistent-offsets", "unseen"),
    *("read-above-hw", "log-divergence", "two-leaders"),
)
"""Rules whose whole chain is told from the trace; others put the operations of the history first."""


@cache
def yardstick() -> Plan:
    return load_campaign(resolve("standard")[0]).plans[0]


@pytest.mark.parametrize("name", MUTANTS)
def test_chains_of_a_flawed_model(name: str) -> None:
    mutant = MUTANTS[name]
    plan = replace(yardstick(), behaviours={**yardstick().behaviours, mutant.switch: mutant.value})
    for seed in SEEDS:
        for rule, result in run_plan(plan, seed).verdict.rules.items():
            for finding in result.findings:
                check(rule, seed, finding)


@pytest.mark.parametrize("release", ["0.10.2", "0.11", "2.0"])
def test_chains_of_earlier_releases(release: str) -> None:
    for seed in SEEDS:
        for rule, result in run_plan(replace(yardstick(), kafka=release), seed).verdict.rules.items():
            for finding in result.findings:
                check(rule, seed, finding)
                assert finding.prevented_by, f"{rule}, seed {seed}: {finding.because}"


def check(rule: str, seed: int, finding: Finding) -> None:
    where = f"{rule}, seed {seed}"
    assert 0 < len(finding.chain) <= LINKS_MAX, f"{where}: {finding.because}"
    assert all(link.event and link.text for link in finding.chain), where
    if rule in RULES:
        times = [link.at_us for link in finding.chain if link.at_us is not None]
        assert times == sorted(times), f"{where}: {finding.because}"
    mapping = finding_as_mapping(finding)
    assert json.loads(json.dumps(mapping)) == mapping, where
