"""Flaws of the model, of old releases and of mutants are noticed where they break an invariant."""

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
def yardstick(*options: str) -> Plan:
    return load_campaign(resolve("standard")[0], options).plans[0]


@cache
def library_plan(campaign: str, variant: str | None = None) -> Plan:
    plans = load_campaign(resolve(campaign)[0]).plans
    return next(plan for plan in plans if plan.variant == variant)


def with_power_loss(plan: Plan) -> Plan:
    """Return the yardstick with a fault every other second, most of them power loss."""
    injection = plan.faults[0]
    crash = BrokerCrash(broker="any", kind="power_loss", restart_after=(US_PER_SECOND, 10 * US_PER_SECOND))
    assert isinstance(injection.timing, Rate)
    timing = replace(injection.timing, mean_us=2 * US_PER_SECOND)
    return replace(
        plan, faults=(replace(injection, timing=timing, faults=(*injection.faults, crash, crash)),)
    )


def broken(result: RunResult) -> dict[str, str]:
    """Return the invariants that broke, with the status of their rules."""
    rules = result.verdict.rules
    return {
        name: rules[rule].status
        for name, rule in RULE_OF_INVARIANT.items()
        if rule in rules and rules[rule].findings
    }


def is_violated(plan: Plan, invariant: str, first: int = 0) -> bool:
    seeds = range(first, first + SEEDS)
    return any(broken(run_plan(plan, seed)).get(invariant) == VIOLATED for seed in seeds)


# Mutants and releases

MUTANTS_NOTICED = (
    ("hw-truncation", "isr-holds-committed", 0),
    ("hw-truncation", "log-matching", 57),
    ("hw-truncation", "producer-state-matches-log", 57),
    ("no-truncation", "isr-holds-committed", 0),
    ("no-truncation", "log-matching", 0),
    ("no-sequence-check", "producer-state-matches-log", 0),
    ("hw-ignores-followers", "isr-holds-committed", 0),
)


@pytest.mark.parametrize(("mutant", "invariant", "first"), MUTANTS_NOTICED)
def test_a_mutant_is_noticed(mutant: str, invariant: str, first: int) -> None:
    plan = yardstick()
    flaw = {MUTANTS[mutant].switch: MUTANTS[mutant].value}
    assert is_violated(replace(plan, behaviours={**plan.behaviours, **flaw}), invariant, first)


def test_truncation_to_the_high_watermark_breaks_the_isr() -> None:
    result = run_plan(library_plan("loss-by-hw-truncation"), 0)
    assert broken(result) == {"isr-holds-committed": VIOLATED}
    finding = result.verdict.rules["isr-holds-committed"].findings[0]
    assert (finding.partition, finding.offset) == ("t-0", 1)
    assert [link.event for link in finding.chain] == ["appended", "truncated", "invariant-broken"]
    assert broken(run_plan(library_plan("loss-by-hw-truncation", "0.11"), 0)) == {}


def test_a_diverged_replica_in_the_isr_is_no_consequence_of_power_loss() -> None:
    assert broken(run_plan(library_plan("divergence-by-hw"), 0))["isr-holds-committed"] == VIOLATED
    for variant in ("0.11", "2.4"):
        found = broken(run_plan(library_plan("divergence-by-hw", variant), 0))
        assert found == {"isr-holds-committed": PERMITTED, "log-matching": PERMITTED}


# Flaws of the model, made for the occasion

Patch = Callable[[pytest.MonkeyPatch], None]


def _hw_stays_above_what_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    original = UnifiedLog.truncate_to

    def truncate_to(self: UnifiedLog, offset: int) -> bool:
        high_watermark = self.high_watermark
        cut = original(self, offset)
        self.high_watermark = high_watermark
        return cut

    monkeypatch.setattr(UnifiedLog, "truncate_to", truncate_to)


def _everybody_is_in_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Partition, "_is_in_sync", lambda *_: True)


def _entries_are_never_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LeaderEpochCache, "truncate_from_end", lambda *_: None)


def _entries_are_only_added(monkeypatch: pytest.MonkeyPatch) -> None:
    def assign(self: LeaderEpochCache, epoch: int, start_offset: int) -> None:
        if self.latest_epoch() != epoch:
            self.entries.append((epoch, start_offset))

    monkeypatch.setattr(LeaderEpochCache, "assign", assign)


def _producers_are_not_learned_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ProducerStates, "rebuild", lambda self, *_: self.entries.clear())


def _everything_counts_as_flushed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(UnifiedLog, "flushed_offset", property(lambda self: self.log_end_offset))


def _power_loss_takes_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LogFile, "lose_power", lambda self, _torn_after=None: self.truncate_to(0))


def _a_crash_takes_what_is_not_flushed(monkeypatch: pytest.MonkeyPatch) -> None:
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
    (_hw_stays_above_what_is_cut_off, "hw-within-log"),
    (_everybody_is_in_sync, "isr-holds-committed"),
    (_entries_are_never_cut, "epoch-cache-monotonic"),
    (_entries_are_only_added, "epoch-cache-monotonic"),
    (_producers_are_not_learned_again, "producer-state-matches-log"),
    (_everything_counts_as_flushed, "checkpoint-within-log"),
    (_power_loss_takes_everything, "checkpoint-within-log"),
    (_a_crash_takes_what_is_not_flushed, "isr-holds-committed"),
    (_unknown_followers_reset_the_hw, "hw-monotonic"),
)


@patches_the_model
@pytest.mark.parametrize(("flaw", "invariant"), FLAWS, ids=[flaw.__name__[1:] for flaw, _ in FLAWS])
def test_a_flaw_of_the_model_is_noticed(flaw: Patch, invariant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    flaw(monkeypatch)
    assert is_violated(with_power_loss(yardstick()), invariant)


# Switches


def test_watching_changes_nothing_else() -> None:
    plan = with_power_loss(yardstick("kafka=4.3"))
    for seed in range(5):
        watched, unwatched = run_plan(plan, seed), run_plan(replace(plan, invariants=()), seed)
        assert [e for e in watched.evidence.trace if e[1] != "invariant_broken"] == unwatched.evidence.trace
        left_out = watched.verdict.rules.keys() - unwatched.verdict.rules.keys()
        assert left_out == set(RULE_OF_INVARIANT.values())
        assert all(
            unwatched.verdict.rules[name] == watched.verdict.rules[name] for name in unwatched.verdict.rules
        )


@pytest.mark.parametrize("invariant", INVARIANTS)
def test_one_alone_is_judged_alone(invariant: str) -> None:
    plan = replace(library_plan("loss-by-hw-truncation"), kafka="4.3", invariants=(invariant,))
    result = run_plan(plan, 0)
    judged = {name for name, rule in RULE_OF_INVARIANT.items() if rule in result.verdict.rules}
    assert judged == {invariant}
    assert set(broken(result)) <= {invariant}


# What Kafka permits


@pytest.mark.parametrize(
    "options",
    [
        ("min.insync.replicas=2",),
        ("unclean.leader.election.enable=true", "min.insync.replicas=1"),
        (
            "kafka=2.0",
            # Without KIP-320 a follower goes on where its leader came back with another log: a flaw, and judged as one.
            "behaviours.fetch_leader_epoch_fencing=true",
            "unclean.leader.election.enable=true",
            "min.insync.replicas=1",
        ),
    ],
)
@pytest.mark.soak(size=15, test=1, soak=40)
def test_unclean_elections_and_power_loss_break_invariants_by_permission(
    options: tuple[str, ...], numbers: range
) -> None:
    plan = with_power_loss(yardstick(*options))
    found: dict[str, set[str]] = {}
    for seed in numbers:
        for name, status in broken(run_plan(plan, seed)).items():
            found.setdefault(name, set()).add(status)
    assert found.pop("isr-holds-committed") == {PERMITTED}
    assert found.pop("log-matching") == {PERMITTED}
    assert all(statuses == {PERMITTED} for statuses in found.values()), found
