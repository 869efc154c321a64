"""Invariants notice flaws of the model, of old releases and of mutants."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest

from harrow.campaigns.language.library_index import resolve
from harrow.campaigns.language.loader import load_campaign
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import run_plan
from harrow.checks.finding import PERMITTED, VIOLATED
from harrow.checks.rules.catalogue import RULE_OF_INVARIANT
from harrow.cluster_model.broker.partition import Partition
from harrow.cluster_model.cluster import Cluster
from harrow.cluster_model.events import HighWatermarkSet
from harrow.cluster_model.invariants.catalogue import INVARIANTS
from harrow.cluster_model.log.disk import LogFile
from harrow.cluster_model.log.leader_epoch_cache import LeaderEpochCache
from harrow.cluster_model.log.producer_state import ProducerStates
from harrow.cluster_model.log.unified_log import UnifiedLog
from harrow.cluster_model.release.profiles import MUTANTS
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND
from harrow.faults.brokers import BrokerCrash
from harrow.faults.injection import Rate
from tests.plain_model import patches_the_model

SEEDS = 30


@cache
def standard_plan(*options: str) -> Plan:
    return load_campaign(resolve("standard")[0], options).plans[0]


@cache
def library_plan(campaign: str, variant: str | None = None) -> Plan:
    plans = load_campaign(resolve(campaign)[0]).plans
    return next(plan for plan in plans if plan.variant == variant)


def with_power_loss(plan: Plan) -> Plan:
    """Return *plan* with a fault every two seconds on average, and with frequent power losses."""
    injection = plan.faults[0]
    crash = BrokerCrash(broker="any", kind="power_loss", restart_after=(US_PER_SECOND, 10 * US_PER_SECOND))
    assert isinstance(injection.timing, Rate)
    timing = replace(injection.timing, mean_us=2 * US_PER_SECOND)
    return replace(
        plan, faults=(replace(injection, timing=timing, faults=(*injection.faults, crash, crash)),)
    )


def broken_invariants(result: RunResult) -> dict[str, str]:
    """Return the status of the rule of each invariant that broke."""
    rules = result.verdict.rules
    return {
        name: rules[rule].status
        for name, rule in RULE_OF_INVARIANT.items()
        if rule in rules and rules[rule].findings
    }


def is_violated(plan: Plan, invariant: str, first: int = 0) -> bool:
    seeds = range(first, first + SEEDS)
    return any(broken_invariants(run_plan(plan, seed)).get(invariant) == VIOLATED for seed in seeds)


# Mutants and releases

NOTICED_MUTANTS = (
    ("hw-truncation", "isr-holds-committed", 0),
    ("hw-truncation", "log-matching", 57),
    ("hw-truncation", "producer-state-matches-log", 57),
    ("no-truncation", "isr-holds-committed", 0),
    ("no-truncation", "log-matching", 0),
    ("no-sequence-check", "producer-state-matches-log", 0),
    ("hw-ignores-followers", "isr-holds-committed", 0),
)


@pytest.mark.parametrize(("mutant", "invariant", "first"), NOTICED_MUTANTS)
def test_a_mutant_breaks_its_invariant(mutant: str, invariant: str, first: int) -> None:
    plan = standard_plan()
    flaw = {MUTANTS[mutant].switch: MUTANTS[mutant].value}
    assert is_violated(replace(plan, behaviours={**plan.behaviours, **flaw}), invariant, first)


def test_truncation_to_the_high_watermark_breaks_the_isr() -> None:
    result = run_plan(library_plan("loss-by-hw-truncation"), 0)
    assert broken_invariants(result) == {"isr-holds-committed": VIOLATED}
    finding = result.verdict.rules["isr-holds-committed"].findings[0]
    assert (finding.partition, finding.offset) == ("t-0", 1)
    assert [link.event for link in finding.chain] == ["appended", "truncated", "invariant-broken"]
    assert broken_invariants(run_plan(library_plan("loss-by-hw-truncation", "0.11"), 0)) == {}


def test_power_loss_does_not_excuse_a_diverged_replica_in_the_isr() -> None:
    assert broken_invariants(run_plan(library_plan("divergence-by-hw"), 0))["isr-holds-committed"] == VIOLATED
    for variant in ("0.11", "2.4"):
        statuses = broken_invariants(run_plan(library_plan("divergence-by-hw", variant), 0))
        assert statuses == {"isr-holds-committed": PERMITTED, "log-matching": PERMITTED}


# Flaws of the model, patched in by these tests

Patch = Callable[[pytest.MonkeyPatch], None]


def _hw_stays_above_truncated_log(monkeypatch: pytest.MonkeyPatch) -> None:
    original = UnifiedLog.truncate_to

    def truncate_to(self: UnifiedLog, offset: int) -> bool:
        high_watermark = self.high_watermark
        cut = original(self, offset)
        self.high_watermark = high_watermark
        return cut

    monkeypatch.setattr(UnifiedLog, "truncate_to", truncate_to)


def _every_replica_is_in_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Partition, "_is_in_sync", lambda *_: True)


def _entries_are_never_truncated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LeaderEpochCache, "truncate_from_end", lambda *_: None)


def _entries_are_only_added(monkeypatch: pytest.MonkeyPatch) -> None:
    def assign(self: LeaderEpochCache, epoch: int, start_offset: int) -> None:
        if self.latest_epoch() != epoch:
            self.entries.append((epoch, start_offset))

    monkeypatch.setattr(LeaderEpochCache, "assign", assign)


def _producer_states_are_not_rebuilt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ProducerStates, "rebuild", lambda self, *_: self.entries.clear())


def _everything_counts_as_flushed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(UnifiedLog, "flushed_offset", property(lambda self: self.log_end_offset))


def _power_loss_loses_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LogFile, "lose_power", lambda self, _torn_after=None: self.truncate_to(0))


def _a_crash_loses_unflushed_records(monkeypatch: pytest.MonkeyPatch) -> None:
    original = Cluster.crash_broker

    def crash_broker(self: Cluster, broker: int, *, power_loss: bool) -> None:
        original(self, broker, power_loss=power_loss)
        for file in self.disks[broker].log_files.values():
            file.lose_power()

    monkeypatch.setattr(Cluster, "crash_broker", crash_broker)


def _unknown_followers_reset_the_hw(monkeypatch: pytest.MonkeyPatch) -> None:
    original = Partition.maybe_increment_hw

    def maybe_increment_hw(self: Partition) -> bool:
        others = [replica.log_end_offset for replica in self.remote_replicas.values()]
        if min(others, default=0) < 0:
            self.log.high_watermark = 0
            self.host.publish(HighWatermarkSet, self.broker, self.name, 0)
        return original(self)

    monkeypatch.setattr(Partition, "maybe_increment_hw", maybe_increment_hw)


FLAWS: tuple[tuple[Patch, str], ...] = (
    (_hw_stays_above_truncated_log, "hw-within-log"),
    (_every_replica_is_in_sync, "isr-holds-committed"),
    (_entries_are_never_truncated, "epoch-cache-monotonic"),
    (_entries_are_only_added, "epoch-cache-monotonic"),
    (_producer_states_are_not_rebuilt, "producer-state-matches-log"),
    (_everything_counts_as_flushed, "checkpoint-within-log"),
    (_power_loss_loses_everything, "checkpoint-within-log"),
    (_a_crash_loses_unflushed_records, "isr-holds-committed"),
    (_unknown_followers_reset_the_hw, "hw-monotonic"),
)


@patches_the_model
@pytest.mark.parametrize(("flaw", "invariant"), FLAWS, ids=[flaw.__name__[1:] for flaw, _ in FLAWS])
def test_a_flaw_of_the_model_breaks_its_invariant(
    flaw: Patch, invariant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    flaw(monkeypatch)
    assert is_violated(with_power_loss(standard_plan()), invariant)


# Switches


def test_watching_invariants_changes_nothing_else() -> None:
    plan = with_power_loss(standard_plan("kafka=4.3"))
    for seed in range(5):
        watched, unwatched = run_plan(plan, seed), run_plan(replace(plan, invariants=()), seed)
        assert [e for e in watched.evidence.trace if e[1] != "invariant_broken"] == unwatched.evidence.trace
        unwatched_rules = watched.verdict.rules.keys() - unwatched.verdict.rules.keys()
        assert unwatched_rules == set(RULE_OF_INVARIANT.values())
        assert all(
            unwatched.verdict.rules[name] == watched.verdict.rules[name] for name in unwatched.verdict.rules
        )


@pytest.mark.parametrize("invariant", INVARIANTS)
def test_a_single_watched_invariant_is_the_only_one_judged(invariant: str) -> None:
    plan = replace(library_plan("loss-by-hw-truncation"), kafka="4.3", invariants=(invariant,))
    result = run_plan(plan, 0)
    judged = {name for name, rule in RULE_OF_INVARIANT.items() if rule in result.verdict.rules}
    assert judged == {invariant}
    assert set(broken_invariants(result)) <= {invariant}


# What Kafka permits


@pytest.mark.parametrize(
    "options",
    [
        ("min.insync.replicas=2",),
        ("unclean.leader.election.enable=true", "min.insync.replicas=1"),
        (
            "kafka=2.0",
            # Without KIP-320 a follower keeps fetching from a leader that returned with another
            # log, and the judge takes that for a flaw.
            "behaviours.fetch_leader_epoch_fencing=true",
            "unclean.leader.election.enable=true",
            "min.insync.replicas=1",
        ),
    ],
)
@pytest.mark.soak(size=15, rounds_in_test=1, rounds_in_soak=40)
def test_unclean_elections_and_power_loss_are_permitted_to_break_invariants(
    options: tuple[str, ...], numbers: range
) -> None:
    plan = with_power_loss(standard_plan(*options))
    statuses: dict[str, set[str]] = {}
    for seed in numbers:
        for name, status in broken_invariants(run_plan(plan, seed)).items():
            statuses.setdefault(name, set()).add(status)
    assert statuses.pop("isr-holds-committed") == {PERMITTED}
    assert statuses.pop("log-matching") == {PERMITTED}
    assert all(of_invariant == {PERMITTED} for of_invariant in statuses.values()), statuses
