"""Every mutant is noticed by a library campaign, by a campaign of its own, or by random faults."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from textwrap import dedent

import pytest

from harrow.campaigns.language.loader import load_text
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.record.report import AS_EXPECTED, UNEXPECTED, outcome
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import run_plan
from harrow.checks.rules.catalogue import RULES
from harrow.cluster_model.release.profiles import MUTANTS
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND
from tests.library_swarm import library_swarm
from tests.quality.test_standard import FOUND_WITHIN
from tests.scenarios.dense_plan import dense_plan, standard_plan
from tests.scenarios.library_plans import library_plans
from tests.scenarios.mutant_campaigns import SCRIPTED
from tests.scenarios.transactional_plan import ZOMBIE, orders

# A script that waits in vain shows nothing, so it may stop early.
LIMIT_US = 120 * US_PER_SECOND

# The library campaign that notices each mutant, and the rule that the mutant breaks there. The rule
# is None if only the campaign's expectations notice the mutant.
BY_LIBRARY: dict[str, tuple[str, str | None]] = {
    "hw-truncation": ("divergence-by-hw[0.11]", "isr-holds-committed"),
    "no-truncation": ("divergence-by-hw[0.11]", "log-divergence"),
    "stale-controller-accepted": ("controller-split-brain[base]", None),
    "stale-leader-epoch-accepted": ("controller-split-brain[leader-epoch-alone]", "lost-write"),
    "silent-unclean-election": ("unclean-election[clean-election]", "lost-write"),
    "preferred-leader-outside-isr": ("preferred-leader[base]", "lost-write"),
    "hw-ignores-followers": ("hw-two-rounds[base]", "isr-holds-committed"),
    "ack-before-replication": ("acks-1-leader-crash[acks-all]", "lost-write"),
    "uncommitted-reads": ("visibility[base]", "read-above-hw"),
    "follower-serves-to-log-end": ("follower-fetch[base]", "read-above-hw"),
    "recovery-point-ahead-of-flush": ("divergence-by-hw[0.11]", "checkpoint-within-log"),
    "epoch-entries-ahead-of-log": ("all-replicas-die[base]", "epoch-cache-monotonic"),
    "retention-ignores-age": ("short-retention[longer]", "lost-write"),
    "deletion-takes-whole-batches": ("delete-records[base]", "lost-write"),
    "cleaner-ignores-hw": ("compaction-above-hw[3.6]", "lost-write"),
    "cleaner-keeps-earliest": ("slow-tombstone[longer]", "lost-write"),
    "tombstones-go-at-once": ("slow-tombstone[longer]", "lost-write"),
    "no-dedup": ("ack-lost[idempotent]", "duplicate"),
    "no-sequence-check": ("retry-reorders[idempotent]", "nonmonotonic-send"),
    "producer-state-survives-truncation": (
        "partial-isr-then-crash[idempotent-shorter-log-leads]",
        "producer-state-matches-log",
    ),
    "sessions-forget-epoch": ("fetch-session-forgets-epoch[epoch-kept]", "log-divergence"),
    "joined-member-forgotten": ("forgotten-isr-member[fixed]", "lost-write"),
    "last-replica-standing": ("last-replica-standing[eligible-leaders]", "unclean-replica-not-elected"),
    "reelected-leader-keeps-positions": ("re-elected-leader[positions-forgotten]", "lost-write"),
    "late-error-frees-sequences": ("error-after-deadline[sequences-kept]", "duplicate"),
    "outdated-fetch-answer": ("stale-diverging-epoch[epochs-matched]", "lost-write"),
    "repeated-isr-write-refused": ("stuck-isr[recognised]", None),
    "known-state-undoes-isr-change": ("forgotten-isr-change[change-kept]", None),
    "old-generation-commit-accepted": ("commit-during-rebalance[paused]", "offset-regression"),
    "partition-given-before-revoked": ("rebalance-by-coordinator[base]", "one-owner-per-partition"),
    "stale-epoch-commit-accepted": ("commit-during-rebalance[consumer-protocol]", None),
    "followers-forget-producers": ("ack-lost[idempotent]", "producer-state-matches-log"),
    "lso-is-hw": ("atomic-multi-partition[read-committed]", "read-above-lso"),
    "coordinator-forgets-prepare-commit": ("coordinator-failover[between-markers]", "torn-transaction"),
    "delayed-end-txn": ("delayed-end-txn[4.3]", "unasked-commit"),
    "uncommitted-state-answered": ("uncommitted-transaction-state[loaded-once-committed]", None),
}


@cache
def library() -> Mapping[str, Plan]:
    return library_plans()


def early_isr_write_plan() -> Plan:
    """Return a plan in which latencies decide whether a replica joins the ISR too early."""
    return library()["slow-follower[back-by-the-high-watermark]"]


def kraft_swarm() -> Plan:
    return library_swarm("swarm-kraft")


def eos_swarm() -> Plan:
    return library_swarm("swarm-eos")


# For each mutant a plan with random faults, the rule that it breaks, and the first seed to try.
BY_CHANCE: dict[str, tuple[Callable[[], Plan], str, int]] = {
    "isr-counted-before-commit": (standard_plan, "lost-write", 25),
    "zombie-keeps-its-isr": (standard_plan, "lost-write", 25),
    "deposed-leader-acks-pending": (standard_plan, "lost-write", 0),
    "isr-join-below-hw": (early_isr_write_plan, "isr-holds-committed", 27),
    "hw-may-fall": (standard_plan, "hw-monotonic", 0),
    "epoch-answer-without-epoch": (dense_plan, "log-divergence", 82),
    "unconditional-isr-write": (dense_plan, "two-leaders", 22),
    "no-fetch-fencing": (lambda: dense_plan(power_loss=True), "isr-holds-committed", 0),
    "hw-ahead-of-log": (lambda: dense_plan(power_loss=True), "hw-within-log", 0),
    "first-batch-anywhere": (standard_plan, "duplicate", 135),
    "diverging-fetch-counts": (library_swarm, "isr-holds-committed", 70),
    "hw-exposed-below-min-isr": (library_swarm, "hw-waits-for-min-isr", 0),
    "retry-acked-before-commit": (library_swarm, "lost-write", 0),
    "elr-survives-unclean-shutdown": (kraft_swarm, "unclean-replica-not-elected", 0),
    "stale-alter-partition": (kraft_swarm, "isr-holds-committed", 110),
    "election-in-same-epoch": (kraft_swarm, "two-leaders", 0),
    "producer-ids-given-twice": (kraft_swarm, "lost-write", 0),
    "marker-to-one-partition": (eos_swarm, "unseen", 0),
    "next-transaction-unverified": (eos_swarm, "G1a", 40),
    "zombie-producer-accepted": (lambda: orders(fault=ZOMBIE), "fenced-write", 0),
    "stop-without-flush": (kraft_swarm, "shutdown-flushes-logs", 0),
}
SEEDS = 20
"""How many seeds are tried."""


def run_mutant(plan: Plan, name: str, seed: int = 0) -> RunResult:
    broken = replace(
        plan.flawed(MUTANTS[name]),
        script_limit_us=min(plan.script_limit_us, LIMIT_US),
        recovery_limit_us=min(plan.recovery_limit_us, LIMIT_US),
    )
    return run_plan(broken, seed)


@pytest.mark.parametrize("name", BY_LIBRARY)
def test_a_library_campaign_notices_the_mutant(name: str) -> None:
    campaign, rule = BY_LIBRARY[name]
    result = run_mutant(library()[campaign], name)
    assert outcome(result) == UNEXPECTED, result.verdict
    if rule is not None:
        assert rule in MUTANTS[name].noticed_by
        assert result.verdict.rules[rule].status == "violated"


@pytest.mark.parametrize("name", SCRIPTED)
def test_the_mutants_own_campaign_notices_it(name: str) -> None:
    (plan,) = load_text(dedent(SCRIPTED[name]), "campaign.yaml").plans
    assert outcome(run_plan(plan, 0)) == AS_EXPECTED
    result = run_mutant(plan, name)
    assert outcome(result) == UNEXPECTED, result.verdict
    broken = {rule for rule, rule_result in result.verdict.rules.items() if rule_result.status == "violated"}
    assert broken <= set(MUTANTS[name].noticed_by)
    assert broken or result.missed


@pytest.mark.parametrize("name", BY_CHANCE)
def test_random_faults_notice_the_mutant(name: str) -> None:
    plan, rule, first = BY_CHANCE[name]
    assert rule in MUTANTS[name].noticed_by
    results = (run_mutant(plan(), name, seed) for seed in range(first, first + SEEDS))
    assert any(result.verdict.rules[rule].status == "violated" for result in results)


def test_dense_faults_break_no_promise_without_a_mutant() -> None:
    for power_loss in (False, True):
        for seed in range(8):
            assert run_plan(dense_plan(power_loss=power_loss), seed).verdict.status in ("held", "permitted")


def test_every_mutant_has_a_test_that_notices_it() -> None:
    assert {*BY_LIBRARY, *SCRIPTED, *BY_CHANCE, *FOUND_WITHIN} == set(MUTANTS)


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_declares_its_flaw_source_and_rules(name: str) -> None:
    mutant = MUTANTS[name]
    assert mutant.doc.endswith(".")
    assert mutant.source
    assert set(mutant.noticed_by) <= set(RULES)
